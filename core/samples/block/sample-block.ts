// A block of samples between bus and store, with points as columns and no object for each point. Entries fill it; then
// its points are ordered by the key of samples_raw, repeated points are dropped, and it is written in Native format
// with one row for each chunk of points (decision G-135). Its points can be read until it is stored.
import type { EntryReader } from '../../bus/entry.ts'
import { CHUNK_POINTS_MAX, CHUNK_SPAN_MS, ChunkWriter } from './chunk.ts'
import { splitDecimal } from './decimal.ts'
import type { NativeColumn, NativeWriter } from './native-writer.ts'
import { orderRows, RowOrder } from './row-order.ts'
import { compareServerWords, uuidWords, WORDS_PER_SERVER } from './uuid-words.ts'

/** The width of the finer rollup's cells. A block records which of these cells the samples of each server fall into. */
export const CELL_5M_MS = 300_000
const HEADER_WORDS = 24
const COMPANY_WORD = 2
const SERVER_WORD = 6
const UUID_BYTES = 16
const WORD = 2 ** 32
const DAY_MS = 86_400_000
const OWNERS_START = 1_024

/** The server that rows belong to. `cells` are the starts of the 5-minute cells that its rows of this block touch. */
export type BlockOwner = {
  readonly companyId: string
  readonly serverId: string
  readonly cells: Set<number>
  lastCellMs: number
  /**
   * Rows before this instant are dropped: the write-locked zone of the company's plan (document 3 "Retention
   * semantics").
   */
  lockedBeforeMs: number
  /** Set when the server is purged while its rows are in the block: they are then not written. */
  purged: boolean
  /** The ranges of its rows in the order of arrival, as pairs begin, end (exclusive). */
  readonly spans: number[]
}

/**
 * Whether samples of a server are dropped, and before which time. Decided once for each server and block, and again for
 * each entry while the server is under a tombstone.
 */
type OwnerRule = { readonly purged: boolean; readonly lockedBeforeMs: number }

export type DroppedRows = { purged: number; retentionLocked: number }

/**
 * The rows of a written block in the order of the table's key. `rows` are indexes into the first columns, which are in
 * the order of arrival.
 */
export type WrittenRows = {
  readonly rows: Uint32Array
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  readonly tsMs: Float64Array
  readonly value: Float64Array
  /** Indexed like `rows`; values as `splitDecimal` gives them. */
  readonly decimals: Uint8Array
  readonly digits: Float64Array
}

/** The rows of one server in a written block: [begin, end) of `written.rows`. */
export type ServerRows = {
  readonly owner: BlockOwner
  readonly written: WrittenRows
  readonly begin: number
  readonly end: number
}

/** A point of a block that is not stored yet. */
export type BufferedPoint = { readonly lo: number; readonly hi: number; readonly tsMs: number; readonly value: number }

/** The rows of samples_raw, one for each chunk, as columns. */
class ChunkRows {
  owner = new Uint32Array(16_384)
  idLo = new Uint32Array(16_384)
  idHi = new Uint32Array(16_384)
  firstMs = new Float64Array(16_384)
  readonly points = new ChunkWriter()
  count = 0

  clear(): void {
    this.count = 0
    this.points.clear()
  }

  add(owner: number, idLo: number, idHi: number, firstMs: number): void {
    const { count } = this
    if (count === this.owner.length) this.grow()
    this.owner[count] = owner
    this.idLo[count] = idLo
    this.idHi[count] = idHi
    this.firstMs[count] = firstMs
    this.count = count + 1
  }

  private grow(): void {
    const length = this.count * 2
    this.owner = grown32(this.owner, length)
    this.idLo = grown32(this.idLo, length)
    this.idHi = grown32(this.idHi, length)
    this.firstMs = grown64(this.firstMs, length)
  }
}

function grown32(from: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(length)
  to.set(from)
  return to
}

function grown64(from: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const to = new Float64Array(length)
  to.set(from)
  return to
}

/**
 * Memory that writing a block needs. Several blocks can share it when the next is written only after the one before was
 * cleared.
 */
export class BlockScratch {
  readonly order: RowOrder = new RowOrder()
  readonly chunks: ChunkRows = new ChunkRows()
  digits = new Float64Array(0)
  decimals = new Uint8Array(0)
  times = new Float64Array(0)

  /** Makes room for so many rows. */
  reserve(length: number): void {
    if (this.digits.length >= length) return
    this.order.reserve(length)
    this.digits = new Float64Array(length)
    this.decimals = new Uint8Array(length)
    this.times = new Float64Array(length)
  }
}

/** Takes a point of a series by the words of its id. */
export type TakePoint = (lo: number, hi: number, tsMs: number, value: number) => void

export class SampleBlock {
  private readonly scratch: BlockScratch
  rows = 0
  /** The number of rows of the last `write`; they are the first rows of the order. */
  private written = 0
  readonly owners: BlockOwner[] = []
  readonly dropped: DroppedRows = { purged: 0, retentionLocked: 0 }
  /** Company id and server id of each owner as words in ClickHouse's form. */
  private ownerWords = new Uint32Array(WORDS_PER_SERVER * OWNERS_START)
  /**
   * A hash table from these words to owners, with open addressing and at most half full: index + 1, or 0 for an empty
   * slot.
   */
  private ownerSlots = new Uint32Array(2 * OWNERS_START)
  private owner = new Uint32Array(131_072)
  private idLo = new Uint32Array(131_072)
  private idHi = new Uint32Array(131_072)
  private tsMs = new Float64Array(131_072)
  private value = new Float64Array(131_072)
  /** The start of the oldest cell that samples of this block fall into. */
  oldestCellMs = Number.POSITIVE_INFINITY
  private readonly ownersByName = new Map<string, BlockOwner>()

  constructor(scratch = new BlockScratch()) {
    this.scratch = scratch
  }

  clear(): void {
    this.rows = 0
    this.written = 0
    this.owners.length = 0
    this.ownersByName.clear()
    this.ownerSlots.fill(0)
    this.oldestCellMs = Number.POSITIVE_INFINITY
    this.dropped.purged = 0
    this.dropped.retentionLocked = 0
  }

  /**
   * Appends the points of the reader's entry. `ruleOf` is called once for each server that is not purged. Returns the
   * owner of the rows.
   */
  add(entry: EntryReader, ruleOf: (companyId: string, serverId: string) => OwnerRule): BlockOwner {
    const index = this.ownerOf(entry, ruleOf)
    const owner = this.owners[index]!
    if (owner.purged) {
      this.dropped.purged += entry.pointCount
      return owner
    }
    this.reserve(entry.pointCount)
    const begin = this.rows
    if (entry.hasCounts || entry.hasTimes) this.addPoints(entry, index, owner)
    else this.addPlain(entry, index, owner)
    if (this.rows > begin) owner.spans.push(begin, this.rows)
    return owner
  }

  /** Appends an entry with one point for each series and one time for all: what agents send in the steady state. */
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
    if (seriesCount > 0) this.touch(owner, commonTsMs)
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
        this.touch(owner, tsMs)
      }
    }
    this.rows = row
  }

  /** Records the cell that a sample falls into. */
  private touch(owner: BlockOwner, tsMs: number): void {
    const cellMs = tsMs - (tsMs % CELL_5M_MS)
    if (cellMs === owner.lastCellMs) return
    owner.lastCellMs = cellMs
    owner.cells.add(cellMs)
    if (cellMs < this.oldestCellMs) this.oldestCellMs = cellMs
  }

  private ownerOf(entry: EntryReader, ruleOf: (companyId: string, serverId: string) => OwnerRule): number {
    const index = this.owners.length
    const at = index * WORDS_PER_SERVER
    if (at === this.ownerWords.length) this.growOwners()
    const { ownerWords, ownerSlots } = this
    const words = entry.idsAt - HEADER_WORDS + COMPANY_WORD
    uuidWords(entry.u32, words, ownerWords, at)
    uuidWords(entry.u32, words + SERVER_WORD - COMPANY_WORD, ownerWords, at + 4)
    const mask = ownerSlots.length - 1
    let place = ownerHash(ownerWords, at) & mask
    for (; ownerSlots[place] !== 0; place = (place + 1) & mask) {
      const known = ownerSlots[place]! - 1
      if (!isSameOwner(ownerWords, known * WORDS_PER_SERVER, at)) continue
      if (!this.owners[known]!.purged || ruleOf(entry.companyId(), entry.serverId()).purged) return known
      // The tombstone has ended: samples from now on belong to a new owner, which is not purged.
      break
    }
    ownerSlots[place] = index + 1
    const companyId = entry.companyId()
    const serverId = entry.serverId()
    const { purged, lockedBeforeMs } = ruleOf(companyId, serverId)
    const owner = { companyId, serverId, cells: new Set<number>(), lastCellMs: -1, purged, lockedBeforeMs, spans: [] }
    this.owners.push(owner)
    this.ownersByName.set(companyId + serverId, owner)
    return index
  }

  private growOwners(): void {
    const words = new Uint32Array(this.ownerWords.length * 2)
    words.set(this.ownerWords)
    this.ownerWords = words
    this.ownerSlots = new Uint32Array(this.ownerSlots.length * 2)
    const mask = this.ownerSlots.length - 1
    for (const [index, owner] of this.owners.entries()) {
      // A purged owner is left out of the table, so that later samples of the server get a new owner.
      if (owner.purged) continue
      let place = ownerHash(words, index * WORDS_PER_SERVER) & mask
      while (this.ownerSlots[place] !== 0) place = (place + 1) & mask
      this.ownerSlots[place] = index + 1
    }
  }

  private reserve(more: number): void {
    if (this.rows + more <= this.owner.length) return
    const length = Math.max(Math.ceil(this.owner.length * 1.5), this.rows + more)
    this.owner = grown32(this.owner, length)
    this.idLo = grown32(this.idLo, length)
    this.idHi = grown32(this.idHi, length)
    this.tsMs = grown64(this.tsMs, length)
    this.value = grown64(this.value, length)
  }

  /** Ranks of the owners in ClickHouse's order of (company, server). */
  private ownerRanks(): Uint32Array {
    const order = Uint32Array.from(this.owners.keys())
    const words = this.ownerWords
    order.sort((a, b) => compareServerWords(words, a * WORDS_PER_SERVER, b * WORDS_PER_SERVER))
    const ranks = new Uint32Array(order.length)
    for (let rank = 0; rank < order.length; rank++) ranks[order[rank]!] = rank
    return ranks
  }

  /** Drops the rows that an owner has in the block, and those that still come for it. */
  purge(owner: BlockOwner): void {
    if (owner.purged) return
    owner.purged = true
    for (let span = 0; span < owner.spans.length; span += 2)
      this.dropped.purged += owner.spans[span + 1]! - owner.spans[span]!
  }

  /** The start of the oldest cell that a server's points in this block fall into; Infinity when it has none. */
  oldestCellOf(companyId: string, serverId: string): number {
    const owner = this.ownersByName.get(companyId + serverId)
    return !owner || owner.purged ? Number.POSITIVE_INFINITY : Math.min(...owner.cells)
  }

  /** The points of a server in this block, in the order of arrival. */
  *bufferedOf(companyId: string, serverId: string): Generator<BufferedPoint, void> {
    const owner = this.ownersByName.get(companyId + serverId)
    if (!owner || owner.purged) return
    const { idLo, idHi, tsMs, value } = this
    for (let span = 0; span < owner.spans.length; span += 2)
      for (let row = owner.spans[span]!; row < owner.spans[span + 1]!; row++)
        yield { lo: idLo[row]!, hi: idHi[row]!, tsMs: Math.floor(tsMs[row]!), value: value[row]! + 0 }
  }

  /** The servers of a company that have points in this block. */
  *serversOf(companyId: string): Generator<string, void> {
    for (const owner of this.ownersByName.values())
      if (owner.companyId === companyId && !owner.purged) yield owner.serverId
  }

  /** `bufferedOf` for readers of thousands of servers: a generator would cost more than what is done with a point. */
  eachBuffered(companyId: string, serverId: string, take: TakePoint): void {
    const owner = this.ownersByName.get(companyId + serverId)
    if (!owner || owner.purged) return
    const { idLo, idHi, tsMs, value } = this
    for (let span = 0; span < owner.spans.length; span += 2)
      for (let row = owner.spans[span]!; row < owner.spans[span + 1]!; row++)
        take(idLo[row]!, idHi[row]!, Math.floor(tsMs[row]!), value[row]! + 0)
  }

  /**
   * Writes the points as a block of samples_raw, in the order of the table's key. `seq` orders blocks: of two points of
   * one series and time in different blocks, the one with the higher seq counts; within the block the one added last
   * counts. Yields after each server, so that the thread can do other work. Returns the number of points written; with
   * 0 the writer is unchanged.
   */
  *writing(writer: NativeWriter, seq: number): Generator<void, number> {
    const { order, chunks } = this.scratch
    this.scratch.reserve(this.owner.length)
    chunks.clear()
    const columns = { owner: this.owner, idLo: this.idLo, idHi: this.idHi, tsMs: this.tsMs }
    let kept = 0
    for (const { begin, end } of orderRows(columns, this.rows, this.ownerRanks(), order)) {
      const next = this.keep(begin, end, kept)
      this.addChunks(kept, next)
      kept = next
      yield
    }
    this.written = kept
    if (kept === 0) return 0
    const { count } = chunks
    writer.begin(6, count)
    this.writeUuids(writer, 'company_id', 0, count)
    this.writeUuids(writer, 'server_id', 4, count)
    this.writeIds(writer, count)
    this.writeTimes(writer, count)
    writeSame(writer, { name: 'seq', type: 'UInt64', bytesPerRow: 8 }, seq, count)
    const points = chunks.points.written()
    writer.put(writer.column({ name: 'points', type: 'String', bytesPerRow: 1 }, points.length), points, points.length)
    return kept
  }

  /** Runs `writing` to its end without yielding. */
  write(writer: NativeWriter, seq: number): number {
    const writing = this.writing(writer, seq)
    for (;;) {
      const { done, value } = writing.next()
      if (done) return value
    }
  }

  /** The rows of the last `write`, server by server. Valid until the block is cleared. */
  *servers(): Generator<ServerRows, void> {
    const { decimals, digits } = this.scratch
    const { rows } = this.scratch.order
    const { idLo, idHi, tsMs, value } = this
    const written = { rows, idLo, idHi, tsMs, value, decimals, digits }
    for (let at = 0; at < this.written; ) {
      const index = this.owner[rows[at]!]!
      const end = this.endOfOwner(at, index)
      yield { owner: this.owners[index]!, written, begin: at, end }
      at = end
    }
  }

  /** The end of the owner's rows that begin at `begin`, found in doubling and then halving steps. */
  private endOfOwner(begin: number, index: number): number {
    const { rows } = this.scratch.order
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

  /** Moves the rows of an owner that are to be written from [begin, end) of the order to `to`; returns their end. */
  private keep(begin: number, end: number, to: number): number {
    const { decimals, digits, times } = this.scratch
    const { rows } = this.scratch.order
    const { idLo, idHi, tsMs, value } = this
    const { purged, lockedBeforeMs, cells } = this.owners[this.owner[rows[begin]!]!]!
    if (purged) return to
    const mayBeLocked = Math.min(...cells) < lockedBeforeMs
    let kept = to
    for (let at = begin; at < end; at++) {
      const row = rows[at]!
      if (mayBeLocked && tsMs[row]! < lockedBeforeMs) {
        this.dropped.retentionLocked++
        continue
      }
      // The store keeps whole milliseconds.
      const time = Math.floor(tsMs[row]!)
      if (kept > to && times[kept - 1] === time) {
        const last = rows[kept - 1]!
        if (idLo[last] === idLo[row] && idHi[last] === idHi[row]) kept--
      }
      decimals[kept] = splitDecimal(value[row]!, kept, digits)
      times[kept] = time
      rows[kept++] = row
    }
    return kept
  }

  /** Encodes the rows [begin, end) of the order, all of one owner, as chunks. */
  private addChunks(begin: number, end: number): void {
    const { chunks, times, decimals, digits } = this.scratch
    const { rows } = this.scratch.order
    const { idLo, idHi } = this
    for (let at = begin; at < end; ) {
      const first = rows[at]!
      const lo = idLo[first]!
      const hi = idHi[first]!
      const firstMs = times[at]!
      const beforeMs = Math.min(firstMs + CHUNK_SPAN_MS, firstMs - (firstMs % DAY_MS) + DAY_MS)
      const most = Math.min(end, at + CHUNK_POINTS_MAX)
      let next = at + 1
      for (; next < most; next++) {
        const row = rows[next]!
        if (idLo[row] !== lo || idHi[row] !== hi || times[next]! >= beforeMs) break
      }
      chunks.add(this.owner[first]!, lo, hi, firstMs)
      chunks.points.add(times, decimals, digits, at, next)
      at = next
    }
  }

  /** Writes a UUID column; the rows of an owner follow each other, so its id is written once and repeated. */
  private writeUuids(writer: NativeWriter, name: string, word: number, count: number): void {
    const start = writer.column({ name, type: 'UUID', bytesPerRow: UUID_BYTES }, count)
    const view = writer.memory()
    const { owner: owners } = this.scratch.chunks
    let at = 0
    while (at < count) {
      const owner = owners[at]!
      let end = at + 1
      while (end < count && owners[end] === owner) end++
      const words = owner * WORDS_PER_SERVER + word
      const offset = start + at * UUID_BYTES
      for (let part = 0; part < 4; part++) view.setUint32(offset + part * 4, this.ownerWords[words + part]!, true)
      writer.repeat(offset, UUID_BYTES, (end - at) * UUID_BYTES)
      at = end
    }
  }

  private writeIds(writer: NativeWriter, count: number): void {
    const { idLo, idHi } = this.scratch.chunks
    const words = new Uint32Array(count * 2)
    for (let row = 0, word = 0; row < count; row++) {
      words[word++] = idLo[row]!
      words[word++] = idHi[row]!
    }
    writer.put(writer.column({ name: 'series_id', type: 'UInt64', bytesPerRow: 8 }, count), words, count * 2)
  }

  private writeTimes(writer: NativeWriter, count: number): void {
    const { firstMs } = this.scratch.chunks
    const words = new Uint32Array(count * 2)
    for (let row = 0, word = 0; row < count; row++) {
      const high = Math.floor(firstMs[row]! / WORD)
      words[word++] = firstMs[row]! - high * WORD
      words[word++] = high
    }
    writer.put(writer.column({ name: 'ts', type: "DateTime64(3, 'UTC')", bytesPerRow: 8 }, count), words, count * 2)
  }
}

/** Writes a column of eight bytes a row with the same value in all rows. */
function writeSame(writer: NativeWriter, column: NativeColumn, value: number, count: number): void {
  const start = writer.column(column, count)
  const high = Math.floor(value / WORD)
  writer.memory().setUint32(start, value - high * WORD, true)
  writer.memory().setUint32(start + 4, high, true)
  writer.repeat(start, 8, count * 8)
}

function ownerHash(words: Uint32Array, at: number): number {
  let hash = 0
  for (let word = at; word < at + WORDS_PER_SERVER; word++) hash = Math.imul(hash ^ words[word]!, 0x9e37_79b1)
  return hash ^ (hash >>> 15)
}

function isSameOwner(words: Uint32Array, a: number, b: number): boolean {
  for (let word = 0; word < WORDS_PER_SERVER; word++) if (words[a + word] !== words[b + word]) return false
  return true
}
