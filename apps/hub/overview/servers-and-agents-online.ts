// How many servers and agents of a company are online, down and unknown, at a glance (decision G-116): from the hub's
// records, and from the collector where it answers.
import { sql } from 'drizzle-orm'
import { connectivitySql, isActiveDownAlert } from '../agents/connectivity-sql.ts'
import type { Hub } from '../hub-context.ts'

/** Of the records: agents that are not revoked by state and connectivity, and how many of them have a server. */
type Counts = {
  servers: number
  agents: number
  pending: number
  active: number
  online: number
  active_servers: number
  online_servers: number
  down_servers: number
}

export async function countRecords(hub: Hub, companyId: string): Promise<Counts> {
  const columns = { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost: sql`lost.agent_id is not null` }
  const [row] = await hub.database.db.execute<Counts>(sql`
    with lost as (
      select distinct x.agent_id from monitoring_alerts x
      where x.company_id = ${companyId} and ${isActiveDownAlert(sql`x`)} and x.agent_id is not null),
    a as (
      select a.server_id, a.state, ${connectivitySql(hub, columns)} as connectivity
      from monitoring_agents a left join lost on lost.agent_id = a.id
      where a.company_id = ${companyId} and a.state <> 'revoked')
    select
      (select count(*)::int from servers where company_id = ${companyId} and deleted_at is null) as servers,
      count(*)::int as agents,
      count(*) filter (where state = 'pending')::int as pending,
      count(*) filter (where state = 'active')::int as active,
      count(*) filter (where connectivity = 'online')::int as online,
      count(*) filter (where state = 'active' and server_id is not null)::int as active_servers,
      count(*) filter (where connectivity = 'online' and server_id is not null)::int as online_servers,
      count(*) filter (where connectivity = 'down' and server_id is not null)::int as down_servers
    from a`)
  return row ?? NO_COUNTS
}

const NO_COUNTS: Counts = {
  servers: 0,
  agents: 0,
  pending: 0,
  active: 0,
  online: 0,
  active_servers: 0,
  online_servers: 0,
  down_servers: 0,
}

/**
 * Servers and agents as one page shows them. How many agents are online the collector knows better than the records,
 * which follow within a minute: as many servers change their count, so that the counts agree. An agent that is online
 * for the collector alone counted as unknown before, else as down; one that is online for the records alone leaves its
 * server unknown, since it is silent and not declared lost.
 */
export function presentCounts(counts: Counts, heard: number | null) {
  // The collector may not yet know of an agent, or still know of one: what is said must add up.
  const online = Math.min(heard ?? counts.online, counts.active)
  const onlineServers = Math.max(0, Math.min(counts.online_servers + online - counts.online, counts.active_servers))
  const downServers = Math.min(counts.down_servers, counts.active_servers - onlineServers)
  return {
    servers: {
      total: counts.servers,
      online: onlineServers,
      down: downServers,
      unknown: Math.max(0, counts.servers - onlineServers - downServers),
    },
    agents: { total: counts.agents, online, offline: counts.active - online, pending: counts.pending },
  }
}
