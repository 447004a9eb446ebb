// How a value of the host map goes as a character: the hub writes it, the browser colours the cell by it.

/** The levels from the lowest to the highest; `NO_LEVEL` where there is no value. */
export const LEVELS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const NO_LEVEL = '-'

/** The character of a value on a scale from 0 to `scaleMax`; what lies outside takes the end that is nearest. */
export function cellLevel(value: number | null, scaleMax: number): string {
  if (value === null) return NO_LEVEL
  const share = Math.min(1, Math.max(0, value / scaleMax))
  return LEVELS[Math.round(share * (LEVELS.length - 1))] ?? NO_LEVEL
}
