// The states of members (R-020, R-021) as a query: lists are filtered by them, so that they are decided where rows are
// chosen. Only the hub's own records are asked. Those of pools and virtual servers: pool-states.ts.
import { type SQL, sql } from 'drizzle-orm'
import type { MemberState } from '../../../core/load-balancing/state-names.ts'
import { connectivitySql, isActiveDownAlert } from '../agents/connectivity-sql.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'

/** An observation speaks for a member as long as this many of the device's intervals. */
const OBSERVED_INTERVALS = 3
/** In place of the interval of a device that is only read on request. */
const ON_REQUEST_SECONDS = 60

type MemberNow = {
  readonly id: string
  readonly pool_id: string
  readonly name: string
  readonly backup: boolean
  readonly address: string | null
  readonly state: MemberState
  readonly because: string
  readonly active_connections: number | null
}

/** One row a member `m` that meets a condition: its state, and the fact that decided it. */
export function memberStatesSql(hub: Hub, where: SQL): SQL {
  const now = new Date(hub.now()).toISOString()
  const isLost = sql`exists (select 1 from monitoring_alerts x where x.company_id = m.company_id
    and x.server_id = m.server_id and ${isActiveDownAlert(sql`x`)})`
  const fails = sql`exists (select 1 from monitoring_alerts x join monitoring_rules r on r.id = x.rule_id
    join monitoring_checks c on c.id = r.check_id and c.enabled and c.deleted_at is null and c.type = 'port'
    where x.company_id = m.company_id and x.server_id = m.server_id and x.state in ('open', 'acknowledged', 'grouped')
      and c.target->>'port' = m.port::text)`
  const connectivity = connectivitySql(hub, {
    state: sql`g.state`,
    lastSeenAt: sql`g.last_seen_at`,
    isLost: sql`false`,
  })
  const isOnline = sql`exists (select 1 from monitoring_agents g where g.company_id = m.company_id
    and g.server_id = m.server_id and ${connectivity} = 'online')`
  return sql`
    select m.id, m.pool_id, m.name, m.backup, coalesce(m.address, s.ip_address) as address, m.admin_state,
      m.active_connections, f.because, case f.because when 'observed' then m.observed_state
        when 'server_status' then 'maintenance' when 'check' then 'down' when 'none' then 'unknown'
        when 'agent' then case when f.is_lost then 'down' else 'up' end else m.admin_state end as state
    from lb_members m join lb_pools p on p.id = m.pool_id join load_balancers d on d.id = p.device_id
    left join servers s on s.id = m.server_id and s.deleted_at is null
    cross join lateral (select s.id is not null and ${isLost} as is_lost) l
    cross join lateral (select l.is_lost, case
      when m.admin_state = 'disabled' then 'admin'
      when s.status in ('maintenance', 'decommissioned') then 'server_status'
      when m.admin_state = 'draining' then 'admin'
      when m.observed_state is not null and m.observed_at > ${now}::timestamptz - make_interval(secs =>
        ${OBSERVED_INTERVALS} * case when d.sync_interval_seconds > 0 then d.sync_interval_seconds
          else ${ON_REQUEST_SECONDS} end) then 'observed'
      when l.is_lost then 'agent'
      when s.id is not null and ${fails} then 'check'
      when s.id is not null and ${isOnline} then 'agent'
      else 'none' end as because) f
    where m.deleted_at is null and ${where}`
}

/** Whether the one row that `states` has is in a state. */
export const isInState = (states: SQL, state: string): SQL => sql`(select s.state from (${states}) s) = ${state}`

export async function membersNow(db: Executor, hub: Hub, where: SQL): Promise<MemberNow[]> {
  return [...(await db.execute<MemberNow>(sql`${memberStatesSql(hub, where)} order by lower(m.name), m.id`))]
}
