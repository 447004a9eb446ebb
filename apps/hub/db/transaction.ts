// A transaction of the hub: its writes, the feeds it touches, and what happens after it is committed.
//
// Feed numbers (decision G-88): one counter row a feed, raised under its row lock as the last act before the commit, so
// that commit order equals number order and a reader that has seen number n will never meet a lower one later.
import { type AnyColumn, type SQL, sql } from 'drizzle-orm'
import type { Db, TxDb } from './connect.ts'

export type Feed = 'agents' | 'checks' | 'rules' | 'servers' | 'silences'

export type Tx = {
  readonly db: TxDb
  /** Gives the rows new numbers of the feed at the end of the transaction. */
  touch(feed: Feed, ids: readonly string[]): void
  /** Runs when the work is done, before the feeds are numbered: for locks that everybody takes in one order. */
  beforeCommit(act: () => Promise<void>): void
  /** Runs once the transaction is committed; must not throw. */
  afterCommit(act: () => void): void
}

const FEED_TABLES: Readonly<Record<Feed, string>> = {
  agents: 'monitoring_agents',
  checks: 'monitoring_checks',
  rules: 'monitoring_rules',
  servers: 'servers',
  silences: 'monitoring_silences',
}

async function numberRows(db: TxDb, feed: Feed, ids: readonly string[]): Promise<void> {
  const raised = await db.execute<{ value: string }>(
    sql`update monitoring_feed_counters set value = value + ${ids.length} where feed = ${feed} returning value`,
  )
  const base = Number(raised[0]?.value) - ids.length
  const list = `{${ids.join(',')}}`
  await db.execute(sql`
    update ${sql.identifier(FEED_TABLES[feed])} as t set sync_version = ${base}::bigint + x.ord
    from unnest(${list}::uuid[]) with ordinality as x (id, ord) where t.id = x.id`)
}

/** Runs `work` in one transaction. Feeds are numbered in one order everywhere, so two transactions cannot deadlock on them. */
export async function inTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  const acts: (() => void)[] = []
  const lastActs: (() => Promise<void>)[] = []
  const result = await db.transaction(async txDb => {
    const touched = new Map<Feed, Set<string>>()
    const value = await work({
      db: txDb,
      touch(feed, ids) {
        const known = touched.get(feed) ?? new Set<string>()
        for (const id of ids) known.add(id)
        touched.set(feed, known)
      },
      beforeCommit: act => lastActs.push(act),
      afterCommit: act => acts.push(act),
    })
    for (const act of lastActs) await act()
    for (const feed of [...touched.keys()].sort()) {
      const ids = [...(touched.get(feed) ?? [])]
      if (ids.length > 0) await numberRows(txDb, feed, ids)
    }
    return value
  })
  for (const act of acts) act()
  return result
}

/**
 * Statements that do not need each other's answers: each is made while the database runs the one before it. All of them have ended when
 * this returns or throws; one that came after the end of a transaction that failed would be none of it.
 */
export async function together<T extends readonly Promise<unknown>[]>(
  acts: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  // Each is asked once: a statement runs whenever somebody waits for it.
  const ended = await Promise.allSettled(acts)
  const values = ended.map(result => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  // One value an act, in their order.
  return values as { -readonly [K in keyof T]: Awaited<T[K]> }
}

/** Leaves tombstones of rows that are about to be deleted for good, with numbers of their feed. */
export async function leaveTombstones(tx: Tx, feed: Feed, companyId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const raised = await tx.db.execute<{ value: string }>(
    sql`update monitoring_feed_counters set value = value + ${ids.length} where feed = ${feed} returning value`,
  )
  const base = Number(raised[0]?.value) - ids.length
  await tx.db.execute(sql`
    insert into monitoring_feed_tombstones (feed, id, company_id, sync_version)
    select ${feed}, x.id, ${companyId}, ${base}::bigint + x.ord
    from unnest(${uuidList(ids)}::uuid[]) with ordinality as x (id, ord)
    on conflict (feed, id) do update set sync_version = excluded.sync_version`)
}

/** For the rest of the transaction a statement may take as long as it needs: purges and clean-up touch a great many rows. */
export async function allowLongStatements(tx: Tx): Promise<void> {
  await tx.db.execute(sql`set local statement_timeout = 0`)
}

/** Locks a company's row: transactions that change its servers, scopes, quota or settings go one after the other. */
export async function lockCompany(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select id from companies where id = ${companyId} for no key update`)
}

/** The same for several companies, in one order for all. */
export async function lockCompanies(tx: Tx, companyIds: Iterable<string>): Promise<void> {
  await tx.db.execute(
    sql`select id from companies where id = any(${uuidList(companyIds)}::uuid[]) order by id for no key update`,
  )
}

/** A list of uuids as one parameter of a raw query. */
export const uuidList = (ids: Iterable<string>): string => `{${[...ids].join(',')}}`

/** A column of uuids is any of a list, however long: one parameter, so that the statement is the same for every length. */
export const isAnyOf = (column: AnyColumn, ids: Iterable<string>): SQL => sql`${column} = any(${uuidList(ids)}::uuid[])`
