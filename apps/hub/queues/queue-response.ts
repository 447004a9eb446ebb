// Queues and their jobs as the API answers them.
import {
  amount,
  anyObject,
  id,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

const jobStates = ['waiting', 'running', 'done', 'failed'] as const

export const queueResponse = named('Queue', {
  name: string(),
  waiting: amount(),
  running: amount(),
  failed: amount(),
  due_since: nullable(time()),
  paused_until: nullable(time()),
  paused_by: nullable(reference),
})
export const jobResponse = named('Job', {
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
