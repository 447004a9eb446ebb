// Where resources stand below /api/v1: a part stands below what it is a part of, `/dns/zones/{zone}/records/{record}`.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'
import type { KindInfo, Kinds } from './kind-info.ts'

type Row = { readonly id: string; readonly parent_id: string }

const lastSegment = ({ path }: KindInfo): string => path.slice(path.lastIndexOf('/'))

/** The paths of resources of a kind, by id; a part that is gone has none. */
export async function pathsOf(
  db: Executor,
  kinds: Kinds,
  companyId: string,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const info = kinds.get(kind)
  if (!info || ids.length === 0) return new Map()
  if (info.pathColumn !== undefined) {
    const named = await db.execute<{ id: string; name: string }>(sql`
      select id, ${sql.identifier(info.pathColumn)} as name from ${sql.identifier(info.table)}
      where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
    return new Map(named.map(({ id, name }) => [id, `${info.path}/${name}`]))
  }
  if (!info.parent) return new Map(ids.map(id => [id, `${info.path}/${id}`]))
  const rows = await db.execute<Row>(sql`
    select id, ${sql.identifier(info.parent.column)} as parent_id from ${sql.identifier(info.table)}
    where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
  const parentIds = [...new Set(rows.map(row => row.parent_id))]
  const parents = await pathsOf(db, kinds, companyId, info.parent.kind, parentIds)
  return new Map(
    rows.flatMap(row => {
      const parent = parents.get(row.parent_id)
      return parent === undefined ? [] : [[row.id, `${parent}${lastSegment(info)}/${row.id}`] as const]
    }),
  )
}
