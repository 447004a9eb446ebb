// A range of time as an address has it: `now-6h` and `now`, or two instants. The same for the hub, which asks its
// collectors for it, and for the browser, which shows it.

export type TimeRange = { readonly fromMs: number; readonly toMs: number }

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
const RELATIVE = /^now(?:-(\d{1,6})([smhdw]))?$/

/** What is shown where an address names no range, or none that can be. */
export const DEFAULT_FROM = 'now-6h'
const RANGE_MIN_MS = 60_000
/** The longest range that a collector answers. */
const RANGE_MAX_MS = 400 * 86_400_000

/** Whether an end moves with the time. */
export const isRelative = (text: string): boolean => RELATIVE.test(text)

/** Milliseconds of an end; null for what is none. */
export function instantOf(text: string, nowMs: number): number | null {
  const relative = RELATIVE.exec(text)
  if (relative) return nowMs - Number(relative[1] ?? 0) * (UNIT_MS[relative[2] ?? ''] ?? 0)
  const atMs = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isFinite(atMs) ? atMs : null
}

/** The range that an address names; the last six hours where it names none. */
export function rangeOf(from: string, to: string, nowMs: number): TimeRange {
  const toMs = instantOf(to === '' ? 'now' : to, nowMs) ?? nowMs
  const fromMs = instantOf(from === '' ? DEFAULT_FROM : from, nowMs)
  const isRange = fromMs !== null && toMs - fromMs >= RANGE_MIN_MS && toMs - fromMs <= RANGE_MAX_MS
  return isRange ? { fromMs, toMs } : { fromMs: nowMs - 6 * 3_600_000, toMs: nowMs }
}
