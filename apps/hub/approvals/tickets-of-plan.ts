// The tickets of a run: opened when it is planned, one an item and matching workflow; carried over to the items of a
// new plan for which they still hold (approvals-that-hold.ts); cancelled with the run (resources.md R-038, RES-138,
// RES-145, RES-151, RES-152).
import { randomUUID } from 'node:crypto'
import { and, asc, eq } from 'drizzle-orm'
import type { FieldDiff } from '../../../core/iac/spec-diff.ts'
import { workflowsFor } from '../../../core/lifecycle/workflows-needed.ts'
import type { Hub } from '../hub-context.ts'
import { approvalSteps, approvalTickets, approvalWorkflows, type KeptWorkflow } from '../platform/db/schema-iac.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'
import { formerTickets, stillHolds } from './approvals-that-hold.ts'
import { PeopleLookup } from './approvers.ts'
import { addEvent, clockColumns, ticketOf } from './ticket-store.ts'
import { Notices, noteOpened } from './who-is-told.ts'

const HOUR_MS = 3_600_000

type AskingRun = {
  readonly id: string
  readonly companyId: string
  readonly submitterId: string | null
  readonly submitterName: string
  /** The submitter, and whoever planned it again. */
  readonly requesterIds: readonly string[]
}

type AskingItem = {
  readonly id: string
  readonly kind: string
  readonly name: string
  readonly action: string
  readonly diff: readonly FieldDiff[]
  readonly diffHash: string
  readonly environments: readonly string[]
  readonly tags: readonly string[]
  /** Id and slug of the company of its resource. */
  readonly company: readonly string[]
}

type Workflow = typeof approvalWorkflows.$inferSelect & { readonly kept: KeptWorkflow }

async function enabledWorkflows(tx: Tx, companyId: string): Promise<Workflow[]> {
  const rows = await tx.db
    .select()
    .from(approvalWorkflows)
    .where(and(eq(approvalWorkflows.companyId, companyId), eq(approvalWorkflows.enabled, true)))
  const steps = await tx.db
    .select()
    .from(approvalSteps)
    .where(
      isAnyOf(
        approvalSteps.workflowId,
        rows.map(row => row.id),
      ),
    )
    .orderBy(asc(approvalSteps.position))
  return rows.flatMap(row => {
    const own = steps.filter(step => step.workflowId === row.id)
    if (own.length === 0) return []
    const kept: KeptWorkflow = {
      name: row.name,
      version: row.version,
      allowSelf: row.allowSelf,
      distinctApprovers: row.distinctApprovers,
      steps: own.map(step => ({
        name: step.name,
        approvers: { role: step.roleId, team: step.teamId, users: step.userIds },
        required: step.required,
        slaHours: step.slaHours,
        onOverdue: step.onOverdue,
        escalateTo: step.escalateTo,
      })),
    }
    return [{ ...row, kept }]
  })
}

async function insertTicket(
  hub: Hub,
  tx: Tx,
  run: AskingRun,
  item: AskingItem,
  workflow: Workflow,
  expireHours: number,
): Promise<typeof approvalTickets.$inferSelect> {
  const now = new Date(hub.now())
  const base = {
    id: randomUUID(),
    companyId: run.companyId,
    workflowId: workflow.id,
    workflow: workflow.kept,
    runId: run.id,
    itemId: item.id,
    kind: item.kind,
    name: item.name,
    action: item.action,
    diff: item.diff,
    diffHash: item.diffHash,
    state: 'pending' as const,
    step: 0,
    stepStartedAt: now,
    slaDueAt: now,
    dueSoonAt: now,
    isEscalated: false,
    dueSoonTold: false,
    overdueTold: false,
    blocked: false,
    requestedBy: run.submitterId,
    requesterIds: [...run.requesterIds],
    expiresAt: new Date(hub.now() + (workflow.expireHours ?? expireHours) * HOUR_MS),
    createdAt: now,
    closedAt: null,
  }
  const row = { ...base, ...clockColumns(ticketOf(base, [])) }
  await tx.db.insert(approvalTickets).values(row)
  await addEvent(tx, row.id, { type: 'opened', step: 0, userId: run.submitterId, userName: run.submitterName })
  return row
}

/** Opens the tickets that the items of a plan need. */
export async function openTickets(
  hub: Hub,
  tx: Tx,
  run: AskingRun,
  items: readonly AskingItem[],
  expireHours: number,
): Promise<void> {
  const former = await formerTickets(tx, run.id)
  const workflows = await enabledWorkflows(tx, run.companyId)
  const lookup = new PeopleLookup(tx.db, run.companyId)
  const notices = new Notices()
  const kept = new Set<string>()
  for (const item of items) {
    const same = former.filter(ticket => stillHolds(ticket, item))
    for (const ticket of same) {
      kept.add(ticket.id)
      await tx.db
        .update(approvalTickets)
        .set({ itemId: item.id, requesterIds: [...run.requesterIds] })
        .where(eq(approvalTickets.id, ticket.id))
    }
    for (const workflow of workflowsFor(workflows, item)) {
      if (same.some(ticket => ticket.workflow_id === workflow.id)) continue
      const row = await insertTicket(hub, tx, run, item, workflow, expireHours)
      const opened = { row, events: [], ticket: ticketOf(row, []) }
      if (await noteOpened(tx, opened, lookup, notices))
        await tx.db.update(approvalTickets).set({ blocked: true }).where(eq(approvalTickets.id, row.id))
    }
  }
  await closeAsCancelled(
    hub,
    tx,
    former.filter(ticket => !kept.has(ticket.id) && ticket.state === 'pending').map(ticket => ticket.id),
    null,
  )
  await notices.tell(hub, tx, { name: run.submitterName, comment: '' })
}

type Person = { readonly id: string; readonly name: string }

async function closeAsCancelled(hub: Hub, tx: Tx, ids: readonly string[], by: Person | null): Promise<void> {
  const now = new Date(hub.now())
  const rows = await tx.db
    .update(approvalTickets)
    .set({ state: 'cancelled', blocked: false, closedAt: now })
    .where(and(isAnyOf(approvalTickets.id, ids), eq(approvalTickets.state, 'pending')))
    .returning({ id: approvalTickets.id, step: approvalTickets.step })
  for (const { id, step } of rows)
    await addEvent(tx, id, { type: 'cancelled', step, userId: by?.id ?? null, userName: by?.name ?? null })
}

/** Closes the open tickets of a run that is withdrawn. */
export async function cancelTickets(hub: Hub, tx: Tx, runId: string, by: Person): Promise<void> {
  const open = await tx.db
    .select({ id: approvalTickets.id })
    .from(approvalTickets)
    .where(and(eq(approvalTickets.runId, runId), eq(approvalTickets.state, 'pending')))
  await closeAsCancelled(
    hub,
    tx,
    open.map(row => row.id),
    by,
  )
}
