// Cells on their way to the store: blocks of rollup_5m and rollup_1h in Native format, in the order of the tables' key.
import { writeUuid } from '../series/uuid.ts'
import type { CellRows } from './cell-rows.ts'
import { BITS } from './decimal.ts'
import { NativeWriter } from './native-block.ts'
import type { CellsOfStart, MachineCells } from './open-cells.ts'
import { compareUuidWords, uuidWords } from './uuid-words.ts'

const BLOCK_ROWS = 400_000
const UUID_BYTES = 16
const WORDS_PER_MACHINE = 8
const WORD = 0x1_0000_0000
const COLUMNS = 12

/** A machine of a block: where its ids lie, and how many cells it has. */
type Part = { readonly machine: MachineCells; readonly words: number; readonly rows: number }

const rowsOf = ({ chunk, start, length }: MachineCells): number => {
  let rows = 0
  for (let at = start; at < start + length; at++) if (chunk.count[at] !== 0) rows++
  return rows
}

/** The columns of a block that differ from row to row; those of eight bytes as words. */
class Columns {
  readonly id: Uint32Array
  readonly count: Uint32Array
  readonly after: Uint32Array
  readonly decimals: Uint8Array
  readonly last: Uint32Array
  readonly below: Uint32Array
  readonly above: Uint32Array
  readonly beside: Uint32Array

  constructor(readonly rows: number) {
    this.id = new Uint32Array(rows * 2)
    this.count = new Uint32Array(rows)
    this.after = new Uint32Array(rows)
    this.decimals = new Uint8Array(rows)
    this.last = new Uint32Array(rows * 2)
    this.below = new Uint32Array(rows * 2)
    this.above = new Uint32Array(rows * 2)
    this.beside = new Uint32Array(rows * 2)
  }
}

function putWhole(words: Uint32Array, row: number, value: number): void {
  const high = Math.floor(value / WORD)
  words[row * 2] = value - high * WORD
  words[row * 2 + 1] = high
}

/** Copies a cell into a row of the columns: its newest value, and the others by how far they lie from it (sql/samples/0002_decimals.sql). */
function copyCell(columns: Columns, row: number, chunk: CellRows, at: number): void {
  const count = chunk.count[at]!
  const last = chunk.last[at]!
  columns.id[row * 2] = chunk.idLo[at]!
  columns.id[row * 2 + 1] = chunk.idHi[at]!
  columns.count[row] = count
  columns.after[row] = chunk.after[at]!
  columns.decimals[row] = chunk.decimals[at]!
  if (chunk.decimals[at] === BITS) {
    // Of one sample: nothing is beside it.
    bits[0] = last
    columns.last[row * 2] = bitWords[0]!
    columns.last[row * 2 + 1] = bitWords[1]!
    putWhole(columns.below, row, 0)
    putWhole(columns.above, row, 0)
    putWhole(columns.beside, row, 0)
    return
  }
  putWhole(columns.last, row, last)
  putWhole(columns.below, row, last - chunk.min[at]!)
  putWhole(columns.above, row, chunk.max[at]! - last)
  putWhole(columns.beside, row, chunk.sum[at]! - last * count)
}

const bits = new Float64Array(1)
const bitWords = new Uint32Array(bits.buffer)

/** Writes cells of one start, those of machines that are computed from raw samples left out, and yields the rows of each block. */
export class CellBlockWriter {
  private readonly writer = new NativeWriter()
  private words = new Uint32Array(0)
  private columns = new Columns(0)

  /** The block of the last step, until the next. */
  block(): Uint8Array {
    return this.writer.finish()
  }

  /** After each step there is a `block`, to be inserted before the next. */
  *write(cells: CellsOfStart, version: number): Generator<number> {
    const parts = this.ordered(cells)
    for (let from = 0; from < parts.length; ) {
      let rows = 0
      let to = from
      while (to < parts.length && rows < BLOCK_ROWS) rows += parts[to++]!.rows
      this.writeBlock(parts.slice(from, to), rows, cells.startMs, version)
      yield rows
      from = to
    }
  }

  private ordered({ machines }: CellsOfStart): Part[] {
    const parts: Part[] = []
    this.words = new Uint32Array(machines.size * WORDS_PER_MACHINE)
    const bytes = new Uint8Array(UUID_BYTES * 2)
    const from = new Uint32Array(bytes.buffer)
    for (const machine of machines.values()) {
      const rows = machine.isRaw ? 0 : rowsOf(machine)
      if (rows === 0) continue
      const words = parts.length * WORDS_PER_MACHINE
      writeUuid(bytes, 0, machine.companyId)
      writeUuid(bytes, UUID_BYTES, machine.serverId)
      uuidWords(from, 0, this.words, words)
      uuidWords(from, 4, this.words, words + 4)
      parts.push({ machine, words, rows })
    }
    return parts.sort(
      (a, b) =>
        compareUuidWords(this.words, a.words, b.words) || compareUuidWords(this.words, a.words + 4, b.words + 4),
    )
  }

  private writeBlock(parts: readonly Part[], rows: number, startMs: number, version: number): void {
    if (this.columns.rows < rows) this.columns = new Columns(rows)
    const { columns } = this
    let row = 0
    for (const { machine } of parts) {
      const { chunk, start, length } = machine
      for (let at = start; at < start + length; at++) if (chunk.count[at] !== 0) copyCell(columns, row++, chunk, at)
    }
    this.writer.begin(COLUMNS, rows)
    this.writeUuids('company_id', parts, rows, 0)
    this.writeUuids('server_id', parts, rows, 4)
    this.put('series_id', 'UInt64', columns.id, rows, 2)
    this.writeSame('ts', "DateTime64(3, 'UTC')", rows, startMs)
    this.put('count', 'UInt32', columns.count, rows, 1)
    this.put('last_after', 'UInt32', columns.after, rows, 1)
    this.put('decimals', 'UInt8', columns.decimals, rows, 1)
    this.put('last_digits', 'Int64', columns.last, rows, 2)
    this.put('below', 'Int64', columns.below, rows, 2)
    this.put('above', 'Int64', columns.above, rows, 2)
    this.put('beside', 'Int64', columns.beside, rows, 2)
    this.writeSame('version', 'UInt64', rows, version)
  }

  private put(name: string, type: string, values: Uint32Array | Uint8Array, rows: number, perRow: number): void {
    const bytesPerRow = values.BYTES_PER_ELEMENT * perRow
    this.writer.put(this.writer.column({ name, type, bytesPerRow }, rows), values, rows * perRow)
  }

  private writeUuids(name: string, parts: readonly Part[], rows: number, word: number): void {
    let offset = this.writer.column({ name, type: 'UUID', bytesPerRow: UUID_BYTES }, rows)
    const view = this.writer.memory()
    for (const part of parts) {
      for (let index = 0; index < 4; index++)
        view.setUint32(offset + index * 4, this.words[part.words + word + index]!, true)
      this.writer.repeat(offset, UUID_BYTES, part.rows * UUID_BYTES)
      offset += part.rows * UUID_BYTES
    }
  }

  private writeSame(name: string, type: string, rows: number, value: number): void {
    const offset = this.writer.column({ name, type, bytesPerRow: 8 }, rows)
    this.writer.memory().setBigUint64(offset, BigInt(value), true)
    this.writer.repeat(offset, 8, rows * 8)
  }
}
