// Writes one block of ClickHouse's Native format: column after column, little-endian, as the engine keeps it in memory.
// The same bytes are the body of an HTTP insert and the file that the embedded engine reads (decision G-135).
import { assert } from '../../assert.ts'

const encoder = new TextEncoder()

/** A column of a block: its name and ClickHouse type; `bytesPerRow` is 0 for text, whose length varies. */
export type NativeColumn = { readonly name: string; readonly type: string; readonly bytesPerRow: number }

/** Room for so much of each row is made at once: a buffer that doubles is copied whenever it does. */
const ROW_BYTES = 96

const varUintBytes = (value: number): number => (value < 0x80 ? 1 : 1 + varUintBytes(Math.floor(value / 0x80)))

/** Builds one block at a time in a growing buffer, whose memory the next block reuses. */
export class NativeWriter {
  private bytes = new Uint8Array(64 * 1024)
  private view = new DataView(this.bytes.buffer)
  private at = 0

  /** Starts a block. The columns follow in the order of the table's insert. */
  begin(columnCount: number, rowCount: number): void {
    this.at = 0
    this.reserve(rowCount * ROW_BYTES)
    this.varUint(columnCount)
    this.varUint(rowCount)
  }

  /** Writes the head of a column and reserves its rows; returns the offset of the first row in `memory()`. */
  column({ name, type, bytesPerRow }: NativeColumn, rowCount: number): number {
    this.text(name)
    this.text(type)
    const start = this.at
    this.reserve(bytesPerRow * rowCount)
    this.at = start + bytesPerRow * rowCount
    return start
  }

  /**
   * The memory under the block; valid until the next call that writes. Write with `memory()` only inside a reserved
   * column.
   */
  memory(): DataView {
    return this.view
  }

  /** Copies the values of a column, as bytes, into its reserved rows. */
  put(offset: number, values: Float64Array | Uint32Array | Uint8Array, count: number): void {
    this.bytes.set(new Uint8Array(values.buffer, values.byteOffset, count * values.BYTES_PER_ELEMENT), offset)
  }

  /** Repeats the first `unit` bytes at `offset` until `total` bytes are filled. */
  repeat(offset: number, unit: number, total: number): void {
    // Each copy doubles the filled part.
    for (let done = unit; done < total; done *= 2)
      this.bytes.copyWithin(offset + done, offset, offset + Math.min(done, total - done))
  }

  /** Values of a text column as they lie in a block, each behind its length. */
  append(values: Uint8Array): void {
    this.reserve(values.length)
    this.bytes.set(values, this.at)
    this.at += values.length
  }

  /** One value of a text column. */
  text(value: string): void {
    const bytesMax = value.length * 3
    this.reserve(bytesMax + 5)
    if (value.length < 0x80 && this.asciiText(value)) return
    if (value.length < 0x80 / 3) {
      // At most three bytes a character: the length fits one byte.
      const written = encoder.encodeInto(value, this.bytes.subarray(this.at + 1)).written
      this.bytes[this.at] = written
      this.at += 1 + written
      return
    }
    const encoded = encoder.encode(value)
    this.varUint(encoded.length)
    this.bytes.set(encoded, this.at)
    this.at += encoded.length
  }

  /** Writes a short text; false, with nothing written, where a character takes more than a byte. */
  private asciiText(value: string): boolean {
    const { bytes, at } = this
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index)
      if (code >= 0x80) return false
      bytes[at + 1 + index] = code
    }
    bytes[at] = value.length
    this.at = at + 1 + value.length
    return true
  }

  private varUint(value: number): void {
    this.reserve(varUintBytes(value))
    let rest = value
    while (rest >= 0x80) {
      this.bytes[this.at++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.bytes[this.at++] = rest
  }

  private reserve(more: number): void {
    if (this.at + more <= this.bytes.length) return
    const bytes = new Uint8Array(Math.max(this.bytes.length * 2, this.at + more))
    bytes.set(this.bytes.subarray(0, this.at))
    this.bytes = bytes
    this.view = new DataView(bytes.buffer)
  }

  /** The finished block: a view, valid until the next `begin`. */
  finish(): Uint8Array {
    assert(this.at <= this.bytes.length, 'a block lies inside its memory')
    return this.bytes.subarray(0, this.at)
  }
}
