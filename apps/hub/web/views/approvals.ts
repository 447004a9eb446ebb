// Tickets that wait for somebody's yes, the most urgent first, and those that are closed.

import { and, desc, eq, ne, sql } from 'drizzle-orm'
import { slaDueAtMs } from '../../../../core/lifecycle/approval-clock.ts'
import { deciders } from '../../../../core/lifecycle/may-decide-on-ticket.ts'
import { PeopleLookup } from '../../approvals/approvers.ts'
import { pendingTickets } from '../../approvals/ticket-list.ts'
import { type LoadedTicket, loadTickets, peopleOf, type TicketRow } from '../../approvals/ticket-store.ts'
import { approvalTickets } from '../../platform/db/schema-iac.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { sitePages } from '../address/site-map.ts'
import type { ApprovalRow, ApprovalsView } from './manifest-pages.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60

async function namesOf({ hub, companyId }: ViewContext, rows: readonly TicketRow[]) {
  const ids = new Set(rows.flatMap(({ requestedBy }) => requestedBy ?? []))
  const found = await hub.database.db.execute<{ id: string; name: string }>(sql`
    select id, name from users where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
  return new Map(found.map(({ id, name }) => [id, name]))
}

const toRow = (
  { row, ticket }: LoadedTicket,
  names: ReadonlyMap<string, string>,
  deciderIds: readonly string[],
): ApprovalRow => ({
  ...{ id: row.id, state: row.state, runId: row.runId, kind: row.kind, name: row.name, action: row.action },
  ...{ diff: row.diff, workflow: row.workflow.name, step: row.workflow.steps[row.step]?.name ?? '', deciderIds },
  given: ticket.decisions.filter(each => each.step === row.step && each.decision === 'approved').length,
  required: row.workflow.steps[row.step]?.required ?? 0,
  requester: row.requestedBy === null ? null : (names.get(row.requestedBy) ?? null),
  dueAtMs: slaDueAtMs(ticket),
  closedAtMs: row.closedAt?.getTime() ?? null,
})

/** A window of those that wait, or of those that are over. */
async function ticketsOf({ hub, companyId }: ViewContext, isPast: boolean, offset: number) {
  const { db } = hub.database
  if (!isPast) {
    const all = await pendingTickets(db, companyId)
    return { total: all.length, rows: all.slice(offset, offset + WINDOW) }
  }
  const where = and(eq(approvalTickets.companyId, companyId), ne(approvalTickets.state, 'pending'))
  const [rows, [counted]] = await Promise.all([
    db
      .select()
      .from(approvalTickets)
      .where(where)
      .orderBy(desc(approvalTickets.closedAt), desc(approvalTickets.id))
      .limit(WINDOW)
      .offset(offset),
    db.select({ total: sql<number>`count(*)::int` }).from(approvalTickets).where(where),
  ])
  return { total: counted?.total ?? 0, rows }
}

export const approvalsView: View<ApprovalsView> = {
  permissions: ['approvals.view'],
  params: sitePages.approvals.takes,
  async make(context) {
    const { hub, companyId, param } = context
    const { db } = hub.database
    const offset = askedOffset(param('offset'))
    const { total, rows } = await ticketsOf(context, param('past') !== '', offset)
    const [names, loaded] = await Promise.all([namesOf(context, rows), loadTickets(db, rows)])
    const lookup = new PeopleLookup(db, companyId)
    const shown: ApprovalRow[] = []
    for (const each of loaded) {
      const isOpen = each.ticket.state === 'pending'
      const allowed = isOpen ? deciders(each.ticket, await peopleOf(lookup, each.ticket)) : []
      const own = each.row.requesterIds
      shown.push(
        toRow(
          each,
          names,
          allowed.filter(id => !own.includes(id)),
        ),
      )
    }
    return { total, offset, rows: shown }
  },
}
