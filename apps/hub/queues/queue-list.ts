// Jobs as operators see them: queues with their depths, what waits, and what failed for good.
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { RowRange } from '../platform/db/page-of-rows.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { type Asker, collectionReadBy } from '../platform/http/collection.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { isQueueName, type QueueName, queueNames } from '../platform/jobs/retries-and-concurrency.ts'
import { jobResponse } from './queue-response.ts'

const RETRIED_MAX = 10_000

type QueueRow = {
  readonly name: string
  readonly waiting: number
  readonly running: number
  readonly failed: number
  /** When the one that is due for longest became so; null when nothing is due. */
  readonly due_since: Date | null
  /** null: it is not paused. */
  readonly paused_until: Date | null
  readonly paused_by: { readonly id: string; readonly name: string } | null
}

type JobRow = {
  readonly id: string
  readonly queue: string
  readonly state: string
  readonly tries: number
  readonly payload: Readonly<Record<string, unknown>>
  readonly last_error: string | null
  readonly run_at: string
  readonly created_at: string
  readonly finished_at: string | null
}

/**
 * The company whose work a job is, by what it was written with; null for work that is nobody's alone: reloads and what
 * the hub does by the clock. A failure carries what the job carried that failed.
 */
const COMPANY = sql`case
  when j.name in ('collector.purge', 'notifications.dispatch', 'jobs.failed') and jsonb_exists(j.data, 'company_id') then j.data->>'company_id'
  when j.name in ('notifications.webhook', 'notifications.email', 'jobs.failed') and jsonb_exists(j.data, 'delivery_id') then
    (select d.company_id::text from notification_deliveries d where d.id = (j.data->>'delivery_id')::uuid)
  when j.name = 'collector.agent' then
    (select a.company_id::text from monitoring_agents a where a.id = (j.data->>'agent_id')::uuid)
  end`
/** The jobs that the caller may know of. */
const visibleTo = ({ caller, companyId }: Asker): SQL =>
  caller.actsAsSuperAdmin ? sql`true` : sql`${COMPANY} = ${companyId}`

type CountedQueue = Omit<QueueRow, 'due_since' | 'paused_until'> & {
  readonly due_since: string | null
  readonly paused_until: string | null
}
const timeOf = (text: string | null): Date | null => (text === null ? null : new Date(text))

/** Every queue, also those without a job; only jobs that the caller may know of are counted. */
export async function listQueues(asker: Asker): Promise<QueueRow[]> {
  const rows = await asker.hub.database.db.execute<CountedQueue>(sql`
    select q.name, count(*) filter (where j.state < 'active')::int as waiting,
      count(*) filter (where j.state = 'active')::int as running,
      count(*) filter (where j.state = 'failed')::int as failed,
      min(j.start_after) filter (where j.state < 'active' and j.start_after <= now()) as due_since,
      p.paused_until, case when u.id is not null then jsonb_build_object('id', u.id, 'name', u.name) end as paused_by
    from pgboss.queue q left join pgboss.job j on j.name = q.name and j.state <> 'completed' and (${visibleTo(asker)})
      left join queue_pauses p on p.queue = q.name and p.paused_until > now() left join users u on u.id = p.paused_by
    group by q.name, p.queue, u.id order by q.name`)
  return rows
    .filter(row => isQueueName(row.name))
    .map(row => ({ ...row, due_since: timeOf(row.due_since), paused_until: timeOf(row.paused_until) }))
}

const SHOWN = sql`
  id, name as queue, data as payload, start_after as run_at, created_on as created_at, completed_on as finished_at,
  case when state < 'active' then 'waiting' when state = 'active' then 'running' when state = 'completed' then 'done'
    else 'failed' end as state,
  case when state in ('created', 'retry') and started_on is null then 0 else retry_count + 1 end as tries,
  output->>'message' as last_error`

/** What waits in a queue. */
const waitingIn = (queue: string): SQL => sql`name = ${queue} and state < 'active'`
/** What failed for good, in any queue. */
const FAILED = sql`state = 'failed' and name in (select jsonb_array_elements_text(${JSON.stringify(queueNames)}::jsonb))`

async function pageOfJobs(asker: Asker, which: SQL, order: SQL, { limit, offset }: RowRange) {
  const { db } = asker.hub.database
  const where = sql`${which} and (${visibleTo(asker)})`
  const [rows, totals] = await Promise.all([
    db.execute<JobRow>(
      sql`select ${SHOWN} from pgboss.job j where ${where} order by ${order} limit ${limit} offset ${offset}`,
    ),
    db.execute<{ total: number }>(sql`select count(*)::int as total from pgboss.job j where ${where}`),
  ])
  return { rows, total: totals[0]?.total ?? 0 }
}

export const presentJob = (row: JobRow) => ({
  ...row,
  run_at: new Date(row.run_at),
  created_at: new Date(row.created_at),
  finished_at: timeOf(row.finished_at),
})

/** Jobs that failed for good, newest first. */
export const failedJobs = collectionReadBy({
  filters: {},
  within: {},
  read: (asker, _given, range) => pageOfJobs(asker, FAILED, sql`completed_on desc, id`, range),
  response: jobResponse,
  present: presentJob,
})

/** Jobs of a queue that wait, the next first. */
export const waitingJobs = collectionReadBy({
  filters: {},
  within: { queue: Type.String() },
  read: (asker, { queue = '' }, range) => pageOfJobs(asker, waitingIn(queue), sql`start_after, id`, range),
  response: jobResponse,
  present: presentJob,
})

async function findJob(context: RouteContext, which: SQL): Promise<JobRow> {
  const { job: id = '' } = context.params
  if (!isUuid(id)) throw notFound()
  const [row] = await context.hub.database.db.execute<JobRow>(sql`
    select ${SHOWN} from pgboss.job j where ${which} and (${visibleTo(context)}) and id = ${id}`)
  if (!row) throw notFound()
  return row
}

/** A queue with its counts. */
export async function showQueue(asker: Asker, name: QueueName): Promise<QueueRow> {
  const row = (await listQueues(asker)).find(queue => queue.name === name)
  if (!row) throw notFound()
  return row
}

/** The queue of the path. Throws 404. */
export async function queueOfPath({ params }: RouteContext): Promise<QueueName> {
  const name = params.queue ?? ''
  if (!isQueueName(name)) throw notFound()
  return name
}

/** The job of the path, among those that failed or that wait in the queue of the path. Throws 404. */
export const failedJob = (context: RouteContext): Promise<JobRow> => findJob(context, FAILED)
export const waitingJob = async (context: RouteContext): Promise<JobRow> =>
  findJob(context, waitingIn(await queueOfPath(context)))

const subjectOf = (job: JobRow) => ({ type: 'job', id: job.id, name: job.queue })

/** Until the commit the job neither starts nor is taken for what another transaction asks for. */
async function lockJob(tx: Tx, { queue, id }: JobRow): Promise<void> {
  await tx.db.execute(sql`select id from pgboss.job where name = ${queue} and id = ${id} for update`)
}

/** Whether a job deletes data at the collectors, or takes an agent's access: something that was promised. */
async function isOwed(db: Executor, { queue, payload }: JobRow): Promise<boolean> {
  if (queue === 'collector.purge') return true
  if (queue !== 'collector.agent') return false
  const active = await db.execute(sql`
    select 1 from monitoring_agents where id = ${String(payload.agent_id)} and state <> 'revoked'`)
  return active.length === 0
}

/**
 * Removes a job. Of those by which data are deleted and agents lose their access a company removes none, not even its
 * own: only super administrators do. The job is locked first, so that what it is to do is what it does from here on.
 */
export async function forgetJob(context: RouteContext, job: JobRow): Promise<void> {
  const { hub, caller } = context
  await inTransaction(hub.database.db, async tx => {
    await lockJob(tx, job)
    if (!caller.actsAsSuperAdmin && (await isOwed(tx.db, job))) throw invalidField('job', 'job_owed')
    await hub.jobs.forget(tx, job.queue, job.id)
    await auditRequest(tx, context, 'job.delete', subjectOf(job))
  })
}

export async function retryJob(context: RouteContext, job: JobRow): Promise<void> {
  await context.hub.jobs.retry(job.queue, [job.id])
  await inTransaction(context.hub.database.db, tx => auditRequest(tx, context, 'job.retry', subjectOf(job)))
}

/** Tries everything that failed once more. Returns how many. */
export async function retryAllJobs(context: RouteContext): Promise<number> {
  const { hub } = context
  const { rows } = await pageOfJobs(context, FAILED, sql`completed_on`, { limit: RETRIED_MAX, offset: 0 })
  for (const [queue, jobs] of Map.groupBy(rows, row => row.queue))
    await hub.jobs.retry(
      queue,
      jobs.map(job => job.id),
    )
  await inTransaction(hub.database.db, tx =>
    auditRequest(tx, context, 'job.retry_all', { type: 'job', id: null, name: null }),
  )
  return rows.length
}
