// Addresses that others name by their text: records of zones, virtual servers. Where several address spaces
// have an address of one text, that of `default` is meant, else the first one by name.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'

type LinkedAddress = {
  readonly id: string
  readonly address: string
  readonly server_id: string | null
  readonly server: string | null
}

/** The addresses of a company that texts mean, by text. */
export async function addressesNamed(
  db: Executor,
  companyId: string,
  texts: readonly string[],
): Promise<ReadonlyMap<string, LinkedAddress>> {
  if (texts.length === 0) return new Map()
  const rows = await db.execute<LinkedAddress>(sql`
    select distinct on (a.address) a.id, host(a.address) as address, s.id as server_id, s.name as server
    from ip_addresses a left join servers s on s.id = a.server_id and s.deleted_at is null
    where a.company_id = ${companyId} and a.deleted_at is null
      and a.address in (select jsonb_array_elements_text(${JSON.stringify([...new Set(texts)])}::jsonb)::inet)
    order by a.address, a.vrf <> 'default', a.vrf`)
  return new Map(rows.map(row => [row.address, row]))
}

/** The texts by which addresses with these ids are meant; of one that another one stands before, none. */
export const textsMeaning = (ids: readonly string[]): SQL => sql`
  select host(a.address) from ip_addresses a where a.id = any(${uuidList(ids)}::uuid[]) and not exists (
    select 1 from ip_addresses o where o.company_id = a.company_id and o.address = a.address and o.deleted_at is null
      and (o.vrf <> 'default', o.vrf) < (a.vrf <> 'default', a.vrf))`
