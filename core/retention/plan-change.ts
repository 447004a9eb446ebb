// What a change of a company's effective retention does to its grace (document 1 "Settings", hub-side retention rule;
// decision G-118). Null days mean unlimited. The collector reads up to previousDays until graceUntilMs.
import { DAY_MS } from '../limits.ts'

export const graceMs = 30 * DAY_MS

export type RetentionState = {
  /** The effective retention in days; null = unlimited. */
  readonly effectiveDays: number | null
  /** The retention before the decrease; null with a running grace = it was unlimited. */
  readonly previousDays: number | null
  readonly graceUntilMs: number | null
  readonly changedAtMs: number | null
}

const larger = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : Math.max(a, b))
const isLess = (a: number | null, b: number | null): boolean => a !== null && (b === null || a < b)

/** The state after the effective retention becomes `newDays` at `nowMs`. An equal value changes nothing. */
export function changeRetention(state: RetentionState, newDays: number | null, nowMs: number): RetentionState {
  if (newDays === state.effectiveDays) return state
  const isGraceRunning = state.graceUntilMs !== null && state.graceUntilMs > nowMs
  if (isLess(newDays, state.effectiveDays)) {
    return {
      effectiveDays: newDays,
      previousDays: isGraceRunning ? larger(state.effectiveDays, state.previousDays) : state.effectiveDays,
      graceUntilMs: Math.max(state.graceUntilMs ?? 0, nowMs + graceMs),
      changedAtMs: nowMs,
    }
  }
  const keepsGrace = isGraceRunning && isLess(newDays, state.previousDays)
  return {
    effectiveDays: newDays,
    previousDays: keepsGrace ? state.previousDays : null,
    graceUntilMs: keepsGrace ? state.graceUntilMs : null,
    changedAtMs: nowMs,
  }
}
