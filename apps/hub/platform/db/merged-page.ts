// A page of what stands in several tables, newest first. Of each table only what may be on the page is sorted, which an
// index does; together they have no index.
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from './connect.ts'
import type { PageOfRows, RowRange } from './page-of-rows.ts'

/** Each part selects `columns`; `order` is one of these columns that indexes of the parts have. */
type Parts = { readonly parts: readonly SQL[]; readonly columns: SQL; readonly order: SQL }

export async function mergedPage<Row extends Record<string, unknown>>(
  db: Db,
  { parts, columns, order }: Parts,
  { limit, offset }: RowRange,
): Promise<PageOfRows<Row>> {
  const newest = parts.map(part => sql`(select ${columns} from (${part}) p order by ${order} limit ${limit + offset})`)
  const counts = parts.map(part => sql`(select count(*) from (${part}) p)`)
  const [rows, [counted]] = await Promise.all([
    db.execute(sql`
      select ${columns} from (${sql.join(newest, sql` union all `)}) h order by ${order} limit ${limit} offset ${offset}`),
    db.execute<{ total: number }>(sql`select (${sql.join(counts, sql` + `)})::int as total`),
  ])
  // The columns that were asked for are those of a row.
  return { rows: [...rows] as readonly Row[], total: counted?.total ?? 0 }
}
