// What a sample, or a cell of samples, makes of the cell that it is added to while samples come in order. Values are
// digits with the cell's decimals, whole numbers, so sums are exact in any order and equal the cell that SQL computes
// from the raw samples (raw-cells.ts for those that come late).
import { BITS } from '../block/decimal.ts'
import { CellRows } from './cell-rows.ts'

/**
 * Beyond these bounds the SQL version stores sums bit by bit: 2^50 is its bound for whole numbers, and 2^49 leaves room
 * for the rounding of decimals.
 */
const WHOLE_MAX = 2 ** 50
const DECIMALS_MAX = 2 ** 49
/** Powers of ten, indexed by the difference of two numbers of decimals (0, 2, 4 or 6). */
const POWERS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const

const copyRow = (into: CellRows, at: number, from: CellRows, row: number): void => {
  into.count[at] = from.count[row]!
  into.after[at] = from.after[row]!
  into.decimals[at] = from.decimals[row]!
  into.sum[at] = from.sum[row]!
  into.min[at] = from.min[row]!
  into.max[at] = from.max[row]!
  into.last[at] = from.last[row]!
}

/**
 * Adds row `row` of `from`, whose cell begins `offsetMs` after the cell of row `at`. False when the result may differ
 * from the cell of the raw samples: the added samples are not newer than all before them, so they may be repetitions,
 * or a value is no short decimal.
 */
export function addToCell(into: CellRows, at: number, from: CellRows, row: number, offsetMs: number): boolean {
  const after = from.after[row]! + offsetMs
  if (into.count[at] === 0) {
    copyRow(into, at, from, row)
    into.after[at] = after
    return true
  }
  if (after <= into.after[at]!) return false
  const had = into.decimals[at]!
  const has = from.decimals[row]!
  if (had === BITS || has === BITS) return false
  let scale = 1
  if (has < had) scale = POWERS[had - has]!
  else if (has > had) {
    const more = POWERS[has - had]!
    into.sum[at]! *= more
    into.min[at]! *= more
    into.max[at]! *= more
    into.decimals[at] = has
  }
  const low = from.min[row]! * scale
  const high = from.max[row]! * scale
  into.count[at]! += from.count[row]!
  into.sum[at]! += from.sum[row]! * scale
  if (low < into.min[at]!) into.min[at] = low
  if (high > into.max[at]!) into.max[at] = high
  into.last[at] = from.last[row]! * scale
  into.after[at] = after
  return true
}

/** Makes row `at` the cell of one sample; `value` is its digits, or with BITS for decimals itself. */
function setSample(into: CellRows, at: number, after: number, decimals: number, value: number): void {
  into.count[at] = 1
  into.after[at] = after
  into.decimals[at] = decimals
  into.sum[at] = value
  into.min[at] = value
  into.max[at] = value
  into.last[at] = value
}

/** Adds one sample as `addToCell` does. */
export function addSample(into: CellRows, at: number, after: number, decimals: number, value: number): boolean {
  const count = into.count[at]! | 0
  if (count === 0) {
    setSample(into, at, after, decimals, value)
    return true
  }
  if (decimals !== into.decimals[at] || decimals === BITS) {
    setSample(ONE, 0, after, decimals, value)
    return addToCell(into, at, ONE, 0, 0)
  }
  if (after <= (into.after[at]! | 0)) return false
  into.count[at] = count + 1
  into.after[at] = after
  into.sum[at]! += value
  if (value < into.min[at]!) into.min[at] = value
  if (value > into.max[at]!) into.max[at] = value
  into.last[at] = value
  return true
}

/** Working memory: a cell of one sample, which `addToCell` then adds. */
const ONE = new CellRows(1)

/**
 * Whether a cell with samples is exact. An overflow along the way shows here too, since neither the count nor the
 * largest digits ever shrink.
 */
export function isExact(rows: CellRows, at: number): boolean {
  const count = rows.count[at]!
  if (rows.decimals[at] === BITS) return count === 1 && Number.isFinite(rows.last[at]!)
  const most = Math.max(Math.abs(rows.min[at]!), Math.abs(rows.max[at]!)) * count
  return most <= (rows.decimals[at] === 0 ? WHOLE_MAX : DECIMALS_MAX)
}
