import { and, eq, getTableColumns, getTableName, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { CommonRow, Kind } from './kind.ts'

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
export const selectRows = (kind: Pick<Kind, 'table' | 'parent'>, db: Executor) =>
  db.select(selectionOf(kind)).from(kind.table)

/** The rows that a statement stores, which returns all their columns. */
export async function storedRows<Row extends CommonRow>(
  kind: Kind<Row>,
  tx: Tx,
  statement: SQL,
): Promise<Found<Row>[]> {
  const { table } = kind
  // Under the name of the table, so that the selection means what was stored: the table itself does not show it yet.
  const stored = tx.db.$with(getTableName(table), {}).as(statement)
  return (await tx.db.with(stored).select(selectionOf(kind)).from(table)) as Found<Row>[]
}

type Which = 'kept' | 'deleted' | 'any'
/** The lock of a change lets others name the row meanwhile, the one of a deletion does not (references.ts). */
type LockFor = 'change' | 'deletion'
export const ofWhich = ({ table }: Pick<Kind, 'table'>, which: Which): SQL | undefined =>
  which === 'any' ? undefined : which === 'kept' ? isNull(table.deleted_at) : isNotNull(table.deleted_at)

async function foundRow<Row extends CommonRow>(
  kind: Kind<Row>,
  db: Executor,
  companyId: string,
  id: string,
  which: Which,
  locksFor: LockFor | null,
): Promise<Found<Row>> {
  if (!isUuid(id)) throw notFound()
  const { table } = kind
  const where = and(eq(table.company_id, companyId), eq(table.id, id), ofWhich(kind, which))
  const chosen = selectRows(kind, db).where(where)
  const strength = locksFor === 'deletion' ? 'update' : 'no key update'
  const [row] = await (locksFor ? chosen.for(strength, { of: table }) : chosen)
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
) => foundRow(kind, db, companyId, id, which, null)

/** The same, locked until the transaction ends, after what the kind locks first. */
export async function lockRow<Row extends CommonRow>(
  kind: Kind<Row>,
  tx: Tx,
  companyId: string,
  id: string,
  which: Which = 'kept',
  locksFor: LockFor = 'change',
): Promise<Found<Row>> {
  await kind.hooks.lock?.(tx, companyId)
  return foundRow(kind, tx.db, companyId, id, which, locksFor)
}

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
