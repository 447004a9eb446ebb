// The acknowledgement of a batch, written by hand: one buffer a thread, no objects (document 3 "MetricsAck"). The
// generated code is the oracle in its test.

const TAG_SERVER_TIME = 0x08
const TAG_ACK_SEQ = 0x10
const TAG_CONFIG_ETAG = 0x1a
const TAG_ACCEPTED = 0x20
const TAG_DROPPED = 0x28
const TAG_WARNING = 0x32

export type Ack = {
  readonly serverTimeMs: number
  /** The seq as two words, so that a uint64 is exact. */
  readonly seqLow: number
  readonly seqHigh: number
  readonly etag: Uint8Array
  readonly acceptedPoints: number
  readonly droppedPoints: number
  readonly warnings: readonly string[]
}

const encoder = new TextEncoder()

export class AckEncoder {
  private bytes = new Uint8Array(512)
  private at = 0

  /** Encodes an acknowledgement into new memory. */
  encode(ack: Ack): Uint8Array<ArrayBuffer> {
    this.at = 0
    let room = 64 + ack.etag.length
    for (const warning of ack.warnings) room += 8 + warning.length * 3
    if (this.bytes.length < room) this.bytes = new Uint8Array(room * 2)
    this.words(TAG_SERVER_TIME, ack.serverTimeMs >>> 0, Math.floor(ack.serverTimeMs / 4_294_967_296))
    this.words(TAG_ACK_SEQ, ack.seqLow, ack.seqHigh)
    if (ack.etag.length > 0) {
      this.bytes[this.at++] = TAG_CONFIG_ETAG
      this.varint(ack.etag.length)
      this.bytes.set(ack.etag, this.at)
      this.at += ack.etag.length
    }
    this.words(TAG_ACCEPTED, ack.acceptedPoints, 0)
    this.words(TAG_DROPPED, ack.droppedPoints, 0)
    for (const warning of ack.warnings) {
      const text = encoder.encode(warning)
      this.bytes[this.at++] = TAG_WARNING
      this.varint(text.length)
      this.bytes.set(text, this.at)
      this.at += text.length
    }
    return this.bytes.slice(0, this.at)
  }

  /** A 64-bit varint of two words; nothing for 0. */
  private words(tag: number, low: number, high: number): void {
    if (low === 0 && high === 0) return
    const { bytes } = this
    bytes[this.at++] = tag
    let lo = low
    let hi = high
    while (hi > 0 || lo > 0x7f) {
      bytes[this.at++] = (lo & 0x7f) | 0x80
      lo = ((lo >>> 7) | (hi << 25)) >>> 0
      hi >>>= 7
    }
    bytes[this.at++] = lo
  }

  private varint(value: number): void {
    let rest = value
    while (rest > 0x7f) {
      this.bytes[this.at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.bytes[this.at++] = rest
  }
}
