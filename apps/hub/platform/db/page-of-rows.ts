// A page of rows and the total number of rows in one round trip: the select and the count are sent together.
import { type AnyColumn, and, asc, count, eq, gt, ilike, or, type Placeholder, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { Executor } from './connect.ts'
import { ListStatements, listValues } from './list-statements.ts'
import { isAnyOf } from './transaction.ts'

/** The condition that rows must meet; undefined means that every row meets it. */
export type Condition = SQL | undefined

/** Where a page begins and how many rows it has at most. */
export type RowRange = { readonly limit: number; readonly offset: number }
export type PageOfRows<Row> = { readonly rows: readonly Row[]; readonly total: number }

type Preparable<Row> = { prepare(name: string): { execute(values: Readonly<Record<string, unknown>>): Promise<Row[]> } }
type Limited<Row> = { offset(offset: Placeholder): Preparable<Row> }
type Ordered<Row> = Preparable<Row> & { limit(limit: Placeholder): Limited<Row> }
type Chosen<Row> = PromiseLike<Row[]> & { orderBy(...order: SQL[]): Ordered<Row> }
/** A select of drizzle that has no condition yet. */
type Selection<Row> = { where(condition: Condition): Chosen<Row> }

export type Owner = string | Placeholder

type IdTable = PgTable & { readonly id: AnyPgColumn }

/**
 * How the rows of a page are found. `rows`: by one select, for tables without wide joins. `ids`: one statement finds
 * the ids in an index and selects the columns of these rows only. `ids_first`: the same in two statements, for selects
 * whose plan must not depend on the filters.
 */
export type PageBy = 'rows' | 'ids' | 'ids_first'

export type RowSource<Row> = {
  readonly table: IdTable
  /**
   * The owner is who the collection belongs to: most often a company. It is a placeholder where the statement is kept.
   */
  readonly select: (db: Executor, owner: Owner) => Selection<Row>
  /** A total order: no two rows compare equal. */
  readonly order: readonly SQL[]
  readonly pageBy: PageBy
}

/** The rows to read from a source: `owned` selects the rows of the owner, `where` applies the filters to them. */
type Asked = { readonly ownerId: string; readonly owned: Condition; readonly where: Condition }

/** Reads pages of a source, from outside transactions. */
export class PageReader<Row> {
  private readonly counts = new ListStatements<{ total: number }>()
  private readonly ids = new ListStatements<{ id: unknown }>()
  private readonly pages = new ListStatements<Row>()
  private readonly steps = new ListStatements<Row>()

  constructor(private readonly source: RowSource<Row>) {}

  /** The page and the exact total. `total` replaces the count query where the collection already keeps a count. */
  async read(
    db: Executor,
    { ownerId, owned, where: among }: Asked,
    range: RowRange,
    total?: () => Promise<number>,
  ): Promise<PageOfRows<Row>> {
    const { table, order, pageBy, select } = this.source
    const where = and(owned, among)
    const counted = () => total?.() ?? this.count(db, where, values)
    const values = { owner: ownerId, limit: range.limit, offset: range.offset }
    if (pageBy === 'ids_first') {
      const [found, all] = await Promise.all([
        this.ids.run(db, where, values, condition => this.idsWhere(db, condition)),
        counted(),
      ])
      const idsOfPage = found.map(row => String(row.id))
      if (idsOfPage.length === 0) return { rows: [], total: all }
      const ofPage = and(owned, isAnyOf(table.id, idsOfPage))
      const rows = await this.pages.run(db, ofPage, values, condition =>
        select(db, listValues.owner)
          .where(condition)
          .orderBy(...order),
      )
      return { rows, total: all }
    }
    const rows = this.pages.run(db, where, values, condition => {
      const chosen = select(db, listValues.owner)
      // An array of ids is looked up one by one. Of `in (select …)` a kept plan reads the whole table, for it does not
      // know how few there are.
      return pageBy === 'ids'
        ? chosen.where(sql`${table.id} = any(array(${this.idsWhere(db, condition)}))`).orderBy(...order)
        : chosen
            .where(condition)
            .orderBy(...order)
            .limit(listValues.limit)
            .offset(listValues.offset)
    })
    const [page, all] = await Promise.all([rows, counted()])
    return { rows: page, total: all }
  }

  /** The rows whose id comes after one, in the order of ids. */
  readAfter(db: Executor, { ownerId, owned, where: among }: Asked, afterId: string, limit: number): Promise<Row[]> {
    const { table, select } = this.source
    return this.steps.run(
      db,
      and(owned, among, gt(table.id, afterId)),
      { owner: ownerId, limit, offset: 0 },
      condition =>
        select(db, listValues.owner)
          .where(condition)
          .orderBy(asc(table.id))
          .limit(listValues.limit)
          .offset(listValues.offset),
    )
  }

  private idsWhere(db: Executor, condition: Condition) {
    const { table, order } = this.source
    return db
      .select({ id: table.id })
      .from(table)
      .where(condition)
      .orderBy(...order)
      .limit(listValues.limit)
      .offset(listValues.offset)
  }

  private async count(db: Executor, where: Condition, values: Parameters<typeof this.counts.run>[2]): Promise<number> {
    const { table } = this.source
    const [row] = await this.counts.run(db, where, values, condition =>
      db.select({ total: count() }).from(table).where(condition),
    )
    return row?.total ?? 0
  }
}

/**
 * The row with an id, or null. With a lock, the row stays locked until the transaction ends. It is read after it is
 * locked: what a locking select reads of other tables would be of before the wait.
 */
export async function rowOfId<Row>(
  db: Executor,
  { table, select }: Pick<RowSource<Row>, 'table' | 'select'>,
  ownerId: string,
  where: Condition,
  id: string,
  locks: boolean,
): Promise<Row | null> {
  if (locks) await db.select({ id: table.id }).from(table).where(eq(table.id, id)).for('update')
  const [row] = await select(db, ownerId).where(and(where, eq(table.id, id)))
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
