// What a decision makes of an approval ticket (resources.md; decision G-128): steps one after the other,
// as many different people as a step asks for, and delegation of one person's say.
import { approvedAtStep, type Decision, type Delegation, stepOf, type Ticket } from './approval-ticket.ts'
import { chainOf, isRequester, saysOf } from './may-decide-on-ticket.ts'

const LINKS_MAX = 3

export type TicketEffect = 'step_began' | 'approved' | 'rejected' | 'expired' | 'escalated' | 'due_soon' | 'overdue'
export type Moved = { readonly ticket: Ticket; readonly effects: readonly TicketEffect[] }

/** The ticket after a decision that `mayDecide` allows. */
export function decide(ticket: Ticket, made: Omit<Decision, 'step'>, nowMs: number): Moved {
  const decided = { ...ticket, decisions: [...ticket.decisions, { ...made, step: ticket.step }] }
  if (made.decision === 'rejected') return { ticket: { ...decided, state: 'rejected' }, effects: ['rejected'] }
  if (approvedAtStep(decided) < stepOf(decided).required) return { ticket: decided, effects: [] }
  if (decided.step + 1 === decided.workflow.steps.length)
    return { ticket: { ...decided, state: 'approved' }, effects: ['approved'] }
  const clock = { stepStartedAtMs: nowMs, isEscalated: false, dueSoonTold: false, overdueTold: false }
  return { ticket: { ...decided, ...clock, step: decided.step + 1 }, effects: ['step_began'] }
}

/**
 * The delegation of a say to somebody, or null when it may not be: to the requester, to somebody without the right,
 * back
 * along the chain, or over more than three links. `originId` is given where a manager acts for somebody who is missing.
 */
export function delegation(
  ticket: Ticket,
  named: readonly string[],
  { fromId, toId, isManager }: { readonly fromId: string; readonly toId: string; readonly isManager: boolean },
  canDecide: boolean,
): Delegation | { readonly refused: 'user_id' | 'not_approver' } {
  const [origin] = saysOf(ticket, named, fromId)
  if (origin === undefined || (!isManager && isRequester(ticket, fromId))) return { refused: 'not_approver' }
  const whole = chainOf(ticket, origin)
  const chain = whole.slice(0, whole.indexOf(fromId) + 1)
  const isAllowed =
    canDecide && !ticket.requesterIds.includes(toId) && !chain.includes(toId) && chain.length <= LINKS_MAX
  return isAllowed ? { originId: origin, fromId, toId } : { refused: 'user_id' }
}
