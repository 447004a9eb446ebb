// ClickHouse keeps a UUID as two little-endian 64-bit halves, and orders UUIDs by the second half first. Here: four 32-bit
// words of the 16 bytes as they lie on the bus, turned into that form.

const swap = (word: number): number =>
  ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0

/** Reads 16 bytes that lie as little-endian words at `from[index]` into ClickHouse's words: [first low, first high, second low, second high]. */
export function uuidWords(from: Uint32Array, index: number, into: Uint32Array, at: number): void {
  into[at] = swap(from[index + 1]!)
  into[at + 1] = swap(from[index]!)
  into[at + 2] = swap(from[index + 3]!)
  into[at + 3] = swap(from[index + 2]!)
}

/** Below 0, 0 or above 0 as ClickHouse orders the UUIDs whose words lie at `a` and `b`. */
export function compareUuidWords(words: Uint32Array, a: number, b: number): number {
  return (
    words[a + 3]! - words[b + 3]! ||
    words[a + 2]! - words[b + 2]! ||
    words[a + 1]! - words[b + 1]! ||
    words[a]! - words[b]!
  )
}
