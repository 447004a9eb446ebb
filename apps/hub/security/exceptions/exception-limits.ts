// How many findings an exception may have, how long it may hold, and when people are told that it ends (decisions
// G-154, G-174, G-177).
import { DAY_MS } from '../../../../core/limits.ts'
import { invalidField } from '../../platform/http/api-error.ts'

const DAYS_MAX = 365
/** The most findings of one request: all of them are named in one transaction. */
export const FINDINGS_MAX = 500_000
/** So long before the end of one people are told. */
export const EXPIRING_DAYS = 7

type Asked = { readonly type: 'accepted' | 'false_positive'; readonly expires_at?: string | null | undefined }

/** How long it may hold: what is accepted needs an end within a year, what is called false needs none. */
export function refuseExpiry({ type, expires_at }: Asked, nowMs: number): void {
  if (!expires_at) {
    if (type === 'accepted') throw invalidField('expires_at', 'required')
    return
  }
  const atMs = Date.parse(expires_at)
  if (atMs <= nowMs) throw invalidField('expires_at', 'future')
  if (type === 'accepted' && atMs - nowMs > DAYS_MAX * DAY_MS)
    throw invalidField('expires_at', 'at_most_days', { days: DAYS_MAX })
}
