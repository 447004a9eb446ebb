// Names of resources of any kind that the hub knows, by their ids or names in a company. Parts have the name of what
// they are a part of before their own (`edge/www`), since another one may have a part of the same name.
import { type SQL, sql } from 'drizzle-orm'
import { uuidList } from '../../platform/db/transaction.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import type { KindInfo } from '../../resources/kind-info.ts'
import type { Named, Reading } from './manifest-kind.ts'

export const partName = (whole: string, part: string): string => `${whole}/${part}`

type Row = Named & {
  /** The name inside of what it is a part of; null for what is no part. */
  readonly own: string | null
  /** Behind the slug of the manifest that its whole is bound to. */
  readonly bound: string | null
}

/** The resources of a kind in a company as `named` (id, name, own, bound, is_kept: not in the trash). */
function namedOf({ hub, companyId }: Reading, info: KindInfo): SQL {
  const parent = info.parent && hub.kinds.get(info.parent.kind)
  const kept = info.isResource ? sql`r.deleted_at is null` : sql`true`
  const name = sql`r.${sql.identifier(info.nameColumn)}`
  if (!parent || !info.parent)
    return sql`(select r.id, ${name}::text as name, null::text as own, null::text as bound, ${kept} as is_kept
      from ${sql.identifier(info.table)} r where r.company_id = ${companyId}) as named`
  return sql`(
    select r.id, p.name || '/' || ${name} as name, ${name}::text as own, b.slug || '/' || ${name} as bound, ${kept} as is_kept
    from ${sql.identifier(info.table)} r join ${sql.identifier(parent.table)} p on p.id = r.${sql.identifier(info.parent.column)}
      left join iac_bindings b on b.company_id = p.company_id and b.resource_kind = ${parent.kind} and b.resource_id = p.id
    where r.company_id = ${companyId}) as named`
}

const lowered = (name: string | null): string => (name ?? '').toLowerCase()

/**
 * The resources of a kind that names mean, by the names; none of a kind that the hub does not know. A part may be named
 * alone while no other one has its name; and anything by its id.
 */
export async function namedAs(
  reading: Reading,
  kind: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, Named>> {
  const info = reading.hub.kinds.get(kind)
  if (!info || names.length === 0) return new Map()
  const asked = sql`(select lower(asked) from jsonb_array_elements_text(${JSON.stringify(names)}::jsonb) asked)`
  const rows = await reading.db.execute<Row>(sql`
    select id, name, own, bound from ${namedOf(reading, info)}
    where is_kept and (lower(name) in ${asked} or lower(own) in ${asked} or lower(bound) in ${asked}
      or id = any(${uuidList(names.filter(isUuid))}::uuid[]))`)
  return new Map(
    names.flatMap(name => {
      const called = lowered(name)
      const alone = rows.filter(row => lowered(row.own) === called)
      const row =
        rows.find(each => lowered(each.bound) === called) ??
        rows.find(each => lowered(each.name) === called) ??
        (alone.length === 1 ? alone[0] : undefined) ??
        rows.find(each => each.id === called)
      return row ? [[name, { id: row.id, name: row.name }] as const] : []
    }),
  )
}

/** The ids of what is called exactly so, whatever manifests are called; of a name that several have, none. */
export async function idsByName(
  reading: Reading,
  kind: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const info = reading.hub.kinds.get(kind)
  if (!info || names.length === 0) return new Map()
  const rows = await reading.db.execute<{ name: string; id: string }>(sql`
    select name, min(id::text) as id from ${namedOf(reading, info)}
    where is_kept and name in (select jsonb_array_elements_text(${JSON.stringify(names)}::jsonb))
    group by name having count(*) = 1`)
  return new Map(rows.map(row => [row.name, row.id]))
}

export async function namesById(
  reading: Reading,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const info = reading.hub.kinds.get(kind)
  const known = ids.filter(isUuid)
  if (!info || known.length === 0) return new Map()
  const rows = await reading.db.execute<Named>(sql`
    select id, name from ${namedOf(reading, info)} where id = any(${uuidList(known)}::uuid[])`)
  return new Map(rows.map(row => [row.id, row.name]))
}
