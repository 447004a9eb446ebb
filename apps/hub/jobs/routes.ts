// REST: /queues, the hub's own work, for super administrators only: jobs are of all companies.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { inTransaction } from '../db/transaction.ts'
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
} from '../http/answer.ts'
import { notFound } from '../http/api-error.ts'
import { paged, pageOf, pageQuery } from '../http/paging.ts'
import { type Route, type RouteContext, route } from '../http/route.ts'
import { isUuid } from '../http/schema.ts'
import {
  FAILED,
  findJob,
  type JobRow,
  jobStates,
  listQueues,
  pageOfJobs,
  type QueueRow,
  waitingIn,
} from './job-list.ts'
import { isQueueName, type QueueName } from './queues.ts'

const TAG = 'Queues'
const VIEW = { superAdmin: true, permissions: ['queues.view'] }
const MANAGE = { superAdmin: true, permissions: ['queues.manage'] }

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

async function failedJob({ hub, params }: RouteContext): Promise<JobRow> {
  const job = isUuid(params.job ?? '') ? await findJob(hub.database.db, FAILED, params.job ?? '') : null
  if (!job) throw notFound()
  return job
}

async function waitingJob(context: RouteContext): Promise<JobRow> {
  const where = waitingIn(await queueOfPath(context))
  const { hub, params } = context
  const job = isUuid(params.job ?? '') ? await findJob(hub.database.db, where, params.job ?? '') : null
  if (!job) throw notFound()
  return job
}

const auditJob = (context: RouteContext, action: string, job: JobRow): Promise<void> =>
  inTransaction(context.hub.database.db, tx =>
    auditRequest(tx, context, action, { type: 'job', id: job.id, name: job.queue }),
  )

async function forget(context: RouteContext & { readonly subject: JobRow }): Promise<undefined> {
  await context.hub.jobs.forget(context.subject.queue, context.subject.id)
  await auditJob(context, 'job.delete', context.subject)
  return undefined
}

export const queueRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/queues',
    tag: TAG,
    summary: 'Queues with their depths',
    ...VIEW,
    answer: answerList(queueAnswer),
    handle: async ({ hub }) => ({ data: (await listQueues(hub.database.db)).map(presentQueue) }),
  }),
  route({
    method: 'GET',
    path: '/queues/failed',
    tag: TAG,
    summary: 'Jobs that failed for good, newest first',
    ...VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(jobAnswer),
    async handle({ hub, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await pageOfJobs(hub.database.db, FAILED, sql`completed_on desc, id`, page)
      return paged(url, page, total, rows.map(presentJob))
    },
  }),
  route({
    method: 'POST',
    path: '/queues/failed/retry-all',
    tag: TAG,
    summary: 'Try everything that failed once more',
    ...MANAGE,
    status: 202,
    answer: answer(named('RetriedJobs', { retried: amount() })),
    async handle(context) {
      const { hub } = context
      const { rows } = await pageOfJobs(hub.database.db, FAILED, sql`completed_on`, { limit: 10_000, offset: 0 })
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
    ...VIEW,
    subject: failedJob,
    answer: answer(jobAnswer),
    handle: async ({ subject }) => ({ data: presentJob(subject) }),
  }),
  route({
    method: 'POST',
    path: '/queues/failed/:job/retry',
    tag: TAG,
    summary: 'Try a job that failed once more',
    ...MANAGE,
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
    ...MANAGE,
    subject: failedJob,
    handle: forget,
  }),
  route({
    method: 'GET',
    path: '/queues/:queue',
    tag: TAG,
    summary: 'Show a queue',
    ...VIEW,
    subject: queueOfPath,
    answer: answer(queueAnswer),
    async handle({ hub, subject }) {
      const row = (await listQueues(hub.database.db)).find(queue => queue.name === subject)
      if (!row) throw notFound()
      return { data: presentQueue(row) }
    },
  }),
  route({
    method: 'GET',
    path: '/queues/:queue/jobs',
    tag: TAG,
    summary: 'Jobs that wait, the next first',
    ...VIEW,
    subject: queueOfPath,
    query: Type.Object(pageQuery),
    answer: answerPage(jobAnswer),
    async handle({ hub, query, url, subject }) {
      const page = pageOf(query)
      const { rows, total } = await pageOfJobs(hub.database.db, waitingIn(subject), sql`start_after, id`, page)
      return paged(url, page, total, rows.map(presentJob))
    },
  }),
  route({
    method: 'DELETE',
    path: '/queues/:queue/jobs/:job',
    tag: TAG,
    summary: 'Remove a job that waits',
    ...MANAGE,
    subject: waitingJob,
    handle: forget,
  }),
]
