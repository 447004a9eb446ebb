// The series that one agent is known to send: maps the hash of a raw key to the series id without parsing, sorting or
// allocating. About 29 bytes for each series. The table also enforces the limit of active series (document 3 "Limits":
// 500 distinct series active in 1 hour): the table never holds more series than the limit, and an hour of silence frees
// a place.
import { assert } from '../assert.ts'
import type { SeriesId } from '../series/series-key.ts'

const ACTIVE_SECONDS = 3600
/**
 * Raw keys for each series in the table before it is cleared: the order of labels is free on the wire, so a series can
 * have several raw keys.
 */
const RAW_KEYS_PER_SERIES_MAX = 8
const RAW_KEYS_MAX = 0xfff0
/** No raw key. */
export const NONE = 0xffff
/** Two empty slots of the index. */
const NO_RAW_KEYS = -1

/**
 * Words of a raw key: hash A, hash B, and one word with the index of the series (low half) and of the raw key that
 * followed in the last batch (high half).
 */
export const RAW_KEY_WORDS = 3
/** Words of a series: id low, id high, and the time it was last seen, in seconds. */
export const SERIES_WORDS = 3

/**
 * Counts the active series of a company in this process, over all its agents. The implementation that threads share
 * counts atomically.
 */
export interface CompanySeries {
  readonly inUse: number
  /** Counts one more series; false when `limit` are in use already (0 = no limit). */
  take(limit: number): boolean
  give(places: number): void
}

/** The series of a company whose agents are all served by one thread. */
export class OwnCompanySeries implements CompanySeries {
  inUse = 0

  take(limit: number): boolean {
    if (limit > 0 && this.inUse >= limit) return false
    this.inUse++
    return true
  }

  give(places: number): void {
    this.inUse -= places
  }
}

/** The series of an agent as they are transferred to another thread; the memory of `words` moves with them. */
export type AgentSeriesState = {
  readonly words: Int32Array<ArrayBuffer>
  readonly seriesRoom: number
  readonly rawKeyRoom: number
  readonly rawKeyCount: number
  readonly firstRawKey: number
  readonly count: number
  readonly expiresFromSeconds: number
}

/** From the turn of a series to that of the next one: the golden section of the circle spreads any number evenly. */
const TURN_STEP = 0x9e3779b1

/** Shared by every agent that has sent nothing yet. */
const noWords = new Int32Array(0)

export class AgentSeries {
  // One array for all three parts, since each typed array costs 200 bytes and more: the raw keys, then the table of
  // series, then the index. Raw keys are in the order in which they first came, which is the order in which an agent
  // sends them. So a batch walks raw keys and table from front to back and needs the index only when the order changes.
  // As long as the order holds, the decoder walks both by itself.
  words: Int32Array<ArrayBuffer> = noWords
  private rawKeyRoom = 0
  private rawKeyCount = 0
  private seriesRoom = 0
  count = 0
  /** No series can age out before this instant, seconds. */
  private expiresFromSeconds = 0
  private previousRawKey = NONE
  private firstRawKey = NONE
  /** The next batch announces all definitions again: after a refused publish, or after an hour of silence. */
  announcesAll = false
  /** The next batch announces again the definitions whose turn is in this part of the hour: its start, its length. */
  private turnsFrom = 0
  private turns = 0

  constructor(readonly company: CompanySeries) {}

  /** The series that another thread transferred here. The company has counted them already. */
  static of(company: CompanySeries, state: AgentSeriesState): AgentSeries {
    const series = new AgentSeries(company)
    series.words = state.words
    series.seriesRoom = state.seriesRoom
    series.rawKeyRoom = state.rawKeyRoom
    series.rawKeyCount = state.rawKeyCount
    series.firstRawKey = state.firstRawKey
    series.count = state.count
    series.expiresFromSeconds = state.expiresFromSeconds
    return series
  }

  /** Detaches the series for a transfer and leaves this table empty. The company goes on counting them. */
  detach(): AgentSeriesState {
    const { words, seriesRoom, rawKeyRoom, rawKeyCount, firstRawKey, count, expiresFromSeconds } = this
    this.words = noWords
    this.seriesRoom = 0
    this.rawKeyRoom = 0
    this.count = 0
    this.clearRawKeys()
    return { words, seriesRoom, rawKeyRoom, rawKeyCount, firstRawKey, count, expiresFromSeconds }
  }

  /** The index in `words` at which the table of series starts. */
  get tableAt(): number {
    return this.rawKeyRoom * RAW_KEY_WORDS
  }

  private get indexAt(): number {
    return this.rawKeyRoom * RAW_KEY_WORDS + this.seriesRoom * SERIES_WORDS
  }

  /**
   * Grows the array to this many series and raw keys. The old memory is freed at once, and not left to the garbage
   * collector.
   */
  private grow(seriesRoom: number, rawKeyRoom: number): void {
    const { words: before, tableAt, indexAt } = this
    this.words = new Int32Array(rawKeyRoom * RAW_KEY_WORDS + seriesRoom * SERIES_WORDS + indexWords(rawKeyRoom))
    this.rawKeyRoom = rawKeyRoom
    this.seriesRoom = seriesRoom
    this.words.set(before.subarray(0, tableAt))
    this.words.set(before.subarray(tableAt, indexAt), this.tableAt)
    this.words.fill(NO_RAW_KEYS, this.indexAt)
    for (let rawKey = 0; rawKey < this.rawKeyCount; rawKey++) {
      const at = rawKey * RAW_KEY_WORDS
      this.setIndex(this.slotOf(this.words[at]!, this.words[at + 1]!), rawKey)
    }
    if (before.length > 0) before.buffer.transfer(0)
  }

  /**
   * Makes room for this many series at once. An agent's first batch shows how many it has; growing step by step would
   * leave memory behind.
   */
  reserve(seriesCount: number): void {
    if (seriesCount <= this.seriesRoom || this.count > 0) return
    this.clearRawKeys()
    this.grow(seriesCount, Math.max(seriesCount, this.rawKeyRoom))
  }

  /**
   * Sets which definitions the next batch announces again, besides those of new series: all, or those whose turn is
   * among the `turns` after `from`, on a circle of 2^32 turns. Every series has a turn by its index, far from that of
   * the next one, so that an hour's announcements are a few in each batch.
   */
  announce(all: boolean, from: number, turns: number): void {
    this.announcesAll = all
    this.turnsFrom = from | 0
    this.turns = turns
  }

  /** Whether the next batch announces the definition of this known series again. */
  announces(series: number): boolean {
    return this.announcesAll || (Math.imul(series, TURN_STEP) - this.turnsFrom) >>> 0 < this.turns
  }

  /** Starts a batch: the first series is predicted to be the one that came first last time. */
  startBatch(): void {
    this.previousRawKey = NONE
  }

  /** The raw key that follows if the batch has the order of the last one; NONE when that is unknown. */
  expectedRawKey(): number {
    const { words, previousRawKey } = this
    return previousRawKey === NONE ? this.firstRawKey : words[previousRawKey * RAW_KEY_WORDS + 2]! >>> 16
  }

  /** Notes that the batch had the raw keys from the expected one up to this one in their order. */
  cameInOrder(rawKey: number): void {
    this.previousRawKey = rawKey
  }

  /**
   * The index of the series whose raw key has this hash, or -1. Costs one comparison when the batch has the order of
   * the last one.
   */
  find(a: number, b: number): number {
    const { words } = this
    const predicted = this.expectedRawKey()
    if (predicted !== NONE) {
      const at = predicted * RAW_KEY_WORDS
      if (words[at] === a && words[at + 1] === b) {
        this.previousRawKey = predicted
        return words[at + 2]! & NONE
      }
    }
    if (this.rawKeyCount === 0) return -1
    const rawKey = this.indexed(this.slotOf(a, b))
    if (rawKey === NONE) return -1
    this.remember(rawKey)
    return words[rawKey * RAW_KEY_WORDS + 2]! & NONE
  }

  private remember(rawKey: number): void {
    const { words, previousRawKey } = this
    if (previousRawKey === NONE) this.firstRawKey = rawKey
    else {
      const at = previousRawKey * RAW_KEY_WORDS + 2
      words[at] = (words[at]! & NONE) | (rawKey << 16)
    }
    this.previousRawKey = rawKey
  }

  /** The slot of the index that has the raw key with these hashes, or the empty one where it would be. */
  private slotOf(a: number, b: number): number {
    const { words } = this
    const slots = indexSlots(this.rawKeyRoom)
    let slot = (a >>> 0) % slots
    for (;;) {
      const rawKey = this.indexed(slot)
      if (rawKey === NONE || (words[rawKey * RAW_KEY_WORDS] === a && words[rawKey * RAW_KEY_WORDS + 1] === b))
        return slot
      slot = slot + 1 === slots ? 0 : slot + 1
    }
  }

  /** The raw key in a slot of the index, or NONE. */
  private indexed(slot: number): number {
    const word = this.words[this.indexAt + (slot >> 1)]!
    return slot & 1 ? word >>> 16 : word & NONE
  }

  private setIndex(slot: number, rawKey: number): void {
    const at = this.indexAt + (slot >> 1)
    const word = this.words[at]!
    this.words[at] = slot & 1 ? (word & NONE) | (rawKey << 16) : (word & ~NONE) | rawKey
  }

  seen(series: number, nowSeconds: number): void {
    this.words[this.tableAt + series * SERIES_WORDS + 2] = nowSeconds
  }

  /** The low word of the series id, signed. */
  lo(series: number): number {
    return this.words[this.tableAt + series * SERIES_WORDS]!
  }

  /** The high word of the series id, signed. */
  hi(series: number): number {
    return this.words[this.tableAt + series * SERIES_WORDS + 1]!
  }

  /** The index of the series with this id, or -1. Used when a known series comes with a new raw key. */
  findId(id: SeriesId): number {
    const { words, count } = this
    const lo = id.lo | 0
    const hi = id.hi | 0
    for (let series = 0, at = this.tableAt; series < count; series++, at += SERIES_WORDS)
      if (words[at] === lo && words[at + 1] === hi) return series
    return -1
  }

  /**
   * True when one more series is within `limit`. Drops series that were silent for an hour when the limit is reached.
   */
  hasRoom(limit: number, nowSeconds: number): boolean {
    if (this.count < limit) return true
    if (nowSeconds < this.expiresFromSeconds) return false
    this.dropSilent(nowSeconds)
    return this.count < limit
  }

  /**
   * Adds a series; the caller has checked `hasRoom`. Returns its index, or -1 when the company is at its limit (0 = no
   * limit).
   */
  add(id: SeriesId, nowSeconds: number, companyLimit: number): number {
    assert(this.count < NONE, 'series of one agent fit 16 bits')
    if (!this.company.take(companyLimit)) return -1
    const series = this.count++
    if (series === this.seriesRoom) this.grow(roomAfter(series), Math.max(roomAfter(series), this.rawKeyRoom))
    const at = this.tableAt + series * SERIES_WORDS
    this.words[at] = id.lo
    this.words[at + 1] = id.hi
    this.words[at + 2] = nowSeconds
    if (series === 0) this.expiresFromSeconds = nowSeconds + ACTIVE_SECONDS
    return series
  }

  /** Remembers that a raw key with this hash belongs to the series. */
  addRawKey(a: number, b: number, series: number): void {
    if (this.rawKeyCount >= Math.min(this.count * RAW_KEYS_PER_SERIES_MAX, RAW_KEYS_MAX)) this.clearRawKeys()
    if (this.rawKeyCount === this.rawKeyRoom) this.grow(this.seriesRoom, roomAfter(this.rawKeyCount))
    const slot = this.slotOf(a, b)
    let rawKey = this.indexed(slot)
    if (rawKey === NONE) rawKey = this.rawKeyCount++
    const at = rawKey * RAW_KEY_WORDS
    this.setIndex(slot, rawKey)
    this.words[at] = a
    this.words[at + 1] = b
    this.words[at + 2] = series | (NONE << 16)
    this.remember(rawKey)
  }

  /** Removes the series from index `count` on, because the batch that added them was refused. */
  rollback(count: number): void {
    if (count === this.count) return
    this.company.give(this.count - count)
    this.count = count
    this.clearRawKeys()
  }

  /** Removes all series: the agent no longer sends to this process. */
  release(): void {
    this.rollback(0)
  }

  /** Drops the series that were silent for an hour, when there can be any. */
  expire(nowSeconds: number): void {
    if (this.count > 0 && nowSeconds >= this.expiresFromSeconds) this.dropSilent(nowSeconds)
  }

  private dropSilent(nowSeconds: number): void {
    const { words, tableAt } = this
    let kept = 0
    let oldest = nowSeconds
    for (let series = 0; series < this.count; series++) {
      const at = tableAt + series * SERIES_WORDS
      const seenAt = words[at + 2]! >>> 0
      if (nowSeconds - seenAt >= ACTIVE_SECONDS) continue
      words.copyWithin(tableAt + kept * SERIES_WORDS, at, at + SERIES_WORDS)
      if (seenAt < oldest) oldest = seenAt
      kept++
    }
    this.expiresFromSeconds = oldest + ACTIVE_SECONDS
    this.rollback(kept)
  }

  /** Drops all raw keys; the next batches add them again. */
  private clearRawKeys(): void {
    this.words.fill(NO_RAW_KEYS, this.indexAt)
    this.rawKeyCount = 0
    this.previousRawKey = NONE
    this.firstRawKey = NONE
  }
}

/** The slots of the index for this many raw keys, at most two thirds full; a word has two slots. */
const indexSlots = (rawKeys: number): number => Math.max(32, Math.ceil(rawKeys * 1.5))
const indexWords = (rawKeys: number): number => Math.ceil(indexSlots(rawKeys) / 2)

/** Capacity after growing: half as many again, at least 16. */
const roomAfter = (records: number): number => Math.max(16, Math.ceil(records * 1.5))
