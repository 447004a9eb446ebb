// How a value lies in the samples store: as digits and the number of decimals behind them, since agents report short
// decimals, and whole numbers with many zero bits are stored in half the space of floating point. value = digits /
// 10^decimals, exactly, or the value is kept bit by bit. The same in SQL: `values` of samples_runs
// (sql/samples/0003_runs.sql).

/** The decimals of a value that is no short decimal: its digits are the bits of the double. */
export const BITS = 255

/** Whole numbers up to here are exact as doubles, so that digits / 10^decimals is the value that came. */
const DIGITS_MAX = 2 ** 53

/**
 * Writes the digits of `value`, a whole number, into row `row` of `digits` and returns its decimals: 0, 2, 4 or 6.
 * Where it is BITS, the value itself is there. Minus zero becomes zero.
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
