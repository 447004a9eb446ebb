// What time does to an approval ticket (resources.md; decision G-128): when a step is due, what happens
// when it is overdue, when the ticket expires. Nothing is approved by the passing of time.
import { decide, type Moved } from './approval-steps.ts'
import { stepOf, type Ticket } from './approval-ticket.ts'

const HOUR_MS = 3_600_000
const DUE_SOON_SHARE = 0.25

type SlaState = 'ok' | 'due_soon' | 'overdue'

export const slaDueAtMs = (ticket: Ticket): number => ticket.stepStartedAtMs + stepOf(ticket).slaHours * HOUR_MS

/** A ticket is due soon once less than a quarter of the time of its step is left. */
export const dueSoonAtMs = (ticket: Ticket): number =>
  slaDueAtMs(ticket) - stepOf(ticket).slaHours * HOUR_MS * DUE_SOON_SHARE

export function slaStateOf(ticket: Ticket, nowMs: number): SlaState {
  if (nowMs >= slaDueAtMs(ticket)) return 'overdue'
  return nowMs > dueSoonAtMs(ticket) ? 'due_soon' : 'ok'
}

/** The ticket at an instant: what the clock alone brings about. */
export function tick(ticket: Ticket, nowMs: number): Moved {
  if (ticket.state !== 'pending') return { ticket, effects: [] }
  if (nowMs >= ticket.expiresAtMs) return { ticket: { ...ticket, state: 'expired' }, effects: ['expired'] }
  const sla = slaStateOf(ticket, nowMs)
  if (sla === 'due_soon' && !ticket.dueSoonTold)
    return { ticket: { ...ticket, dueSoonTold: true }, effects: ['due_soon'] }
  if (sla !== 'overdue' || ticket.overdueTold) return { ticket, effects: [] }
  const { onOverdue, escalateTo } = stepOf(ticket)
  if (onOverdue === 'reject') return decide(ticket, { userId: null, onBehalfOf: null, decision: 'rejected' }, nowMs)
  // The new clock runs once: when it has run out too, people are told and nothing else happens.
  if (onOverdue === 'escalate' && escalateTo !== null && !ticket.isEscalated)
    return {
      ticket: { ...ticket, isEscalated: true, stepStartedAtMs: nowMs, dueSoonTold: false },
      effects: ['overdue', 'escalated'],
    }
  return { ticket: { ...ticket, overdueTold: true }, effects: ['overdue'] }
}
