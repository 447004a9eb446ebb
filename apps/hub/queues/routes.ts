// REST: /queues, the hub's own work: a company sees the jobs that are its own, super administrators see all.
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import {
  amount,
  answer,
  answerList,
  answerPage,
  anyObject,
  id,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { isQueueName, type QueueName } from '../platform/jobs/queues.ts'
import {
  FAILED,
  findJob,
  isOwed,
  type JobRow,
  jobStates,
  listQueues,
  lockJob,
  OF_ALL,
  ofCompany,
  pageOfJobs,
  type QueueRow,
  waitingIn,
} from './queue-list.ts'

const TAG = 'Queues'
const VIEW = ['queues.view']
const MANAGE = ['queues.manage']

const queueAnswer = named('Queue', {
  name: string(),
  waiting: amount(),
  running: amount(),
  failed: amount(),
  due_since: nullable(time()),
})
const jobAnswer = named('Job', {
  id: id(),
  queue: string(),
  state: wordOf(jobStates),
  tries: amount(),
  payload: anyObject(),
  last_error: nullable(string()),
  run_at: time(),
  created_at: time(),
  finished_at: nullable(time()),
})

const instant = (text: string): Date => new Date(text)
const presentQueue = (row: QueueRow) => ({ ...row, due_since: row.due_since === null ? null : instant(row.due_since) })
const presentJob = (row: JobRow) => ({
  ...row,
  run_at: instant(row.run_at),
  created_at: instant(row.created_at),
  finished_at: row.finished_at === null ? null : instant(row.finished_at),
})

async function queueOfPath({ params }: RouteContext): Promise<QueueName> {
  const name = params.queue ?? ''
  if (!isQueueName(name)) throw notFound()
  return name
}

/** The jobs that the caller may know of. */
const visibleTo = ({ caller, companyId }: RouteContext): SQL => (caller.user.superAdmin ? OF_ALL : ofCompany(companyId))

async function jobOfPath(context: RouteContext, where: SQL): Promise<JobRow> {
  const id = context.params.job ?? ''
  const among = sql`${where} and (${visibleTo(context)})`
  const job = isUuid(id) ? await findJob(context.hub.database.db, among, id) : null
  if (!job) throw notFound()
  return job
}

const failedJob = (context: RouteContext): Promise<JobRow> => jobOfPath(context, FAILED)
const waitingJob = async (context: RouteContext): Promise<JobRow> =>
  jobOfPath(context, waitingIn(await queueOfPath(context)))

/** A page of the jobs that the caller may know of. */
const visibleJobs = (context: RouteContext, where: SQL, order: SQL, page: { limit: number; offset: number }) =>
  pageOfJobs(context.hub.database.db, sql`${where} and (${visibleTo(context)})`, order, page)

const visibleQueues = (context: RouteContext): Promise<QueueRow[]> =>
  listQueues(context.hub.database.db, visibleTo(context))

const auditJob = (context: RouteContext, action: string, job: JobRow): Promise<void> =>
  inTransaction(context.hub.database.db, tx =>
    auditRequest(tx, context, action, { type: 'job', id: job.id, name: job.queue }),
  )

/**
 * Removes a job. Of those by which data are deleted and agents lose their access a company removes none, not even its own: only super
 * administrators do. The job is locked first, so that what it is to do is what it does from here on.
 */
async function forget(context: RouteContext & { readonly subject: JobRow }): Promise<undefined> {
  const { hub, caller, subject: job } = context
  await inTransaction(hub.database.db, async tx => {
    await lockJob(tx, job)
    if (!caller.user.superAdmin && (await isOwed(tx.db, job))) throw invalidField('job', 'job_owed')
    await hub.jobs.forget(tx, job.queue, job.id)
    await auditRequest(tx, context, 'job.delete', { type: 'job', id: job.id, name: job.queue })
  })
  return undefined
}

export const queueRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/queues',
    tag: TAG,
    summary: 'Queues with their depths',
    permissions: VIEW,
    answer: answerList(queueAnswer),
    handle: async context => ({ data: (await visibleQueues(context)).map(presentQueue) }),
  }),
  route({
    method: 'GET',
    path: '/queues/failed',
    tag: TAG,
    summary: 'Jobs that failed for good, newest first',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(jobAnswer),
    async handle(context) {
      const { query, url } = context
      const page = pageOf(query)
      const { rows, total } = await visibleJobs(context, FAILED, sql`completed_on desc, id`, page)
      return paged(url, page, total, rows.map(presentJob))
    },
  }),
  route({
    method: 'POST',
    path: '/queues/failed/retry-all',
    tag: TAG,
    summary: 'Try everything that failed once more',
    permissions: MANAGE,
    status: 202,
    answer: answer(named('RetriedJobs', { retried: amount() })),
    async handle(context) {
      const { hub } = context
      const { rows } = await visibleJobs(context, FAILED, sql`completed_on`, { limit: 10_000, offset: 0 })
      for (const [queue, jobs] of Map.groupBy(rows, row => row.queue))
        await hub.jobs.retry(
          queue,
          jobs.map(job => job.id),
        )
      await inTransaction(hub.database.db, tx =>
        auditRequest(tx, context, 'job.retry_all', { type: 'job', id: null, name: null }),
      )
      return { data: { retried: rows.length } }
    },
  }),
  route({
    method: 'GET',
    path: '/queues/failed/:job',
    tag: TAG,
    summary: 'Show a job that failed',
    permissions: VIEW,
    subject: failedJob,
    answer: answer(jobAnswer),
    handle: async ({ subject }) => ({ data: presentJob(subject) }),
  }),
  route({
    method: 'POST',
    path: '/queues/failed/:job/retry',
    tag: TAG,
    summary: 'Try a job that failed once more',
    permissions: MANAGE,
    subject: failedJob,
    status: 202,
    answer: answer(named('RetriedJob', { job_id: id() })),
    async handle(context) {
      const { hub, subject } = context
      await hub.jobs.retry(subject.queue, [subject.id])
      await auditJob(context, 'job.retry', subject)
      return { data: { job_id: subject.id } }
    },
  }),
  route({
    method: 'DELETE',
    path: '/queues/failed/:job',
    tag: TAG,
    summary: 'Forget a job that failed',
    permissions: MANAGE,
    subject: failedJob,
    handle: forget,
  }),
  route({
    method: 'GET',
    path: '/queues/:queue',
    tag: TAG,
    summary: 'Show a queue',
    permissions: VIEW,
    subject: queueOfPath,
    answer: answer(queueAnswer),
    async handle(context) {
      const row = (await visibleQueues(context)).find(queue => queue.name === context.subject)
      if (!row) throw notFound()
      return { data: presentQueue(row) }
    },
  }),
  route({
    method: 'GET',
    path: '/queues/:queue/jobs',
    tag: TAG,
    summary: 'Jobs that wait, the next first',
    permissions: VIEW,
    subject: queueOfPath,
    query: Type.Object(pageQuery),
    answer: answerPage(jobAnswer),
    async handle(context) {
      const { query, url, subject } = context
      const page = pageOf(query)
      const { rows, total } = await visibleJobs(context, waitingIn(subject), sql`start_after, id`, page)
      return paged(url, page, total, rows.map(presentJob))
    },
  }),
  route({
    method: 'DELETE',
    path: '/queues/:queue/jobs/:job',
    tag: TAG,
    summary: 'Remove a job that waits',
    permissions: MANAGE,
    subject: waitingJob,
    handle: forget,
  }),
]
