// What the raw keys of series mean that were parsed before. The servers of a fleet send the same series, so nearly
// every raw key that is new to an agent was parsed for another one: the slow path then costs a look-up instead of
// parsing, normalising and SHA-256.
import type { SeriesId } from '../series/series-key.ts'

/** A series that broke no rule: its id, its full key, and how many fields of the request its raw key takes. */
export type ParsedSeries = { readonly id: SeriesId; readonly key: string; readonly fields: number }

/** Entries of one generation; there are two. */
const GENERATION_MAX = 8192
/** A longer raw key is parsed each time, so that the cache stays within about 10 MB. */
const RAW_KEY_BYTES_MAX = 512

type Entry = ParsedSeries & { readonly rawKey: Uint8Array }

/** Bounded: what was not asked for while as many others came is forgotten. One for each thread. */
export class RawSeriesCache {
  /** By the first word of the hash. Entries that are used move from the older generation into the younger one. */
  private young = new Map<number, Entry>()
  private old = new Map<number, Entry>()

  /** The series of the raw key from `start` to `end`, whose hash starts with `hash`. The bytes are compared. */
  find(hash: number, bytes: Uint8Array, start: number, end: number): ParsedSeries | undefined {
    const recent = this.young.get(hash)
    const entry = recent ?? this.old.get(hash)
    if (!entry || !isSame(entry.rawKey, bytes, start, end)) return undefined
    if (!recent) this.keep(hash, entry)
    return entry
  }

  add(hash: number, bytes: Uint8Array, start: number, end: number, parsed: ParsedSeries): void {
    if (end - start > RAW_KEY_BYTES_MAX) return
    // A copy: the memory of a body is given back after its request.
    this.keep(hash, { ...parsed, rawKey: new Uint8Array(bytes.subarray(start, end)) })
  }

  private keep(hash: number, entry: Entry): void {
    if (this.young.size >= GENERATION_MAX) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(hash, entry)
  }
}

function isSame(rawKey: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (rawKey.length !== end - start) return false
  for (let index = 0; index < rawKey.length; index++) if (rawKey[index] !== bytes[start + index]) return false
  return true
}
