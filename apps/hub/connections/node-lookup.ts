// What a node is called, whether a company has it, and the address to connect to.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import type { Kinds } from '../resources/kind-info.ts'
import type { Node } from './node.ts'

/** Where nodes are looked up: in a transaction or outside. */
type Reading = { readonly kinds: Kinds; readonly db: Executor; readonly companyId: string }

/** What a node is called; null for one that the company does not have. */
export async function nodeName({ kinds, db, companyId }: Reading, { kind, id, name }: Node): Promise<string | null> {
  const info = id === null ? undefined : kinds.get(kind)
  if (!info) return name
  const [row] = await db.execute<{ name: string }>(sql`
    select ${sql.identifier(info.nameColumn)}::text as name from ${sql.identifier(info.table)}
    where company_id = ${companyId} and id = ${id}::uuid`)
  return row?.name ?? null
}

/** Whether a node is one of the company; a deleted server is, while connections name it. */
export async function isNodeOf({ kinds, db, companyId }: Reading, { kind, id, key }: Node): Promise<boolean> {
  const info = id === null ? undefined : kinds.get(kind)
  if (id !== null && !info) return false
  const rows = info
    ? await db.execute(sql`
        select 1 from ${sql.identifier(info.table)} where company_id = ${companyId} and id = ${id}::uuid`)
    : await db.execute(sql`
        select 1 from connections where company_id = ${companyId} and deleted_at is null
          and (source_key = ${key} or target_key = ${key}) limit 1`)
  return rows.length > 0
}

/** The host of a node to connect to: a host, or that of a URL; the first of several. Null for none. */
export async function addressOf({ kinds, db, companyId }: Reading, { kind, id, name }: Node): Promise<string | null> {
  if (kind === 'external') return name
  const info = id === null ? undefined : kinds.get(kind)
  if (!info || info.addressColumns.length === 0) return null
  const columns = sql.join(
    info.addressColumns.map(column => sql`to_jsonb(${sql.identifier(column)})`),
    sql`, `,
  )
  const [row] = await db.execute<{ addresses: unknown[] }>(sql`
    select jsonb_build_array(${columns}) as addresses from ${sql.identifier(info.table)}
    where company_id = ${companyId} and id = ${id}::uuid and deleted_at is null`)
  const text = (row?.addresses ?? []).flat().find(each => typeof each === 'string' && each !== '')
  return typeof text === 'string' ? URL.parse(text)?.hostname || text : null
}
