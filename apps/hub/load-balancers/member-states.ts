// The states of members, pools and virtual servers (R-020, R-021) as queries: lists are filtered by them, so that they
// are decided where rows are chosen. Only the hub's own records are asked.
import { type SQL, sql } from 'drizzle-orm'
import type { MemberState, PoolState } from '../../../core/load-balancing/state-names.ts'
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

type PoolNow = {
  readonly id: string
  readonly name: string
  readonly state: PoolState
  readonly total: number
  readonly up: number
  readonly draining: number
  readonly disabled: number
  readonly down: number
  readonly unknown: number
}

/** One that nothing is known of counts as up. */
const SERVES = sql.raw(`state in ('up', 'unknown')`)

/** One row a pool `q` that meets a condition. Backups count only when no other member is up. */
export function poolStatesSql(hub: Hub, where: SQL): SQL {
  const many = (condition: SQL) => sql`(count(*) filter (where ${condition}))::int`
  return sql`
    select q.id, q.name, q.device_id, c.total, c.up, c.draining, c.disabled, c.down, c.unknown, case
      when c.total = 0 then 'empty'
      when n.up < q.min_up then 'down'
      when c.enabled_down > 0 or n.up * 100 < q.warn_below_percent * n.enabled then 'degraded'
      else 'up' end as state
    from lb_pools q
    cross join lateral (
      select count(*)::int as total, ${many(sql`state = 'up'`)} as up, ${many(sql`state = 'draining'`)} as draining,
        ${many(sql`state in ('disabled', 'maintenance')`)} as disabled, ${many(sql`state = 'down'`)} as down,
        ${many(sql`state = 'unknown'`)} as unknown, ${many(sql`${SERVES}`)} as serving,
        ${many(sql`${SERVES} and not backup`)} as serving_first, ${many(sql`admin_state = 'enabled'`)} as enabled,
        ${many(sql`admin_state = 'enabled' and not backup`)} as enabled_first,
        ${many(sql`admin_state = 'enabled' and state = 'down'`)} as enabled_down
      from (${memberStatesSql(hub, sql`m.pool_id = q.id`)}) states) c
    cross join lateral (select case when c.serving_first > 0 then c.serving_first else c.serving end as up,
      case when c.serving_first > 0 then c.enabled_first else c.enabled end as enabled) n
    where q.deleted_at is null and ${where}`
}

/** One row a virtual server `v` that meets a condition: the state of its worst pool. */
export const virtualServerStatesSql = (hub: Hub, where: SQL): SQL => sql`
  select v.id, case when not v.enabled then 'unknown' else coalesce((
      select case when bool_or(state = 'down') then 'down' when bool_or(state = 'empty') then 'empty'
        when bool_or(state = 'degraded') then 'degraded' when bool_or(state = 'up') then 'up' end
      from (${poolStatesSql(hub, sql`(q.id = v.pool_id or q.id = any(v.rule_pool_ids))`)}) pools), 'empty') end as state
  from virtual_servers v where v.deleted_at is null and ${where}`

/** Whether the one row that `states` has is in a state. */
export const isInState = (states: SQL, state: string): SQL => sql`(select s.state from (${states}) s) = ${state}`

export async function membersNow(db: Executor, hub: Hub, where: SQL): Promise<MemberNow[]> {
  return [...(await db.execute<MemberNow>(sql`${memberStatesSql(hub, where)} order by lower(m.name), m.id`))]
}

export async function poolsNow(db: Executor, hub: Hub, where: SQL): Promise<PoolNow[]> {
  return [...(await db.execute<PoolNow>(sql`${poolStatesSql(hub, where)} order by lower(q.name), q.id`))]
}

export const countsOf = ({ total, up, draining, disabled, down, unknown }: PoolNow) => ({
  total,
  up,
  draining,
  disabled,
  down,
  unknown,
})
