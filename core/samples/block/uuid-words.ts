// ClickHouse keeps a UUID as two little-endian 64-bit halves, and orders UUIDs by the second half first. This file
// turns the 16 bytes of the bus into that form, as four 32-bit words.
import { writeUuid } from '../../series/uuid.ts'
import type { NativeWriter } from './native-writer.ts'

/** Four words of the company id, then four of the server id. */
export const WORDS_PER_SERVER = 8

const swap = (word: number): number =>
  ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0

/**
 * Converts the 16 bytes at `from[index]`, read as little-endian words, into ClickHouse's words: [first low, first high,
 * second low, second high].
 */
export function uuidWords(from: Uint32Array, index: number, into: Uint32Array, at: number): void {
  into[at] = swap(from[index + 1]!)
  into[at + 1] = swap(from[index]!)
  into[at + 2] = swap(from[index + 3]!)
  into[at + 3] = swap(from[index + 2]!)
}

/** Below 0, 0 or above 0 as ClickHouse orders the UUIDs whose words lie at `a` and `b`. */
function compareUuidWords(words: Uint32Array, a: number, b: number): number {
  return (
    words[a + 3]! - words[b + 3]! ||
    words[a + 2]! - words[b + 2]! ||
    words[a + 1]! - words[b + 1]! ||
    words[a]! - words[b]!
  )
}

/** Compares servers in the same way: by company, then by server. */
export const compareServerWords = (words: Uint32Array, a: number, b: number): number =>
  compareUuidWords(words, a, b) || compareUuidWords(words, a + 4, b + 4)

/** The words of all servers, one after the other. */
export function serverWords(
  servers: readonly { readonly companyId: string; readonly serverId: string }[],
): Uint32Array {
  const words = new Uint32Array(servers.length * WORDS_PER_SERVER)
  const bytes = new Uint8Array(32)
  const from = new Uint32Array(bytes.buffer)
  servers.forEach(({ companyId, serverId }, index) => {
    writeUuid(bytes, 0, companyId)
    writeUuid(bytes, 16, serverId)
    uuidWords(from, 0, words, index * WORDS_PER_SERVER)
    uuidWords(from, 4, words, index * WORDS_PER_SERVER + 4)
  })
  return words
}

/** Finds servers by the ids of a block's rows, which come server by server. */
export class ServerIndex {
  private readonly places = new Map<string, number>()
  private readonly last = new Uint32Array(WORDS_PER_SERVER)
  private lastPlace = -1

  /** `words` is the result of `serverWords`. */
  constructor(words: Uint32Array) {
    for (let at = 0; at < words.length; at += WORDS_PER_SERVER)
      this.places.set(words.subarray(at, at + WORDS_PER_SERVER).join(), at / WORDS_PER_SERVER)
  }

  /**
   * The index of the server whose company id and server id are at these offsets of a view; -1 for an unknown server.
   */
  placeOf(view: DataView, company: number, server: number): number {
    if (this.lastPlace >= 0 && this.isLast(view, company, server)) return this.lastPlace
    const { last } = this
    for (let word = 0; word < 4; word++) {
      last[word] = view.getUint32(company + word * 4, true)
      last[word + 4] = view.getUint32(server + word * 4, true)
    }
    this.lastPlace = this.places.get(last.join()) ?? -1
    return this.lastPlace
  }

  private isLast(view: DataView, company: number, server: number): boolean {
    const { last } = this
    // The words that differ most often are compared first.
    for (let word = 3; word >= 0; word--) if (view.getUint32(server + word * 4, true) !== last[word + 4]) return false
    for (let word = 0; word < 4; word++) if (view.getUint32(company + word * 4, true) !== last[word]) return false
    return true
  }
}

/** Writes a column of UUIDs, given as text. */
export function writeUuidColumn(writer: NativeWriter, name: string, ids: readonly string[]): void {
  const bytes = new Uint8Array(16)
  const from = new Uint32Array(bytes.buffer)
  const words = new Uint32Array(4)
  const start = writer.column({ name, type: 'UUID', bytesPerRow: 16 }, ids.length)
  const view = writer.memory()
  let last = ''
  ids.forEach((id, row) => {
    // Rows of a server follow each other.
    if (id !== last) {
      writeUuid(bytes, 0, id)
      uuidWords(from, 0, words, 0)
      last = id
    }
    for (let word = 0; word < 4; word++) view.setUint32(start + row * 16 + word * 4, words[word]!, true)
  })
}
