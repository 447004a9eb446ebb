// How the resources of a kind are found where each is a row of one table: by ids, by name, as a filtered list.
import { type AnyColumn, and, asc, count, eq, or, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Unchecked } from '../../../../core/json-object.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import type { Asked, Existing, ExportFilter, ManifestKind, Named, Reading } from './manifest-kind.ts'
import { nameOfSpec } from './spec-fields.ts'

/**
 * True for rows that have one of the ids or, regardless of case, of the names. The database says what the lower case
 * is: in the locale C letters beyond ASCII have none.
 */
export const isAsked = (id: AnyColumn, name: AnyColumn, { ids, names }: Asked): SQL =>
  or(
    isAnyOf(id, ids),
    sql`lower(${name}) in (select lower(asked) from jsonb_array_elements_text(${JSON.stringify(names)}::jsonb) asked)`,
  ) as SQL

/** What a filter by name means: rows of that name regardless of case, and the one whose manifest is called so. */
export const isNamed = (id: AnyColumn, column: AnyColumn, { name, boundId }: ExportFilter): SQL | undefined =>
  name === undefined
    ? undefined
    : or(sql`lower(${column}) = lower(${name})`, boundId === undefined ? undefined : eq(id, boundId))

type IdTable = PgTable & { readonly id: AnyColumn }

/** Ids and names of rows, as an index by name has them; `after` is the last one before them. */
export const namesInOrder = (
  { db }: Reading,
  { table, name }: { readonly table: IdTable; readonly name: AnyColumn },
  where: SQL | undefined,
  after: Named | null,
  limit: number,
): Promise<Named[]> =>
  db
    .select({ id: sql<string>`${table.id}`, name: sql<string>`${name}` })
    .from<IdTable>(table)
    .where(
      and(
        where,
        after === null ? undefined : sql`(lower(${name}), ${table.id}) > (lower(${after.name}), ${after.id}::uuid)`,
      ),
    )
    .orderBy(asc(sql`lower(${name})`), asc(table.id))
    .limit(limit)

type NamedTable = IdTable & { readonly createdAt: AnyColumn }

type NamedRows<T extends NamedTable> = {
  readonly table: T
  readonly name: AnyColumn
  /** Rows that count as resources of the kind. */
  readonly ofCompany: (companyId: string) => SQL | undefined
  /** `ofCompany`, and what the filter says. */
  readonly filtered: (reading: Reading, filter: ExportFilter) => SQL | undefined
  /** What a manifest without binding may mean; without it, what has its name regardless of case. */
  readonly isMeant?: (spec: Unchecked) => SQL | undefined
  readonly read: (reading: Reading, rows: readonly T['$inferSelect'][]) => Promise<Existing[]>
}

/** The reading half of a kind. Lists are sorted by name, then by age. */
export function namedRows<T extends NamedTable>(rows: NamedRows<T>) {
  const { table, name, ofCompany, filtered, isMeant, read } = rows
  const byAge = [asc(table.createdAt), asc(table.id)]
  const where = ({ db }: Reading, condition: SQL | undefined) => db.select().from<NamedTable>(table).where(condition)
  return {
    names: ({ db, companyId }, asked) =>
      db
        .select({ id: sql<string>`${table.id}`, name: sql<string>`${name}` })
        .from<NamedTable>(table)
        .where(and(ofCompany(companyId), isAsked(table.id, name, asked))),
    namesAfter: (reading, after, limit) => namesInOrder(reading, rows, filtered(reading, {}), after, limit),
    byIds: async (reading, ids) =>
      read(reading, await where(reading, and(ofCompany(reading.companyId), isAnyOf(table.id, ids)))),
    candidates: async (reading, spec, slug) => {
      const meant = isMeant?.(spec) ?? sql`lower(${name}) = lower(${nameOfSpec(spec, slug)})`
      return read(reading, await where(reading, and(ofCompany(reading.companyId), meant)).orderBy(...byAge))
    },
    list: async (reading, filter, { limit, offset }) =>
      read(
        reading,
        await where(reading, filtered(reading, filter))
          .orderBy(asc(sql`lower(${name})`), ...byAge)
          .limit(limit)
          .offset(offset),
      ),
    count: async (reading, filter) => {
      const [row] = await reading.db.select({ total: count() }).from<NamedTable>(table).where(filtered(reading, filter))
      return row?.total ?? 0
    },
  } satisfies Pick<ManifestKind, 'names' | 'namesAfter' | 'byIds' | 'candidates' | 'list' | 'count'>
}
