// What series ids mean: the id of a series is derived from its key alone, so the dictionary of a thread is shared by all machines
// and holds each `metric{label="value"}` once, however many machines report it.
import type { Labels } from '../series/labels.ts'
import { parseSeriesKey, type SeriesId, seriesId, shortenSeriesKey } from '../series/series-key.ts'

export type SeriesDefinition = {
  /** The full key, from which the id is derived. */
  readonly fullKey: string
  /** As events show it: at most 255 bytes. */
  readonly key: string
  readonly metric: string
  readonly labels: Labels
}

const mapKey = (lo: number, hi: number): string => String.fromCharCode(lo & 0xffff, lo >>> 16, hi & 0xffff, hi >>> 16)

export class SeriesDictionary {
  private readonly byId = new Map<string, SeriesDefinition>()
  /** Keys learnt since the last `takeLearnt`: they are kept on disk beside the snapshots. */
  private learnt: string[] = []

  idOf(fullKey: string): SeriesId {
    return seriesId(fullKey)
  }

  takeLearnt(): string[] {
    const learnt = this.learnt
    this.learnt = []
    return learnt
  }

  get size(): number {
    return this.byId.size
  }

  get(lo: number, hi: number): SeriesDefinition | undefined {
    return this.byId.get(mapKey(lo, hi))
  }

  /** Learns a key; the same key again changes nothing. */
  learn(fullKey: string): SeriesDefinition {
    const { lo, hi } = seriesId(fullKey)
    const known = this.byId.get(mapKey(lo, hi))
    if (known) return known
    const { metric, labels } = parseSeriesKey(fullKey)
    const definition = { fullKey, key: shortenSeriesKey(fullKey), metric, labels }
    this.byId.set(mapKey(lo, hi), definition)
    this.learnt.push(fullKey)
    return definition
  }
}
