// Applying a run (resources.md R-037 to R-040): a background job, one transaction an item. Each item is compared once
// more under a lock, so that a change which somebody made since the plan is never overwritten, and its state is written
// together with what it does: a hub that dies in between leaves it undone or done, and whoever goes on sees which.
import { and, asc, eq, sql } from 'drizzle-orm'
import { approvalOf, decideItem } from '../../../core/iac/items-to-apply.ts'
import { type ItemStatus, statusAfterApply } from '../../../core/iac/run-status.ts'
import type { TicketState } from '../../../core/lifecycle/approval-ticket.ts'
import type { Hub } from '../hub-context.ts'
import { iacItems, iacRuns } from '../platform/db/schema-iac.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type Language, render } from '../platform/http/api-texts.ts'
import { toApiError } from '../platform/http/unexpected-error.ts'
import { type Applier, actingContext, hubWithin, loadApplier } from './act-as-applier.ts'
import { isKindPermissionNeeded } from './kind-permission-needed.ts'
import { manifestKind } from './kinds/all-manifest-kinds.ts'
import { addRunEvent } from './run-events.ts'
import { usableCompaniesBySlug } from './usable-companies.ts'
import { ItemFailure, writeItem } from './write-item.ts'

const QUEUE = 'iac.apply'
/** A run that nobody has worked on for so long is taken up again. */
const LOST_SECONDS = 20
const ERROR_MAX = 2000

type Run = typeof iacRuns.$inferSelect
type Item = typeof iacItems.$inferSelect

/** Asks for a run to be applied, in the transaction that marks it as queued. */
export const enqueueApply = (hub: Hub, tx: Tx, run: Pick<Run, 'id' | 'companyId'>): void =>
  hub.jobs.enqueue(tx, [{ queue: QUEUE, payload: { run_id: run.id }, key: run.id, group: run.companyId }])

function failureText(error: unknown, language: Language): string | null {
  if (error instanceof ItemFailure) return error.message
  if (!(error instanceof ApiError)) return null
  const { errors, members } = error.more
  const fields = Object.entries(errors ?? {}).map(
    ([field, texts]) => `${field}: ${texts.map(text => render(text, language)).join(', ')}`,
  )
  const referrers: unknown = members?.referrers
  const named = Array.isArray(referrers)
    ? referrers.map((each: { kind?: unknown; name?: unknown }) => `${each.kind} ${each.name}`)
    : []
  const text = fields.length > 0 ? fields.join('; ') : render(error.text, language)
  return `${text}${named.length > 0 ? ` (${named.join(', ')})` : ''}`.slice(0, ERROR_MAX)
}

/** Another job has ended what this one works on: two of a run may go on beside each other. */
class ApplyEnded extends Error {}

/** Notes that the run is worked on; throws, so that nothing is kept, when the apply that this job began has ended. */
async function keepApply(hub: Hub, tx: Tx, run: Run): Promise<void> {
  const kept = await tx.db
    .update(iacRuns)
    .set({ workedAt: new Date(hub.now()) })
    .where(
      and(
        eq(iacRuns.id, run.id),
        // As precise as the time that was read.
        sql`date_trunc('milliseconds', ${iacRuns.queuedAt}) = ${run.queuedAt?.toISOString() ?? null}::timestamptz`,
      ),
    )
    .returning({ id: iacRuns.id })
  if (kept.length === 0) throw new ApplyEnded()
}

async function applyItem(hub: Hub, run: Run, item: Item, applier: Applier): Promise<void> {
  const kind = manifestKind(item.kind)
  if (kind === null) throw new ItemFailure(`there is no kind ${item.kind} any more`)
  await inTransaction(hub.database.db, async tx => {
    const within = hubWithin(hub, tx)
    await lockCompany(tx, item.companyId)
    // Applies of several runs go one after the other over a resource, whatever it locks itself.
    await tx.db.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`iac ${item.companyId} ${item.kind} ${item.name}`}, 0))`,
    )
    const [locked] = await tx.db
      .select({ status: iacItems.status })
      .from(iacItems)
      .where(eq(iacItems.id, item.id))
      .for('update')
    if (!locked || locked.status === 'applied') return
    const note = { iac_run: { old: null, new: run.id } }
    const context = actingContext(within, applier, item.companyId, run.applierHolds, run.applyLanguage, note)
    const writing = { hub: within, db: tx.db, companyId: item.companyId, context, tx, trial: null }
    const resourceId = await writeItem(writing, kind, item)
    await tx.db
      .update(iacItems)
      .set({ status: 'applied', error: null, resourceId, appliedAt: new Date(hub.now()) })
      .where(eq(iacItems.id, item.id))
    await keepApply(hub, tx, run)
    if (item.action !== 'none')
      await addRunEvent(tx, run.id, 'item_applied', applier, `${item.action} ${item.kind} ${item.name}`, item.id)
  })
}

async function setAside(hub: Hub, run: Run, item: Item, status: 'failed' | 'skipped', error: string): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    await keepApply(hub, tx, run)
    const rows = await tx.db
      .update(iacItems)
      .set({ status, error })
      .where(and(eq(iacItems.id, item.id), sql`${iacItems.status} <> 'applied'`))
      .returning({ id: iacItems.id })
    if (rows.length > 0 && status === 'failed')
      await addRunEvent(tx, run.id, 'item_failed', null, `${item.action} ${item.kind} ${item.name}: ${error}`, item.id)
  })
}

async function ticketStates(hub: Hub, runId: string): Promise<Map<string, TicketState[]>> {
  const rows = await hub.database.db.execute<{ item_id: string; state: TicketState }>(
    sql`select item_id, state from approval_tickets where run_id = ${runId}`,
  )
  return new Map([...Map.groupBy(rows, row => row.item_id)].map(([id, some]) => [id, some.map(row => row.state)]))
}

const itemsOf = (hub: Hub, runId: string): Promise<Item[]> =>
  hub.database.db.select().from(iacItems).where(eq(iacItems.runId, runId)).orderBy(asc(iacItems.position))

/**
 * The companies whose items whoever applies may write now: a plan outlives the grant of a child company, and colleagues
 * of its submitter may apply it who never had that grant.
 */
async function companiesOf(hub: Hub, run: Run, applier: Applier): Promise<(companyId: string) => boolean> {
  if (applier.superAdmin) return () => true
  const context = actingContext(hub, applier, run.companyId, run.applierHolds, run.applyLanguage, {})
  const usable = new Set((await usableCompaniesBySlug(context)).values())
  return companyId => usable.has(companyId)
}

/** Applies what can be applied. Returns the items as they are then. */
async function applyItems(hub: Hub, run: Run, applier: Applier): Promise<void> {
  const items = await itemsOf(hub, run.id)
  const approvals = await ticketStates(hub, run.id)
  const needsPermission = await isKindPermissionNeeded(hub, run.companyId)
  const isReached = await companiesOf(hub, run, applier)
  const statusOf = new Map<string, ItemStatus>(items.map(item => [item.path, item.status]))
  for (const item of items) {
    const decision = decideItem(item.status, item.action, approvalOf(approvals.get(item.id) ?? []))
    if (decision === 'leave' || decision === 'wait') continue
    const unmet = item.refersTo.find(path => statusOf.get(path) !== 'applied')
    const lacksPermission = needsPermission && item.action !== 'none' && !run.applierHolds.includes(item.requires)
    const forbidden = !isReached(item.companyId) ? `company ${item.company}` : lacksPermission ? item.requires : null
    try {
      if (decision === 'skip') continue
      if (unmet !== undefined) {
        await setAside(hub, run, item, 'skipped', `depends on ${unmet}`)
        statusOf.set(item.path, 'skipped')
      } else if (forbidden !== null) {
        await setAside(hub, run, item, 'skipped', `forbidden: ${forbidden}`)
        statusOf.set(item.path, 'skipped')
      } else {
        await applyItem(hub, run, item, applier)
        statusOf.set(item.path, 'applied')
      }
    } catch (error) {
      if (error instanceof ApplyEnded) throw error
      const text = failureText(error, run.applyLanguage) ?? failureText(transientOr(error, hub), run.applyLanguage)
      await setAside(hub, run, item, 'failed', text ?? '')
      statusOf.set(item.path, 'failed')
    }
  }
}

/** The error as people are told it. Throws it when another attempt may succeed: the run goes on later. */
function transientOr(error: unknown, hub: Hub): ApiError {
  const known = toApiError(error, hub.log)
  if (known.status === 503) throw error
  return known
}

/**
 * Why items are not applied; null where some are and the others only wait. It is kept until the next apply, and so is
 * true of this one, whatever is decided meanwhile.
 */
function errorOf(items: readonly Item[]): string | null {
  const failed = items.filter(item => item.status === 'failed' || item.status === 'skipped')
  if (failed.length > 0)
    return failed
      .map(item => `${item.path}: ${item.error}`)
      .join('\n')
      .slice(0, ERROR_MAX)
  if (items.some(item => item.status === 'applied')) return null
  const waiting = items.filter(item => item.status === 'planned').length
  if (waiting === 0) return null
  return `nothing was applied: ${waiting === 1 ? '1 item' : `${waiting} items`} waited for approval`
}

async function finish(hub: Hub, run: Run, applier: Applier | null, error: string | null): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const [locked] = await tx.db.select().from(iacRuns).where(eq(iacRuns.id, run.id)).for('update')
    if (!locked?.queuedAt) return
    const items = await tx.db.select().from(iacItems).where(eq(iacItems.runId, run.id)).orderBy(asc(iacItems.position))
    const status = statusAfterApply(items)
    const { queuedAt } = locked
    // An apply that had nothing left to do changes nothing (decision G-183).
    const isNew = items.some(({ appliedAt }) => appliedAt !== null && appliedAt >= queuedAt)
    const isApplied = status !== 'planned' && (isNew || locked.appliedAt === null)
    const applyError = error ?? errorOf(items)
    await tx.db
      .update(iacRuns)
      .set({
        status,
        queuedAt: null,
        applyError,
        ...(isApplied ? { appliedAt: new Date(hub.now()) } : {}),
      })
      .where(eq(iacRuns.id, run.id))
    await addRunEvent(tx, run.id, 'finished', applier, status)
  })
}

/** Applies a run that is queued; one that is not any more is left alone. */
export async function applyRun(hub: Hub, runId: string): Promise<void> {
  const { db } = hub.database
  const [run] = await db
    .update(iacRuns)
    .set({ workedAt: new Date(hub.now()) })
    .where(and(eq(iacRuns.id, runId), sql`${iacRuns.queuedAt} is not null`))
    .returning()
  if (!run) return
  const applier = await loadApplier(hub, run.appliedBy)
  if (applier === null) {
    await finish(hub, run, null, 'whoever applied it is gone; apply it again')
    return
  }
  try {
    await applyItems(hub, run, applier)
  } catch (error) {
    if (error instanceof ApplyEnded) return
    throw error
  }
  await finish(hub, run, applier, null)
}

export function registerApplyJobs(hub: Hub): void {
  hub.jobs.register(QUEUE, { handle: payload => applyRun(hub, String(payload.run_id)) })
}

/** Takes up runs whose hub is lost. */
export async function resumeRuns(hub: Hub): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const rows = await tx.db
      .select({ id: iacRuns.id, companyId: iacRuns.companyId })
      .from(iacRuns)
      .where(
        sql`${iacRuns.queuedAt} is not null
          and coalesce(${iacRuns.workedAt}, ${iacRuns.queuedAt}) < now() - make_interval(secs => ${LOST_SECONDS})`,
      )
    for (const row of rows) enqueueApply(hub, tx, row)
  })
}
