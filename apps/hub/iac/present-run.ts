// A run as people see it, with everything in it (decision G-125); their list: manifest-runs/run-list.ts.
import { and, asc, eq } from 'drizzle-orm'
import { slaDueAtMs, slaStateOf } from '../../../core/lifecycle/approval-clock.ts'
import { type LoadedTicket, loadTickets } from '../approvals/ticket-store.ts'
import type { Hub } from '../hub-context.ts'
import { presentShort, type RunRow } from '../manifest-runs/run-list.ts'
import { approvalTickets, iacAttachments, iacItems } from '../platform/db/schema-iac.ts'
import { isPlanStale } from './stale-item.ts'

type ItemRow = typeof iacItems.$inferSelect

/** One entry for each step of each ticket. */
function approvalTimeline(loaded: readonly LoadedTicket[], nowMs: number) {
  return loaded.flatMap(({ row, ticket, events }) =>
    row.workflow.steps.map((step, index) => {
      const decided = events.filter(event => event.type === 'decided' && event.step === index).at(-1)
      const isCurrent = index === row.step
      const closedMs = row.closedAt?.getTime() ?? nowMs
      return {
        flow: row.workflow.name,
        step: step.name,
        ticket: row.id,
        item_id: row.itemId,
        sla_due_at: isCurrent ? new Date(slaDueAtMs(ticket)) : null,
        sla_state: isCurrent ? slaStateOf(ticket, closedMs) : null,
        decision: decided?.decision ?? null,
        decided_by: decided?.userId ? { id: decided.userId, name: decided.userName ?? '' } : null,
        decided_at: decided?.at ?? null,
      }
    }),
  )
}

/** Over all steps of all tickets of an item: how many approvals it needs, and has. */
function approvalsOf(item: ItemRow, loaded: readonly LoadedTicket[]) {
  const own = loaded.filter(({ row }) => row.itemId === item.id && row.state !== 'cancelled')
  const required = own.flatMap(({ row }) => row.workflow.steps).reduce((sum, step) => sum + step.required, 0)
  const given = own.flatMap(({ ticket }) => ticket.decisions).filter(each => each.decision === 'approved').length
  return { required, given }
}

const presentItem = (item: ItemRow, loaded: readonly LoadedTicket[]) => ({
  id: item.id,
  path: item.path,
  kind: item.kind,
  company: item.company,
  name: item.name,
  action: item.action,
  adopts: item.adopts,
  diff: item.diff,
  approvals: approvalsOf(item, loaded),
  status: item.status,
  error: item.error,
  requires: item.requires,
  forbidden: item.forbidden,
  resource_id: item.resourceId,
  base_version: item.baseVersion,
})

/** A run with its files, items, approvals and attachments. */
export async function presentRun(hub: Hub, run: RunRow) {
  const { db } = hub.database
  const [items, tickets, attachments] = await Promise.all([
    db.select().from(iacItems).where(eq(iacItems.runId, run.id)).orderBy(asc(iacItems.position)),
    db
      .select()
      .from(approvalTickets)
      .where(and(eq(approvalTickets.runId, run.id), eq(approvalTickets.companyId, run.companyId)))
      .orderBy(asc(approvalTickets.createdAt), asc(approvalTickets.id)),
    db
      .select({
        id: iacAttachments.id,
        file_id: iacAttachments.fileId,
        name: iacAttachments.name,
        size: iacAttachments.size,
        sha256: iacAttachments.sha256,
      })
      .from(iacAttachments)
      .where(eq(iacAttachments.runId, run.id))
      .orderBy(asc(iacAttachments.createdAt), asc(iacAttachments.id)),
  ])
  const loaded = await loadTickets(db, tickets)
  const isOpen = run.status === 'planned' || run.status === 'partially-applied'
  return {
    ...presentShort(run),
    description: run.description,
    files: run.files,
    attachments,
    items: items.map(item => presentItem(item, loaded)),
    approval_timeline: approvalTimeline(loaded, hub.now()),
    errors: run.errors,
    untried: run.untried,
    plan_stale: isOpen && (await isPlanStale({ hub, db }, items)),
  }
}
