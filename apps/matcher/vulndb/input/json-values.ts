// Cuts a JSON text into the values at one level of it, as bytes come, so that a file of any size is never held whole:
// level 0 gives each value of a stream of values, level 1 the members of one object or array, level 2 the members of
// those members. The cut values are parsed by their reader; here only strings and brackets are followed.
import { SourceRefused } from '../source-refused.ts'

type JsonPiece = {
  /** Keys above the value, where they are members of objects. */
  readonly keys: readonly string[]
  readonly text: string
}

const DEPTH_MAX = 64
const VALUE_BYTES_MAX = 256 * 1024 * 1024
const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY] = [0x7b, 0x5b, 0x7d, 0x5d]
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

export class JsonSplitter {
  private depth = 0
  private isInString = false
  private isEscaped = false
  /** Bytes of the value, or of the key, that began in an earlier chunk. */
  private pieces: Uint8Array[] = []
  private heldBytes = 0
  private isCollecting = false
  /** Text of the last string at a level above the cut, a key when a colon follows. */
  private lastText = ''
  private readonly keys: string[] = []
  private readonly brackets: number[] = []
  private isStarted = false
  /** Something was opened and closed at the outermost level. */
  private isEnded = false

  constructor(private readonly level: 0 | 1 | 2) {}

  /** Whether all that was opened is closed, and there was something. */
  get isWhole(): boolean {
    const isThere = this.level === 0 ? this.isStarted : this.isEnded
    return isThere && this.depth === 0 && !this.isInString && !this.isCollecting
  }

  *push(chunk: Uint8Array): Generator<JsonPiece> {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      if (this.isInString) {
        at = this.skipString(chunk, at)
        if (this.isInString) break
        if (this.depth <= this.level && !this.isValueLevel()) this.lastText = this.take(chunk, from, at + 1)
        continue
      }
      const byte = chunk[at]!
      if (isBlank(byte)) continue
      this.isStarted = true
      if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (this.depth === this.level && this.isCollecting) yield this.piece(chunk, from, at)
        this.close(byte)
        if (this.level === 0 && this.depth === 0) yield this.piece(chunk, from, at + 1)
        continue
      }
      if ((byte === COMMA || byte === COLON) && this.depth === 0 && this.level > 0)
        throw new SourceRefused('it is no JSON')
      if (byte === COMMA && this.depth <= this.level) {
        if (this.depth === this.level && this.isCollecting) yield this.piece(chunk, from, at)
        continue
      }
      if (byte === COLON && this.depth <= this.level) {
        if (this.depth > 0) this.keys[this.depth - 1] = this.lastText
        this.lastText = ''
        this.isAfterColon = true
        continue
      }
      from = this.begin(byte, at, from)
      if (byte === QUOTE) this.isInString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.open(byte)
    }
    this.hold(chunk, from)
  }

  private isAfterColon = false

  /** Whether a value that is cut out may begin here: at the level, and in an object after its key. */
  private isValueLevel(): boolean {
    if (this.depth !== this.level) return false
    return this.level === 0 || this.brackets[this.depth - 1] === OPEN_ARRAY || this.isAfterColon
  }

  private begin(byte: number, at: number, from: number): number {
    if (this.isCollecting) return from
    // One document, whose values are cut out, and nothing around it but a byte order mark.
    if (this.depth === 0 && this.level > 0) {
      const isBracket = byte === OPEN_OBJECT || byte === OPEN_ARRAY
      if (this.isEnded || !(isBracket || BYTE_ORDER_MARK.includes(byte))) throw new SourceRefused('it is no JSON')
      return from
    }
    if (this.isValueLevel()) {
      // A record is an object; a text of words would be as many values.
      if (this.depth === 0 && byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) throw new SourceRefused('it is no JSON')
      this.isCollecting = true
      return at
    }
    // A string above the level: collected as a key.
    if (byte === QUOTE && this.depth <= this.level) {
      this.isCollecting = true
      return at
    }
    return from
  }

  private skipString(chunk: Uint8Array, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.isEscaped) this.isEscaped = false
      else if (byte === BACKSLASH) this.isEscaped = true
      else if (byte === QUOTE) {
        this.isInString = false
        return at
      }
    }
    return chunk.length
  }

  private open(byte: number): void {
    if (this.depth >= DEPTH_MAX) throw new SourceRefused(`its JSON is nested deeper than ${DEPTH_MAX}`)
    this.brackets[this.depth] = byte
    this.depth += 1
    if (this.depth <= this.level) {
      this.isAfterColon = false
      this.keys.length = Math.min(this.keys.length, this.depth - 1)
    }
  }

  private close(byte: number): void {
    if (this.depth === 0) throw new SourceRefused('it is no JSON')
    this.depth -= 1
    const isMatching = (this.brackets[this.depth] === OPEN_OBJECT) === (byte === CLOSE_OBJECT)
    if (!isMatching) throw new SourceRefused('it is no JSON')
    this.isAfterColon = false
    this.isEnded ||= this.depth === 0
  }

  private take(chunk: Uint8Array, from: number, to: number): string {
    const text = Buffer.concat([...this.pieces, chunk.subarray(from, to)]).toString('utf8')
    this.pieces = []
    this.heldBytes = 0
    this.isCollecting = false
    try {
      const key: unknown = JSON.parse(text)
      return typeof key === 'string' ? key : ''
    } catch {
      throw new SourceRefused('it is no JSON')
    }
  }

  private piece(chunk: Uint8Array, from: number, to: number): JsonPiece {
    const own = chunk.subarray(from, to)
    const text = (this.pieces.length === 0 ? Buffer.from(own) : Buffer.concat([...this.pieces, own])).toString('utf8')
    this.pieces = []
    this.heldBytes = 0
    this.isCollecting = false
    this.isAfterColon = false
    return { keys: this.keys.slice(0, this.level), text }
  }

  private hold(chunk: Uint8Array, from: number): void {
    if (!this.isCollecting) return
    this.pieces.push(chunk.slice(from))
    this.heldBytes += chunk.length - from
    if (this.heldBytes > VALUE_BYTES_MAX) throw new SourceRefused('one of its values is larger than 256 MiB')
  }
}
