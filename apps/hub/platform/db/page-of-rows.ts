// A page of rows and the total number of rows in one round trip: the select and the count are sent together.
import { type AnyColumn, and, count, eq, ilike, inArray, or, type SQL } from 'drizzle-orm'
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { Executor } from './connect.ts'
import { isAnyOf } from './transaction.ts'

/** The condition that rows must meet; undefined means that every row meets it. */
export type Condition = SQL | undefined

/** Where a page begins and how many rows it has at most. */
export type RowRange = { readonly limit: number; readonly offset: number }
export type PageOfRows<Row> = { readonly rows: readonly Row[]; readonly total: number }

type Limited<Row> = { offset(offset: number): PromiseLike<Row[]> }
type Ordered<Row> = PromiseLike<Row[]> & { limit(limit: number): Limited<Row> }
type Chosen<Row> = PromiseLike<Row[]> & {
  orderBy(...order: SQL[]): Ordered<Row>
  for(strength: 'update', config: { of: PgTable }): PromiseLike<Row[]>
}
/** A select of drizzle that has no condition yet. */
type Selection<Row> = { where(condition: Condition): Chosen<Row> }

type IdTable = PgTable & { readonly id: AnyPgColumn }

/**
 * How the rows of a page are found. `rows`: by one select, for tables without wide joins. `ids`: one statement finds
 * the ids in an index and selects the columns of these rows only. `ids_first`: the same in two statements, for selects
 * whose plan must not depend on the filters.
 */
export type PageBy = 'rows' | 'ids' | 'ids_first'

export type RowSource<Row> = {
  readonly table: IdTable
  /** The owner is who the collection belongs to: most often a company. */
  readonly select: (db: Executor, ownerId: string) => Selection<Row>
  /** A total order: no two rows compare equal. */
  readonly order: readonly SQL[]
  readonly pageBy: PageBy
}

const countRows = async (db: Executor, table: PgTable, where: Condition): Promise<number> => {
  const [row] = await db.select({ total: count() }).from(table).where(where)
  return row?.total ?? 0
}

/** The rows to read from a source: `owned` selects the rows of the owner, `where` applies the filters to them. */
type Asked = { readonly ownerId: string; readonly owned: Condition; readonly where: Condition }

/** The page and the exact total. `total` replaces the count query where the collection already keeps a count. */
export async function pageOfRows<Row>(
  db: Executor,
  { table, select, order, pageBy }: RowSource<Row>,
  { ownerId, owned, where: among }: Asked,
  { limit, offset }: RowRange,
  total: () => Promise<number> = () => countRows(db, table, and(owned, among)),
): Promise<PageOfRows<Row>> {
  const where = and(owned, among)
  const ids = () =>
    db
      .select({ id: table.id })
      .from(table)
      .where(where)
      .orderBy(...order)
      .limit(limit)
      .offset(offset)
  const chosen = select(db, ownerId)
  if (pageBy === 'ids_first') {
    const [found, all] = await Promise.all([ids(), total()])
    const idsOfPage = found.map(row => String(row.id))
    const rows =
      idsOfPage.length > 0 ? await chosen.where(and(owned, isAnyOf(table.id, idsOfPage))).orderBy(...order) : []
    return { rows, total: all }
  }
  const rows =
    pageBy === 'ids'
      ? chosen.where(inArray(table.id, ids())).orderBy(...order)
      : chosen
          .where(where)
          .orderBy(...order)
          .limit(limit)
          .offset(offset)
  const [page, all] = await Promise.all([rows, total()])
  return { rows: page, total: all }
}

/** The row with an id, or null. With a lock, the row stays locked until the transaction ends. */
export async function rowOfId<Row>(
  db: Executor,
  { table, select }: Pick<RowSource<Row>, 'table' | 'select'>,
  ownerId: string,
  where: Condition,
  id: string,
  locks: boolean,
): Promise<Row | null> {
  const chosen = select(db, ownerId).where(and(where, eq(table.id, id)))
  const [row] = await (locks ? chosen.for('update', { of: table }) : chosen)
  return row ?? null
}

/** Every condition of a list holds. */
export const allOf = (conditions: readonly Condition[]): Condition => and(...conditions)

/** The pattern of `ilike` for texts that contain the given one; its special characters are escaped. */
export const likePattern = (search: string): string => `%${search.replace(/[\\%_]/g, char => `\\${char}`)}%`

/** True when one of the columns contains the text, regardless of case. */
export const holdsText = (columns: readonly AnyColumn[], search: string): Condition =>
  or(...columns.map(column => ilike(column, likePattern(search))))

export const isEqual = (column: AnyColumn, value: unknown): Condition => eq(column, value)
