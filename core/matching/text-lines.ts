// Lines out of pieces of a text file, without the file in memory. A piece may end anywhere.

/** Longer lines than this are of no package database: the longest of a real one are lists of some 50,000 characters. */
const LINE_CHARACTERS_MAX = 1024 * 1024

/** Takes the lines of a file, one at a time. Answers false for a line that the format does not have. */
type LineReader = (line: string) => boolean

export class TextLines {
  readonly #read: LineReader
  #rest = ''
  /** The text is none of its format; nothing more is read. */
  isMalformed = false

  constructor(read: LineReader) {
    this.#read = read
  }

  /** Reads the lines that end in this piece. */
  push(piece: string): void {
    if (this.isMalformed) return
    let from = 0
    for (let end = piece.indexOf('\n'); end >= 0 && !this.isMalformed; end = piece.indexOf('\n', from)) {
      const line = this.#rest + piece.slice(from, end)
      this.#rest = ''
      from = end + 1
      this.isMalformed = !this.#read(line)
    }
    this.#rest += piece.slice(from)
    if (this.#rest.length > LINE_CHARACTERS_MAX) this.isMalformed = true
  }

  /** What stands behind the last line break: nothing in a whole file, a torn line in one that was cut. */
  get rest(): string {
    return this.#rest
  }
}
