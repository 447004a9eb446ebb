// Consecutive points of one series as one row of samples_raw. The engine spends its time for each row, and again at
// each merge; with a chunk it does so once for many points. The same format in SQL: the view samples_runs
// (sql/samples/0004_views.sql).
//
//   0  1  decimals, or BITS         9  1  width: bytes of a difference, or BITS     16  …  differences of the digits, or the other values
//   1  8  digits of the first point 10  2  points after the first                       …  4 bytes a point: ms after the first, without a step
//         (Int64), or its bits      12  4  step: ms between two points, 0 without one
//
// A chunk of one point ends after the first nine bytes; missing bytes count as zero. The digits of all points have the
// same number of decimals.
import { BITS } from './decimal.ts'
import { readInt64 } from './native-reader.ts'

/**
 * The time from the first point of a chunk to its last is shorter than this. A chunk lies within one UTC day, since
 * retention deletes whole days.
 */
export const CHUNK_SPAN_MS = 600_000
export const CHUNK_POINTS_MAX = 4_096

const SINGLE_BYTES = 9
const HEAD_BYTES = 16
const TIME_BYTES = 4
const VALUE_BYTES = 8
/** Differences of two whole numbers up to this bound are exact as doubles. */
const DIGITS_MAX = 2 ** 52
const WORD = 2 ** 32
const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
/** The length of a text is written before its bytes, with seven bits in each byte. */
const LENGTH_BYTES_MAX = 3

/** Writes the chunks of a block one after the other, as a text column of the Native format. */
export class ChunkWriter {
  private bytes = new Uint8Array(64 * 1024)
  private view = new DataView(this.bytes.buffer)
  private readonly changes = new Float64Array(CHUNK_POINTS_MAX)
  length = 0

  clear(): void {
    this.length = 0
  }

  /** The bytes written since `clear`; valid until the next `add`. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  /**
   * Adds the points [begin, end) of one series, in the order of time. `times` are whole milliseconds, `decimals` and
   * `digits` as `splitDecimal` leaves them.
   */
  add(times: Float64Array, decimals: Uint8Array, digits: Float64Array, begin: number, end: number): void {
    const more = end - begin - 1
    this.reserve(LENGTH_BYTES_MAX + HEAD_BYTES + more * (VALUE_BYTES + TIME_BYTES))
    if (more === 0) {
      this.text(SINGLE_BYTES)
      this.first(decimals[begin]!, digits[begin]!)
      this.length += SINGLE_BYTES
      return
    }
    const places = placesOf(decimals, begin, end)
    const width = places === BITS ? BITS : this.differences(places, decimals, digits, begin, end)
    const step = stepOf(times, begin, end)
    const valueBytes = width === BITS ? VALUE_BYTES : width
    this.text(HEAD_BYTES + more * (valueBytes + (step === 0 ? TIME_BYTES : 0)))
    const { view, bytes } = this
    const at = this.length
    if (width === BITS) this.first(BITS, pointValue(decimals[begin]!, digits[begin]!))
    else this.first(places, digits[begin]! * POWERS[places - decimals[begin]!]!)
    bytes[at + 9] = width
    view.setUint16(at + 10, more, true)
    view.setUint32(at + 12, step, true)
    if (width === BITS)
      for (let point = 1, next = at + HEAD_BYTES; point <= more; point++, next += VALUE_BYTES)
        view.setFloat64(next, pointValue(decimals[begin + point]!, digits[begin + point]!), true)
    else if (width > 0) this.putDifferences(at + HEAD_BYTES, width, more)
    this.length = at + HEAD_BYTES + more * valueBytes
    if (step !== 0) return
    const firstMs = times[begin]!
    for (let point = begin + 1; point < end; point++, this.length += TIME_BYTES)
      view.setUint32(this.length, times[point]! - firstMs, true)
  }

  /**
   * Scales the digits of all points to the same decimals and records the difference of each from the one before.
   * Returns the bytes that a difference needs, or BITS when they would not be exact.
   */
  private differences(places: number, decimals: Uint8Array, digits: Float64Array, begin: number, end: number): number {
    const { changes } = this
    let last = 0
    let least = 0
    let most = 0
    for (let point = begin; point < end; point++) {
      const own = decimals[point]!
      const whole = own === places ? digits[point]! : digits[point]! * POWERS[places - own]!
      if (!(whole <= DIGITS_MAX && whole >= -DIGITS_MAX)) return BITS
      if (point > begin) {
        const change = whole - last
        changes[point - begin] = change
        if (change < least) least = change
        else if (change > most) most = change
      }
      last = whole
    }
    if (least === 0 && most === 0) return 0
    if (least >= -0x80 && most <= 0x7f) return 1
    if (least >= -0x8000 && most <= 0x7fff) return 2
    return least >= -0x8000_0000 && most <= 0x7fff_ffff ? 4 : VALUE_BYTES
  }

  private putDifferences(at: number, width: number, more: number): void {
    const { bytes, changes } = this
    let next = at
    if (width === VALUE_BYTES) {
      for (let point = 1; point <= more; point++, next += VALUE_BYTES) this.int64(next, changes[point]!)
      return
    }
    for (let point = 1; point <= more; point++) {
      const change = changes[point]! | 0
      bytes[next++] = change
      if (width === 1) continue
      bytes[next++] = change >> 8
      if (width === 2) continue
      bytes[next++] = change >> 16
      bytes[next++] = change >> 24
    }
  }

  private first(places: number, digits: number): void {
    this.view.setUint8(this.length, places)
    if (places === BITS) this.view.setFloat64(this.length + 1, digits, true)
    else this.int64(this.length + 1, digits)
  }

  private int64(at: number, whole: number): void {
    const high = Math.floor(whole / WORD)
    this.view.setUint32(at, whole - high * WORD, true)
    this.view.setInt32(at + 4, high, true)
  }

  /** Writes the length of the text that follows. */
  private text(length: number): void {
    let rest = length
    for (; rest >= 0x80; rest >>>= 7) this.bytes[this.length++] = (rest & 0x7f) | 0x80
    this.bytes[this.length++] = rest
  }

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const bytes = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more))
    bytes.set(this.bytes)
    this.bytes = bytes
    this.view = new DataView(bytes.buffer)
  }
}

const pointValue = (places: number, digits: number): number => (places === BITS ? digits : digits / POWERS[places]!)

function placesOf(decimals: Uint8Array, begin: number, end: number): number {
  let places = 0
  for (let point = begin; point < end; point++) if (decimals[point]! > places) places = decimals[point]!
  return places
}

/** The time between two points when it is the same for all, else 0. */
function stepOf(times: Float64Array, begin: number, end: number): number {
  let last = times[begin + 1]!
  const step = last - times[begin]!
  for (let point = begin + 2; point < end; point++) {
    const next = times[point]!
    if (next - last !== step) return 0
    last = next
  }
  return step
}

/**
 * Visits the points of a chunk whose first point is at `firstMs`. The column `points` of its row is the `length` bytes
 * of `view` from `start` on.
 */
export function eachPoint(
  view: DataView,
  start: number,
  length: number,
  firstMs: number,
  take: (tsMs: number, value: number) => void,
): void {
  const count = readChunk(view, start, length, firstMs, times, values, 0)
  for (let point = 0; point < count; point++) take(times[point]!, values[point]!)
}

const times = new Float64Array(CHUNK_POINTS_MAX)
const values = new Float64Array(CHUNK_POINTS_MAX)

/**
 * Decodes the points of a chunk into `tsMs` and `value` from `row` on, which must have room for CHUNK_POINTS_MAX.
 * Returns their number.
 */
export function readChunk(
  view: DataView,
  start: number,
  length: number,
  firstMs: number,
  tsMs: Float64Array,
  value: Float64Array,
  row: number,
): number {
  const { isBits, power, width, more, step, timesAt, digits: first } = openRun(view, start, length)
  tsMs[row] = firstMs
  value[row] = first / power
  let at = start + HEAD_BYTES
  let digits = first
  for (let next = row + 1; next <= row + more; next++, at += width) {
    if (isBits) {
      value[next] = view.getFloat64(at, true)
      at += VALUE_BYTES - width
      continue
    }
    digits += changeAt(view, at, width)
    value[next] = digits / power
  }
  if (step === 0)
    for (let point = 1; point <= more; point++)
      tsMs[row + point] = firstMs + view.getUint32(timesAt + (point - 1) * TIME_BYTES, true)
  else for (let point = 1; point <= more; point++) tsMs[row + point] = firstMs + step * point
  return more + 1
}

/** The last point of a chunk, which is the newest. */
export function lastPoint(
  view: DataView,
  start: number,
  length: number,
  firstMs: number,
): { readonly tsMs: number; readonly value: number } {
  const { isBits, power, width, more, step, timesAt, digits: first } = openRun(view, start, length)
  if (more === 0) return { tsMs: firstMs, value: first / power }
  const after = step === 0 ? view.getUint32(timesAt + (more - 1) * TIME_BYTES, true) : step * more
  let digits = first
  if (isBits) digits = view.getFloat64(timesAt - VALUE_BYTES, true)
  else if (width > 0) for (let at = start + HEAD_BYTES; at < timesAt; at += width) digits += changeAt(view, at, width)
  return { tsMs: firstMs + after, value: digits / power }
}

function openRun(view: DataView, start: number, length: number) {
  const places = view.getUint8(start)
  const isBits = places === BITS
  const isSingle = length <= SINGLE_BYTES
  const width = isSingle ? 0 : view.getUint8(start + 9)
  const more = isSingle ? 0 : view.getUint16(start + 10, true)
  const valueBytes = width === BITS ? VALUE_BYTES : width
  return {
    isBits,
    power: isBits ? 1 : POWERS[places]!,
    digits: isBits ? view.getFloat64(start + 1, true) : readInt64(view, start + 1),
    width,
    valueBytes,
    more,
    step: isSingle ? 0 : view.getUint32(start + 12, true),
    timesAt: start + HEAD_BYTES + more * valueBytes,
  }
}

function changeAt(view: DataView, at: number, width: number): number {
  switch (width) {
    case 0:
      return 0
    case 1:
      return view.getInt8(at)
    case 2:
      return view.getInt16(at, true)
    case 4:
      return view.getInt32(at, true)
    default:
      return readInt64(view, at)
  }
}
