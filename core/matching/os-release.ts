// Reads os-release: which distribution and release this is, and which package system it lives by (MAT-014, MAT-021).
import type { PackageSystem, Report } from './report-schema.ts'

const LINE = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$/
const ID_LIKE_MAX = 16

/** The assignments of the file. Quotes and escapes are those of a shell; nothing is expanded. */
function parseOsRelease(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, key, value] = LINE.exec(line) ?? []
    if (key !== undefined && value !== undefined) values.set(key, unquoted(value.trim()))
  }
  return values
}

function unquoted(value: string): string {
  const quote = value[0]
  if (value.length < 2 || (quote !== '"' && quote !== "'") || !value.endsWith(quote)) return value
  const inside = value.slice(1, -1)
  return quote === '"' ? inside.replace(/\\(["$`\\])/g, '$1') : inside
}

/** The member `os` of a report, within its bounds; null when the text names no distribution. */
export function osOf(text: string): Report['os'] | null {
  const values = parseOsRelease(text)
  const value = (key: string, lengthMax = 128): string => (values.get(key) ?? '').slice(0, lengthMax)
  const id = value('ID').toLowerCase()
  if (id === '') return null
  const prettyName = value('PRETTY_NAME')
  const ubuntuCodename = value('UBUNTU_CODENAME')
  // Releases of before the key have it in VERSION: `8 (jessie)`.
  const codename = value('VERSION_CODENAME') || (/\(([a-z]+)\)/.exec(value('VERSION'))?.[1] ?? '')
  return {
    id,
    version_id: value('VERSION_ID'),
    codename,
    id_like: value('ID_LIKE', 2048)
      .toLowerCase()
      .split(/\s+/)
      .filter(word => word !== '' && word.length <= 128)
      .slice(0, ID_LIKE_MAX),
    cpe_name: value('CPE_NAME', 256),
    ...(prettyName === '' ? {} : { pretty_name: prettyName }),
    ...(ubuntuCodename === '' ? {} : { ubuntu_codename: ubuntuCodename }),
  }
}

const SYSTEM_OF: ReadonlyMap<string, PackageSystem> = new Map([
  ['debian', 'dpkg'],
  ['ubuntu', 'dpkg'],
  ['rhel', 'rpm'],
  ['fedora', 'rpm'],
  ['suse', 'rpm'],
  ['alpine', 'apk'],
])

/** The package system that the distribution lives by: the first of `ID`, then `ID_LIKE`, that is known. */
export function packageSystemOf(os: Pick<Report['os'], 'id' | 'id_like'>): PackageSystem | null {
  for (const word of [os.id, ...os.id_like]) {
    const system = SYSTEM_OF.get(word)
    if (system !== undefined) return system
  }
  return null
}

/** The branch that apk's repositories name: `edge`, or `v3.20`; empty when none of them does. */
export function apkBranch(repositories: string): string {
  const branches = repositories
    .split('\n')
    // A line with a tag (`@testing …`) only offers packages by that tag.
    .map(line => /^\s*(?:https?|ftp):\/\/\S*\/(edge|latest-stable|v\d+\.\d+)\/[\w-]+\/?\s*$/.exec(line)?.[1])
    .filter(branch => branch !== undefined)
  return branches.includes('edge') ? 'edge' : (branches[0] ?? '')
}
