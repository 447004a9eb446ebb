// Sorted lists of numbers as deltas in variable length: what a host's packages and open findings are on the disk
// (MAT section 9). Seven bits a byte, the lowest first; a set high bit says that more follow. Numbers go to 2^53.

/** Bytes that grow while numbers are written. */
export class NumberWriter {
  #bytes = new Uint8Array(256)
  #length = 0

  write(value: number): void {
    if (this.#length + 8 > this.#bytes.length) this.#grow()
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = rest < 0x80000000 ? rest >>> 7 : Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  /** A copy of what was written; the writer is empty afterwards. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length)
    this.#length = 0
    return taken
  }

  #grow(): void {
    const bytes = new Uint8Array(this.#bytes.length * 2)
    bytes.set(this.#bytes)
    this.#bytes = bytes
  }
}

export class NumberReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** Throws at the end: the bytes are the state's own, so a short one is a damaged disk. */
  read(): number {
    const bytes = this.#bytes
    let value = 0
    let scale = 1
    for (;;) {
      const byte = bytes[this.#at++]
      if (byte === undefined) throw new Error('cannot read the state: a list of numbers ends within a number')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 0x80
    }
  }
}

/** Ascending numbers, each once. */
export function encodeSorted(numbers: ArrayLike<number>): Uint8Array {
  const writer = new NumberWriter()
  let before = 0
  for (let index = 0; index < numbers.length; index++) {
    writer.write(numbers[index]! - before)
    before = numbers[index]!
  }
  return writer.take()
}

/** The inverse of encodeSorted, for numbers below 2^31. */
export function decodeSorted(bytes: Uint8Array): Int32Array {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at]! < 0x80) count++
  const numbers = new Int32Array(count)
  let before = 0
  let delta = 0
  let shift = 0
  let index = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    delta |= (byte & 0x7f) << shift
    if (byte < 0x80) {
      before += delta
      numbers[index++] = before
      delta = 0
      shift = 0
    } else shift += 7
  }
  return numbers
}
