// How long the agent waits before it tries again what failed (document 3 "Errors"; decision G-55); what is tried
// again at all: response-action.ts. Randomness is passed in as a number in [0, 1).
import { backoffMs } from '../backoff.ts'
import { limits } from '../limits.ts'

/** The wait after the nth failure in a row, n >= 1: 5 s, doubled each time, at most 300 s. */
export const backoffCeilingMs = (failures: number): number =>
  backoffMs({ startMs: limits.backoffStartMs, capMs: limits.backoffCapMs }, failures)

/** The wait after the nth failure in a row: random in [0, ceiling], and never less than what Retry-After asks for. */
export function retryWaitMs(failures: number, random: number, retryAfterMs: number | null): number {
  return Math.max(Math.round(random * backoffCeilingMs(failures)), retryAfterMs ?? 0)
}

/** The wait while its token is refused, however many failures there were. */
export const UNAUTHORIZED_RETRY_MS = 600_000
