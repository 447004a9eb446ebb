// What agents report of addresses: which server has which, first and last. Written with the inventory that
// tells it; subnets with discovery register make addresses of them.
import { sql } from 'drizzle-orm'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { normalAddress } from '../../../core/network/cidr.ts'
import { IpRanges, parseAddress } from '../../../core/network/ip-address.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { hubEditor } from '../resources/editor.ts'
import { insertResource } from '../resources/write-resource.ts'
import { raiseAgentsOf } from '../servers/change-many-servers.ts'
import { ipAddressKind } from './ip-address.ts'
import { lockTreeShared } from './subnet-tree.ts'

/** Loopback and link-local addresses stand on every host. */
const LOCAL = new IpRanges(['127.0.0.0/8', '169.254.0.0/16', '::1/128', 'fe80::/10'])
/** Interfaces of bridges inside a host, whose addresses are the same everywhere. */
const BRIDGES = /^(docker|br-|veth|cni|flannel|cali|virbr|lxc|podman)/
const ADDRESSES_MAX = 256

type Report = { readonly companyId: string; readonly serverId: string; readonly facts: Unchecked }
type Observed = {
  readonly company_id: string
  readonly server_id: string
  readonly address: string
  readonly interface: string
}

/** The addresses of a report that tell something about the network. */
function observedIn({ companyId, serverId, facts }: Report): Observed[] {
  const nics: readonly unknown[] = Array.isArray(facts.nics) ? facts.nics : []
  const found = nics.flatMap(nic => {
    if (!isObject(nic) || !Array.isArray(nic.ips)) return []
    const name = typeof nic.name === 'string' ? nic.name.slice(0, 64) : ''
    if (BRIDGES.test(name)) return []
    return nic.ips.flatMap(ip => {
      const address = parseAddress(String(ip).split('/')[0] ?? '')
      if (!address || LOCAL.covers(address)) return []
      return [
        { company_id: companyId, server_id: serverId, address: normalAddress(address.toString()), interface: name },
      ]
    })
  })
  return [...new Map(found.map(each => [each.address, each])).values()].slice(0, ADDRESSES_MAX)
}

/** Call it in the transaction that stores the reports. */
export async function storeObservations(hub: Hub, tx: Tx, reports: readonly Report[]): Promise<void> {
  const rows = reports.flatMap(observedIn)
  if (rows.length === 0) return
  // Before any row: what is noted of addresses writes them, and making one locks the tree.
  for (const companyId of [...new Set(rows.map(row => row.company_id))].sort()) await lockTreeShared(tx, companyId)
  await tx.db.execute(sql`
    insert into ip_observations (company_id, server_id, address, interface, first_seen_at, last_seen_at)
    select x.company_id, x.server_id, x.address, x.interface, now(), now()
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (company_id uuid, server_id uuid, address inet, interface text)
    order by x.company_id, x.address, x.server_id
    on conflict (company_id, address, server_id) do update set last_seen_at = now(), interface = excluded.interface`)
  await register(hub, tx, rows)
  await assign(hub, tx, rows)
}

/** Makes addresses of what was reported inside subnets that register by themselves (RES-238). */
async function register(hub: Hub, tx: Tx, rows: readonly Observed[]): Promise<void> {
  const fresh = await tx.db.execute<Observed & { vrf: string }>(sql`
    select x.company_id, x.server_id, host(x.address) as address, x.interface, s.vrf
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (company_id uuid, server_id uuid, address inet, interface text)
    cross join lateral (select vrf, discovery from subnets n where n.company_id = x.company_id and n.deleted_at is null
      and n.cidr = any(blocks_around(x.address)) order by masklen(n.cidr) desc limit 1) s
    where s.discovery = 'register' and not exists (select 1 from ip_addresses a where a.company_id = x.company_id
      and a.vrf = s.vrf and a.address = x.address and a.deleted_at is null)`)
  for (const row of fresh)
    try {
      // A company at its limit keeps its inventory all the same.
      await tx.db.transaction(db => registerOne(hub, { ...tx, db }, row))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      hub.log.warn({ company_id: row.company_id, address: row.address }, 'a reported address cannot be registered')
    }
}

const registerOne = (
  hub: Hub,
  tx: Tx,
  { company_id, server_id, address, interface: nic, vrf }: Observed & { vrf: string },
) =>
  insertResource(
    tx,
    ipAddressKind,
    hubEditor(hub, company_id),
    { address, vrf, server_id, interface: nic === '' ? null : nic },
    { origin: 'discovered', action: 'discover' },
  )

/** Servers without a subnet get that of their address, where the subnet says so (RES-243). */
async function assign(hub: Hub, tx: Tx, rows: readonly Observed[]): Promise<void> {
  const assigned = await tx.db.execute<{ id: string }>(sql`
    update servers v set subnet_id = s.id::text, updated_at = now()
    from (select distinct on (x.server_id) x.server_id, n.id
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (company_id uuid, server_id uuid, address inet, interface text)
      join subnets n on n.company_id = x.company_id and n.deleted_at is null and n.assign_servers
        and n.cidr = any(blocks_around(x.address))
      order by x.server_id, masklen(n.cidr) desc) s
    where v.id = s.server_id and v.subnet_id is null and v.deleted_at is null returning v.id`)
  const ids = assigned.map(row => row.id)
  tx.touch('servers', ids)
  await raiseAgentsOf(hub, tx, ids)
}
