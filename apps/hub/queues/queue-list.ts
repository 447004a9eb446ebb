// Jobs as operators see them: queues with their depths, what waits, and what failed for good.
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import type { RowRange } from '../platform/db/page-of-rows.ts'
import { notFound } from '../platform/http/api-error.ts'
import { type Asker, collectionReadBy } from '../platform/http/collection.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { isQueueName, type QueueName, queueNames } from '../platform/jobs/retries-and-concurrency.ts'
import { visibleTo } from './company-of-job.ts'
import { jobResponse } from './queue-response.ts'

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

export type JobRow = {
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
export const FAILED = sql`state = 'failed' and name in (select jsonb_array_elements_text(${JSON.stringify(queueNames)}::jsonb))`

export async function pageOfJobs(asker: Asker, which: SQL, order: SQL, { limit, offset }: RowRange) {
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
