// Runs of manifests (document 1 "IaC requests"; decisions G-125 to G-130, G-183): submitted, planned again, applied,
// cancelled.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { ticketHours } from '../approvals/ticket-hours.ts'
import { cancelTickets, openTickets } from '../approvals/tickets-of-plan.ts'
import { auditRequest } from '../audit/audit.ts'
import type { RunRow } from '../manifest-runs/run-list.ts'
import { iacItems, iacRuns } from '../platform/db/schema-iac.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound, permissionDenied } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { applyRun, enqueueApply } from './apply.ts'
import { keptDescription } from './description-html.ts'
import type { SentFile } from './manifest.ts'
import { type Plan, type PlannedItem, planFiles } from './plan.ts'
import { plannersOf } from './planners-of-run.ts'
import { addRunEvent } from './run-events.ts'
import { PARTS_MAX } from './try-items.ts'

type Submission = {
  readonly manifests: readonly SentFile[]
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  readonly apply?: boolean | null | undefined
}

const actorOf = ({ caller }: RouteContext) => ({ id: caller.user.id, name: caller.user.name })
const subjectOf = (run: Pick<RunRow, 'id' | 'title'>) => ({ type: 'iac_run', id: run.id, name: run.title })

/** The run of a path: of the request's company, or the caller's own. Throws 404. */
async function rowOf({ hub, companyId, caller }: RouteContext, id: string): Promise<RunRow> {
  const [row] = isUuid(id)
    ? await hub.database.db
        .select()
        .from(iacRuns)
        .where(
          and(
            eq(iacRuns.id, id),
            sql`(${iacRuns.companyId} = ${companyId} or ${iacRuns.submitterId} = ${caller.user.id})`,
          ),
        )
    : []
  if (!row) throw notFound()
  return row
}

export const findRun = (context: RouteContext): Promise<RunRow> => rowOf(context, context.params.run ?? '')

/** A run for those who may view runs, and for its submitter. Throws 403 for others, 404 for an unknown one. */
export async function viewRun(context: RouteContext): Promise<RunRow> {
  const { caller } = context
  const mayView = caller.permissions.has('iac.view')
  const row = await findRun(context).catch(error => {
    throw mayView ? error : permissionDenied('iac.view')
  })
  // A token for other things does not show what its person submitted.
  const isOwn = row.submitterId === caller.user.id && caller.accountPermissions?.has('iac.submit') !== false
  if (!mayView && !isOwn) throw permissionDenied('iac.view')
  return row
}

/** A run for its submitter and for those who may apply. Throws 404, and 403 for others. */
export async function ownRun(context: RouteContext): Promise<RunRow> {
  const { caller } = context
  const row = await findRun(context)
  if (row.submitterId !== caller.user.id && !caller.permissions.has('iac.apply')) throw permissionDenied('iac.apply')
  return row
}

const itemRow = (runId: string, item: PlannedItem, position: number) => {
  const { environments: _environments, tags: _tags, ...columns } = item
  return { ...columns, id: randomUUID(), runId, position }
}

/** Writes the items of a plan and opens their tickets. */
async function storePlan(
  tx: Tx,
  context: RouteContext,
  run: Pick<RunRow, 'id' | 'companyId' | 'submitterId' | 'submitterName'>,
  plan: Plan,
  requesterIds: readonly string[],
): Promise<void> {
  const { hub } = context
  const rows = plan.items.map((item, position) => itemRow(run.id, item, position))
  if (rows.length > 0) await tx.db.insert(iacItems).values(rows)
  const asking = rows.map((row, index) => ({
    ...row,
    environments: plan.items[index]?.environments ?? [],
    tags: plan.items[index]?.tags ?? [],
    company: [row.companyId, row.company],
  }))
  await openTickets(hub, tx, { ...run, requesterIds }, asking, await ticketHours(hub, tx.db, run.companyId))
  const outcome = plan.errors.length > 0 ? `${plan.errors.length} errors` : plan.title
  const text =
    plan.untried.length === 0
      ? outcome
      : `${outcome}; not tried beforehand, beyond ${PARTS_MAX} parts: ${plan.untried.join(', ')}`
  await addRunEvent(tx, run.id, 'planned', actorOf(context), text)
}

const queuedBy = ({ hub, caller, language }: RouteContext) => ({
  queuedAt: new Date(hub.now()),
  workedAt: null,
  applyError: null,
  appliedBy: caller.user.id,
  applierHolds: [...caller.permissions],
  applyLanguage: language,
})

/** Plans what was sent and stores it as a run; with `apply` and iac.apply it is applied before this returns. */
export async function submitRun(context: RouteContext, given: Submission): Promise<RunRow> {
  const { hub, caller } = context
  const plan = await planFiles(context, given.manifests)
  const isValid = plan.errors.length === 0
  const isApplied = isValid && given.apply === true && caller.permissions.has('iac.apply')
  const title = given.title?.trim()
  const run = {
    id: randomUUID(),
    companyId: caller.user.companyId ?? context.companyId,
    submitterId: caller.user.id,
    submitterName: caller.user.name,
    title: title ? title : plan.title,
    description: keptDescription(given.description),
    status: isValid ? ('planned' as const) : ('invalid' as const),
    files: plan.files,
    filesCount: plan.files.length,
    kinds: plan.kinds,
    errors: plan.errors,
    untried: plan.untried,
    createdAt: new Date(hub.now()),
    ...(isApplied ? queuedBy(context) : {}),
  }
  await inTransaction(hub.database.db, async tx => {
    await tx.db.insert(iacRuns).values(run)
    await addRunEvent(tx, run.id, 'submitted', actorOf(context), run.title)
    await storePlan(tx, context, run, plan, [caller.user.id])
    if (isApplied) await addRunEvent(tx, run.id, 'queued', actorOf(context), '')
    await auditRequest(tx, context, 'iac.submit', subjectOf(run), {}, run.companyId)
    if (isApplied) await auditRequest(tx, context, 'iac.apply', subjectOf(run), {}, run.companyId)
  })
  // A hub that dies here leaves a run that is queued, which the clock takes up.
  if (isApplied) await applyRun(hub, run.id)
  return rowOf(context, run.id)
}

function refuseEnded(run: RunRow): void {
  const state = run.cancelledAt !== null ? 'cancelled' : run.status
  if (state === 'applied' || state === 'invalid' || state === 'cancelled')
    throw invalidField('status', 'state_refused', { state })
}

async function lockRun(tx: Tx, id: string): Promise<RunRow> {
  const [row] = await tx.db.select().from(iacRuns).where(eq(iacRuns.id, id)).for('update')
  if (!row) throw notFound()
  return row
}

/** Queues a run; one that is queued already stays as it is. Throws 422 for one that cannot be applied. */
export async function queueRun(context: RouteContext, { id }: RunRow): Promise<RunRow> {
  const { hub } = context
  await inTransaction(hub.database.db, async tx => {
    const run = await lockRun(tx, id)
    refuseEnded(run)
    if (run.queuedAt !== null) return
    await tx.db.update(iacRuns).set(queuedBy(context)).where(eq(iacRuns.id, id))
    await addRunEvent(tx, id, 'queued', actorOf(context), '')
    enqueueApply(hub, tx, run)
    await auditRequest(tx, context, 'iac.apply', subjectOf(run), {}, run.companyId)
  })
  return rowOf(context, id)
}

/** Withdraws a run: it is not applied any more, and its open tickets close. Once more changes nothing. */
export async function cancelRun(context: RouteContext, { id }: RunRow): Promise<RunRow> {
  const { hub } = context
  await inTransaction(hub.database.db, async tx => {
    const run = await lockRun(tx, id)
    if (run.cancelledAt !== null) return
    if (run.status === 'applied' || run.queuedAt !== null)
      throw invalidField('status', 'state_refused', { state: run.queuedAt === null ? run.status : 'queued' })
    await tx.db
      .update(iacRuns)
      .set({ cancelledAt: new Date(hub.now()) })
      .where(eq(iacRuns.id, id))
    await cancelTickets(hub, tx, id, actorOf(context))
    await addRunEvent(tx, id, 'cancelled', actorOf(context), '')
    await auditRequest(tx, context, 'iac.cancel', subjectOf(run), {}, run.companyId)
  })
  return rowOf(context, id)
}

/** Plans the files of a run against today; approvals of items that stay what they were stay too. */
export async function replanRun(context: RouteContext, { id, files }: RunRow): Promise<RunRow> {
  const { hub, caller } = context
  const plan = await planFiles(context, files)
  await inTransaction(hub.database.db, async tx => {
    const run = await lockRun(tx, id)
    const state = run.cancelledAt !== null ? 'cancelled' : run.queuedAt !== null ? 'queued' : run.status
    if (state === 'applied' || state === 'cancelled' || state === 'queued')
      throw invalidField('status', 'state_refused', { state })
    await tx.db.delete(iacItems).where(eq(iacItems.runId, id))
    await tx.db
      .update(iacRuns)
      .set({
        status: plan.errors.length === 0 ? 'planned' : 'invalid',
        errors: plan.errors,
        untried: plan.untried,
        kinds: plan.kinds,
        replannedBy: caller.user.id,
        appliedAt: null,
        applyError: null,
      })
      .where(eq(iacRuns.id, id))
    await storePlan(tx, context, run, plan, [...(await plannersOf(tx, run, caller.user.id))])
    await auditRequest(tx, context, 'iac.replan', subjectOf(run), {}, run.companyId)
  })
  return rowOf(context, id)
}
