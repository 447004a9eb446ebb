// Rows of a kind: how one is found and locked, and how its list is read and filtered.
import { Type } from '@sinclair/typebox'
import { and, eq, getTableColumns, gte, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'
import { notFound, permissionDenied } from '../platform/http/api-error.ts'
import { equals, filter, isOn, ofCompany } from '../platform/http/collection.ts'
import { flag, flagOf, instant, isUuid, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import type { Values } from './field.ts'
import { type CommonRow, columnNamed, healths, type Kind, origins } from './kind.ts'

/** A row with the names of the people and teams that it names. */
export type Found<Row extends CommonRow = CommonRow> = Row & {
  readonly owner_id: string | null
  readonly owner_name: string | null
  readonly created_by_name: string | null
  readonly updated_by_name: string | null
  /** The newest probe is too old to speak for it. */
  readonly is_probe_old: boolean
}

/** The owner of a part is that of its parent. */
function ownerOf({ table, parent }: Pick<Kind, 'table' | 'parent'>): SQL {
  if (!parent) return sql`${table}.owner_team_id`
  const { of, column } = parent
  return sql`(select p.owner_team_id from ${of.table} p where p.id = ${table}.${sql.identifier(column)})`
}

function selectionOf(kind: Pick<Kind, 'table' | 'parent'>) {
  const { table } = kind
  const { search_text, ...columns } = getTableColumns(table)
  const owner = ownerOf(kind)
  // The table is named in full: a bare name would mean the inner table's column.
  const nameOf = (id: SQL) => sql<string | null>`(select u.name from users u where u.id = ${id})`
  return {
    ...columns,
    owner_id: sql<string | null>`${owner}`,
    owner_name: sql<string | null>`(select t.name from teams t where t.id = ${owner})`,
    created_by_name: nameOf(sql`${table}.created_by`),
    updated_by_name: nameOf(sql`${table}.updated_by`),
    is_probe_old: sql<boolean>`coalesce(${table}.probe_until < now(), false)`,
  }
}

/** The rows of a kind, without where and order. */
const selectRows = (kind: Pick<Kind, 'table' | 'parent'>, db: Executor) => db.select(selectionOf(kind)).from(kind.table)

type Which = 'kept' | 'deleted' | 'any'
const ofWhich = ({ table }: Pick<Kind, 'table'>, which: Which): SQL | undefined =>
  which === 'any' ? undefined : which === 'kept' ? isNull(table.deleted_at) : isNotNull(table.deleted_at)

async function foundRow<Row extends CommonRow>(
  kind: Kind<Row>,
  db: Executor,
  companyId: string,
  id: string,
  which: Which,
  locks: boolean,
): Promise<Found<Row>> {
  if (!isUuid(id)) throw notFound()
  const { table } = kind
  const where = and(eq(table.company_id, companyId), eq(table.id, id), ofWhich(kind, which))
  const chosen = selectRows(kind, db).where(where)
  const [row] = await (locks ? chosen.for('no key update', { of: table }) : chosen)
  if (!row) throw notFound()
  // The columns of the table are those of the kind's fields, whose types `Row` has.
  return row as Found<Row>
}

/** The resource of the company with an id. Throws 404. */
export const findRow = <Row extends CommonRow>(
  kind: Kind<Row>,
  db: Executor,
  companyId: string,
  id: string,
  which: Which = 'kept',
) => foundRow(kind, db, companyId, id, which, false)

/** The same, locked until the transaction ends, after what the kind locks first. */
export async function lockRow<Row extends CommonRow>(
  kind: Kind<Row>,
  tx: Tx,
  companyId: string,
  id: string,
  which: Which = 'kept',
): Promise<Found<Row>> {
  await kind.hooks.lock?.(tx, companyId)
  return foundRow(kind, tx.db, companyId, id, which, true)
}

/** The same, for who has locked what comes first. */
export const lockRowAlone = <Row extends CommonRow>(kind: Kind<Row>, tx: Tx, companyId: string, id: string) =>
  foundRow(kind, tx.db, companyId, id, 'kept', true)

/** The resources of the company with these ids, in no order. */
export async function rowsOfIds<Row extends CommonRow>(
  kind: Kind<Row>,
  db: Executor,
  companyId: string,
  ids: readonly string[],
  which: Which = 'kept',
): Promise<Found<Row>[]> {
  if (ids.length === 0) return []
  const { table } = kind
  const where = and(eq(table.company_id, companyId), isAnyOf(table.id, ids), ofWhich(kind, which))
  return (await selectRows(kind, db).where(where)) as Found<Row>[]
}

/** The health that is answered: what no probe speaks for any more is unknown (R-009). */
export const healthShown = (row: Found): string => (row.is_probe_old ? 'unknown' : row.health)

function healthFilter({ table }: Kind) {
  // Written out, so that PostgreSQL knows how many rows meet it.
  const isOld = sql`${table}.probe_until < now()`
  const isFresh = sql`(${table}.probe_until is null or ${table}.probe_until >= now())`
  return filter(oneOf(healths), value =>
    value === 'unknown' ? or(eq(table.health, 'unknown'), isOld) : and(eq(table.health, value), isFresh),
  )
}

/** The filters that follow from the traits of fields. */
const fieldFilters = ({ fields, table }: Kind) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { filter: isFilter, value }]) => {
      if (!isFilter) return []
      const column = columnNamed(table, name)
      return [[name, value.type === 'boolean' ? isOn(column) : equals(column, value)]]
    }),
  )

/** The filters and the order of a kind's list; `present` and `presentPage` make answers of its rows. */
export function rowCollection(kind: Kind) {
  const { table, info, parent } = kind
  const filters = {
    search: filter(text(255), value => sql`${table.search_text} like lower(${likePattern(value)})`),
    tag: filter(Type.Array(text(128), { maxItems: 50 }), tags => sql`${table}.tags @> ${textList(tags)}::text[]`),
    ...fieldFilters(kind),
    health: healthFilter(kind),
    origin: equals(table.origin, oneOf(origins)),
    drifted: isOn(table.drifted),
    updated_from: filter(instant(), value => gte(table.updated_at, new Date(value))),
    trashed: filter(flag(), () => undefined),
    sort: filter(oneOf(Object.keys(kind.sorts)), () => undefined),
    ...kind.filters,
  }
  const within: Readonly<Record<string, ReturnType<typeof filter>>> = parent
    ? { parent_id: equals(columnNamed(table, parent.column), uuid()) }
    : {}
  return {
    filters,
    table,
    scope: ofCompany(table.company_id),
    order: kind.sorts[kind.usualSort] ?? [],
    sorts: kind.sorts,
    pageBy: 'ids' as const,
    within,
    select: (db: Executor) => selectRows(kind, db),
    always: (given: Values, asker: { readonly caller: { readonly permissions: ReadonlySet<string> } }) => {
      const isTrash = flagOf(given.trashed as Parameters<typeof flagOf>[0]) === true
      if (isTrash && !asker.caller.permissions.has(info.permissions.manage))
        throw permissionDenied(info.permissions.manage)
      return ofWhich(kind, isTrash ? 'deleted' : 'kept')
    },
  }
}

/** A list of texts as one parameter of a raw query. */
const textList = (texts: readonly string[]): string =>
  `{${texts.map(each => `"${each.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`).join(',')}}`
