// The job library (pg-boss) on the hub's database: its tables are in their own schema, and its statements can run
// inside the hub's transactions, so that a job is committed together with its cause.
import { sql } from 'drizzle-orm'
import { fromDrizzle, PgBoss, type Db as QueueDatabase } from 'pg-boss'
import type postgres from 'postgres'
import type { Database } from '../db/connect.ts'
import type { Tx } from '../db/transaction.ts'
import { LOST_SECONDS, type QueueDefinition, queueNames, queueOf } from './retries-and-concurrency.ts'

const DAY_SECONDS = 24 * 3600
/** How long finished jobs are kept for operators to inspect. */
const KEPT_SECONDS = 7 * DAY_SECONDS
/** How long a job waits for a hub before it is given up. */
const WAITING_SECONDS = 365 * DAY_SECONDS
const FAILED_QUEUE = 'jobs.failed'

type Row = Readonly<Record<string, unknown>>
type Statements = Pick<postgres.Sql, 'unsafe'>

const isNested = (rows: readonly unknown[]): rows is readonly Row[][] => Array.isArray(rows[0])

/** Runs the library's statements on one connection of the hub. A text without values may hold several statements. */
async function run(on: Statements, text: string, values: unknown[] | undefined): Promise<{ rows: Row[] }> {
  // The driver's type allows only values that it can send; the library passes texts, numbers, dates and lists.
  const sent = (values ?? []) as postgres.ParameterOrJSON<never>[]
  const rows = await on.unsafe<Row[]>(text, sent, { prepare: sent.length > 0 })
  return { rows: isNested(rows) ? rows.flat() : [...rows] }
}

/**
 * The pool in the shape that the library expects. Statements without values may open a transaction, so they get their
 * own connection.
 */
function poolOf(client: postgres.Sql, onNotify: (queue: string | null) => void): QueueDatabase {
  return {
    async executeSql(text, values) {
      if (values && values.length > 0) return run(client, text, values)
      const connection = await client.reserve()
      try {
        return await run(connection, text, undefined)
      } catch (error) {
        // Otherwise a transaction that failed midway would stay open for the next user of the connection.
        await connection.unsafe('rollback').catch(() => {})
        throw error
      } finally {
        connection.release()
      }
    },
    async listen(channel, onNotification, onReconnect) {
      await client.listen(
        channel,
        queue => {
          onNotification(queue)
          onNotify(queue)
        },
        () => {
          onReconnect()
          // Notifications sent while the connection was down are lost, so every queue is checked.
          onNotify(null)
        },
      )
      // The listener ends with the pool: an UNLISTEN to a database that does not answer would delay the stop.
      return { close: async () => {} }
    },
  }
}

export const inJobTransaction = <T>(database: Database, act: (db: QueueDatabase) => Promise<T>): Promise<unknown> =>
  database.jobs.begin(tx => act({ executeSql: (text, values) => run(tx, text, values) }))

/** The library's statements inside a transaction of the hub. */
export const withinTransaction = (tx: Tx): QueueDatabase => fromDrizzle(tx.db, sql)

/**
 * The library without its scheduler; `onNotify` gets the name of a queue that has a new job (null: any queue may have).
 */
export function openJobStore(database: Database, onNotify: (queue: string | null) => void): PgBoss {
  return new PgBoss({
    db: poolOf(database.jobs, onNotify),
    schedule: false,
    useListenNotify: true,
    // Whoever sees that a job is lost has the library look at its queue at once, and not within the next minute.
    monitorIntervalSeconds: 5,
    // No job depends on another one, so the library's resolver of dependencies may run seldom.
    flowIntervalSeconds: 600,
    bamIntervalSeconds: 600,
  })
}

const optionsOf = ({ waitsSeconds, leaseSeconds, tellsFailure, isKeyed, isWatched }: QueueDefinition) => ({
  policy: isKeyed ? 'short' : 'standard',
  retryLimit: waitsSeconds.length,
  // Applies when the hub that ran the job is lost; an attempt that failed sets its own delay.
  retryDelay: waitsSeconds[0] ?? 0,
  expireInSeconds: leaseSeconds,
  retentionSeconds: WAITING_SECONDS,
  deleteAfterSeconds: KEPT_SECONDS,
  notify: true,
  ...(isWatched ? { heartbeatSeconds: LOST_SECONDS } : {}),
  ...(tellsFailure ? { deadLetter: FAILED_QUEUE } : {}),
})

const CHANGEABLE = [
  'retryLimit',
  'retryDelay',
  'expireInSeconds',
  'retentionSeconds',
  'deleteAfterSeconds',
  'heartbeatSeconds',
] as const

/** Creates the library's tables or brings them up to date, and creates the queues. */
export async function installQueues(database: Database): Promise<void> {
  const boss = new PgBoss({ db: poolOf(database.jobs, () => {}), schedule: false, supervise: false })
  const faults: unknown[] = []
  boss.on('error', error => faults.push(error))
  try {
    await boss.start()
    const known = new Map((await boss.getQueues()).map(queue => [queue.name, queue]))
    // The other queues refer to the queue of failures, so it is created first.
    for (const name of [...queueNames].sort((a, b) => Number(b === FAILED_QUEUE) - Number(a === FAILED_QUEUE))) {
      const options = optionsOf(queueOf(name))
      const queue = known.get(name)
      if (!queue) await boss.createQueue(name, options)
      else if (CHANGEABLE.some(option => (queue[option] ?? null) !== (options[option] ?? null))) {
        const { policy: _policy, ...changeable } = options
        // What is left out stays as it is.
        await boss.updateQueue(name, { ...changeable, heartbeatSeconds: options.heartbeatSeconds ?? null })
      }
    }
  } finally {
    await boss.stop({ graceful: false, close: false })
  }
  if (faults.length > 0) throw new Error('cannot make the tables of the job library', { cause: faults[0] })
}
