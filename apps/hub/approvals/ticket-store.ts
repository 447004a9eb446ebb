// Tickets between the database and the pure state machine (core/lifecycle/approval-steps.ts).
import { and, asc, eq, sql } from 'drizzle-orm'
import { assert } from '../../../core/assert.ts'
import { dueSoonAtMs, slaDueAtMs } from '../../../core/lifecycle/approval-clock.ts'
import type { Approvers, Decision, Delegation, StepPeople, Ticket } from '../../../core/lifecycle/approval-ticket.ts'
import { delegatesOf } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import type { Executor } from '../platform/db/connect.ts'
import { approvalEvents, approvalTickets } from '../platform/db/schema-iac.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'
import type { PeopleLookup } from './approvers.ts'

export type TicketRow = typeof approvalTickets.$inferSelect
export type EventRow = typeof approvalEvents.$inferSelect
/** A ticket with what was done with it. */
export type LoadedTicket = { readonly row: TicketRow; readonly events: readonly EventRow[]; readonly ticket: Ticket }

function decisionOf(event: EventRow): Decision[] {
  if (event.type !== 'decided' || event.decision === null) return []
  return [{ step: event.step, userId: event.userId, onBehalfOf: event.originId, decision: event.decision }]
}

function delegationOf({ type, originId, fromId, toId }: EventRow): Delegation[] {
  return type === 'delegated' && originId && fromId && toId ? [{ originId, fromId, toId }] : []
}

export const ticketOf = (row: TicketRow, events: readonly EventRow[]): Ticket => ({
  workflow: row.workflow,
  state: row.state,
  step: row.step,
  stepStartedAtMs: row.stepStartedAt.getTime(),
  isEscalated: row.isEscalated,
  dueSoonTold: row.dueSoonTold,
  overdueTold: row.overdueTold,
  expiresAtMs: row.expiresAt.getTime(),
  requesterIds: row.requesterIds,
  decisions: events.flatMap(decisionOf),
  delegations: events.flatMap(delegationOf),
})

/** Tickets with their events, in the order of the rows. */
export async function loadTickets(db: Executor, rows: readonly TicketRow[]): Promise<LoadedTicket[]> {
  const ids = rows.map(row => row.id)
  const events =
    ids.length === 0
      ? []
      : await db
          .select()
          .from(approvalEvents)
          .where(isAnyOf(approvalEvents.ticketId, ids))
          .orderBy(asc(approvalEvents.id))
  const byTicket = Map.groupBy(events, event => event.ticketId)
  return rows.map(row => {
    const own = byTicket.get(row.id) ?? []
    return { row, events: own, ticket: ticketOf(row, own) }
  })
}

/** A ticket of a company, locked until the transaction ends; null when there is none. */
export async function lockTicket(tx: Tx, companyId: string, id: string): Promise<LoadedTicket | null> {
  const rows = await tx.db
    .select()
    .from(approvalTickets)
    .where(and(eq(approvalTickets.companyId, companyId), eq(approvalTickets.id, id)))
    .for('update')
  const [loaded] = await loadTickets(tx.db, rows)
  return loaded ?? null
}

/** The groups of people of the current step, those that it was escalated to included. */
function groupsOf({ workflow, step, isEscalated }: Ticket): Approvers[] {
  const rule = workflow.steps[step]
  if (!rule) return []
  return isEscalated && rule.escalateTo ? [rule.approvers, rule.escalateTo] : [rule.approvers]
}

/** The people of the current step, as they are now. */
export const peopleOf = (lookup: PeopleLookup, ticket: Ticket): Promise<StepPeople> =>
  lookup.of(groupsOf(ticket), delegatesOf(ticket))

/** The columns by which lists find what is due. */
export const clockColumns = (ticket: Ticket) => ({
  slaDueAt: new Date(slaDueAtMs(ticket)),
  dueSoonAt: new Date(dueSoonAtMs(ticket)),
})

/** Stores what the state machine made of a ticket. */
export async function saveTicket(tx: Tx, id: string, ticket: Ticket, isBlocked: boolean, nowMs: number): Promise<void> {
  await tx.db
    .update(approvalTickets)
    .set({
      state: ticket.state,
      step: ticket.step,
      stepStartedAt: new Date(ticket.stepStartedAtMs),
      ...clockColumns(ticket),
      isEscalated: ticket.isEscalated,
      dueSoonTold: ticket.dueSoonTold,
      overdueTold: ticket.overdueTold,
      blocked: isBlocked,
      closedAt: ticket.state === 'pending' ? null : new Date(nowMs),
    })
    .where(eq(approvalTickets.id, id))
}

type NewEvent = Omit<typeof approvalEvents.$inferInsert, 'ticketId'>

/** Notes what happened to a ticket. Returns when. */
export async function addEvent(tx: Tx, ticketId: string, event: NewEvent): Promise<Date> {
  const [row] = await tx.db
    .insert(approvalEvents)
    .values({ ...event, ticketId })
    .returning({ at: approvalEvents.at })
  assert(row !== undefined, 'an event that was inserted is there')
  return row.at
}

/** Where tickets that end otherwise than approved leave their items: not applied, and why. */
export async function skipItems(tx: Tx, itemIds: readonly string[], reason: string): Promise<void> {
  if (itemIds.length === 0) return
  await tx.db.execute(sql`
    update iac_items set status = 'skipped', error = ${reason}
    where id in (select jsonb_array_elements_text(${JSON.stringify(itemIds)}::jsonb)::uuid) and status <> 'applied'`)
}
