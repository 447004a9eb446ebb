// Names of resources of any kind that the hub knows, by their ids or names in a company.
import { sql } from 'drizzle-orm'
import { uuidList } from '../../platform/db/transaction.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import type { Named, Reading } from './manifest-kind.ts'

/** The resources of a kind that have one of the names; none of a kind that the hub does not know. */
export async function namedAs(
  { hub, db, companyId }: Reading,
  kind: string,
  names: readonly string[],
): Promise<Named[]> {
  const info = hub.kinds.get(kind)
  if (!info || names.length === 0) return []
  const name = sql.identifier(info.nameColumn)
  const lower = JSON.stringify(names.map(each => each.toLowerCase()))
  const kept = info.isResource ? sql`and deleted_at is null` : sql``
  return [
    ...(await db.execute<{ id: string; name: string }>(sql`
      select id, ${name} as name from ${sql.identifier(info.table)} where company_id = ${companyId} ${kept}
        and lower(${name}) in (select jsonb_array_elements_text(${lower}::jsonb))`)),
  ]
}

export async function namesById(
  { hub, db, companyId }: Reading,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const info = hub.kinds.get(kind)
  const known = ids.filter(isUuid)
  if (!info || known.length === 0) return new Map()
  const rows = await db.execute<{ id: string; name: string }>(sql`
    select id, ${sql.identifier(info.nameColumn)} as name from ${sql.identifier(info.table)}
    where company_id = ${companyId} and id = any(${uuidList(known)}::uuid[])`)
  return new Map(rows.map(row => [row.id, row.name]))
}
