// What may become of an exception (decisions G-154, G-174, G-177): how many findings it may have, how long it
// may hold, in which state it is decided, and that whoever asked for it does not approve it.
import { DAY_MS } from '../../../../core/limits.ts'
import { ApiError, invalidField } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import type { ExceptionRow } from './exception-list.ts'

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

export type Decision = 'approve' | 'reject' | 'withdraw'

/** A pending one can be decided in any way; an approved one can only be withdrawn. */
function checkState({ exception }: ExceptionRow, decision: Decision, nowMs: number): void {
  const { status, expiresAt } = exception
  const isOver = expiresAt !== null && expiresAt.getTime() <= nowMs
  const state = status === 'pending' && isOver ? 'expired' : status
  if (state === 'pending' || (state === 'approved' && decision === 'withdraw')) return
  throw invalidField('status', 'state_refused', { state })
}

/** Who asked may reject or withdraw, and not approve. */
export function refuseDecision(row: ExceptionRow, decision: Decision, userId: string, nowMs: number): void {
  checkState(row, decision, nowMs)
  if (decision === 'approve' && row.exception.requestedBy === userId)
    throw new ApiError(403, 'forbidden', words('own_exception'))
}
