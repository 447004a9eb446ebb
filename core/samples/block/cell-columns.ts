// Cells as columns of rollup_5m and rollup_1h. A cell is stored as its newest value and the differences of its other
// values from that one (sql/samples/0002_decimals.sql).
import { BITS } from './decimal.ts'
import type { NativeWriter } from './native-writer.ts'
import { WORDS_PER_SERVER } from './uuid-words.ts'

const UUID_BYTES = 16
const WORD = 0x1_0000_0000
const COLUMNS = 12
const ROWS_START = 16_384

/** The newest, lowest and highest value of a cell's samples, and their sum. */
type CellValues = {
  readonly last: number
  readonly min: number
  readonly max: number
  readonly sum: number
}

/** The rows of one server: from the end of the previous server's rows to `end`. */
type ServerRows = { readonly words: Uint32Array; readonly at: number; end: number }

const bits = new Float64Array(1)
const bitWords = new Uint32Array(bits.buffer)
const bigBits = new BigInt64Array(bits.buffer)

const bitsOf = (value: number): bigint => {
  bits[0] = value
  return bigBits[0]!
}

function grown<Values extends Uint32Array | Uint8Array>(from: Values, to: Values): Values {
  to.set(from)
  return to
}

export class CellColumns {
  rows = 0
  private readonly servers: ServerRows[] = []
  /** Columns of eight bytes a row, as 32-bit words. */
  private id = new Uint32Array(ROWS_START * 2)
  private ts = new Uint32Array(ROWS_START * 2)
  private count = new Uint32Array(ROWS_START)
  private after = new Uint32Array(ROWS_START)
  private decimals = new Uint8Array(ROWS_START)
  private last = new Uint32Array(ROWS_START * 2)
  private below = new Uint32Array(ROWS_START * 2)
  private above = new Uint32Array(ROWS_START * 2)
  private beside = new Uint32Array(ROWS_START * 2)

  clear(): void {
    this.rows = 0
    this.servers.length = 0
  }

  /**
   * Starts the cells of a server: its ids are at `words[at]` in ClickHouse's form, and at most `cellsMax` cells follow.
   */
  server(words: Uint32Array, at: number, cellsMax: number): void {
    this.reserve(cellsMax)
    this.servers.push({ words, at, end: this.rows })
  }

  /** Adds a cell whose values are digits with `decimals` decimals: whole numbers, so sums are exact. */
  addDigits(
    idLo: number,
    idHi: number,
    startMs: number,
    count: number,
    after: number,
    decimals: number,
    { last, min, max, sum }: CellValues,
  ): void {
    const row = this.add(idLo, idHi, startMs, count, after, decimals)
    putWhole(this.last, row, last)
    putWhole(this.below, row, last - min)
    putWhole(this.above, row, max - last)
    putWhole(this.beside, row, sum - last * count)
  }

  /** Adds a cell whose values are stored bit by bit, since they are no short decimals or too large. */
  addBits(
    idLo: number,
    idHi: number,
    startMs: number,
    count: number,
    after: number,
    { last, min, max, sum }: CellValues,
  ): void {
    const row = this.add(idLo, idHi, startMs, count, after, BITS)
    bits[0] = last
    this.last[row * 2] = bitWords[0]!
    this.last[row * 2 + 1] = bitWords[1]!
    if (count === 1) {
      // A cell of one sample has no differences.
      putWhole(this.below, row, 0)
      putWhole(this.above, row, 0)
      putWhole(this.beside, row, 0)
      return
    }
    const lastBits = bitsOf(last)
    putBits(this.below, row, lastBits - bitsOf(min))
    putBits(this.above, row, bitsOf(max) - lastBits)
    putBits(this.beside, row, bitsOf(sum) - lastBits * BigInt(count))
  }

  private add(idLo: number, idHi: number, startMs: number, count: number, after: number, decimals: number): number {
    const row = this.rows++
    this.id[row * 2] = idLo
    this.id[row * 2 + 1] = idHi
    putWhole(this.ts, row, startMs)
    this.count[row] = count
    this.after[row] = after
    this.decimals[row] = decimals
    this.servers[this.servers.length - 1]!.end = this.rows
    return row
  }

  private reserve(more: number): void {
    if (this.rows + more <= this.count.length) return
    const length = Math.max(this.count.length * 2, this.rows + more)
    this.id = grown(this.id, new Uint32Array(length * 2))
    this.ts = grown(this.ts, new Uint32Array(length * 2))
    this.count = grown(this.count, new Uint32Array(length))
    this.after = grown(this.after, new Uint32Array(length))
    this.decimals = grown(this.decimals, new Uint8Array(length))
    this.last = grown(this.last, new Uint32Array(length * 2))
    this.below = grown(this.below, new Uint32Array(length * 2))
    this.above = grown(this.above, new Uint32Array(length * 2))
    this.beside = grown(this.beside, new Uint32Array(length * 2))
  }

  /** Writes the cells as a block, in the order in which they were added. */
  write(writer: NativeWriter, version: number): void {
    const { rows } = this
    writer.begin(COLUMNS, rows)
    this.writeUuids(writer, 'company_id', 0)
    this.writeUuids(writer, 'server_id', 4)
    put(writer, 'series_id', 'UInt64', this.id, rows, 2)
    put(writer, 'ts', "DateTime64(3, 'UTC')", this.ts, rows, 2)
    put(writer, 'count', 'UInt32', this.count, rows, 1)
    put(writer, 'last_after', 'UInt32', this.after, rows, 1)
    put(writer, 'decimals', 'UInt8', this.decimals, rows, 1)
    put(writer, 'last_digits', 'Int64', this.last, rows, 2)
    put(writer, 'below', 'Int64', this.below, rows, 2)
    put(writer, 'above', 'Int64', this.above, rows, 2)
    put(writer, 'beside', 'Int64', this.beside, rows, 2)
    const offset = writer.column({ name: 'version', type: 'UInt64', bytesPerRow: 8 }, rows)
    writer.memory().setBigUint64(offset, BigInt(version), true)
    writer.repeat(offset, 8, rows * 8)
  }

  /** Writes the UUID column; rows of a server follow each other, so its id is written once and repeated. */
  private writeUuids(writer: NativeWriter, name: string, word: number): void {
    let offset = writer.column({ name, type: 'UUID', bytesPerRow: UUID_BYTES }, this.rows)
    const view = writer.memory()
    let row = 0
    for (const { words, at, end } of this.servers) {
      if (end === row) continue
      for (let index = 0; index < WORDS_PER_SERVER / 2; index++)
        view.setUint32(offset + index * 4, words[at + word + index]!, true)
      writer.repeat(offset, UUID_BYTES, (end - row) * UUID_BYTES)
      offset += (end - row) * UUID_BYTES
      row = end
    }
  }
}

function putWhole(words: Uint32Array, row: number, value: number): void {
  const high = Math.floor(value / WORD)
  words[row * 2] = value - high * WORD
  words[row * 2 + 1] = high
}

/** Writes the lowest 64 bits, because sums and differences in the engine wrap. */
function putBits(words: Uint32Array, row: number, value: bigint): void {
  bigBits[0] = BigInt.asIntN(64, value)
  words[row * 2] = bitWords[0]!
  words[row * 2 + 1] = bitWords[1]!
}

function put(
  writer: NativeWriter,
  name: string,
  type: string,
  values: Uint32Array | Uint8Array,
  rows: number,
  perRow: number,
): void {
  const bytesPerRow = values.BYTES_PER_ELEMENT * perRow
  writer.put(writer.column({ name, type, bytesPerRow }, rows), values, rows * perRow)
}
