// The state of a certificate by the clock (RES-103, RES-104): as an operator reads it, and as SQL for the filter of the
// list. Nothing of it is stored, so that a day that passes writes nothing.
import { type SQL, sql } from 'drizzle-orm'

export const DAY_MS = 86_400_000

export const certificateStates = ['valid', 'not_yet_valid', 'expiring', 'expired', 'revoked', 'unknown'] as const
type CertificateState = (typeof certificateStates)[number]

type Validity = { readonly notBefore: Date | null; readonly notAfter: Date | null; readonly revoked: boolean }

/** Whole days until the end, negative after it; null where nothing was seen yet. */
export const daysLeft = (notAfter: Date | null, now: Date): number | null =>
  notAfter === null ? null : Math.floor((notAfter.getTime() - now.getTime()) / DAY_MS)

export function stateOf(
  { notBefore, notAfter, revoked }: Validity,
  renewBeforeDays: number,
  now: Date,
): CertificateState {
  if (revoked) return 'revoked'
  if (notBefore === null || notAfter === null) return 'unknown'
  if (now >= notAfter) return 'expired'
  if (now < notBefore) return 'not_yet_valid'
  return notAfter.getTime() - now.getTime() <= renewBeforeDays * DAY_MS ? 'expiring' : 'valid'
}

/** The same of a row of `certificates`. */
export const STATE_SQL: SQL = sql`case
  when revoked_at is not null then 'revoked'
  when not_before is null or not_after is null then 'unknown'
  when not_after <= now() then 'expired'
  when not_before > now() then 'not_yet_valid'
  when not_after <= now() + make_interval(days => renew_before_days) then 'expiring'
  else 'valid' end`
