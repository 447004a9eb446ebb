// The only place that opens Postgres.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'

export type Db = PostgresJsDatabase
/** Inside a transaction; queries are the same as outside. */
export type TxDb = Parameters<Parameters<Db['transaction']>[0]>[0]
/** Whatever can run a query: reads accept both. */
export type Executor = Db | TxDb

export type Database = {
  readonly db: Db
  readonly client: postgres.Sql
  close(): Promise<void>
}

/** Opens a pool. Nothing is connected before the first query. */
export function openDatabase(url: string, connectionsMax: number): Database {
  const client = postgres(url, {
    max: connectionsMax,
    connect_timeout: 10,
    idle_timeout: 60,
    onnotice: () => {},
    connection: { application_name: 'hub', TimeZone: 'UTC', lock_timeout: 30_000, statement_timeout: 60_000 },
  })
  return { db: drizzle(client), client, close: () => client.end({ timeout: 5 }) }
}

/** The SQLSTATE of a database error, looked for along its causes; null for anything else. */
export function sqlState(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof postgres.PostgresError) return at.code
  }
  return null
}

/** The unique index that refused a row, or null when the error is another one. */
export function violatedUniqueIndex(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof postgres.PostgresError && at.code === '23505') return at.constraint_name ?? ''
  }
  return null
}
