// Whole numbers as bytes, seven bits in each, so that small ones take few; values of samples as such numbers. For
// memory only: nothing that is stored or sent has this form.
import { BITS, splitDecimal } from './decimal.ts'

const SMALL = 2 ** 31
const FLOAT_BYTES = 8
/** A value is its digits, folded, with this many bits for its decimals: 0, 1, 2 or 3 pairs; 4: the double follows. */
const CODE_BITS = 3
const CODES = 1 << CODE_BITS
const CODE_OF_DOUBLE = 4
/** Digits below this bound are a number that is exact as a double. */
const DIGITS_BOUND = 2 ** 48
/** Digits below this bound are a number that fits 31 bits. */
const SMALL_BOUND = 2 ** 26

/** The most bytes of a value. */
export const VALUE_BYTES_MAX = 1 + FLOAT_BYTES

const float = new Float64Array(1)
const floatBytes = new Uint8Array(float.buffer)
const digits = new Float64Array(1)

/** Whole numbers of either sign as those from 0 on: small ones stay small. */
export const folded = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value)
export const unfolded = (value: number): number => (value % 2 === 0 ? value / 2 : -(value + 1) / 2)

/** Writes a whole number from 0 on and returns where the next one goes. */
export function putNumber(bytes: Uint8Array, at: number, value: number): number {
  let to = at
  let rest = value
  while (rest >= SMALL) {
    const more = Math.floor(rest / 128)
    bytes[to++] = (rest - more * 128) | 0x80
    rest = more
  }
  let small = rest | 0
  while (small >= 0x80) {
    bytes[to++] = (small & 0x7f) | 0x80
    small >>>= 7
  }
  bytes[to++] = small
  return to
}

export function putDouble(bytes: Uint8Array, at: number, value: number): number {
  float[0] = value
  for (let index = 0; index < FLOAT_BYTES; index++) bytes[at + index] = floatBytes[index]!
  return at + FLOAT_BYTES
}

/** Writes the value of a sample; minus zero becomes zero. */
export function putValue(bytes: Uint8Array, at: number, value: number): number {
  // Nearly all are small whole numbers, or such of two decimals.
  let whole = value | 0
  let code = 0
  if (whole !== value) {
    whole = Math.round(value * 100) | 0
    code = 1
    if (whole / 100 !== value) return putAny(bytes, at, value)
  }
  if (whole >= SMALL_BOUND || whole <= -SMALL_BOUND) return putAny(bytes, at, value)
  let to = at
  let rest = (((whole << 1) ^ (whole >> 31)) << CODE_BITS) | code
  while (rest >= 0x80) {
    bytes[to++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[to++] = rest
  return to
}

function putAny(bytes: Uint8Array, at: number, value: number): number {
  const decimals = splitDecimal(value, 0, digits)
  const whole = digits[0]!
  if (decimals === BITS || whole >= DIGITS_BOUND || whole <= -DIGITS_BOUND)
    return putDouble(bytes, putNumber(bytes, at, CODE_OF_DOUBLE), value)
  return putNumber(bytes, at, folded(whole) * CODES + (decimals >>> 1))
}

/** Reads what the functions above wrote, one after the other. */
export class NumberReader {
  private bytes: Uint8Array = new Uint8Array(0)
  private at = 0

  open(bytes: Uint8Array, at: number): void {
    this.bytes = bytes
    this.at = at
  }

  byte(): number {
    return this.bytes[this.at++]!
  }

  number(): number {
    const { bytes } = this
    let byte = bytes[this.at++]!
    let value = byte & 0x7f
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = bytes[this.at++]!
      value = shift < 28 ? value | ((byte & 0x7f) << shift) : value + (byte & 0x7f) * 2 ** shift
    }
    return value
  }

  double(): number {
    for (let index = 0; index < FLOAT_BYTES; index++) floatBytes[index] = this.bytes[this.at++]!
    return float[0]!
  }

  /** Reads a value as `splitDecimal` gives it: its digits into row `row` of `into`. Returns its decimals. */
  value(row: number, into: Float64Array): number {
    const number = this.number()
    if (number < SMALL) {
      const code = number & (CODES - 1)
      if (code === CODE_OF_DOUBLE) return splitDecimal(this.double(), row, into)
      const small = number >>> CODE_BITS
      into[row] = (small >>> 1) ^ -(small & 1)
      return code << 1
    }
    const folds = Math.floor(number / CODES)
    into[row] = unfolded(folds)
    return (number - folds * CODES) << 1
  }
}
