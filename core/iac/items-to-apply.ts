// Which items of a run an apply takes (decision G-125; resources.md ): those that nobody need approve or
// that all have approved; what was applied is left, and what waits or was refused is not written.
import type { TicketState } from '../lifecycle/approval-ticket.ts'
import type { ItemAction, ItemStatus } from './run-status.ts'

/** What the tickets of an item say together; `free` when it has none. */
type ItemApproval = 'free' | 'approved' | 'pending' | 'refused'

/** What the states of an item's tickets mean for it: one that was refused in whatever way is enough. */
export function approvalOf(ticketStates: readonly TicketState[]): ItemApproval {
  if (ticketStates.length === 0) return 'free'
  if (ticketStates.some(state => state !== 'pending' && state !== 'approved')) return 'refused'
  return ticketStates.every(state => state === 'approved') ? 'approved' : 'pending'
}

type ItemDecision = 'apply' | 'wait' | 'skip' | 'leave'

/** What an apply does with an item: a second apply tries failed and skipped ones again, and touches no applied one. */
export function decideItem(status: ItemStatus, action: ItemAction, approval: ItemApproval): ItemDecision {
  if (status === 'applied') return 'leave'
  if (action === 'none' || approval === 'free' || approval === 'approved') return 'apply'
  return approval === 'pending' ? 'wait' : 'skip'
}
