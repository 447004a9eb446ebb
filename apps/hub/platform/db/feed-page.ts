// A page of a feed: records of every company, ascending by sync_version, tombstones included (decisions G-88, G-89). A
// page is bounded in records and in bytes, so that what one company has never stops the delivery to the others; each
// page holds at least one record.
import { type SQL, sql } from 'drizzle-orm'
import { limits } from '../../../../core/limits.ts'
import type { Db } from './connect.ts'
import type { Feed } from './transaction.ts'

export type FeedRecord = { readonly sync_version: number } & Readonly<Record<string, unknown>>

export type FeedPage = { readonly records: readonly FeedRecord[]; readonly nextSince: number; readonly more: boolean }

type TombstoneRow = { id: string; company_id: string; sync_version: string }

/** What every live row of a page has besides its columns; `available` only where rows have a bound of their bytes. */
export type PageRow = Record<string, unknown> & { readonly sync_version: string; readonly available?: number }

/** The source of the live rows of a feed. */
export type LiveRows = {
  /** The table, under the name `r`, with what is joined to it. */
  readonly from: SQL
  readonly table: SQL
  readonly columns: SQL
  /**
   * The upper bound of a row's bytes as JSON, from the columns of the table alone; null where rows are always small.
   */
  readonly bytes: SQL | null
  /** The column that identifies a row. */
  readonly key?: SQL
}

/**
 * At most `limit` rows after a number; the row that makes the page large enough is the last. The bound is computed from
 * small columns, so that the long lists of a row on the next page are not read. `available` is the number of candidate
 * rows.
 */
function liveRows({ from, table, columns, bytes, key = sql`id` }: LiveRows, since: number, limit: number): SQL {
  if (bytes === null)
    return sql`
      select ${columns}, r.sync_version from ${from}
      where r.sync_version > ${since} order by r.sync_version limit ${limit + 1}`
  return sql`
    select ${columns}, r.sync_version, p.available from (
      select ${key}, sum(bytes) over (order by sync_version) - bytes as bytes_before,
        (count(*) over ())::int as available from (
        select ${key}, sync_version, ${bytes} as bytes from ${table} r
        where sync_version > ${since} order by sync_version limit ${limit + 1}) x) p
    join ${from} on r.${key} = p.${key}
    where p.bytes_before < ${limits.feedPageBytes} order by r.sync_version`
}

/**
 * One page of a feed: live rows and tombstones, merged by number. Both are read in one snapshot: of two snapshots the
 * later could show a number above one that the earlier did not have yet, and the reader would skip it.
 */
export async function pageOfFeed<T extends PageRow>(
  db: Db,
  feed: Feed,
  since: number,
  limit: number,
  rows: LiveRows,
  present: (row: T) => FeedRecord,
  presentTombstone: (row: TombstoneRow) => FeedRecord,
): Promise<FeedPage> {
  const [found, gone] = await db.transaction(
    async (tx): Promise<[readonly unknown[], readonly TombstoneRow[]]> => [
      await tx.execute(liveRows(rows, since, limit)),
      await tx.execute<TombstoneRow>(sql`
        select id, company_id, sync_version from monitoring_feed_tombstones
        where feed = ${feed} and sync_version > ${since} order by sync_version limit ${limit + 1}`),
    ],
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
  const live = found as readonly T[]
  const isCut = live.length < (live[0]?.available ?? 0)
  // When a page was cut for its bytes, everything after its last row belongs to the next page, tombstones too.
  const lastNumber = isCut ? Number(live.at(-1)?.sync_version) : Number.POSITIVE_INFINITY
  const all = [
    ...live.map(present),
    ...gone.filter(row => Number(row.sync_version) < lastNumber).map(row => presentTombstone(row)),
  ]
  if (gone.length > 0) all.sort((a, b) => a.sync_version - b.sync_version)
  const records = all.slice(0, limit)
  return { records, nextSince: records.at(-1)?.sync_version ?? since, more: isCut || all.length > limit }
}
