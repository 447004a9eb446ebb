// What names what: references of a row that is written must be resources of the company (RES-004), and what others name
// is not deleted (R-004).
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { textsMeaning } from './address-links.ts'
import type { Editor } from './editor.ts'
import type { KindInfo, Kinds, Reference } from './kind-info.ts'

const REFERRERS_MAX = 20

/** Rows of a table that are not deleted. Tables of before name their column of the trash alike, or have none. */
const KEPT: Readonly<Record<string, string>> = {
  teams: 'true',
  users: 'disabled_at is null',
  webhooks: 'true',
  monitoring_agents: "state <> 'revoked'",
  monitoring_licenses: 'true',
  monitoring_alerts: 'true',
  option_items: 'true',
}
const isKept = (table: string) => sql.raw(KEPT[table] ?? 'deleted_at is null')

/** The ids that the company does not have as resources of the kind, or has no more. */
async function unknownIds(
  db: Executor,
  companyId: string,
  { table }: KindInfo,
  ids: readonly string[],
): Promise<Set<string>> {
  const rows = await db.execute<{ id: string }>(sql`
    select id from ${sql.identifier(table)} where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
      and ${isKept(table)} for key share`)
  const known = new Set(rows.map(row => row.id))
  return new Set(ids.filter(id => !known.has(id)))
}

/** A row on its way: as it was, null for a new one, and as it will be. */
export type Change = { readonly before: Unchecked | null; readonly next: Unchecked }

/** What a row names through a reference that changes. */
type Named = { readonly row: number; readonly field: string; readonly kind: string; readonly id: string }

function namedBy({ references }: KindInfo, { before, next }: Change, row: number): Named[] {
  return references.flatMap(({ field, to, column, isList, kindColumn, isAddress }) => {
    // The text of an address may be that of nobody's.
    if (isAddress) return []
    const kind = to ?? (kindColumn ? next[kindColumn] : null)
    const value = next[column]
    if (typeof kind !== 'string' || value === null || value === undefined) return []
    if (before && JSON.stringify(before[column]) === JSON.stringify(value)) return []
    const ids = (isList && Array.isArray(value) ? value : [value]).map(String)
    const place = (index: number): string => (isList ? `${field}.${index}` : kindColumn ? `${field}.id` : field)
    return ids.map((id, index) => ({ row, field: place(index), kind, id }))
  })
}

/** The faults of the references of rows, by field; only those that changed are looked at, a kind by one statement. */
export async function referenceFaultsOf(
  { hub, companyId }: Pick<Editor, 'hub' | 'companyId'>,
  tx: Tx,
  info: KindInfo,
  changes: readonly Change[],
): Promise<Map<string, Words>[]> {
  const faults = changes.map(() => new Map<string, Words>())
  const named = changes.flatMap((change, row) => namedBy(info, change, row))
  for (const [kind, some] of Map.groupBy(named, each => each.kind)) {
    const target = hub.kinds.get(kind)
    const ids = [...new Set(some.map(({ id }) => id))]
    // Of a kind that the hub does not have there is nothing to name.
    const unknown = target ? await unknownIds(tx.db, companyId, target, ids) : new Set(ids)
    for (const { row, field, id } of some) if (unknown.has(id)) faults[row]?.set(field, words('unknown_reference'))
  }
  return faults
}

/** The same of one row. */
export const referenceFaults = async (
  editor: Editor,
  tx: Tx,
  info: KindInfo,
  before: Unchecked | null,
  next: Unchecked,
): Promise<Map<string, Words>> =>
  (await referenceFaultsOf(editor, tx, info, [{ before, next }]))[0] ?? new Map<string, Words>()

export type Referrer = { readonly kind: string; readonly id: string; readonly name: string; readonly field: string }
export type Referrers = { readonly seen: readonly Referrer[]; readonly total: number }

const namesOne = (reference: Reference, kind: string, ids: readonly string[]): SQL => {
  const { column, isList, isText, kindColumn, isAddress, among } = reference
  const name = sql.identifier(column)
  if (isAddress) {
    const values = among && sql`and ${sql.identifier(among.column)} = any(${`{${among.values.join(',')}}`}::text[])`
    return sql`${name} in (${textsMeaning(ids)}) ${values ?? sql``}`
  }
  const isOne = isList
    ? sql`${name} && ${uuidList(ids)}::uuid[]`
    : sql`${name} = any(${uuidList(ids)}::${sql.raw(isText ? 'text' : 'uuid')}[])`
  return kindColumn ? sql`${isOne} and ${sql.identifier(kindColumn)} = ${kind}` : isOne
}

/** What names resources: those of kinds that the editor may view, at most some, and how many there are in all. */
async function referrersOf(
  editor: Editor,
  db: Executor,
  kind: string,
  ids: readonly string[],
  without: readonly string[],
): Promise<Referrers> {
  const seen: Referrer[] = []
  let total = 0
  for (const info of editor.hub.kinds.values()) {
    if (without.includes(info.kind)) continue
    for (const reference of info.references) {
      const isParent = info.parent?.kind === kind && info.parent.column === reference.column
      if (isParent || (reference.to !== null && reference.to !== kind)) continue
      const rows = await db.execute<{ id: string; name: string; total: number }>(sql`
        select id, ${sql.identifier(info.nameColumn)}::text as name, (count(*) over ())::int as total
        from ${sql.identifier(info.table)}
        where company_id = ${editor.companyId} and ${namesOne(reference, kind, ids)} and ${isKept(info.table)}
        order by id limit ${REFERRERS_MAX}`)
      total += rows[0]?.total ?? 0
      if (!editor.mayView(info.permissions.view)) continue
      for (const row of rows) seen.push({ kind: info.kind, id: row.id, name: row.name, field: reference.field })
    }
  }
  return { seen: seen.slice(0, REFERRERS_MAX), total }
}

/** 409 with reason in_use. */
export const inUse = (referrers: readonly Referrer[], total: number): ApiError =>
  new ApiError(409, 'conflict', words('referred_to', { count: total }), {
    reason: 'in_use',
    members: { referrers, referrers_total: total },
  })

/**
 * Throws 409 when others name one of the resources; those of the kinds `without` go with them. `also`: what keeps them
 * without a reference.
 */
export async function refuseInUse(
  editor: Editor,
  tx: Tx,
  kind: string,
  ids: readonly string[],
  without: readonly string[] = [],
  also: Referrers = { seen: [], total: 0 },
): Promise<void> {
  const { seen, total } = await referrersOf(editor, tx.db, kind, ids, without)
  if (total + also.total > 0) throw inUse([...seen, ...also.seen].slice(0, REFERRERS_MAX), total + also.total)
}

/** The kinds whose rows are parts of resources of a kind. */
export const partsOf = (kinds: Kinds, kind: string): readonly KindInfo[] =>
  [...kinds.values()].filter(({ parent }) => parent?.kind === kind)
