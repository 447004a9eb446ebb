// Maps series ids to series keys. An id is derived from its key alone, so all servers of a thread share one dictionary,
// which has each `metric{label="value"}` once. The keys are also stored beside the snapshots, by shard; a key that no
// series of the thread has used for long is removed from memory and from the store. Ingest announces the keys of an
// agent's series at least every hour, so the dictionary learns a key again when its series comes back.
import type { Labels } from '../../series/labels.ts'
import { parseSeriesKey, type SeriesId, seriesId, shortenSeriesKey } from '../../series/series-key.ts'

export type SeriesDefinition = {
  /** The full key, from which the id is derived. */
  readonly fullKey: string
  readonly metric: string
  readonly hi: number
  /** The next definition whose id has the same low word. */
  next: SeriesDefinition | undefined
  /** The number of series of servers that use this key. */
  uses: number
  /** The last check found the key unused, and no series has used it since. */
  isIdle: boolean
  /** Shards that store the key, one bit each: 0 to 31 and 32 to 63. */
  shardsLo: number
  shardsHi: number
}

/** The key as events show it: at most 255 bytes. */
export const shownKey = (definition: SeriesDefinition): string => shortenSeriesKey(definition.fullKey)

export const labelsOf = (definition: SeriesDefinition): Labels => parseSeriesKey(definition.fullKey).labels

const SHARDS = 64

const hasShard = ({ shardsLo, shardsHi }: Pick<SeriesDefinition, 'shardsLo' | 'shardsHi'>, shard: number): boolean =>
  ((shard < 32 ? shardsLo : shardsHi) & (1 << (shard & 31))) !== 0

export class SeriesDictionary {
  /** Definitions by the low word of their id. */
  private readonly byLo = new Map<number, SeriesDefinition>()
  private count = 0
  private readonly metrics = new Map<string, string>()
  /** By shard: keys that are not stored yet, and keys that can be removed from the store. */
  private readonly learnt = new Map<number, Set<string>>()
  private readonly forgotten = new Map<number, Set<string>>()

  idOf(fullKey: string): SeriesId {
    return seriesId(fullKey)
  }

  get size(): number {
    return this.count
  }

  get(lo: number, hi: number): SeriesDefinition | undefined {
    let definition = this.byLo.get(lo | 0)
    while (definition && definition.hi !== hi) definition = definition.next
    return definition
  }

  /** Loads the stored keys of a shard. */
  load(shard: number, fullKeys: readonly string[]): void {
    for (const fullKey of fullKeys) this.noteShard(this.define(fullKey), shard)
  }

  /** Learns a key that a server of the shard sends; the same key again changes nothing. */
  learn(shard: number, fullKey: string): SeriesDefinition {
    const definition = this.define(fullKey)
    if (!this.noteShard(definition, shard)) return definition
    // A key that waits to be removed from the store is still there: cancelling the removal is enough.
    if (this.forgotten.get(shard)?.delete(fullKey) !== true) setOf(this.learnt, shard).add(fullKey)
    return definition
  }

  /** Whether `learn` would change nothing: the shard has learnt the key with this id. */
  isLearnt(shard: number, lo: number, hi: number): boolean {
    const definition = this.get(lo, hi)
    return definition !== undefined && hasShard(definition, shard)
  }

  private define(fullKey: string): SeriesDefinition {
    const { lo, hi } = seriesId(fullKey)
    const known = this.get(lo, hi)
    if (known) return known
    const open = fullKey.indexOf('{')
    const metric = this.interned(open < 0 ? fullKey : fullKey.slice(0, open))
    const next = this.byLo.get(lo | 0)
    const definition = { fullKey, metric, hi, next, uses: 0, isIdle: false, shardsLo: 0, shardsHi: 0 }
    this.byLo.set(lo | 0, definition)
    this.count++
    return definition
  }

  private interned(metric: string): string {
    const known = this.metrics.get(metric)
    if (known === undefined) this.metrics.set(metric, metric)
    return known ?? metric
  }

  /** Marks the key as used by the shard; true when it was not marked before. */
  private noteShard(definition: SeriesDefinition, shard: number): boolean {
    if (hasShard(definition, shard)) return false
    const bit = 1 << (shard & 31)
    if (shard < 32) definition.shardsLo |= bit
    else definition.shardsHi |= bit
    return true
  }

  /** Counts one more series that uses the key; undefined when the key is not known yet. */
  use(lo: number, hi: number): SeriesDefinition | undefined {
    const definition = this.get(lo, hi)
    if (definition) {
      definition.uses++
      definition.isIdle = false
    }
    return definition
  }

  /** Counts one series less that uses the key. */
  release(lo: number, hi: number): void {
    const definition = this.get(lo, hi)
    if (definition) definition.uses--
  }

  /** Checks all keys and drops those that this check and the one before both found unused. */
  forgetUnused(): void {
    for (const [lo, first] of this.byLo) {
      let kept: SeriesDefinition | undefined
      for (let definition: SeriesDefinition | undefined = first; definition; ) {
        const next: SeriesDefinition | undefined = definition.next
        const wasIdle = definition.isIdle
        definition.isIdle = definition.uses === 0
        if (wasIdle && definition.isIdle) this.forget(definition)
        else {
          definition.next = kept
          kept = definition
        }
        definition = next
      }
      if (!kept) this.byLo.delete(lo)
      else if (kept !== first) this.byLo.set(lo, kept)
    }
  }

  private forget({ fullKey, shardsLo, shardsHi }: SeriesDefinition): void {
    this.count--
    for (let shard = 0; shard < SHARDS; shard++) {
      if (!hasShard({ shardsLo, shardsHi }, shard)) continue
      // A key that was never stored needs no removal.
      if (this.learnt.get(shard)?.delete(fullKey) !== true) setOf(this.forgotten, shard).add(fullKey)
    }
  }

  /** All keys of the shard, stored or not. */
  keysOf(shard: number): string[] {
    const keys: string[] = []
    for (const first of this.byLo.values())
      for (let definition: SeriesDefinition | undefined = first; definition; definition = definition.next)
        if (hasShard(definition, shard)) keys.push(definition.fullKey)
    return keys
  }

  /**
   * Returns the keys of the shard learnt since the last call. The caller stores them before a snapshot that needs them.
   */
  takeLearnt(shard: number): string[] {
    return taken(this.learnt, shard)
  }

  /**
   * Returns the keys of the shard that a snapshot taken now does not need. The caller removes them from the store once
   * that snapshot is saved.
   */
  takeForgotten(shard: number): string[] {
    return taken(this.forgotten, shard)
  }

  /** What was taken could not be stored or removed: it is taken again with the next call, unless it changed since. */
  giveBack(shard: number, learnt: readonly string[], forgotten: readonly string[]): void {
    for (const fullKey of learnt) if (this.hasKey(shard, fullKey)) setOf(this.learnt, shard).add(fullKey)
    for (const fullKey of forgotten) if (!this.hasKey(shard, fullKey)) setOf(this.forgotten, shard).add(fullKey)
  }

  private hasKey(shard: number, fullKey: string): boolean {
    const { lo, hi } = seriesId(fullKey)
    return this.isLearnt(shard, lo, hi)
  }
}

function taken(sets: Map<number, Set<string>>, shard: number): string[] {
  const keys = sets.get(shard)
  sets.delete(shard)
  return keys ? [...keys] : []
}

function setOf(sets: Map<number, Set<string>>, shard: number): Set<string> {
  let set = sets.get(shard)
  if (!set) {
    set = new Set()
    sets.set(shard, set)
  }
  return set
}
