// What every source gives to the import: rules of packages, words about vulnerabilities, ends of support.
import type { Affected, Release, Rule, Vulnerability } from '../../../../core/matching/advisory.ts'
import type { Document } from '../input/documents.ts'

/** What a source says of a vulnerability; what it does not say is absent. */
export type VulnerabilityPart = Partial<Vulnerability> & { readonly id: string }

/** What a source says of a release; the table in the code says the rest. */
export type ReleasePart = Partial<Omit<Release, 'id'>> & { readonly id: string }

export type RuleKey = Pick<Affected, 'release' | 'package' | 'by'>

/** Takes what a source reads. Records are counted by the source itself: what one is differs with the format. */
export type RecordSink = {
  /** One record was read. */
  record(): void
  /** One record could not be read: it counts, and more than 1 % of them refuse the source (MAT-066). */
  reject(): void
  /** Takes a rule, or drops it and counts it as rejected when a boundary is no version (MAT-098). */
  rule(key: RuleKey, rule: Rule): void
  /** Advisories of a vulnerability that another source's rules are to name (MAT-080). */
  advisories(key: RuleKey, vuln: string, ids: readonly string[]): void
  vulnerability(part: VulnerabilityPart): void
  release(part: ReleasePart): void
  /** Rows of this vulnerability that an earlier version has from this source are replaced or gone. */
  replace(vuln: string): void
}

export type SourceParser = (documents: AsyncIterable<Document>, sink: RecordSink) => Promise<void>

const TITLE_MAX = 500
const REFERENCES_MAX = 20
const REFERENCE_LENGTH_MAX = 500

/** One line of text that a list can show. */
export function titleOf(text: unknown): string {
  if (typeof text !== 'string') return ''
  const line = text
    .slice(0, 10 * TITLE_MAX)
    .trim()
    .split(/\r?\n\s*\r?\n/, 1)[0]!
    .replace(/\s+/g, ' ')
  return line.length <= TITLE_MAX ? line : `${line.slice(0, TITLE_MAX - 1).trimEnd()}…`
}

/** Addresses that a browser may be pointed at: whatever else a record names as one is left out. */
export const referencesOf = (urls: Iterable<unknown>): string[] =>
  [...new Set([...urls].filter(isAddress))].slice(0, REFERENCES_MAX)

const isAddress = (url: unknown): url is string =>
  typeof url === 'string' && url.length <= REFERENCE_LENGTH_MAX && /^https?:\/\/[^\s"'<>]+$/.test(url)

/** An instant of a record in ms; undefined when it is none. */
export function instantOf(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined
  const at = Date.parse(/[Zz]|[+-]\d\d:?\d\d$/.test(text) || !text.includes('T') ? text : `${text}Z`)
  return Number.isFinite(at) ? at : undefined
}

export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const objectsOf = (value: unknown): readonly JsonObject[] => listOf(value).filter(isObject)
export const textsOf = (value: unknown): readonly string[] =>
  listOf(value).filter((item): item is string => typeof item === 'string')
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const NAME_LENGTH_MAX = 256
const ID_LENGTH_MAX = 128

/** Names of packages and ids are keys of rows: printable, without blanks at their ends, of bounded length. */
export const isPackageName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= NAME_LENGTH_MAX && /^[!-~]+$/.test(value)
export const isRecordId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= ID_LENGTH_MAX && /^[!-~]+$/.test(value)

export const isCve = (id: string): boolean => /^CVE-\d{4}-\d{4,}$/.test(id)
