// The whole tree of a load balancer in one answer: what clients reach, the pools behind it, and every member.
import { sql } from 'drizzle-orm'
import {
  memberReasons,
  memberStates,
  poolStates,
  virtualServerStates,
} from '../../../core/load-balancing/state-names.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { poolCounts } from './lb-pool.ts'
import type { LoadBalancer } from './load-balancer.ts'
import { membersNow } from './member-states.ts'
import { countsOf, poolsNow, virtualServerStatesSql } from './pool-states.ts'

export const statusResponse = named('LoadBalancerStatus', {
  device: reference,
  virtual_servers: listed(
    named('VirtualServerStatus', {
      id: id(),
      name: string(),
      state: wordOf(virtualServerStates),
      pool_id: nullable(id()),
    }),
  ),
  pools: listed(
    named('LbPoolStatus', {
      id: id(),
      name: string(),
      state: wordOf(poolStates),
      counts: poolCounts,
      members: listed(
        named('LbMemberStatus', {
          id: id(),
          name: string(),
          effective_state: wordOf(memberStates),
          because: wordOf(memberReasons),
          active_connections: nullable(amount()),
        }),
      ),
    }),
  ),
  synced_at: nullable(time()),
})

export async function statusOf({ hub }: Pick<RouteContext, 'hub'>, device: LoadBalancer) {
  const { db } = hub.database
  const [virtualServers, pools, members] = await Promise.all([
    db.execute<{ id: string; name: string; state: string; pool_id: string | null }>(sql`
      select s.id, v.name, s.state, v.pool_id from (${virtualServerStatesSql(hub, sql`v.device_id = ${device.id}`)}) s
      join virtual_servers v on v.id = s.id order by lower(v.name), v.id`),
    poolsNow(db, hub, sql`q.device_id = ${device.id}`),
    membersNow(db, hub, sql`p.device_id = ${device.id}`),
  ])
  const byPool = Map.groupBy(members, member => member.pool_id)
  return {
    device: { id: device.id, name: device.name },
    virtual_servers: [...virtualServers],
    pools: pools.map(pool => ({
      id: pool.id,
      name: pool.name,
      state: pool.state,
      counts: countsOf(pool),
      members: (byPool.get(pool.id) ?? []).map(member => ({
        id: member.id,
        name: member.name,
        effective_state: member.state,
        because: member.because,
        active_connections: member.active_connections,
      })),
    })),
    synced_at: device.synced_at,
  }
}
