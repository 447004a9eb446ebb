// Consecutive points of one series as one row of samples_raw. The engine spends its time for each row, and again at
// each merge; with a chunk it does so once for many points. The same format in SQL: the view samples_runs
// (sql/samples/0006_shapes.sql). What differs from row to row lies apart from what does not, so that the engine packs
// each by itself:
//
// - `shape`: byte 0 the decimals, or BITS; byte 1 the form, CHANGES or VALUES; bytes 2 and 3 the number of points after
//   the first; bytes 4 to 7 the step, which is the ms between two points, 0 without one.
// - `first`: the digits of the first point, 0 with BITS.
// - `points`, all in the same number of bytes. CHANGES: what each further point differs from the one before, without
//   sign in up to 4 bytes (0, -1, 1, -2 … as 0, 1, 2, 3 …) or with it in 8. VALUES: the digits of each further point, in
//   up to 4 bytes. BITS: the value of every point, in 8. Without a step then 4 bytes a further point: ms after the first.
//
// The digits of all points have the same number of decimals. Rows from before 0006_shapes.sql have shape 0 and all in
// `points`:
//
//   0  1  decimals, or BITS                   10  2  points after the first
//   1  8  digits of the first (Int64), or     12  4  step, 0 without one
//         its bits                            16  …  changes with their sign, or the other values
//   9  1  width: bytes of a change, or BITS       …  4 bytes a point: ms after the first, without a step
//
// There a chunk of one point ends after the first nine bytes.
import { BITS } from './decimal.ts'
import { type NativeReader, readInt64 } from './native-reader.ts'
import type { NativeWriter } from './native-writer.ts'

/**
 * The time from the first point of a chunk to its last is shorter than this. A chunk lies within one UTC day, since
 * retention deletes whole days.
 */
export const CHUNK_SPAN_MS = 600_000
export const CHUNK_POINTS_MAX = 4_096
/** The columns of a chunk, as a statement names them last and in this order for `ChunkReader`. */
export const CHUNK_COLUMNS = 'shape, first, points'
/** How many columns these are. */
export const CHUNK_COLUMN_COUNT = 3

const CHANGES = 1
const VALUES = 2
const TIME_BYTES = 4
const VALUE_BYTES = 8
/** Changes between whole numbers up to this bound are exact as doubles. */
const DIGITS_MAX = 2 ** 52
const WORD = 2 ** 32
const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
/** The length of a text is written before its bytes, with seven bits in each byte. */
const LENGTH_BYTES_MAX = 3
/** Of the older form: bytes of a chunk of one point, and bytes before the changes. */
const OLDER_SINGLE_BYTES = 9
const OLDER_HEAD_BYTES = 16

/** Writes the chunks of a block one after the other, as columns of the Native format. */
export class ChunkWriter {
  private bytes = new Uint8Array(64 * 1024)
  private view = new DataView(this.bytes.buffer)
  private shapes = new Uint32Array(2 * 1_024)
  private firsts = new Uint32Array(2 * 1_024)
  private readonly digits = new Float64Array(CHUNK_POINTS_MAX)
  private rows = 0
  private length = 0
  /** Of the chunk that is added: its form and the bytes of a further point. */
  private form = CHANGES
  private width = 0

  clear(): void {
    this.rows = 0
    this.length = 0
  }

  /** Writes what was added since `clear` as columns of a block, in the order of CHUNK_COLUMNS. */
  write(writer: NativeWriter): void {
    const { rows, length } = this
    writer.put(writer.column({ name: 'shape', type: 'UInt64', bytesPerRow: 8 }, rows), this.shapes, rows * 2)
    writer.put(writer.column({ name: 'first', type: 'Int64', bytesPerRow: 8 }, rows), this.firsts, rows * 2)
    writer.put(writer.column({ name: 'points', type: 'String', bytesPerRow: 1 }, length), this.bytes, length)
  }

  /**
   * Adds the points [begin, end) of one series, in the order of time. `times` are whole milliseconds, `decimals` and
   * `digits` as `splitDecimal` leaves them.
   */
  add(times: Float64Array, decimals: Uint8Array, digits: Float64Array, begin: number, end: number): void {
    const more = end - begin - 1
    this.reserve(LENGTH_BYTES_MAX + VALUE_BYTES + more * (VALUE_BYTES + TIME_BYTES))
    const places = this.scale(decimals, digits, begin, end)
    const step = more === 0 ? 0 : stepOf(times, begin, end)
    const timeBytes = step === 0 ? more * TIME_BYTES : 0
    if (places === BITS) {
      this.row(BITS, CHANGES, more, step, 0)
      this.text((more + 1) * VALUE_BYTES + timeBytes)
      for (let point = begin; point < end; point++, this.length += VALUE_BYTES)
        this.view.setFloat64(this.length, pointValue(decimals[point]!, digits[point]!), true)
    } else {
      this.measure(more)
      this.row(places, this.form, more, step, this.digits[0]!)
      this.text(more * this.width + timeBytes)
      this.putPoints(more)
    }
    if (step !== 0) return
    const firstMs = times[begin]!
    for (let point = begin + 1; point < end; point++, this.length += TIME_BYTES)
      this.view.setUint32(this.length, times[point]! - firstMs, true)
  }

  /** Scales the digits of all points to the same decimals, which it returns, or BITS when they would not be exact. */
  private scale(decimals: Uint8Array, digits: Float64Array, begin: number, end: number): number {
    const scaled = this.digits
    const places = placesOf(decimals, begin, end)
    if (places === BITS) return BITS
    if (end - begin === 1) {
      scaled[0] = digits[begin]!
      return places
    }
    for (let point = begin; point < end; point++) {
      const own = decimals[point]!
      const whole = own === places ? digits[point]! : digits[point]! * POWERS[places - own]!
      if (!(whole <= DIGITS_MAX && whole >= -DIGITS_MAX)) return BITS
      scaled[point - begin] = whole
    }
    return places
  }

  /** Decides whether the digits or their changes are the smaller numbers, and how many bytes one needs. */
  private measure(more: number): void {
    const { digits } = this
    let last = digits[0]!
    let [least, most, highest, sum, changed] = [0, 0, 0, 0, 0]
    let isNegative = last < 0
    for (let point = 1; point <= more; point++) {
      const whole = digits[point]!
      const change = whole - last
      if (change < 0) {
        changed -= change
        if (change < least) least = change
      } else {
        changed += change
        if (change > most) most = change
      }
      if (whole > highest) highest = whole
      else if (whole < 0) isNegative = true
      sum += whole
      last = whole
    }
    const isValues = !isNegative && highest < WORD && sum < 2 * changed
    this.form = isValues ? VALUES : CHANGES
    this.width = bytesOf(isValues ? highest : Math.max(2 * most, -2 * least - 1))
  }

  private putPoints(more: number): void {
    const { bytes, digits, form, width } = this
    if (width === 0) return
    let at = this.length
    let last = digits[0]!
    for (let point = 1; point <= more; point++) {
      const whole = digits[point]!
      const change = whole - last
      last = whole
      if (width === VALUE_BYTES) {
        this.int64(at, change)
        at += VALUE_BYTES
        continue
      }
      // The lowest 32 bits of what is below 2^32.
      const low = (form === VALUES ? whole : change < 0 ? -2 * change - 1 : 2 * change) | 0
      bytes[at++] = low
      if (width === 1) continue
      bytes[at++] = low >> 8
      if (width === 2) continue
      bytes[at++] = low >> 16
      if (width === 4) bytes[at++] = low >> 24
    }
    this.length = at
  }

  /** Adds a row: its shape and its first digits. */
  private row(places: number, form: number, more: number, step: number, first: number): void {
    const at = this.rows++ * 2
    if (at === this.shapes.length) {
      this.shapes = doubled(this.shapes)
      this.firsts = doubled(this.firsts)
    }
    this.shapes[at] = places | (form << 8) | (more << 16)
    this.shapes[at + 1] = step
    const high = Math.floor(first / WORD)
    this.firsts[at] = first - high * WORD
    this.firsts[at + 1] = high
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

function doubled(from: Uint32Array): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(from.length * 2)
  to.set(from)
  return to
}

/** The bytes that a whole number without sign needs, as chunks have them. */
function bytesOf(whole: number): number {
  if (whole <= 0) return 0
  if (whole < 0x100) return 1
  if (whole < 0x1_0000) return 2
  if (whole < 0x100_0000) return 3
  return whole < WORD ? 4 : VALUE_BYTES
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

const times = new Float64Array(CHUNK_POINTS_MAX)
const values = new Float64Array(CHUNK_POINTS_MAX)

/** Reads the chunks of a statement's answer, row by row; the statement names CHUNK_COLUMNS last. */
export class ChunkReader {
  private readonly reader: NativeReader
  private readonly view: DataView
  private shapeAt = 0
  private firstAt = 0
  /** Of the row: its form (0 for the older one), and where its further values and its times begin. */
  private form = 0
  private isBits = false
  private power = 1
  private first = 0
  private width = 0
  private more = 0
  private step = 0
  private valuesAt = 0
  private timesAt = 0

  constructor(reader: NativeReader) {
    this.reader = reader
    this.view = reader.view
  }

  /** Opens the columns of a block of so many rows, those before them having been opened. */
  open(rows: number): void {
    this.shapeAt = this.reader.column(rows * 8) - 8
    this.firstAt = this.reader.column(rows * 8) - 8
    this.reader.column(0)
  }

  /** Goes to the next row. */
  next(): void {
    const { view } = this
    this.shapeAt += 8
    this.firstAt += 8
    const length = this.reader.text()
    const start = this.reader.end() - length
    this.form = view.getUint8(this.shapeAt + 1)
    if (this.form === 0) {
      this.openOlder(start, length)
      return
    }
    const places = view.getUint8(this.shapeAt)
    const more = view.getUint16(this.shapeAt + 2, true)
    const step = view.getUint32(this.shapeAt + 4, true)
    this.isBits = places === BITS
    this.power = this.isBits ? 1 : POWERS[places]!
    this.first = this.isBits ? view.getFloat64(start, true) : readInt64(view, this.firstAt)
    this.more = more
    this.step = step
    this.valuesAt = this.isBits ? start + VALUE_BYTES : start
    this.timesAt = start + length - (step === 0 ? more * TIME_BYTES : 0)
    this.width = more === 0 ? 0 : (this.timesAt - this.valuesAt) / more
  }

  private openOlder(start: number, length: number): void {
    const { view } = this
    const places = view.getUint8(start)
    const isSingle = length <= OLDER_SINGLE_BYTES
    this.isBits = places === BITS
    this.power = this.isBits ? 1 : POWERS[places]!
    this.first = this.isBits ? view.getFloat64(start + 1, true) : readInt64(view, start + 1)
    this.width = isSingle ? 0 : this.isBits ? VALUE_BYTES : view.getUint8(start + 9)
    this.more = isSingle ? 0 : view.getUint16(start + 10, true)
    this.step = isSingle ? 0 : view.getUint32(start + 12, true)
    this.valuesAt = start + OLDER_HEAD_BYTES
    this.timesAt = this.valuesAt + this.more * this.width
  }

  /** Visits the points of the row, whose first point is at `firstMs`. */
  eachPoint(firstMs: number, take: (tsMs: number, value: number) => void): void {
    const count = this.read(firstMs, times, values, 0)
    for (let point = 0; point < count; point++) take(times[point]!, values[point]!)
  }

  /**
   * Decodes the points of the row into `tsMs` and `value` from `at` on, which must have room for CHUNK_POINTS_MAX.
   * Returns their number.
   */
  read(firstMs: number, tsMs: Float64Array, value: Float64Array, at: number): number {
    const { view, more, step, timesAt, power, width } = this
    let digits = this.first
    let place = this.valuesAt
    value[at] = digits / power
    for (let next = at + 1; next <= at + more; next++, place += width) {
      digits = this.valueAt(place, digits)
      value[next] = digits / power
    }
    tsMs[at] = firstMs
    if (step === 0)
      for (let point = 1; point <= more; point++)
        tsMs[at + point] = firstMs + view.getUint32(timesAt + (point - 1) * TIME_BYTES, true)
    else for (let point = 1; point <= more; point++) tsMs[at + point] = firstMs + step * point
    return more + 1
  }

  /** The last point of the row, which is the newest. */
  last(firstMs: number): { readonly tsMs: number; readonly value: number } {
    const { view, more, step, timesAt, power, width, valuesAt } = this
    let digits = this.first
    if (more === 0) return { tsMs: firstMs, value: digits / power }
    const after = step === 0 ? view.getUint32(timesAt + (more - 1) * TIME_BYTES, true) : step * more
    const isAlone = this.isBits || this.form === VALUES
    let place = isAlone ? valuesAt + (more - 1) * width : valuesAt
    for (let point = isAlone ? more : 1; point <= more; point++, place += width) digits = this.valueAt(place, digits)
    return { tsMs: firstMs + after, value: digits / power }
  }

  /** The digits, or the value, of the point at `at` of the text; `last` is that of the point before. */
  private valueAt(at: number, last: number): number {
    const { view, width } = this
    if (this.isBits) return view.getFloat64(at, true)
    if (this.form === 0) return last + olderChangeAt(view, at, width)
    if (width === VALUE_BYTES) return last + readInt64(view, at)
    const whole = wholeAt(view, at, width)
    if (this.form === VALUES) return whole
    const half = whole >>> 1
    return last + ((whole & 1) === 0 ? half : -half - 1)
  }
}

function wholeAt(view: DataView, at: number, width: number): number {
  switch (width) {
    case 0:
      return 0
    case 1:
      return view.getUint8(at)
    case 2:
      return view.getUint16(at, true)
    case 3:
      return view.getUint16(at, true) | (view.getUint8(at + 2) << 16)
    default:
      return view.getUint32(at, true)
  }
}

function olderChangeAt(view: DataView, at: number, width: number): number {
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
