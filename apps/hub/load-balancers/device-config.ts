// The configuration of a load balancer as the hub intends it: text that programs pull, told apart by its hash.
import { createHash } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { ConfigMember, ConfigPool, ConfigVirtualServer } from '../../../core/load-balancing/config-text.ts'
import { haproxyConfig } from '../../../core/load-balancing/haproxy-config.ts'
import { nginxConfig } from '../../../core/load-balancing/nginx-config.ts'
import { listed, named, string, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { LoadBalancer } from './load-balancer.ts'

export const configFormats = ['haproxy', 'nginx'] as const
type Format = (typeof configFormats)[number]
const writers = { haproxy: haproxyConfig, nginx: nginxConfig } as const

export const configResponse = named('LoadBalancerConfig', {
  format: wordOf(configFormats),
  text: string(),
  sha256: string(),
  warnings: listed(string()),
})

export const usualFormat = ({ vendor }: LoadBalancer): Format =>
  vendor === 'nginx' || vendor === 'nginx_plus' ? 'nginx' : 'haproxy'

export async function configOf({ hub }: Pick<RouteContext, 'hub'>, device: LoadBalancer, format: Format) {
  const { db } = hub.database
  const [pools, members, virtualServers] = await Promise.all([
    db.execute<Omit<ConfigPool, 'members'>>(sql`
      select id, name, protocol, algorithm, persistence, health_check from lb_pools
      where device_id = ${device.id} and deleted_at is null order by lower(name), id`),
    db.execute<ConfigMember & { pool_id: string }>(sql`
      select m.pool_id, m.name, coalesce(m.address, s.ip_address) as address, m.port, m.weight, m.backup, m.max_connections,
        m.admin_state from lb_members m join lb_pools p on p.id = m.pool_id left join servers s on s.id = m.server_id
      where p.device_id = ${device.id} and m.deleted_at is null order by lower(m.name), m.id`),
    db.execute<Omit<ConfigVirtualServer, 'certificates'> & { certificate_ids: string[] }>(sql`
      select name, address, port, protocol, pool_id, rules, certificate_ids from virtual_servers
      where device_id = ${device.id} and deleted_at is null and enabled order by lower(name), id`),
  ])
  const byPool = Map.groupBy(members, member => member.pool_id)
  const { text, warnings } = writers[format]({
    pools: pools.map(pool => ({ ...pool, members: byPool.get(pool.id) ?? [] })),
    // A certificate is named by its id: what it is called changes, and the file of its key must not.
    virtualServers: virtualServers.map(({ certificate_ids, ...server }) => ({
      ...server,
      certificates: certificate_ids,
    })),
  })
  return { format, text, sha256: createHash('sha256').update(text).digest('hex'), warnings }
}
