// REST: /queues, the hub's own work: a company sees the jobs that are its own, super administrators see all.
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { boolean, integer, oneOf } from '../platform/http/request-schema.ts'
import { amount, answer, answerList, id, named } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { queueNames } from '../platform/jobs/retries-and-concurrency.ts'
import { forgetJob, retryAllJobs, retryJob } from './forget-and-retry-jobs.ts'
import { listWorkers, processResponse } from './living-processes.ts'
import { pauseQueue, resumeQueue } from './pauses.ts'
import {
  failedJob,
  failedJobs,
  listQueues,
  presentJob,
  queueOfPath,
  showQueue,
  waitingJob,
  waitingJobs,
} from './queue-list.ts'
import { jobResponse, queueResponse } from './queue-response.ts'

const TAG = 'Queues'
const VIEW = ['queues.view']
const MANAGE = ['queues.manage']
const QUEUE = { queue: oneOf(queueNames) }

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
  route({
    method: 'GET',
    path: '/queues/workers',
    tag: TAG,
    summary: 'The hubs that run the jobs, and what they run',
    permissions: VIEW,
    answer: answerList(processResponse),
    handle: async context => ({ data: await listWorkers(context) }),
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
    pathParameters: QUEUE,
    answer: answer(queueResponse),
    handle: async context => ({ data: await showQueue(context, context.resource) }),
  }),
  route({
    method: 'POST',
    path: '/queues/:queue/pause',
    tag: TAG,
    summary: 'Pause a queue: its jobs are accepted, and wait',
    permissions: MANAGE,
    superAdmin: true,
    resource: queueOfPath,
    pathParameters: QUEUE,
    body: Type.Object({ minutes: Type.Optional(integer(1, 1440)), confirm: Type.Optional(boolean()) }),
    answer: answer(queueResponse),
    async handle(context) {
      await pauseQueue(context, context.resource, context.body)
      return { data: await showQueue(context, context.resource) }
    },
  }),
  route({
    method: 'POST',
    path: '/queues/:queue/resume',
    tag: TAG,
    summary: 'Resume a queue',
    permissions: MANAGE,
    superAdmin: true,
    resource: queueOfPath,
    pathParameters: QUEUE,
    answer: answer(queueResponse),
    async handle(context) {
      await resumeQueue(context, context.resource)
      return { data: await showQueue(context, context.resource) }
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
