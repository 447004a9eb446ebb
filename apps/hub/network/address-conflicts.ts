// When an address is complained of: two servers report it at a time, another one than it is registered for
// does, or its own has not for long. One that several servers share by design is nobody's fault.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import { ipAddressKind } from './ip-address.ts'

/** Two servers reported one address within this time of each other. */
const BOTH_SECONDS = 600

type Judged = {
  id: string
  address: string
  role: string
  servers: string[] | null
  others: string[] | null
  is_stale: boolean
}

/** What agents report against what is registered. */
export async function judgeAddresses(tx: Tx, companyId: string, staleDays: number): Promise<void> {
  const rows = await tx.db.execute<Judged>(sql`
    with seen as (
      select o.address, array_agg(s.name order by s.name) as servers, array_agg(o.server_id) as ids
      from ip_observations o join servers s on s.id = o.server_id and s.deleted_at is null
      where o.company_id = ${companyId} and o.last_seen_at > now() - make_interval(secs => ${BOTH_SECONDS})
      group by o.address)
    select a.id, a.address, a.role, case when cardinality(seen.servers) > 1 then seen.servers end as servers,
      case when a.server_id is not null and seen.ids is not null and a.server_id <> all (seen.ids) then seen.servers end as others,
      a.server_id is not null and exists (select 1 from monitoring_agents g where g.server_id = a.server_id
          and g.state <> 'revoked' and g.last_seen_at > now() - make_interval(secs => ${BOTH_SECONDS}))
        and exists (select 1 from ip_observations o where o.company_id = a.company_id and o.address = a.address
          and o.last_seen_at < now() - make_interval(days => ${staleDays}))
        and not exists (select 1 from ip_observations o where o.company_id = a.company_id and o.address = a.address
          and o.last_seen_at >= now() - make_interval(days => ${staleDays})) as is_stale
    from ip_addresses a left join seen on seen.address = a.address
    where a.company_id = ${companyId} and a.deleted_at is null and a.status <> 'released'
      and (seen.address is not null or exists (select 1 from ip_observations o
        where o.company_id = a.company_id and o.address = a.address)
        or exists (select 1 from resource_conditions c where c.kind = 'ip_address' and c.resource_id = a.id
          and c.resolved_at is null))`)
  const found = new Map(
    rows.map(({ id, address, role, servers, others, is_stale }) => {
      const isShared = role === 'vip' || role === 'anycast'
      return [
        id,
        [
          ...(servers && !isShared ? [{ code: 'duplicate_address', detail: { address, servers } }] : []),
          ...(others && !isShared && !servers ? [{ code: 'address_moved', detail: { address, servers: others } }] : []),
          ...(is_stale ? [{ code: 'stale_address', detail: { address, days: staleDays } }] : []),
        ],
      ] as const
    }),
  )
  const codes = ['duplicate_address', 'address_moved', 'stale_address']
  await setConditions(tx, ipAddressKind.info, companyId, [...found.keys()], codes, found)
}
