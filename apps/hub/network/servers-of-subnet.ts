// Which servers lie in a subnet.
import { sql } from 'drizzle-orm'
import { collectionReadBy } from '../platform/http/collection.ts'
import { uuid } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, wordOf } from '../platform/http/response-schema.ts'

const sources = ['subnet_id', 'address', 'registered_address'] as const

const serverResponse = named('SubnetServer', {
  id: id(),
  name: string(),
  hostname: nullable(string()),
  ip_address: nullable(string()),
  status: string(),
  source: wordOf(sources),
})

type ServerRow = {
  id: string
  name: string
  hostname: string | null
  ip_address: string | null
  status: string
  source: string
}

/** Servers that name the subnet, or of which an address lies in it. */
export const subnetServers = collectionReadBy<
  ServerRow,
  typeof serverResponse,
  Record<never, never>,
  { subnet: ReturnType<typeof uuid> }
>({
  filters: {},
  within: { subnet: uuid() },
  response: serverResponse,
  present: row => row,
  async read({ hub, companyId }, given, { limit, offset }) {
    const rows = await hub.database.db.execute<ServerRow & { total: number }>(sql`
      select s.id, s.name, s.hostname, s.ip_address, s.status, f.source, (count(*) over ())::int as total from (
        select distinct on (id) id, source from (
          select id, 'subnet_id' as source, 1 as rank from servers
            where company_id = ${companyId} and subnet_id = ${given.subnet ?? null}::text and deleted_at is null
          union all
          select x.id, 'address', 2 from servers x join subnets n on n.id = ${given.subnet ?? null}
            where x.company_id = ${companyId} and x.deleted_at is null
              and case when x.ip_address ~ '^[0-9]+(\\.[0-9]+){3}$|^[0-9a-fA-F]*:[0-9a-fA-F:.]*$' then x.ip_address::inet <<= n.cidr end
          union all
          select a.server_id, 'registered_address', 3 from ip_addresses a join subnets n on n.id = ${given.subnet ?? null}
            where a.company_id = ${companyId} and a.vrf = n.vrf and a.address <<= n.cidr and a.deleted_at is null
              and a.server_id is not null) every
        order by id, rank) f
      join servers s on s.id = f.id and s.deleted_at is null
      order by lower(s.name), s.id limit ${limit} offset ${offset}`)
    return { rows: rows.map(({ total: _total, ...row }) => row), total: rows[0]?.total ?? 0 }
  },
})
