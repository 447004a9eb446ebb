// In which state an exception is approved, rejected or withdrawn, and that whoever asked for it does not approve it
// (decisions G-154, G-174).
import { ApiError, invalidField } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import type { ExceptionRow } from './exception-list.ts'

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
