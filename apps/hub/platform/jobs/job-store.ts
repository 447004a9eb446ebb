// The job library (pg-boss) on the hub's database: its tables in a schema of their own, its queues, and its statements
// inside our transactions, so that a job is committed with its cause.
import { sql } from 'drizzle-orm'
import { fromDrizzle, PgBoss, type Db as QueueDatabase } from 'pg-boss'
import type postgres from 'postgres'
import type { Database } from '../db/connect.ts'
import type { Tx } from '../db/transaction.ts'
import { type QueueDefinition, queueNames, queueOf } from './queues.ts'

const DAY_SECONDS = 24 * 3600
/** How long jobs that are over are kept to be looked at. */
const KEPT_SECONDS = 7 * DAY_SECONDS
/** A job waits for a hub that long before it is given up. */
const WAITING_SECONDS = 365 * DAY_SECONDS
const FAILED_QUEUE = 'jobs.failed'

type Row = Readonly<Record<string, unknown>>
type Statements = Pick<postgres.Sql, 'unsafe'>

const isNested = (rows: readonly unknown[]): rows is readonly Row[][] => Array.isArray(rows[0])

/** Runs the library's statements on one connection of ours. One without values may be several. */
async function run(on: Statements, text: string, values: unknown[] | undefined): Promise<{ rows: Row[] }> {
  // The driver asks for the types that it can send; what the library hands over are texts, numbers, dates and lists.
  const sent = (values ?? []) as postgres.ParameterOrJSON<never>[]
  const rows = await on.unsafe<Row[]>(text, sent, { prepare: sent.length > 0 })
  return { rows: isNested(rows) ? rows.flat() : [...rows] }
}

/**
 * The pool as the library wants it. Statements without values may open transactions: they get a connection of their
 * own.
 */
function poolOf(client: postgres.Sql, onNotify: (queue: string | null) => void): QueueDatabase {
  return {
    async executeSql(text, values) {
      if (values && values.length > 0) return run(client, text, values)
      const connection = await client.reserve()
      try {
        return await run(connection, text, undefined)
      } catch (error) {
        // A transaction that failed in the middle would stay open for the next who gets the connection.
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
          // What was told while nobody listened is missed: every queue is looked at.
          onNotify(null)
        },
      )
      // It ends with the pool: a word to a database that is away would hold up the stop.
      return { close: async () => {} }
    },
  }
}

export const inJobTransaction = <T>(database: Database, act: (db: QueueDatabase) => Promise<T>): Promise<unknown> =>
  database.jobs.begin(tx => act({ executeSql: (text, values) => run(tx, text, values) }))

/** The library's statements inside a transaction of the hub. */
export const withinTransaction = (tx: Tx): QueueDatabase => fromDrizzle(tx.db, sql)

/** The library without its clocks; `onNotify` is told of queues that got a job (null: perhaps any). */
export function openJobStore(database: Database, onNotify: (queue: string | null) => void): PgBoss {
  return new PgBoss({
    db: poolOf(database.jobs, onNotify),
    schedule: false,
    useListenNotify: true,
    // Dependencies between jobs are not used: their resolver need not look often.
    flowIntervalSeconds: 600,
    bamIntervalSeconds: 600,
  })
}

const optionsOf = ({ waitsSeconds, leaseSeconds, tellsFailure, isKeyed }: QueueDefinition) => ({
  policy: isKeyed ? 'short' : 'standard',
  retryLimit: waitsSeconds.length,
  // Where a hub is lost; a try that ended sets its own wait.
  retryDelay: waitsSeconds[0] ?? 0,
  expireInSeconds: leaseSeconds,
  retentionSeconds: WAITING_SECONDS,
  deleteAfterSeconds: KEPT_SECONDS,
  notify: true,
  ...(tellsFailure ? { deadLetter: FAILED_QUEUE } : {}),
})

const CHANGEABLE = ['retryLimit', 'retryDelay', 'expireInSeconds', 'retentionSeconds', 'deleteAfterSeconds'] as const

/** Makes the library's tables or brings them up to date, and makes the queues. */
export async function installQueues(database: Database): Promise<void> {
  const boss = new PgBoss({ db: poolOf(database.jobs, () => {}), schedule: false, supervise: false })
  const faults: unknown[] = []
  boss.on('error', error => faults.push(error))
  try {
    await boss.start()
    const known = new Map((await boss.getQueues()).map(queue => [queue.name, queue]))
    // Others name the queue of failures: it comes first.
    for (const name of [...queueNames].sort((a, b) => Number(b === FAILED_QUEUE) - Number(a === FAILED_QUEUE))) {
      const options = optionsOf(queueOf(name))
      const queue = known.get(name)
      if (!queue) await boss.createQueue(name, options)
      else if (CHANGEABLE.some(option => queue[option] !== options[option])) {
        const { policy: _policy, ...changeable } = options
        await boss.updateQueue(name, changeable)
      }
    }
  } finally {
    await boss.stop({ graceful: false, close: false })
  }
  if (faults.length > 0) throw new Error('cannot make the tables of the job library', { cause: faults[0] })
}
