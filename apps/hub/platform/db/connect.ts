// The only place that opens Postgres.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import pTimeout from 'p-timeout'
import postgres from 'postgres'
import { preparing } from './prepared.ts'
import { dropSilent } from './silence.ts'

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
/** How long a connection may wait for an answer that the server does not work on, and how often that is looked at. */
const SILENCE = { silentMs: 10_000, everyMs: 5000 }
/** After so long without a word the kernel asks whether the other side is there. */
const KEEP_ALIVE_SECONDS = 15
/** What a new connection and its answer may take where others are silent. */
const FRESH_SECONDS = 2
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

/** One connection for one question, which is gone afterwards whatever becomes of it. */
async function withFresh<T>(url: string, act: (fresh: postgres.Sql) => Promise<T>): Promise<T> {
  const fresh = postgres(url, {
    max: 1,
    connect_timeout: FRESH_SECONDS,
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: 'hub watch', statement_timeout: FRESH_SECONDS * 1000 },
  })
  try {
    return await pTimeout(act(fresh), { milliseconds: 2 * FRESH_SECONDS * 1000 })
  } finally {
    await fresh.end({ timeout: 1 })
    for (const { lose } of fresh.states()) lose()
  }
}

/** Looks again and again for connections that went silent. Returns what ends that. */
function watchSilence(url: string, pools: readonly postgres.Sql[], { silentMs, everyMs } = SILENCE): () => void {
  let isLooking = false
  const look = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    // Where a new connection has no answer either, nothing is known of the others.
    await dropSilent(pools, silentMs, act => withFresh(url, act)).catch(() => {})
    isLooking = false
  }
  const timer = setInterval(() => void look(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** Opens a pool. Nothing is connected before the first query. */
export function openDatabase(url: string, connectionsMax: number, silence = SILENCE): Database {
  const shared = {
    connect_timeout: 10,
    idle_timeout: 60,
    keep_alive: KEEP_ALIVE_SECONDS,
    backoff: reconnectAfter,
    onnotice: () => {},
  }
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
  const stopWatch = watchSilence(url, [client, jobs], silence)
  return {
    db: drizzle(preparing(client)),
    client,
    jobs,
    async close() {
      stopWatch()
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
