// Samples on their way from the bus to the store: rows as columns, no object a row. A block is filled from entries, ordered
// by the key of samples_raw, freed of points that came twice, and written in Native format (decision G-135).
import type { EntryReader } from '../bus/entry.ts'
import { splitDecimal } from './decimal.ts'
import type { NativeWriter } from './native-block.ts'
import { orderRows, RowOrder } from './row-order.ts'
import { compareUuidWords, uuidWords } from './uuid-words.ts'

/** The cells of the finer rollup; what a machine's samples have touched is noted in them. */
export const CELL_5M_MS = 300_000
const HEADER_WORDS = 24
const COMPANY_WORD = 2
const SERVER_WORD = 6
const WORDS_PER_OWNER = 8
const UUID_BYTES = 16
const OWNERS_START = 1_024

/** The machine that rows belong to. `cells` are the starts of the 5-minute cells that its rows of this block touch. */
export type BlockOwner = {
  readonly companyId: string
  readonly serverId: string
  readonly cells: Set<number>
  lastCellMs: number
  /** Rows before this instant are dropped: the write-locked zone of the company's plan (document 3 "Retention semantics"). */
  readonly lockedBeforeMs: number
  /** Set when the machine is purged while its rows wait here: they are left out. */
  purged: boolean
}

/** What the owner of an entry may do: decided once a machine and block. */
export type OwnerRule = { readonly purged: boolean; readonly lockedBeforeMs: number }

export type DroppedRows = { purged: number; retentionLocked: number }

/** Rows of a block that was written, in the order of the table's key: `rows` are indexes into the first columns, which are in order of arrival. */
export type WrittenRows = {
  readonly rows: Uint32Array
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  readonly tsMs: Float64Array
  readonly value: Float64Array
  /** By place in `rows`: digits as an Int64, or the bits of the value; `digitWords` are the same memory. */
  readonly decimals: Uint8Array
  readonly digits: Float64Array
  readonly digitWords: Uint32Array
}

export class SampleBlock {
  rows = 0
  /** Rows of the last `write`, which are first in the order. */
  private written = 0
  readonly owners: BlockOwner[] = []
  readonly dropped: DroppedRows = { purged: 0, retentionLocked: 0 }
  /** Words of company and server of each owner, in ClickHouse's form. */
  private ownerWords = new Uint32Array(WORDS_PER_OWNER * OWNERS_START)
  /** Owners by the hash of these words, open addressing, half empty: index + 1, or 0. */
  private ownerPlaces = new Uint32Array(2 * OWNERS_START)
  private owner = new Uint32Array(131_072)
  private idLo = new Uint32Array(131_072)
  private idHi = new Uint32Array(131_072)
  private tsMs = new Float64Array(131_072)
  private value = new Float64Array(131_072)
  /** One column in the order of the rows, before it is copied into the block. */
  private scratch = new Float64Array(0)
  private scratchWords = new Uint32Array(0)
  private decimals = new Uint8Array(0)
  private readonly order = new RowOrder()

  clear(): void {
    this.rows = 0
    this.written = 0
    this.owners.length = 0
    this.ownerPlaces.fill(0)
    this.dropped.purged = 0
    this.dropped.retentionLocked = 0
  }

  /** Appends the points of the reader's entry. `ruleOf` is asked once a machine. Returns the owner of the rows. */
  add(entry: EntryReader, ruleOf: (companyId: string, serverId: string) => OwnerRule): BlockOwner {
    const index = this.ownerOf(entry, ruleOf)
    const owner = this.owners[index]!
    if (owner.purged) {
      this.dropped.purged += entry.pointCount
      return owner
    }
    this.reserve(entry.pointCount)
    if (entry.hasCounts || entry.hasTimes) this.addPoints(entry, index, owner)
    else this.addPlain(entry, index, owner)
    return owner
  }

  /** One point a series, one time for all: what an agent sends in the steady state. */
  private addPlain(entry: EntryReader, index: number, owner: BlockOwner): void {
    const { u32, f64, idsAt, valuesAt, seriesCount, commonTsMs } = entry
    if (commonTsMs < owner.lockedBeforeMs) {
      this.dropped.retentionLocked += seriesCount
      return
    }
    const { idLo, idHi, value } = this
    let row = this.rows
    this.owner.fill(index, row, row + seriesCount)
    this.tsMs.fill(commonTsMs, row, row + seriesCount)
    for (let series = 0, word = idsAt; series < seriesCount; series++, row++) {
      idLo[row] = u32[word++]!
      idHi[row] = u32[word++]!
      value[row] = f64[valuesAt + series]!
    }
    this.rows = row
    if (seriesCount > 0) touch(owner, commonTsMs)
  }

  private addPoints(entry: EntryReader, index: number, owner: BlockOwner): void {
    const { u32, f64 } = entry
    let row = this.rows
    let point = 0
    for (let series = 0; series < entry.seriesCount; series++) {
      const count = entry.hasCounts ? u32[entry.countsAt + series]! : 1
      for (let last = point + count; point < last; point++) {
        const tsMs = entry.hasTimes ? f64[entry.timesAt + point]! : entry.commonTsMs
        if (tsMs < owner.lockedBeforeMs) {
          this.dropped.retentionLocked++
          continue
        }
        this.owner[row] = index
        this.idLo[row] = u32[entry.idsAt + series * 2]!
        this.idHi[row] = u32[entry.idsAt + series * 2 + 1]!
        this.tsMs[row] = tsMs
        this.value[row++] = f64[entry.valuesAt + point]!
        touch(owner, tsMs)
      }
    }
    this.rows = row
  }

  private ownerOf(entry: EntryReader, ruleOf: (companyId: string, serverId: string) => OwnerRule): number {
    const index = this.owners.length
    const at = index * WORDS_PER_OWNER
    if (at === this.ownerWords.length) this.growOwners()
    const { ownerWords, ownerPlaces } = this
    const words = entry.idsAt - HEADER_WORDS + COMPANY_WORD
    uuidWords(entry.u32, words, ownerWords, at)
    uuidWords(entry.u32, words + SERVER_WORD - COMPANY_WORD, ownerWords, at + 4)
    const mask = ownerPlaces.length - 1
    let place = ownerHash(ownerWords, at) & mask
    for (; ownerPlaces[place] !== 0; place = (place + 1) & mask) {
      const known = ownerPlaces[place]! - 1
      if (isSameOwner(ownerWords, known * WORDS_PER_OWNER, at)) return known
    }
    ownerPlaces[place] = index + 1
    const companyId = entry.companyId()
    const serverId = entry.serverId()
    const { purged, lockedBeforeMs } = ruleOf(companyId, serverId)
    this.owners.push({ companyId, serverId, cells: new Set(), lastCellMs: -1, purged, lockedBeforeMs })
    return index
  }

  private growOwners(): void {
    const words = new Uint32Array(this.ownerWords.length * 2)
    words.set(this.ownerWords)
    this.ownerWords = words
    this.ownerPlaces = new Uint32Array(this.ownerPlaces.length * 2)
    const mask = this.ownerPlaces.length - 1
    for (let index = 0; index < this.owners.length; index++) {
      let place = ownerHash(words, index * WORDS_PER_OWNER) & mask
      while (this.ownerPlaces[place] !== 0) place = (place + 1) & mask
      this.ownerPlaces[place] = index + 1
    }
  }

  private reserve(more: number): void {
    if (this.rows + more <= this.owner.length) return
    const length = Math.max(this.owner.length * 2, this.rows + more)
    const grow32 = (from: Uint32Array) => {
      const to = new Uint32Array(length)
      to.set(from)
      return to
    }
    const grow64 = (from: Float64Array) => {
      const to = new Float64Array(length)
      to.set(from)
      return to
    }
    this.owner = grow32(this.owner)
    this.idLo = grow32(this.idLo)
    this.idHi = grow32(this.idHi)
    this.tsMs = grow64(this.tsMs)
    this.value = grow64(this.value)
  }

  /** Ranks of the owners in ClickHouse's order of (company, server). */
  private ownerRanks(): Uint32Array {
    const order = Uint32Array.from(this.owners.keys())
    const words = this.ownerWords
    order.sort((a, b) => {
      const left = a * WORDS_PER_OWNER
      const right = b * WORDS_PER_OWNER
      return compareUuidWords(words, left, right) || compareUuidWords(words, left + 4, right + 4)
    })
    const ranks = new Uint32Array(order.length)
    for (let rank = 0; rank < order.length; rank++) ranks[order[rank]!] = rank
    return ranks
  }

  /**
   * Writes the rows as a block of samples_raw, in the order of the table's key. Of points with the same series and time the
   * last that was added stays. Returns the number of rows written; 0 leaves the writer as it was.
   */
  write(writer: NativeWriter): number {
    const { order } = this
    if (order.rows.length < this.rows) {
      const length = this.owner.length
      order.reserve(length)
      this.scratch = new Float64Array(length)
      this.scratchWords = new Uint32Array(this.scratch.buffer)
      this.decimals = new Uint8Array(length)
    }
    const columns = { owner: this.owner, idLo: this.idLo, idHi: this.idHi, tsMs: this.tsMs }
    orderRows(columns, this.rows, this.ownerRanks(), order)
    const kept = this.keep(order.rows)
    this.written = kept
    if (kept === 0) return 0
    writer.begin(6, kept)
    this.writeUuids(writer, 'company_id', 0, kept)
    this.writeUuids(writer, 'server_id', 4, kept)
    this.writeIds(writer, kept)
    this.writeTimes(writer, kept)
    this.writeValues(writer, kept)
    return kept
  }

  /** Hands over the rows of the last `write` machine by machine, as [begin, end) of the order, until the block is cleared. */
  eachMachine(take: (owner: BlockOwner, written: WrittenRows, begin: number, end: number) => void): void {
    const { rows } = this.order
    const { idLo, idHi, tsMs, value, decimals, scratch: digits, scratchWords: digitWords } = this
    const written = { rows, idLo, idHi, tsMs, value, decimals, digits, digitWords }
    for (let at = 0; at < this.written; ) {
      const index = this.owner[rows[at]!]!
      const end = this.endOfOwner(at, index)
      take(this.owners[index]!, written, at, end)
      at = end
    }
  }

  /** Where the rows of an owner end that begin at `begin`: in doubling steps, then halving. */
  private endOfOwner(begin: number, index: number): number {
    const { rows } = this.order
    const isOwn = (at: number): boolean => at < this.written && this.owner[rows[at]!] === index
    let step = 64
    while (isOwn(begin + step)) step *= 2
    let low = begin + (step > 64 ? step / 2 : 0)
    let high = Math.min(begin + step, this.written)
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if (isOwn(middle)) low = middle
      else high = middle
    }
    return high
  }

  /** Moves the rows that stay to the front of `rows`; returns how many there are. */
  private keep(rows: Uint32Array): number {
    let kept = 0
    for (let at = 0; at < this.rows; at++) {
      const row = rows[at]!
      if (this.owners[this.owner[row]!]!.purged) {
        this.dropped.purged++
        continue
      }
      const next = rows[at + 1]!
      const isReplaced =
        at + 1 < this.rows &&
        this.idLo[row] === this.idLo[next] &&
        this.tsMs[row] === this.tsMs[next] &&
        this.idHi[row] === this.idHi[next] &&
        this.owner[row] === this.owner[next]
      if (!isReplaced) rows[kept++] = row
    }
    return kept
  }

  /** Rows lie by owner: the id of each is written once and repeated. */
  private writeUuids(writer: NativeWriter, name: string, word: number, count: number): void {
    const start = writer.column({ name, type: 'UUID', bytesPerRow: UUID_BYTES }, count)
    const view = writer.memory()
    const { rows } = this.order
    let at = 0
    while (at < count) {
      const owner = this.owner[rows[at]!]!
      let end = at + 1
      while (end < count && this.owner[rows[end]!] === owner) end++
      const words = owner * WORDS_PER_OWNER + word
      const offset = start + at * UUID_BYTES
      for (let part = 0; part < 4; part++) view.setUint32(offset + part * 4, this.ownerWords[words + part]!, true)
      writer.repeat(offset, UUID_BYTES, (end - at) * UUID_BYTES)
      at = end
    }
  }

  private writeIds(writer: NativeWriter, count: number): void {
    const { rows } = this.order
    const words = this.scratchWords
    for (let at = 0, word = 0; at < count; at++) {
      const row = rows[at]!
      words[word++] = this.idLo[row]!
      words[word++] = this.idHi[row]!
    }
    writer.put(writer.column({ name: 'series_id', type: 'UInt64', bytesPerRow: 8 }, count), words, count * 2)
  }

  private writeTimes(writer: NativeWriter, count: number): void {
    const { rows } = this.order
    const words = this.scratchWords
    for (let at = 0, word = 0; at < count; at++) {
      const tsMs = this.tsMs[rows[at]!]!
      const high = Math.floor(tsMs / 0x1_0000_0000)
      words[word++] = tsMs - high * 0x1_0000_0000
      words[word++] = high
    }
    writer.put(writer.column({ name: 'ts', type: "DateTime64(3, 'UTC')", bytesPerRow: 8 }, count), words, count * 2)
  }

  private writeValues(writer: NativeWriter, count: number): void {
    const { scratch, scratchWords, decimals } = this
    const { rows } = this.order
    for (let at = 0; at < count; at++) decimals[at] = splitDecimal(this.value[rows[at]!]!, at, scratch, scratchWords)
    writer.put(writer.column({ name: 'decimals', type: 'UInt8', bytesPerRow: 1 }, count), decimals, count)
    writer.put(writer.column({ name: 'digits', type: 'Int64', bytesPerRow: 8 }, count), scratch, count)
  }
}

/** Notes the cell of a sample. */
function touch(owner: BlockOwner, tsMs: number): void {
  const cellMs = tsMs - (tsMs % CELL_5M_MS)
  if (cellMs === owner.lastCellMs) return
  owner.lastCellMs = cellMs
  owner.cells.add(cellMs)
}

function ownerHash(words: Uint32Array, at: number): number {
  let hash = 0
  for (let word = at; word < at + WORDS_PER_OWNER; word++) hash = Math.imul(hash ^ words[word]!, 0x9e37_79b1)
  return hash ^ (hash >>> 15)
}

function isSameOwner(words: Uint32Array, a: number, b: number): boolean {
  for (let word = 0; word < WORDS_PER_OWNER; word++) if (words[a + word] !== words[b + word]) return false
  return true
}
