// The hash by which an agent's series are known: 64 bits of the raw name-and-labels bytes, in two words. Tables are an
// agent's own, so nobody gains by a collision that he makes; by chance two of 500 series have the same once in 10^14
// agents.

export class RawHash {
  /** Signed words: what lies in them needs no conversion anywhere. */
  a = 0
  b = 0

  /**
   * Hashes the bytes from `start` to `end`; `view` is of the same memory. Each step can be undone, so that none loses
   * anything.
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
      // The last eight bytes, of which some were read before.
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
