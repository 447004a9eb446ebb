// The body of an HTTP/1 request on its way from a connection to its reader: a length or chunks (RFC 9112, 6 and 7).
// What nobody reads yet is bounded: beyond it the connection is not read until somebody does.
import { HEAD_BYTES_MAX } from './request-head.ts'

/** A line with the size of a chunk, its extensions included, and a line of a trailer. */
const LINE_BYTES_MAX = 1024
const TRAILER_LINES_MAX = 32
/** A name, a colon and a value without control characters but tabs (RFC 9112, 5 and 7.1.2). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const FIELD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*$/
const SIZE = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;|$)/
/**
 * A body may have so many chunks, and one more for each so many bytes: a chunk of one byte costs as much as a large
 * one, to read and to keep.
 */
const CHUNKS_MAX = 1024
const BYTES_PER_CHUNK = 64
/** Held for a reader that does not read. */
const HELD_BYTES_MAX = 64 * 1024

const LF = 10
const CR = 13

/** The sender is gone, or what it sends is no body. */
class BodyBroken extends Error {
  override readonly name = 'AbortError'
}

type Phase = 'data' | 'size' | 'end of chunk' | 'trailer' | 'done'

/** Frees memory that nothing else holds. */
export function free(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > 0) buffer.transfer(0)
}

export class RequestBody {
  private phase: Phase
  /** Of the body, or of the chunk, still to come. */
  private left: number
  private trailerLines = 0
  private chunks = 0
  private bytesTaken = 0
  private readonly parts: Uint8Array[] = []
  private heldBytes = 0
  private isDiscarded = false
  private fault: BodyBroken | null = null
  /** The whole body where it came in one segment, which nothing else needs; `parts` is empty then. */
  private lent: Uint8Array | null = null
  private waiting: { resolve: () => void; reject: (fault: BodyBroken) => void } | null = null

  /** `bytes` null: chunked; Infinity: until its end is told. `onRead`: somebody reads, and more may come. */
  constructor(
    private readonly bytes: number | null,
    private readonly onRead: () => void,
  ) {
    this.left = bytes ?? 0
    this.phase = bytes === null ? 'size' : bytes === 0 ? 'done' : 'data'
  }

  get isEmpty(): boolean {
    return this.bytes === 0
  }

  /** All of it has come. */
  get isComplete(): boolean {
    return this.phase === 'done'
  }

  /** It ended before all of it had come, or is no body. */
  get isBroken(): boolean {
    return this.fault !== null
  }

  /**
   * Takes a body that came whole with its head as a view of the segment, without a copy. The segment is the body's from
   * now on. False where this is not all of the body, or more than the body and a head.
   */
  lend(input: Uint8Array, from: number): boolean {
    if (this.phase !== 'data' || this.bytes !== this.left || input.length - from !== this.left) return false
    if (from > HEAD_BYTES_MAX || input.byteLength !== input.buffer.byteLength) return false
    this.lent = input.subarray(from)
    this.left = 0
    this.phase = 'done'
    return true
  }

  /** All of a body that came in one segment, until `release`; null for others. */
  get view(): Uint8Array | null {
    return this.lent
  }

  /** Nobody reads the view any more. Its memory is freed now, not when somebody collects it. */
  release(): void {
    if (this.lent) free(this.lent.buffer)
    this.lent = null
  }

  /** Whoever may keep the body gets a copy. */
  private copyLent(): void {
    if (!this.lent) return
    this.parts.push(new Uint8Array(this.lent))
    this.heldBytes = this.lent.length
    this.release()
  }

  /** No more is to be given before it is read. */
  get isFull(): boolean {
    return this.heldBytes > HELD_BYTES_MAX && this.waiting === null && !this.isDiscarded
  }

  /** Nobody will read what is to come. */
  discard(): void {
    this.isDiscarded = true
    this.release()
    this.parts.length = 0
    this.heldBytes = 0
  }

  /** No more will come. */
  end(): void {
    if (this.left === Number.POSITIVE_INFINITY) {
      this.left = 0
      this.phase = 'done'
      this.wake()
    } else this.fail()
  }

  /** The connection is gone, or what came is no body. */
  fail(): void {
    if (this.phase === 'done' || this.fault) return
    this.fault = new BodyBroken('the body ended early')
    this.waiting?.reject(this.fault)
    this.waiting = null
  }

  /**
   * Takes what is of the body, from a place on. Returns how many bytes: the rest is the next request's, or too little
   * yet. -1: no body.
   */
  take(input: Uint8Array, from: number): number {
    let at = from
    while (at < input.length && this.phase !== 'done') {
      if (this.phase === 'data') {
        const end = Math.min(input.length, at + this.left)
        this.give(input.subarray(at, end))
        this.left -= end - at
        this.bytesTaken += end - at
        at = end
        if (this.left === 0) this.phase = this.bytes === null ? 'end of chunk' : 'done'
        continue
      }
      if (this.phase === 'end of chunk' && input[at] !== CR) return -1
      const lineEnd = input.indexOf(LF, at)
      if (lineEnd < 0) {
        if (input.length - at > LINE_BYTES_MAX) return -1
        break
      }
      if (!this.line(Buffer.from(input.buffer, input.byteOffset + at, lineEnd - at).toString('latin1'))) return -1
      at = lineEnd + 1
    }
    this.wake()
    return at - from
  }

  /** A line between chunks, with its CR. */
  private line(text: string): boolean {
    if (!text.endsWith('\r') || text.length > LINE_BYTES_MAX) return false
    const line = text.slice(0, -1)
    if (line.includes('\r')) return false
    switch (this.phase) {
      case 'size': {
        const size = SIZE.exec(line)
        if (!size || ++this.chunks > CHUNKS_MAX + this.bytesTaken / BYTES_PER_CHUNK) return false
        this.left = Number.parseInt(size[1]!, 16)
        this.phase = this.left === 0 ? 'trailer' : 'data'
        return true
      }
      case 'end of chunk':
        this.phase = 'size'
        return line === ''
      case 'trailer':
        if (line === '') this.phase = 'done'
        else if (!FIELD.test(line)) return false
        return ++this.trailerLines <= TRAILER_LINES_MAX
      default:
        return false
    }
  }

  private give(part: Uint8Array): void {
    if (this.isDiscarded) return
    // A copy: a view would hold all that came in its segment for as long as somebody has the body.
    this.parts.push(new Uint8Array(part))
    this.heldBytes += part.length
  }

  private wake(): void {
    if (!this.waiting || (this.parts.length === 0 && this.phase !== 'done')) return
    this.waiting.resolve()
    this.waiting = null
  }

  private async next(): Promise<Uint8Array | null> {
    this.copyLent()
    this.onRead()
    if (this.fault) throw this.fault
    if (this.parts.length === 0 && this.phase !== 'done') {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      this.waiting = { resolve, reject }
      this.onRead()
      await promise
    }
    const part = this.parts.shift() ?? null
    this.heldBytes -= part?.length ?? 0
    return part
  }

  /** For who reads piece by piece. */
  getReader() {
    return {
      read: async (): Promise<{ done: boolean; value?: Uint8Array }> => {
        const value = await this.next()
        return value ? { done: false, value } : { done: true }
      },
      cancel: async (): Promise<void> => this.discard(),
    }
  }

  /** The whole body; the caller has looked at its length. */
  async all(): Promise<Uint8Array> {
    this.copyLent()
    const first = this.phase === 'done' && this.parts.length <= 1 ? this.parts.pop() : undefined
    if (first || this.isEmpty) return first ?? new Uint8Array(0)
    const parts: Uint8Array[] = []
    for (let part = await this.next(); part; part = await this.next()) parts.push(part)
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }
}
