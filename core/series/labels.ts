// What an agent may send as a metric name, a label key and a label value (document 3 "Limits", decision G-57).
import { limits } from '../limits.ts'
import { sha256Hex } from './hash.ts'

/** Labels of one series: key -> value, keys unique. Order is of no meaning. */
export type Labels = Readonly<Record<string, string>>

const METRIC_NAME = /^[a-z][a-z0-9_]{0,63}$/
const LABEL_KEY = /^[a-z][a-z0-9_]{0,31}$/
const RESERVED = new Set(['company_id', 'server_id', 'agent_id'])

export const isMetricName = (name: string): boolean => METRIC_NAME.test(name)
export const isLabelKey = (key: string): boolean => LABEL_KEY.test(key)
/**
 * Whether a label key is reserved. Identity comes from the token only, so labels that claim an identity are removed.
 */
export const isReservedLabel = (key: string): boolean => RESERVED.has(key)

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The longest prefix of `text` that has at most `bytesMax` bytes of UTF-8 and ends at a whole character. */
export function truncateUtf8(text: string, bytesMax: number): string {
  if (text.length * 3 <= bytesMax) return text
  const bytes = encoder.encode(text)
  if (bytes.length <= bytesMax) return text
  let end = bytesMax
  // 10xxxxxx continues a character: step back to the byte that starts it.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--
  return decoder.decode(bytes.subarray(0, end))
}

/** True when `text` has at most `bytesMax` bytes of UTF-8. */
export const fitsUtf8 = (text: string, bytesMax: number): boolean =>
  text.length * 3 <= bytesMax || encoder.encode(text).length <= bytesMax

/** A label value as it is stored: at most 128 bytes of UTF-8, cut at a whole character. */
export const truncateLabelValue = (value: string): string => truncateUtf8(value, limits.labelValueBytesMax)

const HASH_CHARS = 12

/**
 * A label value that the collector does not have to cut: unchanged up to 128 bytes of UTF-8; a longer one becomes its
 * first 115 bytes at most, `~` and 12 characters of its hash (decision G-195). So two long values with the same
 * beginning stay two series.
 */
export function distinctLabelValue(value: string): string {
  if (truncateLabelValue(value) === value) return value
  const head = truncateUtf8(value, limits.labelValueBytesMax - HASH_CHARS - 1)
  return `${head}~${sha256Hex(value).slice(0, HASH_CHARS)}`
}

/**
 * The `target` label of a check. The agent sends it, the rules of the check match it, and the collector applies the
 * same shortening to a longer value.
 */
export const targetLabel = distinctLabelValue
