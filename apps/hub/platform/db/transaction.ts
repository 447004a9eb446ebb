// A transaction of the hub: its writes, the feed numbers of the rows it changed, and the actions that follow its
// commit.
//
// Feed numbers (decision G-88): one counter row a feed, raised under its row lock as the last act before the commit, so
// that commit order equals number order and a reader that has seen number n will never meet a lower one later.
import { type AnyColumn, type SQL, sql } from 'drizzle-orm'
import { type Db, sqlState, type TxDb } from './connect.ts'
import { fixedStatement } from './fixed-statement.ts'

export type Feed = 'agents' | 'checks' | 'rules' | 'scan_hosts' | 'servers' | 'silences'

/** New values of rows: each row has an id and `columns`; `set` assigns from them under the alias `x`. */
type NewValues = {
  readonly rows: readonly { readonly id: string }[]
  readonly columns: SQL
  readonly set: SQL
}

export type Tx = {
  readonly db: TxDb
  /** Gives the rows new numbers of the feed at the end of the transaction. */
  touch(feed: Feed, ids: readonly string[]): void
  /**
   * Stores new values of rows in the same update that gives them their feed numbers, so that each of many rows is
   * written once and not twice. The new values are not readable before the end of the transaction.
   */
  storeTouched(feed: Feed, values: NewValues): void
  /** Leaves tombstones, with numbers of the feed, for rows that the transaction deletes for good. */
  leaveTombstones(feed: Feed, companyId: string, ids: readonly string[]): void
  /** Runs `act` after the work and before the feeds are numbered: for locks that all transactions take in one order. */
  beforeCommit(act: () => Promise<void>): void
  /** Runs `act` once the transaction is committed; it must not throw. */
  afterCommit(act: () => void): void
}

const FEED_TABLES: Readonly<Record<Feed, string>> = {
  agents: 'monitoring_agents',
  checks: 'monitoring_checks',
  rules: 'monitoring_rules',
  scan_hosts: 'scan_hosts',
  servers: 'servers',
  silences: 'monitoring_silences',
}

const keyOf = (feed: Feed): SQL => sql.raw(feed === 'scan_hosts' ? 'host_id' : 'id')

/**
 * Reserves numbers of a feed. The counter's row stays locked until the commit. Returns the number before the first one.
 */
async function takeNumbers(db: TxDb, feed: Feed, count: number): Promise<number> {
  const raised = await db.execute<{ value: string }>(
    sql`update monitoring_feed_counters set value = value + ${count} where feed = ${feed} returning value`,
  )
  return Number(raised[0]?.value) - count
}

async function numberRows(db: TxDb, feed: Feed, ids: readonly string[]): Promise<void> {
  const base = await takeNumbers(db, feed, ids.length)
  await db.execute(sql`
    update ${sql.identifier(FEED_TABLES[feed])} as t set sync_version = ${base}::bigint + x.ord
    from unnest(${uuidList(ids)}::uuid[]) with ordinality as x (id, ord) where t.${keyOf(feed)} = x.id`)
}

async function numberAndStore(db: TxDb, feed: Feed, { rows, columns, set }: NewValues): Promise<void> {
  const base = await takeNumbers(db, feed, rows.length)
  await db.execute(sql`
    update ${sql.identifier(FEED_TABLES[feed])} as t set sync_version = ${base}::bigint + x.ordinality, ${set}
    from rows from (jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (id uuid, ${columns})) with ordinality as x
    where t.${keyOf(feed)} = x.id`)
}

async function insertTombstones(db: TxDb, feed: Feed, companyId: string, ids: readonly string[]): Promise<void> {
  const base = await takeNumbers(db, feed, ids.length)
  await db.execute(sql`
    insert into monitoring_feed_tombstones (feed, id, company_id, sync_version)
    select ${feed}, x.id, ${companyId}, ${base}::bigint + x.ord
    from unnest(${uuidList(ids)}::uuid[]) with ordinality as x (id, ord)
    on conflict (feed, id) do update set sync_version = excluded.sync_version`)
}

type Tombstones = { readonly companyId: string; readonly ids: readonly string[] }
type Touched = { readonly ids: Set<string>; readonly values: NewValues[]; readonly tombstones: Tombstones[] }

/** Collects what one run of a transaction asked for, and does it at its end. */
class Ending {
  private readonly touched = new Map<Feed, Touched>()
  private readonly lastActs: (() => Promise<void>)[] = []
  private readonly acts: (() => void)[] = []

  constructor(private readonly db: TxDb) {}

  private of(feed: Feed): Touched {
    const known = this.touched.get(feed) ?? { ids: new Set(), values: [], tombstones: [] }
    this.touched.set(feed, known)
    return known
  }

  tx(): Tx {
    return {
      db: this.db,
      touch: (feed, ids) => {
        const known = this.of(feed).ids
        for (const id of ids) known.add(id)
      },
      storeTouched: (feed, values) => this.of(feed).values.push(values),
      leaveTombstones: (feed, companyId, ids) => this.of(feed).tombstones.push({ companyId, ids }),
      beforeCommit: act => this.lastActs.push(act),
      afterCommit: act => this.acts.push(act),
    }
  }

  /**
   * Takes the locks that many transactions compete for last, and always in one order: first the rows of waiting jobs,
   * then the feed counters by name. So a transaction that holds a counter never waits for a lock whose holder waits for
   * that counter.
   */
  async beforeCommit(): Promise<void> {
    for (const act of this.lastActs) await act()
    for (const [feed, { ids, values, tombstones }] of [...this.touched].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (ids.size > 0) await numberRows(this.db, feed, [...ids])
      for (const each of values) if (each.rows.length > 0) await numberAndStore(this.db, feed, each)
      for (const { companyId, ids } of tombstones)
        if (ids.length > 0) await insertTombstones(this.db, feed, companyId, ids)
    }
  }

  afterCommit(): void {
    for (const act of this.acts) act()
  }
}

/** The transactions whose handle was given out to be joined. */
const joinable = new WeakMap<object, Tx>()

/**
 * A handle of the database under which `inTransaction` works inside `tx` instead of opening a transaction of its own:
 * several acts that are each whole become one, together with what is written beside them. An act that throws must end
 * the whole: what it wrote before stays in `tx`.
 */
export function joining(tx: Tx): Db {
  joinable.set(tx.db, tx)
  // Queries are the same inside a transaction as outside; what differs, the pool itself, nobody reaches through a Db.
  return tx.db as TxDb & Db
}

/** How many times in all a transaction is run when the database aborts it because of a conflict with another one. */
const RUNS_MAX = 8
const RETRY_WAIT_MS = 10
/** A deadlock or a serialization failure: a second run may well succeed. */
const CONFLICTS = new Set(['40P01', '40001'])

/**
 * Runs `work` in one transaction. When the database aborts it because of a conflict with another transaction, the whole
 * of it is run again after a random wait whose bound doubles. So `work` must change nothing outside the transaction,
 * and leaves what follows the commit to `afterCommit`, which happens once.
 */
export async function inTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  const outer = joinable.get(db)
  if (outer) return work(outer)
  for (let run = 1; ; run++) {
    try {
      const { value, ending } = await db.transaction(async txDb => {
        const ending = new Ending(txDb)
        const value = await work(ending.tx())
        await ending.beforeCommit()
        return { value, ending }
      })
      ending.afterCommit()
      return value
    } catch (error) {
      if (run === RUNS_MAX || !CONFLICTS.has(sqlState(error) ?? '')) throw error
    }
    await beforeRun(run + 1)
  }
}

const beforeRun = (run: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, RETRY_WAIT_MS * 2 ** (run - 2) * Math.random()))

/** How many may write the same thing at once and each be told what became of it. */
const TAKEN_RUNS_MAX = 32
const UNIQUE_VIOLATION = '23505'

/**
 * A transaction that is run again when a unique index refuses what another one was faster to write: the next run finds
 * that, and says so or goes on from it. For acts that look for what is there before they write.
 */
export async function inTransactionUnlessTaken<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let run = 1; ; run++)
    try {
      return await inTransaction(db, work)
    } catch (error) {
      if (run === TAKEN_RUNS_MAX || sqlState(error) !== UNIQUE_VIOLATION) throw error
      await beforeRun(2)
    }
}

/** Thrown to roll a trial back. */
class TrialEnd<T> extends Error {
  constructor(readonly value: T) {
    super()
  }
}

/**
 * Runs `work` in a transaction. A trial does the same and rolls it back, so that it finds the faults that the real one
 * would find.
 */
export async function inTrial<T>(db: Db, isTrial: boolean, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await inTransaction(db, async tx => {
      const value = await work(tx)
      if (isTrial) throw new TrialEnd(value)
      return value
    })
  } catch (error) {
    // Thrown above with what `work` returned.
    if (error instanceof TrialEnd) return error.value as T
    throw error
  }
}

const FAILED_TRANSACTION = '25P02'

/**
 * Runs statements that do not need each other's results; each is sent while the database still runs the one before it.
 * All of them have ended when this returns or throws, since a statement that was sent after a failed transaction has
 * ended would run outside that transaction.
 */
export async function together<const T extends readonly Promise<unknown>[]>(
  acts: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  // A query is sent each time somebody awaits it, so each one is awaited here only once.
  const ended = await Promise.allSettled(acts)
  const faults = ended.flatMap(result => (result.status === 'rejected' ? [result.reason as unknown] : []))
  // Throws the error that aborted the transaction. The statements after it fail too, but only with FAILED_TRANSACTION.
  if (faults.length > 0) throw faults.find(fault => sqlState(fault) !== FAILED_TRANSACTION) ?? faults[0]
  const values = ended.map(result => (result.status === 'fulfilled' ? result.value : undefined))
  // One value for each statement, in their order.
  return values as { -readonly [K in keyof T]: Awaited<T[K]> }
}

/** Lifts the statement timeout for the rest of the transaction: purges and clean-up touch a great many rows. */
export async function allowLongStatements(tx: Tx): Promise<void> {
  await tx.db.execute(sql`set local statement_timeout = 0`)
}

/** Locks a company's row: transactions that change its servers, scopes, quota or settings go one after the other. */
export async function lockCompany(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select id from companies where id = ${companyId} for no key update`)
}

const LOCK_COMPANIES = fixedStatement<'ids'>(
  value => sql`select id from companies where id = any(${value('ids')}::uuid[]) order by id for no key update`,
)

/** The same for several companies, in one order for all. */
export async function lockCompanies(tx: Tx, companyIds: Iterable<string>): Promise<void> {
  await tx.db.execute(LOCK_COMPANIES({ ids: uuidList(companyIds) }))
}

/** A list of uuids as one parameter of a raw query. */
export const uuidList = (ids: Iterable<string>): string => `{${[...ids].join(',')}}`

/**
 * A column of uuids is any of a list, however long: one parameter, so that the statement is the same for every length.
 */
export const isAnyOf = (column: AnyColumn, ids: Iterable<string>): SQL => sql`${column} = any(${uuidList(ids)}::uuid[])`
