// Which jobs people may remove or try again, and which nobody but a super administrator removes.
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { FAILED, type JobRow, pageOfJobs } from './queue-list.ts'

const RETRIED_MAX = 10_000

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
