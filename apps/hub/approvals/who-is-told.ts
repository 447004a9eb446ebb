// What follows from a ticket that moved: who is told, and what becomes of its item (resources.md ).
import { sql } from 'drizzle-orm'
import { slaDueAtMs } from '../../../core/lifecycle/approval-clock.ts'
import type { Moved, TicketEffect } from '../../../core/lifecycle/approval-steps.ts'
import { deciders, isBlocked } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import type { Hub } from '../hub-context.ts'
import { type ApprovalMessage, tellApproval } from '../notifications/approval-messages.ts'
import { type ApprovalType, decisionWords } from '../notifications/approval-texts.ts'
import { recipientsOf } from '../notifications/recipients.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { PeopleLookup } from './approvers.ts'
import { addEvent, type LoadedTicket, peopleOf, saveTicket, skipItems, type TicketRow } from './ticket-store.ts'

/** One thing to tell of one ticket. */
type Notice = {
  readonly type: ApprovalType
  readonly row: TicketRow
  readonly userIds: readonly string[]
  readonly dueAtMs: number
}

/** Collects notices of a transaction, so that several tickets of a run are one message. */
export class Notices {
  private readonly list: Notice[] = []

  add(notice: Notice): void {
    if (notice.userIds.length > 0) this.list.push(notice)
  }

  async tell(hub: Hub, tx: Tx, by: { readonly name: string; readonly comment: string }): Promise<void> {
    const groups = Map.groupBy(this.list, ({ type, row }) => `${row.companyId} ${row.runId} ${type} ${row.state}`)
    for (const notices of groups.values()) {
      const [first] = notices
      if (!first) continue
      const [run] = await tx.db.execute<{ title: string; submitter_name: string }>(
        sql`select title, submitter_name from iac_runs where id = ${first.row.runId}`,
      )
      const decision = first.row.state === 'approved' ? 'approved' : 'rejected'
      const message: ApprovalMessage = {
        type: first.type,
        runId: first.row.runId,
        values: language => ({
          run: run?.title ?? '',
          requester: run?.submitter_name ?? '',
          decider: by.name,
          comment: by.comment,
          decision: decisionWords[decision][language],
          due_at: new Date(Math.min(...notices.map(notice => notice.dueAtMs))).toISOString(),
        }),
        tickets: notices.map(({ row, userIds }) => ({
          ticketId: row.id,
          label: `${row.kind} ${row.name}`,
          userIds,
        })),
      }
      await tellApproval(hub, tx, first.row.companyId, message)
    }
  }
}

const TYPES: Readonly<Partial<Record<TicketEffect, ApprovalType>>> = {
  step_began: 'approval.requested',
  escalated: 'approval.requested',
  approved: 'approval.decided',
  rejected: 'approval.decided',
  expired: 'approval.expired',
  due_soon: 'approval.due_soon',
  overdue: 'approval.overdue',
}

const REASONS: Readonly<Record<string, string>> = {
  rejected: 'rejected by an approver',
  expired: 'nobody approved it in time',
}

/** Stores a ticket that moved, and gathers who is to be told. */
export async function settle(
  hub: Hub,
  tx: Tx,
  before: LoadedTicket,
  { ticket, effects }: Moved,
  notices: Notices,
): Promise<void> {
  const people = await peopleOf(new PeopleLookup(tx.db, before.row.companyId), ticket)
  const blocked = isBlocked(ticket, people)
  if (ticket !== before.ticket || blocked !== before.row.blocked)
    await saveTicket(tx, before.row.id, ticket, blocked, hub.now())
  const row = { ...before.row, state: ticket.state }
  const dueAtMs = slaDueAtMs(ticket)
  const requesters = row.requestedBy === null ? [] : [row.requestedBy]
  for (const effect of effects) {
    const type = TYPES[effect]
    if (effect === 'escalated') await addEvent(tx, row.id, { type: 'escalated', step: ticket.step })
    if (effect === 'expired') await addEvent(tx, row.id, { type: 'expired', step: ticket.step })
    const isForRequester = type === 'approval.decided' || type === 'approval.expired'
    const waiting = effect === 'overdue' ? [...deciders(ticket, people), ...requesters] : deciders(ticket, people)
    // What is overdue was due before an escalation gave it a new clock.
    const dueOfEffectMs = effect === 'overdue' ? slaDueAtMs(before.ticket) : dueAtMs
    if (type) notices.add({ type, row, dueAtMs: dueOfEffectMs, userIds: isForRequester ? requesters : waiting })
  }
  if (blocked && !before.row.blocked) await tellManagers(tx, row, dueAtMs, notices)
  const reason = REASONS[ticket.state]
  if (reason !== undefined && before.row.state === 'pending') await skipItems(tx, [row.itemId], reason)
}

async function tellManagers(tx: Tx, row: TicketRow, dueAtMs: number, notices: Notices): Promise<void> {
  const managers = await recipientsOf(tx.db, row.companyId, 'approvals.manage')
  notices.add({ type: 'approval.blocked', row, dueAtMs, userIds: managers.map(person => person.id) })
}

/** What is told of a ticket that was just opened. */
export async function noteOpened(
  tx: Tx,
  opened: LoadedTicket,
  lookup: PeopleLookup,
  notices: Notices,
): Promise<boolean> {
  const people = await peopleOf(lookup, opened.ticket)
  const dueAtMs = slaDueAtMs(opened.ticket)
  notices.add({ type: 'approval.requested', row: opened.row, dueAtMs, userIds: deciders(opened.ticket, people) })
  const blocked = isBlocked(opened.ticket, people)
  if (blocked) await tellManagers(tx, opened.row, dueAtMs, notices)
  return blocked
}
