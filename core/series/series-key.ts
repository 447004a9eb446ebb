// The identity of a series on a server: `metric{label="value"}` with sorted labels (document 2 "Series state key",
// decision G-72), and the 64-bit id derived from it that the bus, the evaluation and the samples store use.
import { limits } from '../limits.ts'
import { sha256Hex, sha256Words } from './hash.ts'
import { fitsUtf8, type Labels, truncateUtf8 } from './labels.ts'

/** A series id: the first 64 bits of SHA-256 of the full series key, as two unsigned 32-bit words. */
export type SeriesId = { readonly lo: number; readonly hi: number }

const HEAD_BYTES = 242
const HASH_CHARS = 12

const escapeValue = (value: string): string =>
  /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value

/** The full key without a length limit, from which ids are derived. A label with an empty value equals no label. */
export function fullSeriesKey(metric: string, labels: Labels): string {
  const keys = Object.keys(labels)
    .filter(key => labels[key] !== '')
    .sort()
  if (keys.length === 0) return metric
  return `${metric}{${keys.map(key => `${key}="${escapeValue(labels[key]!)}"`).join(',')}}`
}

/**
 * The key as events and alerts show it: at most 255 bytes; a longer one becomes head, `~` and 12 characters of its
 * hash.
 */
export function seriesKey(metric: string, labels: Labels): string {
  return shortenSeriesKey(fullSeriesKey(metric, labels))
}

export function shortenSeriesKey(full: string): string {
  if (fitsUtf8(full, limits.seriesKeyBytesMax)) return full
  return `${truncateUtf8(full, HEAD_BYTES)}~${sha256Hex(full).slice(0, HASH_CHARS)}`
}

/** The id of a series, from its full key: the same on every server, in every process. */
export function seriesId(full: string): SeriesId {
  return sha256Words(full)
}

/** The metric of a full key. */
export function metricOf(full: string): string {
  const labelsAt = full.indexOf('{')
  return labelsAt < 0 ? full : full.slice(0, labelsAt)
}

/** The inverse of `fullSeriesKey`: metric and labels of a full key. Throws on text that is not one. */
export function parseSeriesKey(full: string): { metric: string; labels: Record<string, string> } {
  const open = full.indexOf('{')
  if (open < 0) return { metric: full, labels: {} }
  const labels: Record<string, string> = {}
  let at = open + 1
  while (full[at] !== '}') {
    const equals = full.indexOf('="', at)
    if (equals < 0) throw new Error(`not a series key: ${full}`)
    const key = full.slice(at, equals)
    let value = ''
    at = equals + 2
    while (full[at] !== '"') {
      if (at >= full.length) throw new Error(`not a series key: ${full}`)
      if (full[at] === '\\') {
        const escaped = full[at + 1]
        value += escaped === 'n' ? '\n' : escaped
        at += 2
      } else value += full[at++]
    }
    labels[key] = value
    at++
    if (full[at] === ',') at++
  }
  return { metric: full.slice(0, open), labels }
}
