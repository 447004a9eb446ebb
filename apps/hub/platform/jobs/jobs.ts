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
import type { Tx } from '../db/transaction.ts'
import type { HubMetrics } from '../telemetry.ts'
import { inJobTransaction, openJobStore, withinTransaction } from './job-store.ts'
import { isQueueName, type QueueName, queueNames, queueOf } from './queues.ts'

export type JobPayload = Readonly<Record<string, unknown>>

/** Thrown by a handler: another try would end the same way. */
export class PermanentJobFailure extends Error {}

type JobHandler = {
  readonly handle: (payload: JobPayload) => Promise<void>
  /** Once after the last try, or a permanent failure; for queues that tell of failures. */
  readonly onFailed?: (payload: JobPayload) => Promise<void>
}

type NewJob = {
  readonly queue: QueueName
  readonly payload: JobPayload
  /** For keyed queues. */
  readonly key?: string
  /** What the jobs of a receiver have in common. */
  readonly group?: string
}

type Job = JobWithMetadata<JobPayload>

const STOP_WAIT_MS = 5_000
const INSERT_ROUNDS_MAX = 3
const MESSAGE_MAX = 500
/** A timer of the runtime is a little early or late; a job that is due a moment later would wait for the next look. */
const DUE_MARGIN_MS = 10

/** What an operator reads of a failure, without statements of the database. */
function messageOf(error: unknown): string {
  const { message, cause } = errorInfo(error)
  return (cause ? `${message}: ${cause.message}` : message).slice(0, MESSAGE_MAX)
}

/** False when the claim of the job had lapsed: another hub has it. */
const hasEnded = (response: object): boolean => 'affected' in response && response.affected === 1

export class Jobs {
  private readonly store: PgBoss
  private readonly handlers = new Map<QueueName, JobHandler>()
  private readonly active = new Map<QueueName, Set<Promise<void>>>(queueNames.map(name => [name, new Set()]))
  /** What transactions that are not committed yet have asked for. */
  private readonly asked = new WeakMap<Tx, NewJob[]>()
  private readonly looking = new Map<QueueName, Promise<void>>()
  private readonly askedAgain = new Set<QueueName>()
  private readonly retryTimers = new Set<ReturnType<typeof setTimeout>>()
  private pollTimer: ReturnType<typeof setInterval> | null = null
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

  /** Queue by queue and key by key in one order for all, so that two transactions cannot wait for each other. */
  private async insertAll(tx: Tx, jobs: readonly NewJob[]): Promise<void> {
    const byQueue = Map.groupBy(jobs, job => job.queue)
    for (const queue of [...byQueue.keys()].sort()) {
      await this.insert(tx, queue, byQueue.get(queue) ?? [])
      // The library tells of new jobs only, and this may have been one that waits.
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
    // A waiting job that does the work of this one too must not start before this transaction is committed: its row is
    // locked. One that started between the two statements no longer counts, and the jobs are added anew: without the
    // locks of the round before, as those would be held out of the order of the keys. Where many ask for the same at
    // once the ones that wait always start first: after some rounds the jobs are added beside them, under keys of their
    // own.
    await tx.db.execute(sql`savepoint jobs`)
    for (let round = 0; round < INSERT_ROUNDS_MAX; round++) {
      await this.store.insert(queue, rows, { db })
      const locked = await tx.db.execute(sql`
        select singleton_key from pgboss.job where name = ${queue} and state = 'created'
          and singleton_key in (select jsonb_array_elements_text(${JSON.stringify(keys)}::jsonb))
        order by singleton_key for update`)
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
    for (const queue of queueNames) this.wake(queue)
  }

  /**
   * Waits a moment for what runs; what waits stays in the database, and what still runs is tried again after its lease.
   */
  async stop(): Promise<void> {
    if (!this.isRunning) return
    this.isRunning = false
    if (this.pollTimer) clearInterval(this.pollTimer)
    for (const timer of this.retryTimers) clearTimeout(timer)
    await pTimeout(this.ended(), { milliseconds: STOP_WAIT_MS, fallback: () => {} })
    await this.store.stop({ graceful: false, close: false })
  }

  /** What runs has ended, and what was just fetched. */
  private async ended(): Promise<void> {
    await Promise.all(this.looking.values())
    await Promise.all([...this.active.values()].flatMap(jobs => [...jobs]))
  }

  /** Jobs that failed for good get one more try, now. */
  async retry(queue: string, ids: string[]): Promise<void> {
    await this.store.retry(queue, ids)
    this.onNotify(queue)
  }

  /** Removes a job that does not run. */
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

  private onNotify(queue: string | null): void {
    if (queue === null) for (const name of queueNames) this.wake(name)
    else if (isQueueName(queue)) this.wake(queue)
  }

  /** What no notification told of: tries that another hub owed, leases that ended. */
  private async pollDue(): Promise<void> {
    try {
      const due = await this.counted(sql`state < 'active' and start_after <= now()`)
      for (const { queue } of due) this.onNotify(queue)
    } catch (error) {
      this.log.error({ err: error }, 'cannot look for jobs')
    }
  }

  /** Looks for due jobs of a queue now. */
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
   * Starts what is due while there is room; a job that ends makes room and looks again, so a slow one holds nobody up.
   */
  private async begin(name: QueueName): Promise<void> {
    const { atOnceMax, atOnceOfGroupMax } = queueOf(name)
    const active = this.active.get(name) ?? new Set()
    while (this.isRunning && active.size < atOnceMax) {
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
            this.wake(name)
          })
        active.add(act)
      }
      // Where groups are held back, the next fetch passes over those that now have their share.
      if (jobs.length === 0 || (atOnceOfGroupMax === null && jobs.length < room)) return
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

  /** The library ends a job only after its last try: one that is to end earlier loses the tries that it has left. */
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
    // The payload is what the job was written with.
    await this.handlers.get(source)?.onFailed?.(payload as JobPayload)
  }
}
