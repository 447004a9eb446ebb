// The series that one agent is known to send: from the hash of a series' raw name-and-labels bytes to its id, without parsing,
// sorting or allocating. About 30 bytes a series. Also the place where the limit of active series is kept (document 3 "Limits":
// 500 distinct series active in 1 hour): the table never holds more series than the limit, and an hour of silence frees a place.
import { assert } from '../assert.ts'
import type { SeriesId } from '../series/series-key.ts'

const ACTIVE_SECONDS = 3600
/** Raw forms a series may have in the table (the order of a map's entries is free on the wire) before it is rebuilt. */
const FORMS_PER_SERIES_MAX = 8
const NONE = 0xffff

/** Series of a company on this node, shared by the agents of the company; limit 0 = off. */
export type CompanySeries = { inUse: number }

export class AgentSeries {
  /** Open addressing over raw forms: hash words, index of the series, and the slot that followed in the last batch. */
  private hashA = new Uint32Array(0)
  private hashB = new Uint32Array(0)
  private slotSeries = new Uint16Array(0)
  private slotNext = new Uint16Array(0)
  private formCount = 0
  private mask = -1
  /** By index of the series. */
  private idLo = new Uint32Array(0)
  private idHi = new Uint32Array(0)
  private lastSeen = new Uint32Array(0)
  count = 0
  /** No series can age out before this instant, seconds. */
  private expiresFromSeconds = 0
  private previousSlot = NONE
  /** All definitions go out again with the next batch: after a refused publish, and each hour. */
  announcesAll = false

  constructor(readonly company: CompanySeries) {}

  /** Starts a batch: the first series is predicted to be the one that came first last time. */
  startBatch(): void {
    this.previousSlot = NONE
    this.firstExpected = this.firstSlot
  }
  private firstSlot = NONE
  private firstExpected = NONE

  /** Index of the series with these raw bytes' hash, or -1. In the order of the last batch this costs one comparison. */
  find(a: number, b: number): number {
    if (this.mask < 0) return -1
    const predicted = this.previousSlot === NONE ? this.firstExpected : this.slotNext[this.previousSlot]!
    if (predicted !== NONE && this.hashA[predicted] === a && this.hashB[predicted] === b) {
      this.previousSlot = predicted
      return this.slotSeries[predicted]!
    }
    const slot = this.slotOf(a, b)
    if (this.slotSeries[slot] === NONE) return -1
    this.remember(slot)
    return this.slotSeries[slot]!
  }

  private remember(slot: number): void {
    if (this.previousSlot === NONE) this.firstSlot = slot
    else this.slotNext[this.previousSlot] = slot
    this.previousSlot = slot
  }

  private slotOf(a: number, b: number): number {
    let slot = a & this.mask
    while (this.slotSeries[slot] !== NONE && (this.hashA[slot] !== a || this.hashB[slot] !== b))
      slot = (slot + 1) & this.mask
    return slot
  }

  seen(series: number, nowSeconds: number): void {
    this.lastSeen[series] = nowSeconds
  }

  lo(series: number): number {
    return this.idLo[series]!
  }

  hi(series: number): number {
    return this.idHi[series]!
  }

  /** Index of the series with this id, or -1: for a raw form not seen before of a series that is known. */
  findId(id: SeriesId): number {
    for (let series = 0; series < this.count; series++)
      if (this.idLo[series] === id.lo && this.idHi[series] === id.hi) return series
    return -1
  }

  /** True when another series has a place under `limit`; frees the places of series silent for an hour first. */
  hasRoom(limit: number, nowSeconds: number): boolean {
    if (this.count < limit) return true
    if (nowSeconds < this.expiresFromSeconds) return false
    this.dropSilent(nowSeconds)
    return this.count < limit
  }

  /** Takes a series in; the caller has asked `hasRoom`. */
  add(id: SeriesId, nowSeconds: number): number {
    assert(this.count < NONE, 'series of one agent fit 16 bits')
    if (this.count === this.idLo.length) this.growSeries()
    const series = this.count++
    this.idLo[series] = id.lo
    this.idHi[series] = id.hi
    this.lastSeen[series] = nowSeconds
    if (series === 0) this.expiresFromSeconds = nowSeconds + ACTIVE_SECONDS
    this.company.inUse++
    return series
  }

  /** Remembers that raw bytes with this hash mean the series. */
  addForm(a: number, b: number, series: number): void {
    if (this.formCount >= this.count * FORMS_PER_SERIES_MAX) this.clearForms()
    if ((this.formCount + 1) * 3 > this.slotSeries.length * 2) this.growSlots()
    const slot = this.slotOf(a, b)
    if (this.slotSeries[slot] === NONE) this.formCount++
    this.hashA[slot] = a
    this.hashB[slot] = b
    this.slotSeries[slot] = series
    this.slotNext[slot] = NONE
    this.remember(slot)
  }

  /** Takes back every series from `count` on: the batch that brought them was refused. */
  rollback(count: number): void {
    if (count === this.count) return
    this.company.inUse -= this.count - count
    this.count = count
    this.clearForms()
  }

  /** Gives up all places: the agent is gone from this node. */
  release(): void {
    this.rollback(0)
  }

  /** Frees the places of series silent for an hour, when there may be some. */
  expire(nowSeconds: number): void {
    if (this.count > 0 && nowSeconds >= this.expiresFromSeconds) this.dropSilent(nowSeconds)
  }

  private dropSilent(nowSeconds: number): void {
    let kept = 0
    let oldest = nowSeconds
    for (let series = 0; series < this.count; series++) {
      const seenAt = this.lastSeen[series]!
      if (nowSeconds - seenAt >= ACTIVE_SECONDS) continue
      this.idLo[kept] = this.idLo[series]!
      this.idHi[kept] = this.idHi[series]!
      this.lastSeen[kept] = seenAt
      if (seenAt < oldest) oldest = seenAt
      kept++
    }
    this.expiresFromSeconds = oldest + ACTIVE_SECONDS
    this.rollback(kept)
  }

  /** Forgets the raw forms; they are learnt again from the next batches. */
  private clearForms(): void {
    this.slotSeries.fill(NONE)
    this.slotNext.fill(NONE)
    this.formCount = 0
    this.previousSlot = NONE
    this.firstSlot = NONE
    this.firstExpected = NONE
  }

  private growSeries(): void {
    const capacity = Math.max(16, Math.ceil(this.idLo.length * 1.5))
    const grow = (from: Uint32Array<ArrayBuffer>) => {
      const to = new Uint32Array(capacity)
      to.set(from)
      return to
    }
    this.idLo = grow(this.idLo)
    this.idHi = grow(this.idHi)
    this.lastSeen = grow(this.lastSeen)
  }

  private growSlots(): void {
    const { hashA, hashB, slotSeries } = this
    const capacity = Math.max(32, slotSeries.length * 2)
    this.hashA = new Uint32Array(capacity)
    this.hashB = new Uint32Array(capacity)
    this.slotSeries = new Uint16Array(capacity).fill(NONE)
    this.slotNext = new Uint16Array(capacity).fill(NONE)
    this.mask = capacity - 1
    for (let old = 0; old < slotSeries.length; old++) {
      if (slotSeries[old] === NONE) continue
      const slot = this.slotOf(hashA[old]!, hashB[old]!)
      this.hashA[slot] = hashA[old]!
      this.hashB[slot] = hashB[old]!
      this.slotSeries[slot] = slotSeries[old]!
    }
    this.previousSlot = NONE
    this.firstSlot = NONE
    this.firstExpected = NONE
  }
}
