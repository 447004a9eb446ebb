// Everything that talks to the collector, one request at a time: each task has a due time, its own backoff, and the
// refusals that concern all of them (401, 403, 426) are obeyed here (document 3 "Errors").
import type { Logger } from 'pino'
import { type Action, type Call, isRefusal } from '../../../core/agent/response-action.ts'
import { retryWaitMs, UNAUTHORIZED_RETRY_MS } from '../../../core/agent/retry-wait.ts'
import { Alarm, type Clock } from '../clock.ts'
import type { StatusReport } from '../state/status.ts'
import type { Reply } from './collector-client.ts'

type TaskName = Exclude<Call, 'enroll'>

export type TaskResult = {
  readonly action: Action
  /** Null when the task found nothing to ask. */
  readonly reply: Reply | null
  /** When to run again, unless the action says otherwise; Infinity waits for `request`. */
  readonly nextInMs: number
}

type Task = { readonly run: () => Promise<TaskResult>; readonly firstInMs: number }

type TaskState = { readonly name: TaskName; readonly run: () => Promise<TaskResult>; dueAtMs: number; failures: number }

type UplinkParts = {
  readonly clock: Clock
  readonly log: Logger
  readonly status: StatusReport
  readonly random: () => number
  readonly onRevoked: () => void
}

export class Uplink {
  readonly #parts: UplinkParts
  readonly #alarm = new Alarm()
  readonly #tasks: TaskState[]
  #isStopping = false
  #isUnauthorized = false

  /** Tasks that are due at once run in the order given. */
  constructor(parts: UplinkParts, tasks: Readonly<Record<TaskName, Task>>) {
    this.#parts = parts
    const nowMs = parts.clock.elapsed()
    const names: readonly TaskName[] = ['config', 'metrics', 'inventory', 'renew', 'update']
    this.#tasks = names.map(name => ({
      name,
      run: tasks[name].run,
      dueAtMs: nowMs + tasks[name].firstInMs,
      failures: 0,
    }))
  }

  /**
   * Asks for a task to run at an instant of the monotonic clock, or earlier. One that is backing off keeps its time.
   */
  request(name: TaskName, atMs: number): void {
    const task = this.#task(name)
    if (task.failures > 0 || atMs >= task.dueAtMs) return
    task.dueAtMs = atMs
    this.#alarm.ring()
  }

  stop(): void {
    this.#isStopping = true
    this.#alarm.ring()
  }

  /** Runs until `stop`, or until the collector revokes this agent. */
  async run(): Promise<void> {
    const { clock } = this.#parts
    while (!this.#isStopping) {
      const task = this.#nextTask()
      const waitMs = task.dueAtMs - clock.elapsed()
      if (waitMs > 0) await this.#alarm.wait(clock, waitMs)
      else await this.#runTask(task)
    }
  }

  #task(name: TaskName): TaskState {
    return this.#tasks.find(task => task.name === name)!
  }

  /** Without authorization only /config is asked. */
  #nextTask(): TaskState {
    const candidates = this.#isUnauthorized ? [this.#task('config')] : this.#tasks
    return candidates.reduce((next, task) => (task.dueAtMs < next.dueAtMs ? task : next))
  }

  async #runTask(task: TaskState): Promise<void> {
    // A request that arrives while the task runs must not be lost: it lowers this due time again.
    task.dueAtMs = Number.POSITIVE_INFINITY
    const result = await task.run()
    if (this.#isStopping) return
    const requestedAtMs = task.dueAtMs
    const again = (inMs: number) => {
      task.dueAtMs = Math.min(requestedAtMs, this.#parts.clock.elapsed() + inMs)
    }
    switch (result.action) {
      case 'unauthorized':
        this.#becomeUnauthorized(task, result)
        return
      case 'revoked':
        this.#becomeRevoked(result)
        return
      case 'upgrade':
      case 'back_off':
        this.#backOff(task, result)
        return
      case 'hourly':
        task.dueAtMs = this.#parts.clock.elapsed() + result.nextInMs
        return
      default:
        task.failures = 0
        if (result.reply !== null) this.#answered(task, result.reply)
        again(result.nextInMs)
    }
  }

  #backOff(task: TaskState, { action, reply }: TaskResult): void {
    const { clock, log, status, random } = this.#parts
    task.failures++
    const retryAfterMs = reply?.kind === 'answer' ? reply.retryAfterMs : null
    const waitMs = this.#isUnauthorized ? UNAUTHORIZED_RETRY_MS : retryWaitMs(task.failures, random(), retryAfterMs)
    task.dueAtMs = clock.elapsed() + waitMs
    const message = reply?.message ?? ''
    const request_id = reply?.requestId
    log.warn({ task: task.name, message, failures: task.failures, wait_ms: waitMs, request_id }, 'request failed')
    if (action === 'upgrade') {
      status.warn('protocol', ['the collector no longer speaks the protocol of this agent: upgrade the agent'])
      status.update({ lastError: message }, 'upgrade_required')
    } else if (task.name === 'metrics') status.update({ lastError: message }, 'buffering')
  }

  #becomeUnauthorized(task: TaskState, { reply }: TaskResult): void {
    const { clock, log, status } = this.#parts
    const retryAtMs = clock.elapsed() + UNAUTHORIZED_RETRY_MS
    if (!this.#isUnauthorized)
      log.error(
        { task: task.name, request_id: reply?.requestId },
        'the collector does not know this token: sending stops',
      )
    this.#isUnauthorized = true
    task.dueAtMs = retryAtMs
    this.#task('config').dueAtMs = retryAtMs
    status.update({ lastError: reply?.message ?? null }, 'unauthorized')
  }

  #becomeRevoked({ reply }: TaskResult): void {
    const { log, status, onRevoked } = this.#parts
    log.error('the collector revoked this agent: it stops until it is enrolled again')
    status.update({ lastError: reply?.message ?? null }, 'revoked')
    this.#isStopping = true
    onRevoked()
  }

  /** The collector answered and nothing must be waited for: clears the state that said otherwise. */
  #answered(task: TaskState, reply: Reply): void {
    const { clock, status } = this.#parts
    if (this.#isUnauthorized) {
      this.#isUnauthorized = false
      for (const other of this.#tasks) {
        other.failures = 0
        other.dueAtMs = Math.min(other.dueAtMs, clock.elapsed())
      }
      status.update({ lastError: null }, 'starting')
    }
    if (task.name !== 'metrics') return
    status.warn('protocol', [])
    // A batch that was refused is given up: the host is online, and its operator must see that nothing of it arrives.
    status.update(
      isRefusal(reply) ? { lastError: reply.message } : { lastSuccessAtMs: clock.now(), lastError: null },
      'online',
    )
  }
}
