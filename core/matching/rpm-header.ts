// Reads what a report needs of an rpm package: of the header as rpm's database keeps it, or of the line that `rpm -qa`
// prints (MAT-009, MAT-011, MAT-012). A header says of itself where its parts lie, so that every number of it is
// checked against its bytes.
import type { InstalledPackage } from './package-list.ts'

/** A package and when it was installed, in seconds; 0 when it does not say. */
type RpmPackage = { readonly installed: InstalledPackage; readonly installedAtSeconds: number }

/** `key` is a key that rpm trusts: it stands among the packages and is none. */
type RpmOutcome = RpmPackage | 'malformed' | 'key'

const INDEX_ENTRY_BYTES = 16
/** rpm takes no header with more. */
const INDEX_ENTRIES_MAX = 65_536

const tags = {
  name: 1000,
  version: 1001,
  release: 1002,
  epoch: 1003,
  installTime: 1008,
  vendor: 1011,
  arch: 1022,
  sourceRpm: 1044,
  moduleLabel: 5096,
} as const

const TYPE_INT32 = 4
const TEXT_TYPES: ReadonlySet<number> = new Set([6, 8, 9])

type RpmTags = {
  readonly name: string
  readonly epoch: number
  readonly version: string
  readonly release: string
  readonly arch: string
  readonly sourceRpm: string
  readonly module: string
  readonly vendor: string
  readonly installedAtSeconds: number
}

/** More of a text is not read: nothing of it that is longer is told. */
const TEXT_BYTES_MAX = 4096

const decoder = new TextDecoder()

/** The package of a header: a blob of the table `Packages`. */
export function readRpmHeader(blob: Uint8Array): RpmOutcome {
  if (blob.length < 8) return 'malformed'
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const entryCount = view.getUint32(0)
  const dataLength = view.getUint32(4)
  const dataStart = 8 + entryCount * INDEX_ENTRY_BYTES
  if (entryCount > INDEX_ENTRIES_MAX || dataStart + dataLength > blob.length) return 'malformed'
  const data = blob.subarray(dataStart, dataStart + dataLength)
  const texts = new Map<number, string>()
  const numbers = new Map<number, number>()
  const wanted = new Set<number>(Object.values(tags))
  for (let at = 8; at < dataStart; at += INDEX_ENTRY_BYTES) {
    const tag = view.getUint32(at)
    // Each tag stands once: entries that repeat one could make a text of the whole header some 65,000 times.
    if (!wanted.delete(tag)) continue
    const type = view.getUint32(at + 4)
    const offset = view.getUint32(at + 8)
    if (view.getUint32(at + 12) < 1) return 'malformed'
    if (TEXT_TYPES.has(type)) {
      const text = textAt(data, offset)
      if (text === null) return 'malformed'
      texts.set(tag, text)
    } else if (type === TYPE_INT32 && offset + 4 <= data.length) {
      numbers.set(tag, view.getUint32(dataStart + offset))
    } else return 'malformed'
  }
  const text = (tag: number): string => texts.get(tag) ?? ''
  return packageOf({
    name: text(tags.name),
    epoch: numbers.get(tags.epoch) ?? 0,
    version: text(tags.version),
    release: text(tags.release),
    arch: text(tags.arch),
    sourceRpm: text(tags.sourceRpm),
    module: text(tags.moduleLabel),
    vendor: text(tags.vendor),
    installedAtSeconds: numbers.get(tags.installTime) ?? 0,
  })
}

/** The text that ends at a zero byte; null when it begins outside of the data, or never ends. */
function textAt(data: Uint8Array, offset: number): string | null {
  if (offset >= data.length) return null
  const end = data.indexOf(0, offset)
  return end < 0 ? null : decoder.decode(data.subarray(offset, Math.min(end, offset + TEXT_BYTES_MAX)))
}

const QUERY_TAGS = ['NAME', 'EPOCHNUM', 'VERSION', 'RELEASE', 'ARCH', 'SOURCERPM', 'INSTALLTIME', 'VENDOR'] as const
const MODULE_TAG = 'MODULARITYLABEL'

/** What is given to `rpm -qa --qf`. Versions of rpm before modules refuse the whole format with the label in it. */
export const rpmQueryFormat = (withModule: boolean): string =>
  `${[...QUERY_TAGS, ...(withModule ? [MODULE_TAG] : [])].map(tag => `%{${tag}}`).join('\\t')}\\n`

/** The package of a line that `rpm -qa` printed in that format. */
export function readRpmQueryLine(line: string): RpmOutcome {
  const fields = line.split('\t').map(field => (field === '(none)' ? '' : field))
  const [name, epoch, version, release, arch, sourceRpm, installTime, vendor, module = ''] = fields
  const isWhole = fields.length === QUERY_TAGS.length || fields.length === QUERY_TAGS.length + 1
  if (!isWhole || !/^\d{1,10}$/.test(epoch || '0')) return 'malformed'
  return packageOf({
    name: name!,
    epoch: Number(epoch || '0'),
    version: version!,
    release: release!,
    arch: arch!,
    sourceRpm: sourceRpm!,
    module,
    vendor: vendor!,
    installedAtSeconds: /^\d{1,10}$/.test(installTime!) ? Number(installTime) : 0,
  })
}

function packageOf(header: RpmTags): RpmOutcome {
  const { name, version, release, epoch } = header
  if (name === 'gpg-pubkey') return 'key'
  if (name === '' || version === '' || release === '') return 'malformed'
  const withEpoch = (text: string): string => (epoch === 0 ? text : `${epoch}:${text}`)
  const own = withEpoch(`${version}-${release}`)
  const source = sourceOf(header.sourceRpm)
  return {
    installed: {
      name,
      version: own,
      arch: header.arch === '(none)' ? '' : header.arch,
      source: source?.name ?? name,
      sourceVersion: source === null ? own : withEpoch(source.version),
      module: header.module === '(none)' ? '' : header.module,
      vendor: header.vendor === '(none)' ? '' : header.vendor,
    },
    installedAtSeconds: header.installedAtSeconds,
  }
}

/** Name and version of a source package out of the name of its file; null for a package without one. */
function sourceOf(sourceRpm: string): { readonly name: string; readonly version: string } | null {
  const [, name, version] = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(sourceRpm) ?? []
  return name !== undefined && version !== undefined ? { name, version } : null
}
