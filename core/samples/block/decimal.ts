// How the samples store encodes a value: as digits and a number of decimals, value = digits / 10^decimals. Agents
// report short decimals, and whole numbers take half the space of floating point. A value that is not exactly such a
// decimal is stored bit by bit. The same in SQL: `values` of samples_runs (sql/samples/0006_shapes.sql).

/** The decimals of a value that is no short decimal: its digits are the bits of the double. */
export const BITS = 255

/** Whole numbers up to this bound are exact as doubles, so digits / 10^decimals gives back the same value. */
const DIGITS_MAX = 2 ** 53

/**
 * Writes the digits of `value`, a whole number, into row `row` of `digits` and returns its decimals: 0, 2, 4 or 6. For
 * BITS the row has the value itself. Minus zero becomes zero.
 */
export function splitDecimal(value: number, row: number, digits: Float64Array): number {
  let decimals = 0
  let whole = value
  if (!Number.isInteger(value)) {
    whole = Math.round(value * 100)
    decimals = 2
    if (whole / 100 !== value) {
      whole = Math.round(value * 10_000)
      decimals = 4
      if (whole / 10_000 !== value) {
        whole = Math.round(value * 1_000_000)
        decimals = 6
        if (whole / 1_000_000 !== value) whole = Number.NaN
      }
    }
  }
  if (!(Math.abs(whole) <= DIGITS_MAX)) {
    digits[row] = value
    return BITS
  }
  digits[row] = whole + 0
  return decimals
}
