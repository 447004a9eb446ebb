// Work that happens after a request, durable in Postgres: a job is written in the transaction that asks for it, tried
// again with the waits of its queue, and kept when it failed for good. Several hubs share one table (SKIP LOCKED).
import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import type { Logger } from 'pino'
import type { Database, Executor } from '../db/connect.ts'
import type { Tx } from '../db/transaction.ts'
import type { HubMetrics } from '../telemetry.ts'

export type JobPayload = Readonly<Record<string, unknown>>

/** Thrown by a handler: another try would end the same way. */
export class PermanentJobFailure extends Error {}

export type Queue = {
  readonly name: string
  /** Seconds between the tries; one more try than waits. */
  readonly waitsSeconds: readonly number[]
  /** One after the other in the order in which they were written: what people read must not come out of order. */
  readonly isSerial?: boolean
  readonly handle: (payload: JobPayload) => Promise<void>
  /** After the last try, or a permanent failure. */
  readonly onFailed?: (payload: JobPayload, message: string) => Promise<void>
}

type JobRow = { id: string; queue: string; payload: JobPayload; tries: number; position: string }

const RUNNING_MAX = 16
/** A job that runs longer is taken for lost and tried again. */
const LEASE_SECONDS = 120

export type NewJob = { readonly queue: string; readonly payload: JobPayload; readonly dedupeKey?: string | null }

/** Writes jobs with one statement, in their order. One whose key waits already is left out. */
async function insertJobs(db: Executor, jobs: readonly NewJob[]): Promise<void> {
  const records = jobs.map(job => ({
    id: randomUUID(),
    queue: job.queue,
    payload: job.payload,
    dedupe_key: job.dedupeKey ?? null,
  }))
  await db.execute(sql`
    insert into jobs (id, queue, payload, dedupe_key)
    select (x.job->>'id')::uuid, x.job->>'queue', x.job->'payload', x.job->>'dedupe_key'
    from jsonb_array_elements(${JSON.stringify(records)}::jsonb) with ordinality as x (job, place) order by x.place
    on conflict (dedupe_key) where state = 'waiting' and dedupe_key is not null do nothing`)
}

export class Jobs {
  private readonly queues = new Map<string, Queue>()
  private timer: ReturnType<typeof setInterval> | null = null
  private running: Promise<void> | null = null
  private readonly active = new Set<Promise<void>>()
  private readonly busySerial = new Set<string>()
  private isAskedAgain = false
  private isStopped = false

  constructor(
    private readonly database: Database,
    private readonly log: Logger,
    private readonly metrics: HubMetrics,
    private readonly pollMs: number,
    private readonly waitScale: number,
  ) {}

  register(queue: Queue): void {
    this.queues.set(queue.name, queue)
  }

  /** Adds jobs in the transaction; they start right after the commit. */
  async enqueue(tx: Tx, jobs: readonly NewJob[]): Promise<void> {
    if (jobs.length === 0) return
    await insertJobs(tx.db, jobs)
    tx.afterCommit(() => this.wake())
  }

  start(): void {
    this.timer = setInterval(() => this.wake(), this.pollMs)
    this.wake()
  }

  /** Waits for what runs; what waits stays in the table. */
  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer) clearInterval(this.timer)
    await this.running
    await Promise.all(this.active)
  }

  /** Looks for due jobs now. */
  wake(): void {
    if (this.isStopped || this.timer === null) return
    if (this.running) {
      this.isAskedAgain = true
      return
    }
    this.running = this.drain()
      .catch(error => this.log.error({ err: error }, 'cannot run jobs'))
      .finally(() => {
        this.running = null
        if (this.isAskedAgain) {
          this.isAskedAgain = false
          this.wake()
        }
      })
  }

  /** Starts what is due while there is room; a job that ends makes room and looks again, so a slow one holds nobody up. */
  private async drain(): Promise<void> {
    while (!this.isStopped && this.active.size < RUNNING_MAX) {
      const serial = [...this.queues.values()].filter(queue => queue.isSerial).map(queue => queue.name)
      const jobs = await this.claim(RUNNING_MAX - this.active.size, serial)
      for (const name of serial) if (!this.busySerial.has(name)) jobs.push(...(await this.claimNext(name)))
      if (jobs.length === 0) return
      for (const job of jobs) this.begin(job)
    }
  }

  private begin(job: JobRow): void {
    const isSerial = this.queues.get(job.queue)?.isSerial === true
    if (isSerial) this.busySerial.add(job.queue)
    const act: Promise<void> = this.run(job)
      .catch(error => this.log.error({ err: error, queue: job.queue }, 'cannot record the end of a job'))
      .finally(() => {
        this.active.delete(act)
        if (isSerial) this.busySerial.delete(job.queue)
        this.wake()
      })
    this.active.add(act)
  }

  /** Due jobs of the queues that are not serial. */
  private async claim(count: number, serial: readonly string[]): Promise<JobRow[]> {
    const { db } = this.database
    await db.execute(sql`update jobs set state = 'waiting', locked_until = null
      where state = 'running' and locked_until < now()`)
    const excluded = JSON.stringify(serial)
    return this.take(sql`state = 'waiting' and run_at <= now() and not jsonb_exists(${excluded}::jsonb, queue)`, count)
  }

  /** The next job of a serial queue, unless one of it runs anywhere. */
  private claimNext(name: string): Promise<JobRow[]> {
    return this.take(
      sql`state = 'waiting' and run_at <= now() and queue = ${name}
        and not exists (select 1 from jobs r where r.queue = ${name} and r.state = 'running')`,
      1,
    )
  }

  private async take(where: SQL, count: number): Promise<JobRow[]> {
    const rows = await this.database.db.execute<JobRow>(sql`
      update jobs set state = 'running', tries = tries + 1, dedupe_key = null,
        locked_until = now() + make_interval(secs => ${LEASE_SECONDS})
      where id in (select id from jobs where ${where} order by run_at, position limit ${count} for update skip locked)
      returning id, queue, payload, tries, position`)
    return [...rows].sort((a, b) => Number(a.position) - Number(b.position))
  }

  private async run(job: JobRow): Promise<void> {
    const queue = this.queues.get(job.queue)
    try {
      if (!queue) throw new PermanentJobFailure(`no queue ${job.queue}`)
      await queue.handle(job.payload)
      await this.database.db.execute(
        sql`update jobs set state = 'done', finished_at = now(), locked_until = null, last_error = null where id = ${job.id}`,
      )
      this.metrics.jobs.inc({ job: job.queue, result: 'done' })
    } catch (error) {
      await this.failed(job, queue, error)
    }
  }

  private async failed(job: JobRow, queue: Queue | undefined, error: unknown): Promise<void> {
    const message = (error instanceof Error ? error.message : String(error)).slice(0, 500)
    const waitSeconds = error instanceof PermanentJobFailure ? undefined : queue?.waitsSeconds[job.tries - 1]
    if (waitSeconds !== undefined) {
      this.log.warn({ queue: job.queue, tries: job.tries, error: message }, 'a job failed and is tried again')
      this.metrics.jobs.inc({ job: job.queue, result: 'retried' })
      await this.database.db.execute(sql`update jobs set state = 'waiting', locked_until = null, last_error = ${message},
        run_at = now() + make_interval(secs => ${waitSeconds * this.waitScale}) where id = ${job.id}`)
      return
    }
    this.log.error({ queue: job.queue, tries: job.tries, error: message }, 'a job failed for good')
    this.metrics.jobs.inc({ job: job.queue, result: 'failed' })
    await this.database.db.execute(sql`update jobs set state = 'failed', finished_at = now(), locked_until = null,
      last_error = ${message} where id = ${job.id}`)
    await queue?.onFailed?.(job.payload, message)
  }
}
