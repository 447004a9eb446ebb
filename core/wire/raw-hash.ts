// The hash of a raw key: 64 bits in two words. Each agent has its own table, so an agent that forges a collision only
// harms itself; by chance two of 500 series collide once in 10^14 agents.

export class RawHash {
  /** The two words, signed, so that no code has to convert them. */
  a = 0
  b = 0

  /**
   * Hashes the bytes from `start` to `end`; `view` is of the same memory. Each step is invertible, so none loses
   * entropy.
   */
  of(bytes: Uint8Array, view: DataView, start: number, end: number): void {
    let a = 0x9e3779b1 ^ (end - start)
    let b = 0x85ebca77
    let at = start
    for (; at + 8 <= end; at += 8) {
      a = Math.imul(a ^ view.getInt32(at, true), 0x2c1b3c6d)
      b = Math.imul(b ^ view.getInt32(at + 4, true), 0x297a2d39)
      a ^= b >>> 15
      b ^= a >>> 13
    }
    if (at < end && end - start >= 8) {
      // The last eight bytes; they may overlap bytes that were hashed already.
      a = Math.imul(a ^ view.getInt32(end - 8, true), 0x2c1b3c6d)
      b = Math.imul(b ^ view.getInt32(end - 4, true), 0x297a2d39)
      a ^= b >>> 15
      b ^= a >>> 13
    } else
      for (; at < end; at++) {
        a = Math.imul(a ^ bytes[at]!, 0x2c1b3c6d) ^ (b >>> 15)
        b = Math.imul(b + a, 0x297a2d39)
      }
    a ^= b >>> 16
    a = Math.imul(a, 0x7feb352d)
    b ^= a >>> 15
    b = Math.imul(b, 0x846ca68b)
    this.a = a ^ (b >>> 16)
    this.b = b
  }
}
