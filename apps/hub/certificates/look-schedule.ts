// How often the places where a certificate is served are looked at: more often around its end, and soon again
// after what is wrong for the first time.
import { DAY_MS } from './certificate-state.ts'
import type { Deployment } from './deployments.ts'

const HOUR_MS = 3_600_000
const USUAL_INTERVAL_MS = 6 * HOUR_MS
const INTERVAL_NEAR_END_MS = HOUR_MS
const NEAR_END_DAYS = 7
const SECOND_TRY_MS = 60_000

/** How long until a place is looked at again. */
export const intervalMs = (notAfter: Date | null, now: Date): number =>
  notAfter !== null && Math.abs(notAfter.getTime() - now.getTime()) <= NEAR_END_DAYS * DAY_MS
    ? INTERVAL_NEAR_END_MS
    : USUAL_INTERVAL_MS

/** When a place is looked at again that was looked at just now: soon after what is wrong for the first time. */
export const nextLookAt = (
  { problem, failures }: Pick<Deployment, 'problem' | 'failures'>,
  interval: number,
  now: Date,
): Date => new Date(now.getTime() + (problem !== null && failures === 1 ? SECOND_TRY_MS : interval))
