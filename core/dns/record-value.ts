// The value of one DNS record: what a text says in the form of its type, and the one text that it is kept as. Names in
// values end with a dot, as in zone files.
import { parseAddress } from '../network/ip-address.ts'
import { fullName, parseHostName } from './domain-name.ts'

export const recordTypes = ['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'SRV', 'CAA', 'PTR', 'NS'] as const
export type RecordType = (typeof recordTypes)[number]

/** A value of each type. */
export const valueExamples: Readonly<Record<RecordType, string>> = {
  A: '192.0.2.10',
  AAAA: '2001:db8::10',
  CNAME: 'www.example.com.',
  MX: '10 mail.example.com.',
  TXT: 'v=spf1 -all',
  SRV: '10 5 5060 sip.example.com.',
  CAA: '0 issue "ca.example.com"',
  PTR: 'www.example.com.',
  NS: 'ns1.example.com.',
}

export const isRecordType = (text: string): text is RecordType => (recordTypes as readonly string[]).includes(text)

export type RecordValue = {
  /** One text for all spellings of a value. */
  readonly value: string
  readonly priority: number | null
  readonly weight: number | null
  readonly port: number | null
  /** Where it leads: a host name with its dot, `.` for nowhere. */
  readonly target: string | null
}

const TEXT_BYTES_MAX = 4096
const CAA_TAGS = ['issue', 'issuewild', 'iodef', 'contactemail', 'contactphone']
const NUMBER = /^(?:0|[1-9]\d{0,4})$/

const plain = (value: string): RecordValue => ({ value, priority: null, weight: null, port: null, target: null })

/** 0 to 65535. */
const shortNumber = (text: string | undefined): number | null =>
  text !== undefined && NUMBER.test(text) && Number(text) <= 0xffff ? Number(text) : null

/** One label alone belongs to the zone; a text with dots is a whole name, with its dot or without. */
function hostOf(text: string | undefined, zone: string): string | null {
  if (text === undefined || text === '') return null
  if (text === '@') return `${zone}.`
  const name = parseHostName(text.includes('.') ? text : fullName(text, zone))
  return name === null ? null : `${name}.`
}

function leadsTo(text: string, zone: string): RecordValue | null {
  const target = hostOf(text, zone)
  return target === null ? null : { ...plain(target), target }
}

function address(text: string, kind: 'ipv4' | 'ipv6'): RecordValue | null {
  // A mapped address is an AAAA by its text, and no server gives it out as one.
  if ((kind === 'ipv6') !== text.includes(':')) return null
  const parsed = parseAddress(text)
  return parsed?.kind() === kind ? plain(parsed.toString()) : null
}

function mailExchange(words: readonly string[], zone: string): RecordValue | null {
  const priority = shortNumber(words[0])
  // RFC 7505: no mail is taken.
  const target = words[1] === '.' && priority === 0 ? '.' : hostOf(words[1], zone)
  if (words.length !== 2 || priority === null || target === null) return null
  return { ...plain(`${priority} ${target}`), priority, target }
}

function service(words: readonly string[], zone: string): RecordValue | null {
  const [priority = null, weight = null, port = null] = words.slice(0, 3).map(shortNumber)
  const target = words[3] === '.' ? '.' : hostOf(words[3], zone)
  if (words.length !== 4 || priority === null || weight === null || port === null || target === null) return null
  return { value: `${priority} ${weight} ${port} ${target}`, priority, weight, port, target }
}

function authorization(text: string): RecordValue | null {
  const found = /^(\d{1,3})\s+([A-Za-z0-9]+)\s+(?:"([^"\\]*)"|([^\s"\\]+))$/.exec(text)
  if (!found) return null
  const [, flags = '', tag = '', quoted, bare] = found
  const content = quoted ?? bare ?? ''
  if (!['0', '128'].includes(flags) || !CAA_TAGS.includes(tag.toLowerCase())) return null
  if (!isPrintable(content) || (tag.toLowerCase() === 'iodef' && !/^(mailto:.+@.+|https?:\/\/.+)$/.test(content)))
    return null
  return plain(`${flags} ${tag.toLowerCase()} "${content}"`)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused.
const isPrintable = (text: string): boolean => !/[\x00-\x1f\x7f]/.test(text)

/**
 * What a value says in the form of its type; null when it does not have that form. `zone` completes names of one label.
 * TXT is the text itself, without quotes, at most 4,096 bytes.
 */
export function parseRecordValue(type: RecordType, text: string, zone: string): RecordValue | null {
  if (type === 'TXT')
    return isPrintable(text) && text !== '' && Buffer.byteLength(text) <= TEXT_BYTES_MAX ? plain(text) : null
  const trimmed = text.trim()
  const words = trimmed.split(/\s+/)
  switch (type) {
    case 'A':
      return address(trimmed, 'ipv4')
    case 'AAAA':
      return address(trimmed, 'ipv6')
    case 'CNAME':
    case 'PTR':
    case 'NS':
      return words.length === 1 ? leadsTo(trimmed, zone) : null
    case 'MX':
      return mailExchange(words, zone)
    case 'SRV':
      return service(words, zone)
    case 'CAA':
      return authorization(trimmed)
  }
}
