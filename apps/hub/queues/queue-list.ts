// Jobs as operators see them: queues with their depths, what waits, and what failed for good.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { isQueueName, type QueueName, queueNames } from '../platform/jobs/queues.ts'

export type QueueRow = {
  readonly name: string
  readonly waiting: number
  readonly running: number
  readonly failed: number
  /** When the one that is due for longest became so; null when nothing is due. */
  readonly due_since: string | null
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

export const jobStates = ['waiting', 'running', 'done', 'failed'] as const

/**
 * The company whose work a job is, by what it was written with; null for work that is nobody's alone: reloads and what the hub does by
 * the clock. A failure carries what the job carried that failed.
 */
const COMPANY = sql`case
  when j.name in ('collector.purge', 'notifications.dispatch', 'jobs.failed') and jsonb_exists(j.data, 'company_id') then j.data->>'company_id'
  when j.name in ('notifications.webhook', 'notifications.email', 'jobs.failed') and jsonb_exists(j.data, 'delivery_id') then
    (select d.company_id::text from notification_deliveries d where d.id = (j.data->>'delivery_id')::uuid)
  when j.name = 'collector.agent' then
    (select a.company_id::text from monitoring_agents a where a.id = (j.data->>'agent_id')::uuid)
  end`
export const ofCompany = (companyId: string): SQL => sql`${COMPANY} = ${companyId}`
export const OF_ALL = sql`true`

/** Every queue, also those without a job; only jobs `among` those that may be seen are counted. */
export async function listQueues(db: Executor, among: SQL): Promise<QueueRow[]> {
  const rows = await db.execute<QueueRow>(sql`
    select q.name, count(*) filter (where j.state < 'active')::int as waiting,
      count(*) filter (where j.state = 'active')::int as running,
      count(*) filter (where j.state = 'failed')::int as failed,
      min(j.start_after) filter (where j.state < 'active' and j.start_after <= now()) as due_since
    from pgboss.queue q left join pgboss.job j on j.name = q.name and j.state <> 'completed' and (${among})
    group by q.name order by q.name`)
  return [...rows].filter(row => isQueueName(row.name))
}

const SHOWN = sql`
  id, name as queue, data as payload, start_after as run_at, created_on as created_at, completed_on as finished_at,
  case when state < 'active' then 'waiting' when state = 'active' then 'running' when state = 'completed' then 'done'
    else 'failed' end as state,
  case when state in ('created', 'retry') and started_on is null then 0 else retry_count + 1 end as tries,
  output->>'message' as last_error`

/** What waits in a queue, the next first. */
export const waitingIn = (queue: QueueName): SQL => sql`name = ${queue} and state < 'active'`
/** What failed for good, in any queue. */
export const FAILED = sql`state = 'failed' and name in (select jsonb_array_elements_text(${JSON.stringify(queueNames)}::jsonb))`

export async function pageOfJobs(
  db: Executor,
  where: SQL,
  order: SQL,
  page: { limit: number; offset: number },
): Promise<{ rows: JobRow[]; total: number }> {
  const [rows, totals] = await Promise.all([
    db.execute<JobRow>(
      sql`select ${SHOWN} from pgboss.job j where ${where} order by ${order} limit ${page.limit} offset ${page.offset}`,
    ),
    db.execute<{ total: number }>(sql`select count(*)::int as total from pgboss.job j where ${where}`),
  ])
  return { rows: [...rows], total: totals[0]?.total ?? 0 }
}

/** One job among others; null when it is not there. */
export async function findJob(db: Executor, where: SQL, id: string): Promise<JobRow | null> {
  const rows = await db.execute<JobRow>(sql`select ${SHOWN} from pgboss.job j where ${where} and id = ${id}`)
  return rows[0] ?? null
}

/** Until the commit the job neither starts nor is taken for what another transaction asks for. */
export async function lockJob(tx: Tx, { queue, id }: JobRow): Promise<void> {
  await tx.db.execute(sql`select id from pgboss.job where name = ${queue} and id = ${id} for update`)
}

/** Whether a job deletes data at the collectors, or takes an agent's access: something that was promised. */
export async function isOwed(db: Executor, { queue, payload }: JobRow): Promise<boolean> {
  if (queue === 'collector.purge') return true
  if (queue !== 'collector.agent') return false
  const active = await db.execute(sql`
    select 1 from monitoring_agents where id = ${String(payload.agent_id)} and state <> 'revoked'`)
  return active.length === 0
}
