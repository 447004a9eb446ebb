// The protobuf wire format by hand: varints, lengths and skipping over bytes, without objects (protobuf encoding
// guide). A cursor reads one message. Malformed bytes set `failed`, and the caller then refuses the whole message.

const WIRE_VARINT = 0
const WIRE_64 = 1
const WIRE_BYTES = 2
const WIRE_GROUP = 3
const WIRE_GROUP_END = 4
const WIRE_32 = 5
const GROUP_DEPTH_MAX = 100
const TAG_BYTES_MAX = 5
const FIELD_MAX = 0x1fffffff

export class ProtoCursor {
  bytes: Uint8Array = new Uint8Array(0)
  /** A view of the same bytes, for reading words. */
  view: DataView = new DataView(new ArrayBuffer(0))
  position = 0
  failed = false
  /** The high word of the last 64-bit varint. */
  high = 0

  open(bytes: Uint8Array): void {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.position = 0
    this.failed = false
  }

  /** Reads a field's tag: a varint of at most 32 bits in at most five bytes; anything else fails. */
  tag(): number {
    const start = this.position
    const byte = this.bytes[start]!
    if (byte < 0x80) {
      this.position++
      return byte
    }
    const tag = this.bounded()
    return this.position - start <= TAG_BYTES_MAX ? tag : this.fail()
  }

  private length(): number {
    const byte = this.bytes[this.position]!
    if (byte < 0x80) {
      this.position++
      return byte
    }
    return this.bounded()
  }

  /** An unsigned varint that must fit 32 bits. */
  private bounded(): number {
    const low = this.varint64()
    return this.high === 0 ? low : this.fail()
  }

  /** An unsigned varint of which 32 bits are of interest; more bits are read and dropped. */
  uint32(): number {
    const { bytes } = this
    let byte = bytes[this.position++]!
    if (byte < 0x80) return byte
    let value = byte & 0x7f
    for (let shift = 7; shift < 70; shift += 7) {
      byte = bytes[this.position++]!
      if (byte === undefined) return this.fail()
      if (shift < 32) value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    return this.fail()
  }

  /** A 64-bit varint: returns the low word, the high word is in `high`. */
  varint64(): number {
    const { bytes } = this
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.position++]
      if (byte === undefined) return this.fail()
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else if (shift < 63) high |= bits << (shift - 32)
      else high |= (bits & 1) << 31
      if (byte < 0x80) {
        this.high = high >>> 0
        return low >>> 0
      }
    }
    return this.fail()
  }

  /** A signed 64-bit varint as a number; exact within ±2^53. */
  int64(): number {
    const low = this.varint64()
    return (this.high | 0) * 4_294_967_296 + low
  }

  /** An unsigned 64-bit varint as a number; exact below 2^53. */
  uint64(): number {
    const low = this.varint64()
    return this.high * 4_294_967_296 + low
  }

  float64(end: number): number {
    if (this.position + 8 > end) return this.fail()
    const value = this.view.getFloat64(this.position, true)
    this.position += 8
    return value
  }

  /** Reads a length, checks that as many bytes follow before `end`, and returns the end of the field. */
  lengthEnd(end: number): number {
    const length = this.length()
    const fieldEnd = this.position + length
    if (this.failed || fieldEnd > end) {
      this.failed = true
      return end
    }
    return fieldEnd
  }

  /** Steps over a field of this tag. */
  skip(tag: number, end: number, depth = 0): void {
    if (tag >>> 3 === 0 || tag >>> 3 > FIELD_MAX) {
      this.failed = true
      return
    }
    switch (tag & 7) {
      case WIRE_VARINT:
        this.varint64()
        break
      case WIRE_64:
        this.position += 8
        break
      case WIRE_BYTES:
        this.position = this.lengthEnd(end)
        break
      case WIRE_32:
        this.position += 4
        break
      case WIRE_GROUP:
        this.skipGroup(tag >>> 3, end, depth)
        break
      default:
        this.failed = true
    }
    if (this.position > end) this.failed = true
  }

  private skipGroup(field: number, end: number, depth: number): void {
    if (depth >= GROUP_DEPTH_MAX) {
      this.failed = true
      return
    }
    while (!this.failed && this.position < end) {
      const tag = this.tag()
      if ((tag & 7) === WIRE_GROUP_END) {
        if (tag >>> 3 !== field) this.failed = true
        return
      }
      this.skip(tag, end, depth + 1)
    }
    this.failed = true
  }

  private fail(): number {
    this.failed = true
    this.high = 0
    return 0
  }
}
