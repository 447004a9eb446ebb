// Reads blocks of ClickHouse's Native format: blocks of `NativeWriter`, and results of statements. Columns follow each
// other; the caller knows their order and types, since it wrote the statement.
import { assert } from '../../assert.ts'

const LENGTH_BYTES_MAX = 5
const WORD = 2 ** 32

/** Reads a whole number of eight bytes; exact up to 2^53. */
export const readInt64 = (view: DataView, at: number): number =>
  view.getInt32(at + 4, true) * WORD + view.getUint32(at, true)

export class NativeReader {
  readonly view: DataView
  private readonly bytes: Uint8Array
  private at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Opens the next block; returns its row count, 0 after the last block. */
  begin(): number {
    while (this.at < this.bytes.length) {
      const columns = this.length()
      const rows = this.length()
      if (rows > 0) return rows
      // A block without rows only declares the columns.
      for (let column = 0; column < columns; column++) this.column(0)
    }
    return 0
  }

  /**
   * Opens the next column, whose rows take `byteCount` bytes in all; returns the offset of the first row. For a text
   * column (`byteCount` 0) the caller reads the texts with `text`.
   */
  column(byteCount: number): number {
    this.text()
    this.text()
    const start = this.at
    this.at += byteCount
    assert(this.at <= this.bytes.length, 'a column lies inside its block')
    return start
  }

  /** The whole number at an offset of a column. */
  int64(at: number): number {
    return readInt64(this.view, at)
  }

  /** Steps over a text and returns its length in bytes; the text ends at `end()`. */
  text(): number {
    const length = this.length()
    this.at += length
    return length
  }

  /** The offset behind what was read so far. */
  end(): number {
    return this.at
  }

  private length(): number {
    let value = 0
    for (let byte = 0, unit = 1; byte < LENGTH_BYTES_MAX; byte++, unit *= 0x80) {
      const bits = this.bytes[this.at++]!
      value += (bits & 0x7f) * unit
      if (bits < 0x80) break
    }
    return value
  }
}
