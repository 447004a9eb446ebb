// REST: /queues, the hub's own work: a company sees the jobs that are its own, super administrators see all.
import { notFound } from '../platform/http/api-error.ts'
import { list } from '../platform/http/list.ts'
import { amount, answer, answerList, id, named } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import {
  failedJob,
  failedJobs,
  forgetJob,
  listQueues,
  presentJob,
  queueOfPath,
  retryAllJobs,
  retryJob,
  waitingJob,
  waitingJobs,
} from './queue-list.ts'
import { jobResponse, queueResponse } from './queue-response.ts'

const TAG = 'Queues'
const VIEW = ['queues.view']
const MANAGE = ['queues.manage']

export const queueRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/queues',
    tag: TAG,
    summary: 'Queues with their depths',
    permissions: VIEW,
    answer: answerList(queueResponse),
    handle: async context => ({ data: await listQueues(context) }),
  }),
  list({
    path: '/queues/failed',
    tag: TAG,
    summary: 'Jobs that failed for good, newest first',
    permissions: VIEW,
    of: failedJobs,
  }),
  route({
    method: 'POST',
    path: '/queues/failed/retry-all',
    tag: TAG,
    summary: 'Try everything that failed once more',
    permissions: MANAGE,
    status: 202,
    answer: answer(named('RetriedJobs', { retried: amount() })),
    handle: async context => ({ data: { retried: await retryAllJobs(context) } }),
  }),
  route({
    method: 'GET',
    path: '/queues/failed/:job',
    tag: TAG,
    summary: 'Show a job that failed',
    permissions: VIEW,
    resource: failedJob,
    answer: answer(jobResponse),
    handle: async ({ resource }) => ({ data: presentJob(resource) }),
  }),
  route({
    method: 'POST',
    path: '/queues/failed/:job/retry',
    tag: TAG,
    summary: 'Try a job that failed once more',
    permissions: MANAGE,
    resource: failedJob,
    status: 202,
    answer: answer(named('RetriedJob', { job_id: id() })),
    async handle(context) {
      await retryJob(context, context.resource)
      return { data: { job_id: context.resource.id } }
    },
  }),
  route({
    method: 'DELETE',
    path: '/queues/failed/:job',
    tag: TAG,
    summary: 'Forget a job that failed',
    permissions: MANAGE,
    resource: failedJob,
    async handle(context) {
      await forgetJob(context, context.resource)
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/queues/:queue',
    tag: TAG,
    summary: 'Show a queue',
    permissions: VIEW,
    resource: queueOfPath,
    answer: answer(queueResponse),
    async handle(context) {
      const row = (await listQueues(context)).find(queue => queue.name === context.resource)
      if (!row) throw notFound()
      return { data: row }
    },
  }),
  list({
    path: '/queues/:queue/jobs',
    tag: TAG,
    summary: 'Jobs that wait, the next first',
    permissions: VIEW,
    resource: queueOfPath,
    of: waitingJobs,
    within: ({ resource }) => ({ queue: resource }),
  }),
  route({
    method: 'DELETE',
    path: '/queues/:queue/jobs/:job',
    tag: TAG,
    summary: 'Remove a job that waits',
    permissions: MANAGE,
    resource: waitingJob,
    async handle(context) {
      await forgetJob(context, context.resource)
      return undefined
    },
  }),
]
