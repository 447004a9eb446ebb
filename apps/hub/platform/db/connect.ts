// The only place that opens Postgres.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { preparing } from './prepared.ts'

export type Db = PostgresJsDatabase
/** Inside a transaction; queries are the same as outside. */
export type TxDb = Parameters<Parameters<Db['transaction']>[0]>[0]
/** Whatever can run a query: reads accept both. */
export type Executor = Db | TxDb

export type Database = {
  readonly db: Db
  readonly client: postgres.Sql
  /** The pool of the job library, which serializes its JSON itself, and of every connection that listens (LISTEN). */
  readonly jobs: postgres.Sql
  close(): Promise<void>
}

const JOB_CONNECTIONS = 3
/** Seconds before a lost connection is made anew; the library counts the losses of all connections of a pool. */
const reconnectAfter = (losses: number): number => (0.5 + Math.random() / 2) * Math.min(0.01 * 3 ** losses, 1)
/**
 * What it costs to start workers of a query, in units of the planner. By itself PostgreSQL takes 1000, as long as to
 * read 25,000 entries of an index: workers were started for counts of a company's rows that need none, and on a host
 * whose processors have other work such a count took 70 ms instead of 2, and three times the processor time. Searches
 * of millions of rows still have them.
 */
const WORKERS_COST = 10_000
const JSONB_OID = 3802
const JSON_OID = 114
const jsonType = (oid: number) => ({
  to: oid,
  from: [oid],
  serialize: (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value)),
  parse: (text: string): unknown => JSON.parse(text),
})

/** Opens a pool. Nothing is connected before the first query. */
export function openDatabase(url: string, connectionsMax: number): Database {
  const shared = { connect_timeout: 10, idle_timeout: 60, backoff: reconnectAfter, onnotice: () => {} }
  const session = {
    TimeZone: 'UTC',
    lock_timeout: 30_000,
    statement_timeout: 60_000,
    parallel_setup_cost: WORKERS_COST,
  }
  const client = postgres(url, {
    ...shared,
    max: connectionsMax,
    connection: { ...session, application_name: 'hub' },
  })
  const jobs = postgres(url, {
    ...shared,
    max: JOB_CONNECTIONS,
    connection: { ...session, application_name: 'hub jobs' },
    types: { json: jsonType(JSON_OID), jsonb: jsonType(JSONB_OID) },
  })
  return {
    db: drizzle(preparing(client)),
    client,
    jobs,
    async close() {
      await Promise.all([client.end({ timeout: 5 }), jobs.end({ timeout: 5 })])
    },
  }
}

/** The SQLSTATE of a database error, taken from the error or one of its causes; null for any other error. */
export function sqlState(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof postgres.PostgresError) return at.code
  }
  return null
}

/** The name of the unique index that refused a row, or null when the error is another one. */
export function violatedUniqueIndex(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof postgres.PostgresError && at.code === '23505') return at.constraint_name ?? ''
  }
  return null
}
