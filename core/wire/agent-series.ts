// The series that one agent is known to send: from the hash of a series' raw name-and-labels bytes to its id, without parsing,
// sorting or allocating. About 30 bytes a series. Also the place where the limit of active series is kept (document 3 "Limits":
// 500 distinct series active in 1 hour): the table never holds more series than the limit, and an hour of silence frees a place.
import { assert } from '../assert.ts'
import type { SeriesId } from '../series/series-key.ts'

const ACTIVE_SECONDS = 3600
/** Raw forms a series may have in the table (the order of a map's entries is free on the wire) before it is rebuilt. */
const FORMS_PER_SERIES_MAX = 8
const FORMS_MAX = 0xfff0
/** No form. */
export const NONE = 0xffff

/** Words of a form: hash A, hash B, and the index of the series with the form that followed last time in the high half. */
export const FORM_WORDS = 3
/** Words of a series: id low, id high, when it was last seen. */
export const SERIES_WORDS = 3

/** Series of a company on this node, shared by its agents. One that threads share takes and gives places in one step each. */
export interface CompanySeries {
  readonly inUse: number
  /** Takes a place; false when `limit` of them are taken (0 = no limit). */
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

/** What an agent's series are, to be handed to another thread: the arrays change hands. */
export type AgentSeriesState = {
  readonly forms: Int32Array<ArrayBuffer>
  readonly formCount: number
  readonly firstForm: number
  readonly index: Uint16Array<ArrayBuffer>
  readonly table: Int32Array<ArrayBuffer>
  readonly count: number
  readonly expiresFromSeconds: number
}

/** Shared by every agent that has sent nothing yet. */
const noWords = new Int32Array(0)
const noIndex = new Uint16Array(0)

export class AgentSeries {
  // Forms lie in the order in which they first came, which is the order in which an agent sends them: a batch walks the two tables from
  // front to back, and the index is only asked when the order changes. The decoder walks both itself as long as the order holds.
  forms: Int32Array<ArrayBuffer> = noWords
  private formCount = 0
  /** Open addressing over the forms: numbers of forms, or NONE. */
  private index: Uint16Array<ArrayBuffer> = noIndex
  table: Int32Array<ArrayBuffer> = noWords
  count = 0
  /** No series can age out before this instant, seconds. */
  private expiresFromSeconds = 0
  private previousForm = NONE
  private firstForm = NONE
  /** All definitions go out again with the next batch: after a refused publish, and each hour. */
  announcesAll = false

  constructor(readonly company: CompanySeries) {}

  /** The series as another thread gave them away; their places of the company are taken already. */
  static of(company: CompanySeries, state: AgentSeriesState): AgentSeries {
    const series = new AgentSeries(company)
    series.forms = state.forms
    series.formCount = state.formCount
    series.firstForm = state.firstForm
    series.index = state.index
    series.table = state.table
    series.count = state.count
    series.expiresFromSeconds = state.expiresFromSeconds
    return series
  }

  /** Gives the series away. What is left is empty; their places of the company stay taken. */
  detach(): AgentSeriesState {
    const { forms, formCount, firstForm, index, table, count, expiresFromSeconds } = this
    this.forms = noWords
    this.index = noIndex
    this.table = noWords
    this.count = 0
    this.clearForms()
    return { forms, formCount, firstForm, index, table, count, expiresFromSeconds }
  }

  /** Makes room for so many series at once: an agent's first batch tells how many it has, and growing leaves memory behind. */
  reserve(seriesCount: number): void {
    if (seriesCount * SERIES_WORDS <= this.table.length || this.count > 0) return
    this.clearForms()
    this.forms = resized(this.forms, seriesCount * FORM_WORDS)
    this.table = resized(this.table, seriesCount * SERIES_WORDS)
    this.growIndex(indexSlots(seriesCount))
  }

  /** Starts a batch: the first series is predicted to be the one that came first last time. */
  startBatch(): void {
    this.previousForm = NONE
  }

  /** The form that comes next when the order is that of the last batch; NONE when nothing is known of it. */
  expectedForm(): number {
    const { forms, previousForm } = this
    return previousForm === NONE ? this.firstForm : forms[previousForm * FORM_WORDS + 2]! >>> 16
  }

  /** The forms from the expected one up to this one came in their order. */
  cameInOrder(form: number): void {
    this.previousForm = form
  }

  /** Index of the series with these raw bytes' hash, or -1. In the order of the last batch this costs one comparison. */
  find(a: number, b: number): number {
    const { forms } = this
    const predicted = this.expectedForm()
    if (predicted !== NONE) {
      const at = predicted * FORM_WORDS
      if (forms[at] === a && forms[at + 1] === b) {
        this.previousForm = predicted
        return forms[at + 2]! & NONE
      }
    }
    if (this.formCount === 0) return -1
    const form = this.index[this.slotOf(a, b)]!
    if (form === NONE) return -1
    this.remember(form)
    return forms[form * FORM_WORDS + 2]! & NONE
  }

  private remember(form: number): void {
    const { forms, previousForm } = this
    if (previousForm === NONE) this.firstForm = form
    else {
      const at = previousForm * FORM_WORDS + 2
      forms[at] = (forms[at]! & NONE) | (form << 16)
    }
    this.previousForm = form
  }

  /** The slot of the index that has the form with these hashes, or the empty one where it would be. */
  private slotOf(a: number, b: number): number {
    const { index, forms } = this
    const mask = index.length - 1
    let slot = a & mask
    for (;;) {
      const form = index[slot]!
      if (form === NONE || (forms[form * FORM_WORDS] === a && forms[form * FORM_WORDS + 1] === b)) return slot
      slot = (slot + 1) & mask
    }
  }

  seen(series: number, nowSeconds: number): void {
    this.table[series * SERIES_WORDS + 2] = nowSeconds
  }

  /** The low word of the id, as a signed one. */
  lo(series: number): number {
    return this.table[series * SERIES_WORDS]!
  }

  /** The high word of the id, as a signed one. */
  hi(series: number): number {
    return this.table[series * SERIES_WORDS + 1]!
  }

  /** Index of the series with this id, or -1: for a raw form not seen before of a series that is known. */
  findId(id: SeriesId): number {
    const { table, count } = this
    const lo = id.lo | 0
    const hi = id.hi | 0
    for (let series = 0, at = 0; series < count; series++, at += SERIES_WORDS)
      if (table[at] === lo && table[at + 1] === hi) return series
    return -1
  }

  /** True when another series has a place under `limit`; frees the places of series silent for an hour first. */
  hasRoom(limit: number, nowSeconds: number): boolean {
    if (this.count < limit) return true
    if (nowSeconds < this.expiresFromSeconds) return false
    this.dropSilent(nowSeconds)
    return this.count < limit
  }

  /** Takes a series in; the caller has asked `hasRoom`. Returns its index, or -1 when the company has no place (limit 0 = off). */
  add(id: SeriesId, nowSeconds: number, companyLimit: number): number {
    assert(this.count < NONE, 'series of one agent fit 16 bits')
    if (!this.company.take(companyLimit)) return -1
    const series = this.count++
    const at = series * SERIES_WORDS
    if (at === this.table.length) this.table = resized(this.table, roomAfter(at, SERIES_WORDS))
    this.table[at] = id.lo
    this.table[at + 1] = id.hi
    this.table[at + 2] = nowSeconds
    if (series === 0) this.expiresFromSeconds = nowSeconds + ACTIVE_SECONDS
    return series
  }

  /** Remembers that raw bytes with this hash mean the series. */
  addForm(a: number, b: number, series: number): void {
    if (this.formCount >= Math.min(this.count * FORMS_PER_SERIES_MAX, FORMS_MAX)) this.clearForms()
    if ((this.formCount + 1) * 3 > this.index.length * 2) this.growIndex(indexSlots(this.formCount + 1))
    const slot = this.slotOf(a, b)
    const form = this.index[slot] === NONE ? this.formCount++ : this.index[slot]!
    const at = form * FORM_WORDS
    if (at === this.forms.length) this.forms = resized(this.forms, roomAfter(at, FORM_WORDS))
    this.index[slot] = form
    this.forms[at] = a
    this.forms[at + 1] = b
    this.forms[at + 2] = series | (NONE << 16)
    this.remember(form)
  }

  /** Takes back every series from `count` on: the batch that brought them was refused. */
  rollback(count: number): void {
    if (count === this.count) return
    this.company.give(this.count - count)
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
    const { table } = this
    let kept = 0
    let oldest = nowSeconds
    for (let series = 0; series < this.count; series++) {
      const at = series * SERIES_WORDS
      const seenAt = table[at + 2]! >>> 0
      if (nowSeconds - seenAt >= ACTIVE_SECONDS) continue
      table.copyWithin(kept * SERIES_WORDS, at, at + SERIES_WORDS)
      if (seenAt < oldest) oldest = seenAt
      kept++
    }
    this.expiresFromSeconds = oldest + ACTIVE_SECONDS
    this.rollback(kept)
  }

  /** Forgets the raw forms; they are learnt again from the next batches. */
  private clearForms(): void {
    this.index.fill(NONE)
    this.formCount = 0
    this.previousForm = NONE
    this.firstForm = NONE
  }

  private growIndex(slots: number): void {
    this.index = new Uint16Array(slots).fill(NONE)
    for (let form = 0; form < this.formCount; form++) {
      const at = form * FORM_WORDS
      this.index[this.slotOf(this.forms[at]!, this.forms[at + 1]!)] = form
    }
  }
}

/** Slots for so many forms: a power of two, at most two thirds full. */
const indexSlots = (forms: number): number => Math.max(32, 2 ** Math.ceil(Math.log2(forms * 1.5)))

/** Words for half as many records again, at least 16. */
const roomAfter = (words: number, recordWords: number): number =>
  Math.max(16, Math.ceil((words / recordWords) * 1.5)) * recordWords

/** The same words in so much memory; what they lay in is freed at once, not when the garbage collector comes. */
function resized(words: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  return words.length === 0
    ? new Int32Array(length)
    : new Int32Array(words.buffer.transfer(length * Int32Array.BYTES_PER_ELEMENT))
}
