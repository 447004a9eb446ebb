// The company at a glance (decision G-116): counts from the hub's records; online counts from the collector if it
// answers.
import { sql } from 'drizzle-orm'
import { parseOnline, summaryPath } from '../../../core/admin-api/status.ts'
import { alertCollection, presentAlerts } from '../alerts/alert-list.ts'
import { alertStats } from '../alerts/alerts.ts'
import type { Hub } from '../hub-context.ts'
import type { Asker } from '../platform/http/collection.ts'
import type { CollectorNote } from '../servers/health.ts'
import { countRecords, presentCounts } from './servers-and-agents-online.ts'

const TOP = 10

async function askOnline(hub: Hub, companyId: string): Promise<{ online: number | null; note: CollectorNote }> {
  const [target] = await hub.collectors.targets()
  if (!target) return { online: null, note: { available: false, reason: 'not_configured' } }
  const answer = await hub.collectors.query(target, 'summary', summaryPath(companyId))
  const online = answer?.status === 200 ? parseOnline(answer.body) : null
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
    countRecords(hub, companyId),
    alertStats(db, companyId),
    askOnline(hub, companyId),
    topServers(hub, companyId),
    alertCollection.read(asker, {}, { limit: TOP, offset: 0 }),
    db.execute<{ count: number }>(sql`select count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and type = 'group_down' and state in ('open', 'acknowledged')`),
  ])
  return {
    data: {
      ...presentCounts(counts, asked.online),
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
