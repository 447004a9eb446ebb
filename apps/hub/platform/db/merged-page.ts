// A page of what stands in several tables, newest first. Of each table only what may be on the page is sorted, which an
// index does; together they have no index. The older half is read from its end: of a page among the last all rows
// before it would be sorted otherwise.
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from './connect.ts'
import type { PageOfRows, RowRange } from './page-of-rows.ts'

/**
 * Each part selects `columns`; `order` is one of these columns that indexes of the parts have, and `backwards` the
 * same from the last row to the first.
 */
type Parts = {
  readonly parts: readonly SQL[]
  readonly columns: SQL
  readonly order: SQL
  readonly backwards: SQL
}

/** Up to here a page is read beside the count, and not after it: most people look at the first pages. */
const NEAR_ROWS = 1_000

async function countOf(db: Db, { parts }: Parts): Promise<number> {
  const counts = parts.map(part => sql`(select count(*) from (${part}) p)`)
  const [row] = await db.execute<{ total: number }>(sql`select (${sql.join(counts, sql` + `)})::int as total`)
  return row?.total ?? 0
}

async function rowsOf<Row extends Record<string, unknown>>(
  db: Db,
  { parts, columns }: Parts,
  order: SQL,
  { limit, offset }: RowRange,
): Promise<Row[]> {
  const first = parts.map(part => sql`(select ${columns} from (${part}) p order by ${order} limit ${limit + offset})`)
  const rows: readonly Record<string, unknown>[] = await db.execute(sql`
    select ${columns} from (${sql.join(first, sql` union all `)}) h order by ${order} limit ${limit} offset ${offset}`)
  // The columns that were asked for are those of a row.
  return [...rows] as Row[]
}

export async function mergedPage<Row extends Record<string, unknown>>(
  db: Db,
  parts: Parts,
  range: RowRange,
): Promise<PageOfRows<Row>> {
  const { limit, offset } = range
  if (offset <= NEAR_ROWS) {
    const [rows, total] = await Promise.all([rowsOf<Row>(db, parts, parts.order, range), countOf(db, parts)])
    return { rows, total }
  }
  const total = await countOf(db, parts)
  if (offset * 2 < total) return { rows: await rowsOf<Row>(db, parts, parts.order, range), total }
  const after = Math.max(0, total - offset - limit)
  const count = Math.max(0, total - offset - after)
  const rows = count === 0 ? [] : await rowsOf<Row>(db, parts, parts.backwards, { limit: count, offset: after })
  return { rows: rows.reverse(), total }
}
