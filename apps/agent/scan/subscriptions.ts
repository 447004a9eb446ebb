// What a system takes beside the usual updates: paid extensions of its support, and module streams (MAT section 1).
import { isObject } from '../../../core/json-object.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import type { RootFiles } from './root-files.ts'

const STATUS_BYTES_MAX = 1024 * 1024
const LIST_BYTES_MAX = 1024 * 1024
const MODULES_MAX = 1_000
const WORD_MAX = 128

/** Ubuntu: whether the host is attached, and which of the extensions are enabled. */
export async function readExtendedSupport(files: RootFiles): Promise<Report['esm']> {
  const none = { attached: false, infra: false, apps: false }
  const text = await files.text('/var/lib/ubuntu-advantage/status.json', STATUS_BYTES_MAX)
  if (text === null) return none
  let status: unknown
  try {
    status = JSON.parse(text)
  } catch {
    return none
  }
  if (!isObject(status)) return none
  const services: readonly unknown[] = Array.isArray(status.services) ? status.services : []
  const isEnabled = (name: string): boolean =>
    services.some(service => isObject(service) && service.name === name && service.status === 'enabled')
  return { attached: status.attached === true, infra: isEnabled('esm-infra'), apps: isEnabled('esm-apps') }
}

/** Debian: whether the archive of Extended LTS is among the enabled sources of apt. */
export async function readUsesElts(files: RootFiles): Promise<boolean> {
  const folder = '/etc/apt/sources.list.d'
  const names = await files.names(folder).catch(() => [])
  const paths = names.filter(name => /\.(list|sources)$/.test(name)).map(name => `${folder}/${name}`)
  for (const path of ['/etc/apt/sources.list', ...paths]) {
    const text = await files.text(path, LIST_BYTES_MAX)
    if (text !== null && (path.endsWith('.sources') ? hasEltsParagraph(text) : hasEltsLine(text))) return true
  }
  return false
}

/** Word by word: one pattern over a long line of many addresses would take hours. */
const hasEltsAddress = (text: string): boolean =>
  text.split(/\s+/).some(word => {
    const at = word.indexOf('://')
    return at >= 0 && /\bextended-lts\b/.test(word.slice(at))
  })

const hasEltsLine = (text: string): boolean =>
  text.split('\n').some(line => /^\s*deb\s/.test(line) && hasEltsAddress(line.replace(/#.*/, '')))

function hasEltsParagraph(text: string): boolean {
  return text.split(/\n\s*\n/).some(paragraph => {
    const lines = paragraph.split('\n').filter(line => !line.startsWith('#'))
    const isOff = lines.some(line => /^enabled\s*:\s*(no|false|0|off|disable)\s*$/i.test(line))
    return !isOff && hasEltsAddress(lines.join('\n'))
  })
}

/** Red Hat and its kin: the enabled stream of each module, sorted by name. */
export async function readEnabledModules(files: RootFiles): Promise<Report['modules']> {
  const folder = '/etc/dnf/modules.d'
  const names = (await files.names(folder).catch(() => [])).filter(name => name.endsWith('.module'))
  const streams = new Map<string, string>()
  for (const name of names.slice(0, MODULES_MAX)) {
    const text = await files.text(`${folder}/${name}`)
    for (const [module, stream] of enabledStreams(text ?? '')) streams.set(module, stream)
  }
  return Object.fromEntries([...streams].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The enabled streams of one file: sections of `key=value` lines, as dnf writes them. A key's first value counts. */
function enabledStreams(text: string): ReadonlyMap<string, string> {
  const streams = new Map<string, string>()
  let values = new Map<string, string>()
  const endSection = (): void => {
    const name = values.get('name') || (values.get('[') ?? '')
    const stream = values.get('stream') ?? ''
    const isUsable = name !== '' && stream !== '' && name.length <= WORD_MAX && stream.length <= WORD_MAX
    if (isUsable && /^(enabled|1|true)$/i.test(values.get('state') ?? '')) streams.set(name, stream)
    values = new Map()
  }
  for (const line of text.split('\n').map(each => each.trim())) {
    const equals = line.indexOf('=')
    if (line.startsWith('[')) {
      endSection()
      const end = line.indexOf(']')
      if (end > 1) values.set('[', line.slice(1, end))
    } else if (equals > 0) {
      const key = line.slice(0, equals).trimEnd()
      if (!values.has(key)) values.set(key, line.slice(equals + 1).trimStart())
    }
  }
  endSection()
  return streams
}
