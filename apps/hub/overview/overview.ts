// The company at a glance (decision G-116): counts from the hub's records; online counts from the collector if it answers.
import { sql } from 'drizzle-orm'
import { isObject } from '../../../core/unchecked.ts'
import { alertCollection, presentAlerts } from '../alerts/alert-list.ts'
import { alertStats } from '../alerts/alerts.ts'
import type { Hub } from '../hub-context.ts'
import type { Asker } from '../platform/http/collection.ts'
import type { CollectorNote } from '../servers/health.ts'

const TOP = 10

type Counts = {
  servers: number
  with_agent: number
  down: number
  agents: number
  active: number
  pending: number
  online: number
}

async function countMachines(hub: Hub, companyId: string): Promise<Counts> {
  const thresholdSeconds = hub.config['agents.online_threshold'] / 1000
  const [row] = await hub.database.db.execute<Counts>(sql`
    with lost as (
      select distinct agent_id from monitoring_alerts where company_id = ${companyId} and type = 'agent_down'
        and state in ('open', 'acknowledged', 'grouped') and agent_id is not null),
    a as (
      select a.server_id, a.state, a.last_seen_at is not null as seen, (a.state = 'active' and lost.agent_id is null
          and coalesce(a.last_seen_at >= now() - make_interval(secs => ${thresholdSeconds}), false)) as online
      from monitoring_agents a left join lost on lost.agent_id = a.id
      where a.company_id = ${companyId} and a.state <> 'revoked')
    select
      (select count(*)::int from servers where company_id = ${companyId} and deleted_at is null) as servers,
      count(*) filter (where server_id is not null and online)::int as with_agent,
      count(*) filter (where server_id is not null and seen and not online)::int as down,
      count(*)::int as agents,
      count(*) filter (where state = 'active')::int as active,
      count(*) filter (where state = 'pending')::int as pending,
      count(*) filter (where online)::int as online
    from a`)
  return row ?? { servers: 0, with_agent: 0, down: 0, agents: 0, active: 0, pending: 0, online: 0 }
}

/** How many agents the collector's summary says are online; null when it is no summary. */
function onlineOf(body: unknown): number | null {
  const data = isObject(body) ? body.data : null
  return isObject(data) && typeof data.online === 'number' ? data.online : null
}

async function askOnline(hub: Hub, companyId: string): Promise<{ online: number | null; note: CollectorNote }> {
  const [target] = await hub.collectors.targets()
  if (!target) return { online: null, note: { available: false, reason: 'not_configured' } }
  const answer = await hub.collectors.query(target, 'summary', `/companies/${companyId}/summary`)
  const online = answer?.status === 200 ? onlineOf(answer.body) : null
  const available = online !== null
  return { online, note: { available, reason: available ? null : 'unavailable' } }
}

async function topServers(hub: Hub, companyId: string) {
  const rows = await hub.database.db.execute<{ id: string; name: string; hostname: string | null; count: number }>(sql`
    select s.id, s.name, s.hostname, t.count from (
      select server_id, count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and state in ('open', 'acknowledged')
      group by server_id order by count(*) desc fetch first (${TOP}::int) rows with ties) t
    join servers s on s.id = t.server_id order by t.count desc, lower(s.name) limit ${TOP}`)
  return rows.map(({ id, name, hostname, count }) => ({ server: { id, name, hostname }, active_alerts: count }))
}

export async function overview(asker: Asker) {
  const { hub, companyId } = asker
  const { db } = hub.database
  const [counts, stats, asked, top, recent, groups] = await Promise.all([
    countMachines(hub, companyId),
    alertStats(db, companyId),
    askOnline(hub, companyId),
    topServers(hub, companyId),
    alertCollection.read(asker, {}, { limit: TOP, offset: 0 }),
    db.execute<{ count: number }>(sql`select count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and type = 'group_down' and state in ('open', 'acknowledged')`),
  ])
  // The collector may not yet know of an agent, or still know of one: what is said must add up.
  const online = Math.min(asked.online ?? counts.online, counts.active)
  return {
    data: {
      servers: {
        total: counts.servers,
        online: counts.with_agent,
        down: counts.down,
        unknown: Math.max(0, counts.servers - counts.with_agent - counts.down),
      },
      agents: {
        total: counts.agents,
        online,
        offline: Math.max(0, counts.active - online),
        pending: counts.pending,
      },
      alerts: {
        active: stats.active,
        acknowledged: stats.acknowledged,
        suppressed: stats.suppressed,
        by_severity: stats.by_severity,
      },
      groups_open: groups[0]?.count ?? 0,
      top_servers: top,
      recent_alerts: presentAlerts(recent.rows),
    },
    collector: asked.note,
  }
}

/** Alerts that opened and resolved on each of the last days, today included. */
export async function timeline(hub: Hub, companyId: string, days: number) {
  const rows = await hub.database.db.execute<{ day: string; opened: number; resolved: number }>(sql`
    with first as (select current_date - ${days - 1}::int as day),
    opened as (
      select opened_at::date as day, count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and opened_at >= (select day from first) group by 1),
    resolved as (
      select resolved_at::date as day, count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and resolved_at >= (select day from first) group by 1)
    select to_char(d.day, 'YYYY-MM-DD') as day, coalesce(o.count, 0) as opened, coalesce(r.count, 0) as resolved
    from (select generate_series((select day from first), current_date, '1 day')::date as day) d
    left join opened o using (day) left join resolved r using (day) order by d.day`)
  return [...rows]
}
