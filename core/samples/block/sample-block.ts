// A block of samples between bus and store. Entries fill it (held-batches.ts); its points can be read until it is
// stored. It is written part by part, so that what writing needs does not grow with the block: server by server in the
// order of the key of samples_raw, the points of each ordered by series and time without repeated ones, in Native
// format with one row for each chunk of points (decision G-135).
import type { EntryReader } from '../../bus/entry.ts'
import { CELL_5M_MS } from '../rollup/cell-width.ts'
import { CHUNK_COLUMN_COUNT, CHUNK_POINTS_MAX, CHUNK_SPAN_MS, ChunkWriter } from './chunk-codec.ts'
import { splitDecimal } from './decimal.ts'
import { type BatchChain, BatchesByTime, emptyChain, HeldBatches, PagePool, type TakePoint } from './held-batches.ts'
import type { NativeColumn, NativeWriter } from './native-writer.ts'
import { orderRows, RowOrder } from './row-order.ts'
import { type SeriesList, SeriesLists } from './series-lists.ts'
import { compareServerWords, uuidWords, WORDS_PER_SERVER } from './uuid-words.ts'

/** The columns of a row beside its chunk. */
const ROW_COLUMNS = 5
const HEADER_WORDS = 24
const COMPANY_WORD = 2
const SERVER_WORD = 6
const UUID_BYTES = 16
const WORD = 2 ** 32
const DAY_MS = 86_400_000
const OWNERS_START = 1_024
/** A part has so many points at most, but at least one server. Larger ones are merged less often in the store. */
const PART_POINTS = 2 ** 21
const PART_START = 16_384
/** The only rank, where all rows are of one owner. */
const ONE_RANK = new Uint32Array(1)

/** The server that rows belong to. `cells` are the starts of the 5-minute cells that its rows of this block touch. */
export type BlockOwner = {
  readonly companyId: string
  readonly serverId: string
  readonly cells: Set<number>
  /** When the first of its entries was received. */
  readonly receivedAtMs: number
  lastCellMs: number
  /**
   * Rows before this instant are dropped: the write-locked zone of the company's plan (document 3 "Retention
   * semantics").
   */
  lockedBeforeMs: number
  /** Set when the server is purged while its rows are in the block: they are then not written. */
  purged: boolean
  readonly held: BatchChain
}

/**
 * Whether samples of a server are dropped, and before which time. Decided once for each server and block, and again for
 * each entry while the server is under a tombstone.
 */
type OwnerRule = { readonly purged: boolean; readonly lockedBeforeMs: number }
type RuleOfOwner = (companyId: string, serverId: string, receivedAtMs: number) => OwnerRule

export type DroppedRows = { purged: number; retentionLocked: number }

/** Points in the order of the table's key, without repeated ones. Times are whole milliseconds. */
export type WrittenPoints = {
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  readonly tsMs: Float64Array
  readonly value: Float64Array
  /** Values as `splitDecimal` gives them. */
  readonly decimals: Uint8Array
  readonly digits: Float64Array
}

/** The points of one server in a written part: [begin, end) of `written`. */
export type ServerPoints = {
  readonly owner: BlockOwner
  readonly written: WrittenPoints
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

/** Points of one server in the order of arrival, to be ordered. */
class LoosePoints {
  owner = new Uint32Array(0)
  idLo = new Uint32Array(0)
  idHi = new Uint32Array(0)
  tsMs = new Float64Array(0)
  value = new Float64Array(0)
  count = 0

  /** Empties it, with room for so many points. */
  clear(length: number): void {
    this.count = 0
    if (this.idLo.length >= length) return
    this.owner = new Uint32Array(length)
    this.idLo = new Uint32Array(length)
    this.idHi = new Uint32Array(length)
    this.tsMs = new Float64Array(length)
    this.value = new Float64Array(length)
  }
}

/** The points of a part as they are written, server after server. */
class PartPoints {
  count = 0
  idLo = new Uint32Array(PART_START)
  idHi = new Uint32Array(PART_START)
  tsMs = new Float64Array(PART_START)
  value = new Float64Array(PART_START)
  decimals = new Uint8Array(PART_START)
  digits = new Float64Array(PART_START)

  reserve(more: number): void {
    if (this.count + more <= this.idLo.length) return
    const length = Math.max(this.idLo.length * 2, this.count + more)
    this.idLo = grown32(this.idLo, length)
    this.idHi = grown32(this.idHi, length)
    this.tsMs = grown64(this.tsMs, length)
    this.value = grown64(this.value, length)
    this.digits = grown64(this.digits, length)
    const decimals = new Uint8Array(length)
    decimals.set(this.decimals)
    this.decimals = decimals
  }
}

/**
 * Memory that blocks share: pages and lists of series for those that fill, and what writing needs, since a block is
 * written only after the one before was cleared.
 */
export class BlockScratch {
  readonly pool: PagePool = new PagePool()
  readonly lists: SeriesLists = new SeriesLists()
  readonly order: RowOrder = new RowOrder()
  readonly chunks: ChunkRows = new ChunkRows()
  readonly loose: LoosePoints = new LoosePoints()
  readonly part: PartPoints = new PartPoints()
  readonly byTime: BatchesByTime = new BatchesByTime()
}

export class SampleBlock {
  private readonly scratch: BlockScratch
  private readonly held: HeldBatches
  private readonly partPoints: number
  /** Points held. */
  rows = 0
  readonly owners: BlockOwner[] = []
  readonly dropped: DroppedRows = { purged: 0, retentionLocked: 0 }
  /** Company id and server id of each owner as words in ClickHouse's form. */
  private ownerWords = new Uint32Array(WORDS_PER_SERVER * OWNERS_START)
  /**
   * A hash table from these words to owners, with open addressing and at most half full: index + 1, or 0 for an empty
   * slot.
   */
  private ownerSlots = new Uint32Array(2 * OWNERS_START)
  /** The start of the oldest cell that samples of this block fall into. */
  oldestCellMs = Number.POSITIVE_INFINITY
  private readonly ownersByName = new Map<string, BlockOwner>()
  /** The owners in the order of the table's key once writing has begun, and how many of them are written. */
  private inOrder: Uint32Array | null = null
  private ownersWritten = 0
  /** The owners of the last part, and where the points of each end. */
  private readonly partOwners: { readonly owner: BlockOwner; readonly end: number }[] = []

  constructor(scratch: BlockScratch = new BlockScratch(), partPoints: number = PART_POINTS) {
    this.scratch = scratch
    this.held = new HeldBatches(scratch.pool, scratch.lists)
    this.partPoints = partPoints
  }

  /** Bytes of the points held. */
  get bytes(): number {
    return this.held.bytes
  }

  clear(): void {
    this.held.clear()
    this.rows = 0
    this.inOrder = null
    this.ownersWritten = 0
    this.partOwners.length = 0
    this.owners.length = 0
    this.ownersByName.clear()
    this.ownerSlots.fill(0)
    this.oldestCellMs = Number.POSITIVE_INFINITY
    this.dropped.purged = 0
    this.dropped.retentionLocked = 0
  }

  /**
   * Holds the points of the reader's entry. `ruleOf` is called once for each server that is not purged. Returns the
   * owner of the points.
   */
  add(entry: EntryReader, ruleOf: RuleOfOwner): BlockOwner {
    const index = this.ownerOf(entry, ruleOf)
    const owner = this.owners[index]!
    if (owner.purged) {
      this.dropped.purged += entry.pointCount
      return owner
    }
    const before = owner.held.points
    if (entry.hasCounts || entry.hasTimes) this.addLoose(entry, owner)
    else if (entry.commonTsMs < owner.lockedBeforeMs) this.dropped.retentionLocked += entry.seriesCount
    else if (entry.seriesCount > 0) {
      this.held.addPlain(owner.held, entry)
      this.touch(owner, entry.commonTsMs)
    }
    this.rows += owner.held.points - before
    return owner
  }

  private addLoose(entry: EntryReader, owner: BlockOwner): void {
    const { f64 } = entry
    this.dropped.retentionLocked += this.held.addLoose(owner.held, entry, owner.lockedBeforeMs)
    const times = entry.hasTimes ? f64.subarray(entry.timesAt, entry.timesAt + entry.pointCount) : [entry.commonTsMs]
    for (const tsMs of times) if (tsMs >= owner.lockedBeforeMs) this.touch(owner, tsMs)
  }

  /** Records the cell that a sample falls into. */
  private touch(owner: BlockOwner, tsMs: number): void {
    const cellMs = tsMs - (tsMs % CELL_5M_MS)
    if (cellMs === owner.lastCellMs) return
    owner.lastCellMs = cellMs
    owner.cells.add(cellMs)
    if (cellMs < this.oldestCellMs) this.oldestCellMs = cellMs
  }

  private ownerOf(entry: EntryReader, ruleOf: RuleOfOwner): number {
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
      if (!this.owners[known]!.purged || ruleOf(entry.companyId(), entry.serverId(), entry.receivedAtMs).purged)
        return known
      // The tombstone has ended: samples from now on belong to a new owner, which is not purged.
      break
    }
    ownerSlots[place] = index + 1
    const companyId = entry.companyId()
    const serverId = entry.serverId()
    const { purged, lockedBeforeMs } = ruleOf(companyId, serverId, entry.receivedAtMs)
    const owner = {
      companyId,
      serverId,
      cells: new Set<number>(),
      receivedAtMs: entry.receivedAtMs,
      lastCellMs: -1,
      purged,
      lockedBeforeMs,
      held: emptyChain(),
    }
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

  /** Drops the points that an owner has in the block, and those that still come for it. */
  purge(owner: BlockOwner): void {
    if (owner.purged) return
    owner.purged = true
    this.dropped.purged += owner.held.points
  }

  /** The start of the oldest cell that a server's points in this block fall into; Infinity when it has none. */
  oldestCellOf(companyId: string, serverId: string): number {
    const owner = this.ownersByName.get(companyId + serverId)
    return !owner || owner.purged ? Number.POSITIVE_INFINITY : Math.min(...owner.cells)
  }

  /** Visits the points of a server in this block, in the order of arrival. */
  eachBuffered(companyId: string, serverId: string, take: TakePoint): void {
    const owner = this.ownersByName.get(companyId + serverId)
    if (!owner || owner.purged) return
    this.held.eachPoint(owner.held, (lo, hi, tsMs, value) => take(lo, hi, Math.floor(tsMs), value + 0))
  }

  /** The same points as objects. */
  bufferedOf(companyId: string, serverId: string): BufferedPoint[] {
    const points: BufferedPoint[] = []
    this.eachBuffered(companyId, serverId, (lo, hi, tsMs, value) => points.push({ lo, hi, tsMs, value }))
    return points
  }

  /** The servers of a company that have points in this block. */
  *serversOf(companyId: string): Generator<string, void> {
    for (const owner of this.ownersByName.values())
      if (owner.companyId === companyId && !owner.purged) yield owner.serverId
  }

  /**
   * Writes the next part of the points as a block of samples_raw, in the order of the table's key. `seq` orders blocks:
   * of two points of one series and time in different blocks, the one with the higher seq counts; within the block the
   * one added last counts. Yields after each server, so that the thread can do other work. Returns the number of points
   * written; with 0 nothing is left, and the writer is unchanged.
   */
  *writing(writer: NativeWriter, seq: number): Generator<void, number> {
    const { chunks, part } = this.scratch
    chunks.clear()
    part.count = 0
    this.partOwners.length = 0
    this.inOrder ??= this.ownersInOrder()
    for (; this.ownersWritten < this.inOrder.length; this.ownersWritten++) {
      const index = this.inOrder[this.ownersWritten]!
      const begin = part.count
      if (begin > 0 && begin + this.owners[index]!.held.points > this.partPoints) break
      this.putOwner(this.owners[index]!)
      if (part.count === begin) continue
      this.addChunks(index, begin, part.count)
      this.partOwners.push({ owner: this.owners[index]!, end: part.count })
      yield
    }
    if (part.count === 0) return 0
    const { count } = chunks
    writer.begin(ROW_COLUMNS + CHUNK_COLUMN_COUNT, count)
    this.writeUuids(writer, 'company_id', 0, count)
    this.writeUuids(writer, 'server_id', 4, count)
    this.writeIds(writer, count)
    this.writeTimes(writer, count)
    writeSame(writer, { name: 'seq', type: 'UInt64', bytesPerRow: 8 }, seq, count)
    chunks.points.write(writer)
    return part.count
  }

  /** Runs `writing` to its end without yielding. */
  write(writer: NativeWriter, seq: number): number {
    const writing = this.writing(writer, seq)
    for (;;) {
      const { done, value } = writing.next()
      if (done) return value
    }
  }

  /** The points of the last part, server by server. Valid until the next part is written or the block is cleared. */
  *servers(): Generator<ServerPoints, void> {
    let begin = 0
    for (const { owner, end } of this.partOwners) {
      yield { owner, written: this.scratch.part, begin, end }
      begin = end
    }
  }

  /** Indexes of the owners in ClickHouse's order of (company, server). */
  private ownersInOrder(): Uint32Array {
    const words = this.ownerWords
    return Uint32Array.from(this.owners.keys()).sort((a, b) =>
      compareServerWords(words, a * WORDS_PER_SERVER, b * WORDS_PER_SERVER),
    )
  }

  /** Appends the points of an owner that are to be written to the part. */
  private putOwner(owner: BlockOwner): void {
    if (owner.purged || owner.held.points === 0) return
    this.scratch.part.reserve(owner.held.points)
    const { list } = owner.held
    if (list?.byId) this.putPlain(owner, list, list.byId)
    else this.putLoose(owner)
  }

  /** The points of an owner whose batches all have the same series: series by series, from one batch to the next. */
  private putPlain({ held, lockedBeforeMs }: BlockOwner, list: SeriesList, byId: Uint32Array): void {
    const { part, byTime } = this.scratch
    this.dropped.retentionLocked += this.held.byTime(held, lockedBeforeMs, byTime) * byId.length
    const { idLo, idHi, tsMs, value, decimals, digits } = part
    const { batches } = byTime
    let at = part.count
    for (let order = 0; order < byId.length; order++) {
      const series = byId[order]!
      const lo = list.idLo[series]!
      const hi = list.idHi[series]!
      for (let batch = 0, row = series; batch < batches.length; batch++, at++, row += byId.length) {
        idLo[at] = lo
        idHi[at] = hi
        // The store keeps whole milliseconds.
        tsMs[at] = Math.floor(batches[batch]!.tsMs)
        value[at] = byTime.value[row]!
        decimals[at] = byTime.decimals[row]!
        digits[at] = byTime.digits[row]!
      }
    }
    part.count = at
  }

  /** The points of any other owner. */
  private putLoose({ held, lockedBeforeMs }: BlockOwner): void {
    const { loose, order } = this.scratch
    loose.clear(held.points)
    this.held.eachPoint(held, (lo, hi, tsMs, value) => {
      if (tsMs < lockedBeforeMs) {
        this.dropped.retentionLocked++
        return
      }
      const row = loose.count++
      loose.idLo[row] = lo
      loose.idHi[row] = hi
      loose.tsMs[row] = tsMs
      loose.value[row] = value
    })
    order.reserve(loose.count)
    for (const { begin, end } of orderRows(loose, loose.count, ONE_RANK, order)) this.putOrdered(begin, end)
  }

  /** Appends loose points in their order; of those with one series and whole millisecond the last counts. */
  private putOrdered(begin: number, end: number): void {
    const { loose, order, part } = this.scratch
    const { rows } = order
    const { idLo, idHi, tsMs, value, decimals, digits } = part
    const from = part.count
    let kept = from
    for (let index = begin; index < end; index++) {
      const row = rows[index]!
      const lo = loose.idLo[row]!
      const hi = loose.idHi[row]!
      const wholeMs = Math.floor(loose.tsMs[row]!)
      if (kept > from && tsMs[kept - 1] === wholeMs && idLo[kept - 1] === lo && idHi[kept - 1] === hi) kept--
      idLo[kept] = lo
      idHi[kept] = hi
      tsMs[kept] = wholeMs
      value[kept] = loose.value[row]!
      decimals[kept] = splitDecimal(loose.value[row]!, kept, digits)
      kept++
    }
    part.count = kept
  }

  /** Encodes the points [begin, end) of the part, all of one owner, as chunks. */
  private addChunks(owner: number, begin: number, end: number): void {
    const { chunks, part } = this.scratch
    const { idLo, idHi, tsMs, decimals, digits } = part
    for (let at = begin; at < end; ) {
      const lo = idLo[at]!
      const hi = idHi[at]!
      const firstMs = tsMs[at]!
      const beforeMs = Math.min(firstMs + CHUNK_SPAN_MS, firstMs - (firstMs % DAY_MS) + DAY_MS)
      const most = Math.min(end, at + CHUNK_POINTS_MAX)
      let next = at + 1
      while (next < most && idLo[next] === lo && idHi[next] === hi && tsMs[next]! < beforeMs) next++
      chunks.add(owner, lo, hi, firstMs)
      chunks.points.add(tsMs, decimals, digits, at, next)
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
