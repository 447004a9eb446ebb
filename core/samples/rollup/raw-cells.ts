// Computes cells of 5 minutes from rows of samples_raw. Of points with one series and time the one with the highest
// `seq` counts, as in a query. When all samples of a cell passed through this process in order, open-cells.ts has the
// same cell without a read.
import { assert } from '../../assert.ts'
import type { CellColumns } from '../block/cell-columns.ts'
import { CHUNK_POINTS_MAX, ChunkReader } from '../block/chunk-codec.ts'
import { BITS, splitDecimal } from '../block/decimal.ts'
import type { NativeReader } from '../block/native-reader.ts'
import { replaces } from '../block/repeated-point.ts'
import { orderRows, RowOrder } from '../block/row-order.ts'
import { ServerIndex, WORDS_PER_SERVER } from '../block/uuid-words.ts'
import { CELL_5M_MS } from './cell-width.ts'

const UUID_BYTES = 16
/**
 * A cell whose digits sum up to at most this keeps digits; beyond it, or when one value is no short decimal, it keeps
 * bits.
 */
const DIGITS_MAX = 2 ** 50
const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
/** Rows that are read between two yields. */
const READ_ROWS = 4_096

/** The work of one computation: cells that start in [fromMs, toMs), of some servers. */
type RawWork = {
  readonly fromMs: number
  readonly toMs: number
  /** The servers in the store's order, as `serverWords` gives them. */
  readonly words: Uint32Array
  /** The starts of the wanted cells of each server; null for all. */
  readonly starts: readonly (ReadonlySet<number> | null)[]
}

/** The points that were read, as columns. */
class Points {
  count = 0
  owner: Uint32Array
  idLo: Uint32Array
  idHi: Uint32Array
  tsMs: Float64Array
  value: Float64Array
  seq: Float64Array

  constructor(length: number, from?: Points) {
    this.owner = new Uint32Array(length)
    this.idLo = new Uint32Array(length)
    this.idHi = new Uint32Array(length)
    this.tsMs = new Float64Array(length)
    this.value = new Float64Array(length)
    this.seq = new Float64Array(length)
    if (!from) return
    this.count = from.count
    this.owner.set(from.owner)
    this.idLo.set(from.idLo)
    this.idHi.set(from.idHi)
    this.tsMs.set(from.tsMs)
    this.value.set(from.value)
    this.seq.set(from.seq)
  }
}

/** Computes one RawWork after the other in the same memory. */
export class RawCells {
  private work: RawWork = { fromMs: 0, toMs: 0, words: new Uint32Array(0), starts: [] }
  private points = new Points(4 * CHUNK_POINTS_MAX)
  private readonly order = new RowOrder()
  /** The rows of a cell that count, in the order of time, and their values. */
  private kept = new Uint32Array(1_024)
  private digits = new Float64Array(1_024)
  private decimals = new Uint8Array(1_024)

  /** Starts a new work and drops the points of the one before. */
  begin(work: RawWork): void {
    this.work = work
    this.points.count = 0
  }

  /**
   * Reads rows of samples_raw in any order, with the columns company_id, server_id, series_id, ts, seq and
   * CHUNK_COLUMNS. Keeps the points of wanted cells. Yields every READ_ROWS rows.
   */
  *read(reader: NativeReader): Generator<void, void> {
    const { view } = reader
    const index = new ServerIndex(this.work.words)
    const chunks = new ChunkReader(reader)
    for (let rows = reader.begin(); rows > 0; rows = reader.begin()) {
      const companies = reader.column(rows * UUID_BYTES)
      const servers = reader.column(rows * UUID_BYTES)
      const ids = reader.column(rows * 8)
      const times = reader.column(rows * 8)
      const seqs = reader.column(rows * 8)
      chunks.open(rows)
      for (let row = 0; row < rows; row++) {
        chunks.next()
        const owner = index.placeOf(view, companies + row * UUID_BYTES, servers + row * UUID_BYTES)
        assert(owner >= 0, 'rows are of servers that were asked for')
        const lo = view.getUint32(ids + row * 8, true)
        const hi = view.getUint32(ids + row * 8 + 4, true)
        const seq = reader.int64(seqs + row * 8)
        const firstMs = reader.int64(times + row * 8)
        if (this.points.count + CHUNK_POINTS_MAX > this.points.owner.length)
          this.points = new Points(this.points.owner.length * 2, this.points)
        const { points } = this
        const begin = points.count
        const end = begin + chunks.read(firstMs, points.tsMs, points.value, begin)
        points.count = this.keepWanted(owner, begin, end)
        for (let point = begin; point < points.count; point++) {
          points.owner[point] = owner
          points.idLo[point] = lo
          points.idHi[point] = hi
          points.seq[point] = seq
        }
        if (row % READ_ROWS === 0) yield
      }
    }
  }

  /**
   * Moves the wanted ones of a server's points [begin, end), which are in the order of time, to `begin`; returns their
   * end.
   */
  private keepWanted(owner: number, begin: number, end: number): number {
    const { fromMs, toMs, starts } = this.work
    const { tsMs, value } = this.points
    const wanted = starts[owner]!
    if (wanted === null && tsMs[begin]! >= fromMs && tsMs[end - 1]! < toMs) return end
    let kept = begin
    for (let point = begin; point < end; point++) {
      const time = tsMs[point]!
      if (time < fromMs || time >= toMs || (wanted !== null && !wanted.has(time - (time % CELL_5M_MS)))) continue
      tsMs[kept] = time
      value[kept++] = value[point]!
    }
    return kept
  }

  /** Computes the cells of the points read and adds them in the order of the store's key. Yields after each server. */
  *addTo(columns: CellColumns): Generator<void, void> {
    const { points, order } = this
    const { words, starts } = this.work
    order.reserve(points.count)
    for (const { begin, end } of orderRows(points, points.count, Uint32Array.from(starts.keys()), order)) {
      columns.server(words, points.owner[order.rows[begin]!]! * WORDS_PER_SERVER, end - begin)
      for (let at = begin; at < end; ) at = this.addCell(columns, at, end)
      yield
    }
  }

  /** Adds the cell whose first row is at `begin` of the order; returns its end, at most `limit`. */
  private addCell(columns: CellColumns, begin: number, limit: number): number {
    const { rows } = this.order
    const { idLo, idHi, tsMs, seq } = this.points
    if (this.kept.length < limit - begin) this.grow(limit - begin)
    const { kept } = this
    const first = rows[begin]!
    const lo = idLo[first]!
    const hi = idHi[first]!
    const startMs = tsMs[first]! - (tsMs[first]! % CELL_5M_MS)
    const endMs = startMs + CELL_5M_MS
    let count = 0
    let lastMs = -1
    let at = begin
    for (; at < limit; at++) {
      const row = rows[at]!
      const time = tsMs[row]!
      if (idLo[row] !== lo || idHi[row] !== hi || time >= endMs) break
      if (time !== lastMs) kept[count++] = row
      else if (replaces(seq[row]!, seq[kept[count - 1]!]!)) kept[count - 1] = row
      lastMs = time
    }
    this.addKept(columns, lo, hi, startMs, count, lastMs - startMs)
    return at
  }

  private addKept(columns: CellColumns, lo: number, hi: number, startMs: number, count: number, after: number): void {
    const { kept, digits, decimals } = this
    const { value } = this.points
    let places = 0
    for (let at = 0; at < count; at++) {
      const own = splitDecimal(value[kept[at]!]!, at, digits)
      decimals[at] = own
      if (own > places) places = own
    }
    if (places !== BITS) {
      let sum = 0
      let min = Number.POSITIVE_INFINITY
      let max = Number.NEGATIVE_INFINITY
      let last = 0
      for (let at = 0; at < count; at++) {
        last = digits[at]! * POWERS[places - decimals[at]!]!
        sum += last
        if (last < min) min = last
        if (last > max) max = last
      }
      if (Math.max(-min, max) * count <= DIGITS_MAX) {
        columns.addDigits(lo, hi, startMs, count, after, places, { last, min, max, sum })
        return
      }
    }
    columns.addBits(lo, hi, startMs, count, after, this.bitsOf(count))
  }

  /** Last, minimum, maximum and sum of the kept rows as doubles, with Kahan summation. */
  private bitsOf(count: number): { last: number; min: number; max: number; sum: number } {
    const { value } = this.points
    const values = { last: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY, sum: 0 }
    let lost = 0
    for (let at = 0; at < count; at++) {
      const each = value[this.kept[at]!]!
      const more = each - lost
      const sum = values.sum + more
      lost = sum - values.sum - more
      values.sum = sum
      if (each < values.min) values.min = each
      if (each > values.max) values.max = each
      values.last = each
    }
    return values
  }

  private grow(length: number): void {
    this.kept = new Uint32Array(length)
    this.digits = new Float64Array(length)
    this.decimals = new Uint8Array(length)
  }
}
