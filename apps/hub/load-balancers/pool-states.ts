// When a pool is up, degraded, down or empty, by the states of its members, and a virtual server by its worst pool
// (R-020, R-021), as queries.
import { type SQL, sql } from 'drizzle-orm'
import type { PoolState } from '../../../core/load-balancing/state-names.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { memberStatesSql } from './member-states.ts'

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
