// Work that happens after a request, durable in Postgres: a job is written in the transaction that asks for it, starts
// right after the commit, is tried again with the waits of its queue, and is kept when it failed for good. Several hubs
// share the queues. Storage, leases and clean-up are pg-boss's; this file decides when to look and when to try again.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import pTimeout from 'p-timeout'
import type { JobInsert, JobWithMetadata, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import { errorInfo } from '../../../../core/error-info.ts'
import type { Database } from '../db/connect.ts'
import { fixedStatement } from '../db/fixed-statement.ts'
import type { Tx } from '../db/transaction.ts'
import type { HubMetrics } from '../telemetry.ts'
import { inJobTransaction, openJobStore, withinTransaction } from './job-store.ts'
import { BEAT_MS, isQueueName, type QueueName, queueNames, queueOf } from './retries-and-concurrency.ts'

export type JobPayload = Readonly<Record<string, unknown>>

/** A handler throws this when another attempt would fail the same way. */
export class PermanentJobFailure extends Error {}

type JobHandler = {
  readonly handle: (payload: JobPayload) => Promise<void>
  /** Runs once, after the last attempt or a permanent failure; for queues with `tellsFailure`. */
  readonly onFailed?: (payload: JobPayload) => Promise<void>
}

type NewJob = {
  readonly queue: QueueName
  readonly payload: JobPayload
  /** For keyed queues. */
  readonly key?: string
  /** Groups the jobs of one receiver. */
  readonly group?: string
}

type Job = JobWithMetadata<JobPayload>
type Running = { readonly id: string; readonly sinceMs: number }

const STOP_WAIT_MS = 5_000
const INSERT_ROUNDS_MAX = 3
const MESSAGE_MAX = 500
/**
 * Timers of the runtime can fire slightly early; a job that is due a moment later would then wait for the next poll.
 */
const DUE_MARGIN_MS = 10
/** Looks that are not urgent wait so long, so that one serves for several. */
const LOOK_TOGETHER_MS = 25

const LOCK_WAITING = fixedStatement<'queue' | 'keys'>(
  value => sql`
    select singleton_key from pgboss.job where name = ${value('queue')} and state = 'created'
      and singleton_key in (select jsonb_array_elements_text(${value('keys')}::jsonb))
    order by singleton_key for update`,
)

/** Queues with a job of which its hub has said nothing for too long; only jobs of groups are watched. */
const LOST_QUEUES = sql`
  select distinct name as queue from pgboss.job
  where state = 'active' and group_id is not null and heartbeat_on + make_interval(secs => heartbeat_seconds) < now()`

/** The message of a failure for the operator, without SQL. */
function messageOf(error: unknown): string {
  const { message, cause } = errorInfo(error)
  return (cause ? `${message}: ${cause.message}` : message).slice(0, MESSAGE_MAX)
}

/** False when the job's lease had expired: another hub has the job. */
const hasEnded = (response: object): boolean => 'affected' in response && response.affected === 1

export class Jobs {
  private readonly store: PgBoss
  private readonly handlers = new Map<QueueName, JobHandler>()
  /** The jobs that run here. */
  private readonly active = new Map<QueueName, Map<Promise<void>, Running>>(queueNames.map(name => [name, new Map()]))
  /** Until when queues are paused; those of no queue that is known here do nothing. */
  private pauses: ReadonlyMap<string, number> = new Map()
  /** Jobs that uncommitted transactions have asked for. */
  private readonly asked = new WeakMap<Tx, NewJob[]>()
  private readonly looking = new Map<QueueName, Promise<void>>()
  private readonly askedAgain = new Set<QueueName>()
  private readonly lookTimers = new Map<QueueName, ReturnType<typeof setTimeout>>()
  /** Queues whose last look may have left due jobs where they are; a job that ends makes room for those. */
  private readonly leftDue = new Set<QueueName>()
  private readonly retryTimers = new Set<ReturnType<typeof setTimeout>>()
  private pollTimer: ReturnType<typeof setInterval> | null = null
  private beatTimer: ReturnType<typeof setInterval> | null = null
  private isRunning = false

  constructor(
    private readonly database: Database,
    private readonly log: Logger,
    private readonly metrics: HubMetrics,
    private readonly pollMs: number,
    private readonly waitScale: number,
  ) {
    this.store = openJobStore(database, queue => this.onNotify(queue))
    this.store.on('error', error => this.log.error({ err: error }, 'the job queue failed'))
    this.store.on('warning', warning => this.log.warn({ reason: warning.message }, 'the job queue warns'))
    this.register('jobs.failed', { handle: payload => this.tellFailure(payload) })
  }

  register(queue: QueueName, handler: JobHandler): void {
    this.handlers.set(queue, handler)
  }

  /** Adds jobs in the transaction; they start right after the commit. */
  enqueue(tx: Tx, jobs: readonly NewJob[]): void {
    const known = this.asked.get(tx)
    if (known) {
      known.push(...jobs)
      return
    }
    const asked = [...jobs]
    this.asked.set(tx, asked)
    tx.beforeCommit(() => this.insertAll(tx, asked))
  }

  /** Inserts jobs ordered by queue and key, so that two transactions cannot deadlock on each other's rows. */
  private async insertAll(tx: Tx, jobs: readonly NewJob[]): Promise<void> {
    const byQueue = Map.groupBy(jobs, job => job.queue)
    for (const queue of [...byQueue.keys()].sort()) {
      await this.insert(tx, queue, byQueue.get(queue) ?? [])
      // The library notifies of new jobs only, and this transaction may have joined a job that already waited.
      tx.afterCommit(() => this.wake(queue))
    }
  }

  private async insert(tx: Tx, queue: QueueName, jobs: readonly NewJob[]): Promise<void> {
    const rows: JobInsert[] = jobs.map(({ payload, key, group }) => ({
      data: payload,
      ...(key === undefined ? {} : { singletonKey: key }),
      ...(group === undefined ? {} : { group: { id: group } }),
    }))
    const db = withinTransaction(tx)
    if (!queueOf(queue).isKeyed) {
      await this.store.insert(queue, rows, { db })
      return
    }
    assert(
      jobs.every(job => job.key),
      `a job of ${queue} has a key`,
    )
    const keys = [...new Set(jobs.map(job => job.key ?? ''))].sort()
    rows.sort((a, b) => ((a.singletonKey ?? '') < (b.singletonKey ?? '') ? -1 : 1))
    // A waiting job with the same key does the work of this one too, so it must not start before this transaction is
    // committed: its row is locked. A job that started between the two statements does not count, and the jobs are
    // inserted again. The rollback to the savepoint first releases the locks of that round, since keeping them would
    // break the order of the keys. Where many transactions ask for the same key at once, each waiting job may start too
    // early every time: after some rounds the jobs are inserted beside it, under unique keys.
    await tx.db.execute(sql`savepoint jobs`)
    for (let round = 0; round < INSERT_ROUNDS_MAX; round++) {
      await this.store.insert(queue, rows, { db })
      const locked = await tx.db.execute(LOCK_WAITING({ queue, keys: JSON.stringify(keys) }))
      if (locked.length >= keys.length) {
        await tx.db.execute(sql`release savepoint jobs`)
        return
      }
      await tx.db.execute(sql`rollback to savepoint jobs`)
    }
    await tx.db.execute(sql`release savepoint jobs`)
    const once = new Map(rows.map(row => [row.singletonKey, row]))
    const own = [...once.values()].map(row => ({ ...row, singletonKey: `${row.singletonKey} ${randomUUID()}` }))
    await this.store.insert(queue, own, { db })
  }

  async start(): Promise<void> {
    this.isRunning = true
    await this.store.start()
    this.pollTimer = setInterval(() => void this.pollDue(), this.pollMs)
    this.beatTimer = setInterval(() => void this.beat(), BEAT_MS)
    await this.pollDue()
  }

  /**
   * Waits briefly for running jobs. Waiting jobs stay in the database, and a job that still runs then is tried again
   * after its lease.
   */
  async stop(): Promise<void> {
    if (!this.isRunning) return
    this.isRunning = false
    if (this.pollTimer) clearInterval(this.pollTimer)
    if (this.beatTimer) clearInterval(this.beatTimer)
    for (const timer of [...this.retryTimers, ...this.lookTimers.values()]) clearTimeout(timer)
    await pTimeout(this.ended(), { milliseconds: STOP_WAIT_MS, fallback: () => {} })
    await this.store.stop({ graceful: false, close: false })
  }

  /** Resolves once the running jobs, and those that were just fetched, have ended. */
  private async ended(): Promise<void> {
    await Promise.all(this.looking.values())
    await Promise.all([...this.active.values()].flatMap(jobs => [...jobs.keys()]))
  }

  /** Gives jobs that failed for good one more attempt, now. */
  async retry(queue: string, ids: string[]): Promise<void> {
    await this.store.retry(queue, ids)
    this.onNotify(queue)
  }

  /** Removes a job that is not running. */
  async forget(tx: Tx, queue: string, id: string): Promise<void> {
    await this.store.deleteJob(queue, id, { db: withinTransaction(tx) })
  }

  /** How many jobs wait, by queue. */
  async depths(): Promise<{ queue: string; depth: number }[]> {
    return this.counted(sql`state < 'active'`)
  }

  private async counted(where: SQL): Promise<{ queue: string; depth: number }[]> {
    return [
      ...(await this.database.db.execute<{ queue: string; depth: number }>(
        sql`select name as queue, count(*)::int as depth from pgboss.job where ${where} group by name`,
      )),
    ]
  }

  /** Takes over until when queues are paused. Jobs of a paused queue wait; what already runs ends. */
  setPauses(pauses: ReadonlyMap<string, number>): void {
    const before = this.pauses
    this.pauses = pauses
    for (const queue of before.keys()) if (!pauses.has(queue)) this.onNotify(queue)
  }

  private isPaused(name: QueueName): boolean {
    return (this.pauses.get(name) ?? 0) > Date.now()
  }

  /** What runs in this process now. */
  running(): { queue: QueueName; jobs: number; oldest_since: Date }[] {
    return [...this.active].flatMap(([queue, jobs]) =>
      jobs.size === 0
        ? []
        : [
            {
              queue,
              jobs: jobs.size,
              oldest_since: new Date(Math.min(...[...jobs.values()].map(each => each.sinceMs))),
            },
          ],
    )
  }

  /** What this process asks for itself it looks for after its commit, and hears of once more here. */
  private onNotify(queue: string | null): void {
    if (queue === null) void this.pollDue()
    else if (isQueueName(queue)) this.wakeSoon(queue)
  }

  private wakeSoon(name: QueueName): void {
    if (!this.isRunning || this.lookTimers.has(name)) return
    const timer = setTimeout(() => {
      this.lookTimers.delete(name)
      this.wake(name)
    }, LOOK_TOGETHER_MS)
    this.lookTimers.set(name, timer)
  }

  /** Says of the jobs that are watched that they still run. */
  private async beat(): Promise<void> {
    for (const [queue, running] of this.active)
      if (running.size > 0 && queueOf(queue).isWatched)
        await this.store
          .touch(
            queue,
            [...running.values()].map(({ id }) => id),
          )
          .catch(error => this.log.error({ err: error, queue }, 'cannot say that jobs still run'))
  }

  /** Has jobs whose hub is gone tried again. */
  private async findLost(): Promise<void> {
    const lost = await this.database.db.execute<{ queue: string }>(LOST_QUEUES)
    for (const { queue } of lost) {
      await this.store.supervise(queue)
      this.onNotify(queue)
    }
  }

  /**
   * Finds the due jobs that no notification announces: those of before a start or while no connection listened, retries
   * of a hub that is gone, and expired leases. One statement names their queues, where each queue would be asked.
   */
  private async pollDue(): Promise<void> {
    if (!this.isRunning) return
    try {
      const due = await this.counted(sql`state < 'active' and start_after <= now()`)
      for (const { queue } of due) this.onNotify(queue)
      await this.findLost()
    } catch (error) {
      this.log.error({ err: error }, 'cannot look for jobs')
    }
  }

  /** Fetches the due jobs of a queue now, or again after a fetch that is already running. */
  private wake(name: QueueName): void {
    if (!this.isRunning) return
    if (this.looking.has(name)) {
      this.askedAgain.add(name)
      return
    }
    const look = this.begin(name)
      .catch(error => this.log.error({ err: error, queue: name }, 'cannot fetch jobs'))
      .finally(() => {
        this.looking.delete(name)
        if (this.askedAgain.delete(name)) this.wake(name)
      })
    this.looking.set(name, look)
  }

  /**
   * Starts due jobs while there is room. Where some are left, each job that ends makes room and triggers the next
   * fetch, so a slow job delays no other.
   */
  private async begin(name: QueueName): Promise<void> {
    const { atOnceMax, atOnceOfGroupMax } = queueOf(name)
    const active = this.active.get(name) ?? new Map()
    this.leftDue.add(name)
    while (this.isRunning && !this.isPaused(name) && active.size < atOnceMax) {
      const room = atOnceMax - active.size
      const jobs = await this.store.fetch<JobPayload>(name, {
        includeMetadata: true,
        batchSize: room,
        ...(atOnceOfGroupMax === null ? {} : { groupConcurrency: atOnceOfGroupMax }),
      })
      for (const job of jobs) {
        const act: Promise<void> = this.run(name, job)
          .catch(error => this.log.error({ err: error, queue: name }, 'cannot record the end of a job'))
          .finally(() => {
            active.delete(act)
            if (!this.leftDue.has(name)) return
            // Of a queue with groups it is not known whether any is left.
            if (atOnceOfGroupMax === null) this.wake(name)
            else this.wakeSoon(name)
          })
        active.set(act, { id: job.id, sinceMs: Date.now() })
      }
      if (jobs.length >= room) continue
      // With a bound for each group, a fetch can return fewer jobs than there is room for: the next one skips the full
      // groups, whose jobs are left.
      if (atOnceOfGroupMax === null) this.leftDue.delete(name)
      else if (jobs.length > 0) this.wakeSoon(name)
      return
    }
  }

  private async run(name: QueueName, job: Job): Promise<void> {
    try {
      const handler = this.handlers.get(name)
      if (!handler) throw new PermanentJobFailure(`nothing handles ${name}`)
      await handler.handle(name === 'jobs.failed' ? { source: job.sourceName, payload: job.data } : job.data)
    } catch (error) {
      await this.failed(name, job, error)
      return
    }
    await this.store.complete(name, job)
    this.metrics.jobs.inc({ job: name, result: 'done' })
  }

  private async failed(name: QueueName, job: Job, error: unknown): Promise<void> {
    const message = messageOf(error)
    const tries = job.retryCount + 1
    const wait = error instanceof PermanentJobFailure ? undefined : queueOf(name).waitsSeconds[job.retryCount]
    if (wait === undefined || job.retryCount >= job.retryLimit) {
      this.log.error({ queue: name, tries, error: message }, 'a job failed for good')
      this.metrics.jobs.inc({ job: name, result: 'failed' })
      await this.failForGood(name, job, message)
      if (queueOf(name).tellsFailure) this.wake('jobs.failed')
      return
    }
    this.log.warn({ queue: name, tries, error: message }, 'a job failed and is tried again')
    this.metrics.jobs.inc({ job: name, result: 'retried' })
    const waitMs = Math.round(wait * this.waitScale * 1000)
    await inJobTransaction(this.database, async db => {
      if (!hasEnded(await this.store.fail(name, job, { message }, { db }))) return
      await this.store.update(name, undefined, { id: job.id, startAfter: waitMs / 1000, db })
    })
    const timer = setTimeout(() => {
      this.retryTimers.delete(timer)
      this.wake(name)
    }, waitMs + DUE_MARGIN_MS)
    if (this.isRunning) this.retryTimers.add(timer)
    else clearTimeout(timer)
  }

  /** The library ends a job only after its last attempt: to end a job earlier, its remaining attempts are removed. */
  private async failForGood(name: QueueName, job: Job, message: string): Promise<void> {
    await inJobTransaction(this.database, async db => {
      const response = await this.store.fail(name, job, { message }, { db })
      if (!hasEnded(response) || job.retryCount >= job.retryLimit) return
      await this.store.update(name, undefined, { id: job.id, retryLimit: 0, retryDelay: 0, startAfter: 0, db })
      await this.store.fail(name, job.id, { message }, { db })
    })
  }

  private async tellFailure({ source, payload }: JobPayload): Promise<void> {
    if (typeof source !== 'string' || !isQueueName(source)) return
    // The payload has the type with which the job was enqueued.
    await this.handlers.get(source)?.onFailed?.(payload as JobPayload)
  }
}
