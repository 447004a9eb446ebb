// How wrong the clock of a scan host may be (MAT-033).
import { ApiError } from '../../http/api-error.ts'
import type { SignedHeaders } from './signed-call.ts'

const CLOCK_SKEW_MAX_MS = 5 * 60_000

/** Refuses a call whose time is too far off; the caller is told the time here, to correct its own. */
export function skewFault(headers: SignedHeaders, nowMs: number): ApiError | null {
  if (Math.abs(headers.timeMs - nowMs) <= CLOCK_SKEW_MAX_MS) return null
  const message = 'the time of the call is more than 5 minutes off'
  return new ApiError(401, 'clock_skew', message, null, { server_time_ms: Math.floor(nowMs) })
}
