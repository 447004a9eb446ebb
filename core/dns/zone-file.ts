// Zone files (RFC 1035 5, RFC 2308 4): read as a name server reads them, with the number of each line that is not, and
// written so that reading gives the same records.
import { isWithin, parseDomainName, relativeName } from './domain-name.ts'
import { isRecordType, parseRecordValue, type RecordType, type RecordValue } from './record-value.ts'
import { type Entry, readEntries, type Word } from './zone-file-words.ts'

export type Soa = {
  /** A host name, without its dot. */
  readonly primary: string
  /** An e-mail address. */
  readonly contact: string
  /** Seconds, all four. */
  readonly refresh: number
  readonly retry: number
  readonly expire: number
  readonly minimum: number
}

export type FileRecord = RecordValue & {
  readonly line: number
  /** Relative to the zone. */
  readonly name: string
  readonly type: RecordType
  /** Seconds; null: the default of the file, which is that of the zone. */
  readonly ttl: number | null
}

type SkippedLine = {
  readonly line: number
  readonly text: string
  readonly reason: 'unknown_type' | 'dnssec' | 'outside_zone' | 'class'
}

export type ZoneFile = {
  readonly soa: (Soa & { readonly serial: number }) | null
  readonly records: readonly FileRecord[]
  readonly skipped: readonly SkippedLine[]
  /** Of $TTL. */
  readonly defaultTtl: number | null
}

export type ZoneFileFault = {
  readonly line: number
  readonly fault: 'quote' | 'parenthesis' | 'escape' | 'directive' | 'name' | 'ttl' | 'type' | 'value' | 'soa'
}

/** What signs a zone is made by its signer and never imported. */
const DNSSEC = ['DNSKEY', 'RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'DS', 'CDS', 'CDNSKEY', 'SIG', 'KEY', 'NXT', 'DLV']
const CLASSES = ['IN', 'CH', 'HS', 'CS']
const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }
/** RFC 2181 8. */
export const TTL_MAX = 2 ** 31 - 1

/** `3600`, `1h`, `1h30m` in seconds; null for anything else. */
function parseTtl(text: string): number | null {
  if (/^\d{1,10}$/.test(text)) return Number(text) <= TTL_MAX ? Number(text) : null
  if (!/^(?:\d{1,10}[smhdw])+$/i.test(text)) return null
  let seconds = 0
  for (const [, count = '', unit = ''] of text.matchAll(/(\d+)([a-z])/gi))
    seconds += Number(count) * UNIT_SECONDS[unit.toLowerCase()]!
  return seconds <= TTL_MAX ? seconds : null
}

const textOf = (words: readonly Word[]): string => words.map(({ raw }) => raw).join(' ')

/** A name as the file says it: `@`, relative to the origin, or whole with its dot. */
function nameOf(text: string, origin: string): string | null {
  if (text === '@') return origin
  return parseDomainName(text.endsWith('.') ? text : `${text}.${origin}`)
}

/** The strings of a TXT record as one text; null when they are no UTF-8. */
function joinStrings(words: readonly Word[]): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(words.map(({ bytes }) => bytes)))
  } catch {
    return null
  }
}

/** `john\.doe.example.com.` is john.doe@example.com. */
function contactOf(text: string, origin: string): string | null {
  const found = /^((?:\\.|[^.\\])+)\.(.+)$/.exec(text.endsWith('.') || text === '@' ? text : `${text}.${origin}.`)
  const domain = found === null ? null : parseDomainName(found[2]!)
  return domain === null ? null : `${found![1]!.replace(/\\(.)/g, '$1')}@${domain}`
}

function readSoa(words: readonly Word[], origin: string): (Soa & { serial: number }) | null {
  const [first, second, ...rest] = words.map(({ raw }) => raw)
  const primary = nameOf(first ?? '', origin)
  const contact = contactOf(second ?? '', origin)
  const serial = /^\d{1,10}$/.test(rest[0] ?? '') ? Number(rest[0]) : null
  const times = rest.slice(1).map(parseTtl)
  if (primary === null || contact === null || serial === null || serial >= 2 ** 32) return null
  const [refresh, retry, expire, minimum] = times
  if (times.length !== 4 || refresh == null || retry == null || expire == null || minimum == null) return null
  return { primary, contact, serial, refresh, retry, expire, minimum }
}

/** The value of a record with its names made whole, in the form of `parseRecordValue`. */
function valueText(type: RecordType, words: readonly Word[], origin: string): string | null {
  if (type === 'TXT') return joinStrings(words)
  const texts = words.map(({ raw }) => raw)
  if (type === 'CAA') return texts.length === 3 ? `${texts[0]} ${texts[1]} "${texts[2]}"` : null
  const isNamed = type !== 'A' && type !== 'AAAA'
  const last = texts.pop() ?? ''
  if (!isNamed) return [...texts, last].join(' ')
  if (last === '.') return [...texts, last].join(' ')
  const name = nameOf(last, origin)
  return name === null ? null : [...texts, `${name}.`].join(' ')
}

/** Reads one file; what an entry leaves out is that of the one before. */
class ZoneFileReader {
  readonly #zone: string
  readonly #records: FileRecord[] = []
  readonly #skipped: SkippedLine[] = []
  #soa: ZoneFile['soa'] = null
  #origin: string
  #owner: string | null = null
  #defaultTtl: number | null = null
  #ttlBefore: number | null = null

  constructor(zone: string) {
    this.#zone = zone
    this.#origin = zone
  }

  read(content: string): ZoneFile | ZoneFileFault {
    const entries = readEntries(content)
    if (!Array.isArray(entries)) return entries as ZoneFileFault
    for (const entry of entries as readonly Entry[]) {
      const isDirective = entry.words[0]!.raw.startsWith('$') && !entry.isOfNameBefore
      const fault = isDirective ? this.#directive(entry.words) : this.#record(entry)
      if (fault) return { line: entry.line, fault }
    }
    return { soa: this.#soa, records: this.#records, skipped: this.#skipped, defaultTtl: this.#defaultTtl }
  }

  /** $INCLUDE would read files of the hub, $GENERATE make any number of records. */
  #directive(words: readonly Word[]): ZoneFileFault['fault'] | null {
    const [directive = '', argument = ''] = words.map(({ raw }) => raw)
    if (words.length !== 2) return 'directive'
    if (directive.toUpperCase() === '$TTL') {
      this.#defaultTtl = parseTtl(argument)
      return this.#defaultTtl === null ? 'ttl' : null
    }
    const origin = directive.toUpperCase() === '$ORIGIN' ? nameOf(argument, this.#origin) : null
    if (origin === null) return 'directive'
    this.#origin = origin
    return null
  }

  #record({ line, isOfNameBefore, words }: Entry): ZoneFileFault['fault'] | null {
    let at = 0
    if (!isOfNameBefore) this.#owner = nameOf(words[at++]!.raw, this.#origin)
    if (this.#owner === null) return 'name'
    let ttl: number | null = null
    let recordClass = 'IN'
    for (; at < words.length; at++) {
      const word = words[at]!.raw.toUpperCase()
      const seconds = parseTtl(word)
      if (CLASSES.includes(word)) recordClass = word
      else if (seconds !== null && ttl === null) ttl = seconds
      else break
    }
    const type = words[at]?.raw.toUpperCase()
    if (type === undefined) return 'type'
    const skip = (reason: SkippedLine['reason']): null => {
      this.#skipped.push({ line, text: textOf(words).slice(0, 200), reason })
      return null
    }
    if (recordClass !== 'IN') return skip('class')
    if (!isWithin(this.#owner, this.#zone)) return skip('outside_zone')
    const rest = words.slice(at + 1)
    if (type === 'SOA') {
      this.#soa = readSoa(rest, this.#origin)
      return this.#soa === null ? 'soa' : null
    }
    if (DNSSEC.includes(type)) return skip('dnssec')
    if (!isRecordType(type)) return /^[A-Z][A-Z0-9-]*$/.test(type) ? skip('unknown_type') : 'type'
    return this.#add(line, type, ttl, rest)
  }

  #add(line: number, type: RecordType, ttl: number | null, words: readonly Word[]): ZoneFileFault['fault'] | null {
    const text = valueText(type, words, this.#origin)
    const parsed = text === null ? null : parseRecordValue(type, text, this.#zone)
    if (parsed === null) return 'value'
    // Without $TTL a record has the one before it (RFC 1035 5.1); the SOA's minimum was the default before RFC 2308.
    const isInherited = ttl === null && this.#defaultTtl === null
    const own = isInherited ? (this.#ttlBefore ?? this.#soa?.minimum ?? null) : ttl
    this.#ttlBefore = own ?? this.#ttlBefore
    const isDefault = own === null || own === this.#defaultTtl
    this.#records.push({
      ...parsed,
      line,
      type,
      name: relativeName(this.#owner!, this.#zone),
      ttl: isDefault ? null : own,
    })
    return null
  }
}

/** Reads the records of `zone` from a master file. The first line that no server would read is the fault. */
export const readZoneFile = (content: string, zone: string): ZoneFile | ZoneFileFault =>
  new ZoneFileReader(zone).read(content)

const STRING_BYTES_MAX = 255

/** A text as strings of at most 255 bytes, in quotes; what is not printable ASCII as \DDD. */
export function quoteStrings(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const strings: string[] = []
  for (let at = 0; at < bytes.length || at === 0; at += STRING_BYTES_MAX) {
    const written = [...bytes.subarray(at, at + STRING_BYTES_MAX)].map(byte => {
      if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`
      return byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, '0')}` : String.fromCharCode(byte)
    })
    strings.push(`"${written.join('')}"`)
  }
  return strings.join(' ')
}

/** The text of strings in quotes, as files and servers write them: the other way round. */
export function unquoteStrings(content: string): string {
  const bytes: number[] = []
  const encoder = new TextEncoder()
  for (const [, string = ''] of content.matchAll(/"((?:\\[\s\S]|[^"\\])*)"/g))
    for (const [whole, code, escaped] of string.matchAll(/\\(\d{3})|\\([\s\S])|[^\\]+/g))
      if (code === undefined) bytes.push(...encoder.encode(escaped ?? whole))
      else bytes.push(Number(code) & 0xff)
  return new TextDecoder().decode(new Uint8Array(bytes))
}

const contactName = (contact: string): string => {
  const at = contact.lastIndexOf('@')
  return `${contact.slice(0, at).replace(/[.\\;()"\s]/g, '\\$&')}.${contact.slice(at + 1)}.`
}

type Written = {
  readonly name: string
  readonly type: RecordType
  readonly value: string
  readonly ttl: number | null
  readonly enabled: boolean
}

/** The apex first, then by name; NS before all others of a name. */
const inFileOrder = (a: Written, b: Written): number =>
  Number(b.name === '@') - Number(a.name === '@') ||
  (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) ||
  Number(b.type === 'NS') - Number(a.type === 'NS') ||
  (a.type < b.type ? -1 : a.type > b.type ? 1 : 0) ||
  (a.value < b.value ? -1 : 1)

/** A zone as a master file; records that are not enabled stand in it as comments, when they are given. */
export function writeZoneFile(
  zone: string,
  soa: Soa & { readonly serial: number },
  defaultTtl: number,
  records: readonly Written[],
): string {
  const { primary, contact, serial, refresh, retry, expire, minimum } = soa
  const lines = [
    `$ORIGIN ${zone}.`,
    `$TTL ${defaultTtl}`,
    `@ IN SOA ${primary}. ${contactName(contact)} ( ${serial} ${refresh} ${retry} ${expire} ${minimum} )`,
  ]
  for (const { name, type, value, ttl, enabled } of [...records].sort(inFileOrder)) {
    const written = type === 'TXT' ? quoteStrings(value) : value
    lines.push(`${enabled ? '' : '; '}${name} ${ttl === null ? '' : `${ttl} `}IN ${type} ${written}`)
  }
  return `${lines.join('\n')}\n`
}
