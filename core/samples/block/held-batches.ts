// Batches that a block holds, in pages of eight-byte slots. A batch with one point for each series and one time for
// all, which is nearly every one, takes the bytes of its values (packed-numbers.ts), about three each; its ids
// stand once in a list (series-lists.ts). Any other takes three slots for each point: id, time, value. Pages are shared
// by the blocks, so that one that fills takes what another gave back.
import type { EntryReader } from '../../bus/entry.ts'
import { BITS } from './decimal.ts'
import { NumberReader, putValue, VALUE_BYTES_MAX } from './packed-numbers.ts'
import type { SeriesList, SeriesLists } from './series-lists.ts'

/** 1 MiB; an entry that does not fit has a page of its own. */
const PAGE_SLOTS = 131_072
const SLOT_BYTES = 8
const LOOSE_SLOTS = 3
const BATCHES_START = 1_024

/** What a number of decimals divides the digits of a value by. */
const POWERS = [1, 0, 100, 0, 10_000, 0, 1_000_000]

/** A page as numbers and, over the same memory, as words and as bytes. */
type Page = { readonly values: Float64Array; readonly words: Uint32Array; readonly bytes: Uint8Array }

function newPage(slots: number): Page {
  const memory = new ArrayBuffer(slots * SLOT_BYTES)
  return { values: new Float64Array(memory), words: new Uint32Array(memory), bytes: new Uint8Array(memory) }
}

/** Pages that no block uses; as many are kept as the last block that was emptied had. */
export class PagePool {
  private readonly free: Page[] = []

  take(slots: number): Page {
    return (slots <= PAGE_SLOTS ? this.free.pop() : undefined) ?? newPage(Math.max(PAGE_SLOTS, slots))
  }

  giveBack(pages: readonly Page[]): void {
    for (const page of pages) if (page.values.length === PAGE_SLOTS) this.free.push(page)
    this.free.length = Math.min(this.free.length, pages.length)
  }
}

/** Takes a point of a series by the words of its id. */
export type TakePoint = (lo: number, hi: number, tsMs: number, value: number) => void

/** The batches of one server, in the order of arrival: a chain. `last` is -1 without any. */
export type BatchChain = {
  first: number
  last: number
  batches: number
  points: number
  /** The list of all batches so far; null when they differ, or some are loose. */
  list: SeriesList | null
  /** The list of the newest batch that has one. */
  lastList: SeriesList | null
}

export const emptyChain = (): BatchChain => ({
  first: -1,
  last: -1,
  batches: 0,
  points: 0,
  list: null,
  lastList: null,
})

export class HeldBatches {
  private readonly pool: PagePool
  private readonly lists: SeriesLists
  private readonly pages: Page[] = []
  /** Slots in use of the last page. */
  private used = 0
  private slots = 0
  private count = 0
  /** By batch: its list, null for a loose one; time of all points; page and slot where it begins; points; successor. */
  private readonly listOf: (SeriesList | null)[] = []
  private tsMs = new Float64Array(BATCHES_START)
  private page = new Uint32Array(BATCHES_START)
  private slot = new Uint32Array(BATCHES_START)
  private points = new Uint32Array(BATCHES_START)
  private next = new Int32Array(BATCHES_START)
  /** Working memory: reads a batch; the digits of one value. */
  private readonly reader = new NumberReader()
  private readonly digits = new Float64Array(1)

  constructor(pool: PagePool, lists: SeriesLists) {
    this.pool = pool
    this.lists = lists
  }

  /** Bytes of the points held. */
  get bytes(): number {
    return this.slots * SLOT_BYTES
  }

  clear(): void {
    this.pool.giveBack(this.pages)
    this.lists.nextTurn()
    this.pages.length = 0
    this.listOf.length = 0
    this.used = 0
    this.slots = 0
    this.count = 0
  }

  /** Holds an entry with one point for each series and one time for all. */
  addPlain(chain: BatchChain, entry: EntryReader): void {
    const { f64, valuesAt, seriesCount } = entry
    const list = this.lists.of(entry.u32, entry.idsAt, seriesCount, chain.lastList)
    const { bytes } = this.reserve(Math.ceil((seriesCount * VALUE_BYTES_MAX) / SLOT_BYTES))
    const begin = this.used * SLOT_BYTES
    let at = begin
    for (let index = valuesAt, end = valuesAt + seriesCount; index < end; index++) at = putValue(bytes, at, f64[index]!)
    this.link(chain, list, entry.commonTsMs, seriesCount, Math.ceil((at - begin) / SLOT_BYTES))
  }

  /** Holds the points of an entry of any form, but those before `fromMs`. Returns how many it left out. */
  addLoose(chain: BatchChain, entry: EntryReader, fromMs: number): number {
    const { u32, f64, idsAt } = entry
    const { values, words } = this.reserve(entry.pointCount * LOOSE_SLOTS)
    let slot = this.used
    let point = 0
    for (let series = 0; series < entry.seriesCount; series++) {
      const count = entry.hasCounts ? u32[entry.countsAt + series]! : 1
      for (const end = point + count; point < end; point++) {
        const tsMs = entry.hasTimes ? f64[entry.timesAt + point]! : entry.commonTsMs
        if (tsMs < fromMs) continue
        words[slot * 2] = u32[idsAt + series * 2]!
        words[slot * 2 + 1] = u32[idsAt + series * 2 + 1]!
        values[slot + 1] = tsMs
        values[slot + 2] = f64[entry.valuesAt + point]!
        slot += LOOSE_SLOTS
      }
    }
    const slots = slot - this.used
    if (slots > 0) this.link(chain, null, Number.NaN, slots / LOOSE_SLOTS, slots)
    return entry.pointCount - slots / LOOSE_SLOTS
  }

  /** The page with room for so many slots from `used` on. */
  private reserve(slots: number): Page {
    const last = this.pages.at(-1)
    if (last && this.used + slots <= last.values.length) return last
    const page = this.pool.take(slots)
    this.pages.push(page)
    this.used = 0
    return page
  }

  /** Appends the batch whose points were laid at `used`. */
  private link(chain: BatchChain, list: SeriesList | null, tsMs: number, points: number, slots: number): void {
    const batch = this.count++
    if (batch === this.tsMs.length) this.grow()
    this.listOf[batch] = list
    this.tsMs[batch] = tsMs
    this.page[batch] = this.pages.length - 1
    this.slot[batch] = this.used
    this.points[batch] = points
    this.next[batch] = -1
    this.used += slots
    this.slots += slots
    if (chain.last < 0) {
      chain.first = batch
      chain.list = list
    } else {
      this.next[chain.last] = batch
      if (chain.list !== list) chain.list = null
    }
    chain.last = batch
    chain.lastList = list ?? chain.lastList
    chain.batches++
    chain.points += points
  }

  private grow(): void {
    const length = this.count * 2
    const tsMs = new Float64Array(length)
    tsMs.set(this.tsMs)
    this.tsMs = tsMs
    for (const column of ['page', 'slot', 'points'] as const) {
      const grown = new Uint32Array(length)
      grown.set(this[column])
      this[column] = grown
    }
    const next = new Int32Array(length)
    next.set(this.next)
    this.next = next
  }

  /** Visits the points of a server in the order of arrival. Times are as they came. */
  eachPoint({ first }: BatchChain, take: TakePoint): void {
    for (let batch = first; batch >= 0; batch = this.next[batch]!) {
      const list = this.listOf[batch]
      const { values, words, bytes } = this.pages[this.page[batch]!]!
      const slot = this.slot[batch]!
      const points = this.points[batch]!
      if (list) {
        const { idLo, idHi } = list
        const { reader, digits } = this
        const tsMs = this.tsMs[batch]!
        reader.open(bytes, slot * SLOT_BYTES)
        for (let point = 0; point < points; point++) {
          const decimals = reader.value(0, digits)
          take(idLo[point]!, idHi[point]!, tsMs, joinDecimal(digits[0]!, decimals))
        }
      } else
        for (let point = 0, at = slot; point < points; point++, at += LOOSE_SLOTS)
          take(words[at * 2]!, words[at * 2 + 1]!, values[at + 1]!, values[at + 2]!)
    }
  }

  /**
   * Reads the batches of a server whose batches have one list, oldest first, of those with one whole millisecond the
   * last; without those before `fromMs`. Returns how many batches were left out for their time.
   */
  byTime({ first, points }: BatchChain, fromMs: number, into: BatchesByTime): number {
    const { batches } = into
    batches.length = 0
    let leftOut = 0
    let isInOrder = true
    for (let batch = first; batch >= 0; batch = this.next[batch]!) {
      const tsMs = this.tsMs[batch]!
      if (tsMs < fromMs) {
        leftOut++
        continue
      }
      isInOrder &&= batches.length === 0 || tsMs >= batches.at(-1)!.tsMs
      batches.push({ tsMs, batch })
    }
    // Stable, so that of equal times the one that came last is the last.
    if (!isInOrder) batches.sort((a, b) => a.tsMs - b.tsMs)
    let kept = 0
    for (const batch of batches) {
      if (kept > 0 && Math.floor(batches[kept - 1]!.tsMs) === Math.floor(batch.tsMs)) kept--
      batches[kept++] = batch
    }
    batches.length = kept
    into.reserve(points)
    for (const [index, { batch }] of batches.entries()) this.read(batch, into, index * this.points[batch]!)
    return leftOut
  }

  /** Reads the values of a batch from row `begin` on. */
  private read(batch: number, { value, digits, decimals }: BatchesByTime, begin: number): void {
    const { reader } = this
    reader.open(this.pages[this.page[batch]!]!.bytes, this.slot[batch]! * SLOT_BYTES)
    for (let row = begin, end = begin + this.points[batch]!; row < end; row++) {
      const places = reader.value(row, digits)
      decimals[row] = places
      value[row] = joinDecimal(digits[row]!, places)
    }
  }
}

/** The value that `splitDecimal` took apart. */
const joinDecimal = (digits: number, decimals: number): number =>
  decimals === 0 || decimals === BITS ? digits : digits / POWERS[decimals]!

/** Batches of one server, as `byTime` reads them: value i of the nth batch stands in row n × series + i. */
export class BatchesByTime {
  readonly batches: { readonly tsMs: number; readonly batch: number }[] = []
  value = new Float64Array(0)
  /** Values as `splitDecimal` gives them. */
  digits = new Float64Array(0)
  decimals = new Uint8Array(0)

  reserve(rows: number): void {
    if (this.value.length >= rows) return
    this.value = new Float64Array(rows)
    this.digits = new Float64Array(rows)
    this.decimals = new Uint8Array(rows)
  }
}
