// Reads blocks of ClickHouse's Native format: what `NativeWriter` writes, and what a statement answers. Columns come
// one after the other; the caller knows them, since it wrote the statement.
import { assert } from '../../assert.ts'

const LENGTH_BYTES_MAX = 5
const WORD = 2 ** 32

/** A whole number of eight bytes, exact up to 2^53. */
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

  /** Opens the next block; returns its rows, 0 after the last one. */
  begin(): number {
    while (this.at < this.bytes.length) {
      const columns = this.length()
      const rows = this.length()
      if (rows > 0) return rows
      // A block without rows says what the columns are.
      for (let column = 0; column < columns; column++) this.column(0)
    }
    return 0
  }

  /**
   * Opens the next column, whose rows take so many bytes together; returns where they begin. Of a text column the texts
   * follow.
   */
  column(byteCount: number): number {
    this.text()
    this.text()
    const start = this.at
    this.at += byteCount
    assert(this.at <= this.bytes.length, 'a column lies inside its block')
    return start
  }

  /** The whole number that lies at a place of a column. */
  int64(at: number): number {
    return readInt64(this.view, at)
  }

  /** Passes a text over; returns its length. It lies before `end()`. */
  text(): number {
    const length = this.length()
    this.at += length
    return length
  }

  /** Where what was read so far ends. */
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
