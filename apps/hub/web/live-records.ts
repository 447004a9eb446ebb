// The live page's data from the hub's own records: servers with their state, counts of all, and open alerts with the
// worst first.
import { type SQL, sql } from 'drizzle-orm'
import { parseSeriesKey } from '../../../core/series/series-key.ts'
import { connectivitySql, isActiveDownAlert } from '../agents/connectivity-sql.ts'
import { type AlertRow, activeStates, alertsByIds } from '../alerts/alert-list.ts'
import { alertStats } from '../alerts/alerts.ts'
import type { Hub } from '../hub-context.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import type { ServerStatus } from '../platform/db/schema.ts'
import type { AlertPicture, Connectivity, ServerState } from './live-view.ts'

export type ServerRecord = {
  readonly id: string
  readonly name: string
  readonly hostname: string | null
  readonly status: ServerStatus
  readonly agentId: string | null
  readonly lastSeenAtMs: number | null
  readonly connectivity: Connectivity
  readonly openAlerts: number
}

export type ServerCounts = Record<Connectivity, number> & { all: number; alerts: number }

/**
 * The company's servers, each with its agent, its open alerts, and online, down or unknown as the API's list has them.
 * Agents and alerts are found by their server, one index look-up each, so that the time does not depend on the
 * database's statistics.
 */
const allServers = (hub: Hub, companyId: string): SQL => {
  const columns = { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost: sql`t.is_down` }
  return sql`
    all_servers as materialized (
      select s.id, s.name, s.hostname, s.ip_address, s.status, a.id as agent_id, a.last_seen_at, t.open_alerts,
        ${connectivitySql(hub, columns)} as connectivity
      from servers s
      left join lateral (
        select a.id, a.state, a.last_seen_at from monitoring_agents a
        where a.server_id = s.id and a.state <> 'revoked' order by a.enrolled_at desc limit 1) a on true
      cross join lateral (
        select (count(*) filter (where x.state <> 'grouped'))::int as open_alerts,
          coalesce(bool_or(${isActiveDownAlert(sql`x`)}), false) as is_down
        from monitoring_alerts x
        where x.server_id = s.id and x.state in ('open', 'acknowledged', 'grouped')) t
      where s.company_id = ${companyId} and s.deleted_at is null)`
}

const stateFilter = (state: ServerState | null): SQL => {
  if (state === null) return sql`true`
  return state === 'alerts' ? sql`open_alerts > 0` : sql`connectivity = ${state}`
}

const searchFilter = (search: string): SQL => {
  if (search === '') return sql`true`
  const like = likePattern(search)
  return sql`(name ilike ${like} or hostname ilike ${like} or ip_address ilike ${like})`
}

type CountRow = ServerCounts & { matching: number; page: number }
type ServerRow = {
  id: string
  name: string
  hostname: string | null
  status: ServerStatus
  agent_id: string | null
  last_seen_at: string | null
  open_alerts: number
  connectivity: Connectivity
}
/** The counts stand in every row; without a server on the page there is one row with nothing else. */
type PageRow = CountRow & (ServerRow | { id: null })

export type ServerView = { readonly search: string; readonly state: ServerState | null; readonly page: number }

const toRecord = (row: ServerRow): ServerRecord => ({
  id: row.id,
  name: row.name,
  hostname: row.hostname,
  status: row.status,
  agentId: row.agent_id,
  lastSeenAtMs: row.last_seen_at === null ? null : new Date(row.last_seen_at).getTime(),
  connectivity: row.connectivity,
  openAlerts: row.open_alerts,
})

/** One page of the servers that match, by name, and counts of all. A page past the end is the last one. */
export async function pageOfServers(hub: Hub, companyId: string, view: ServerView, pageSize: number) {
  const matches = sql`${stateFilter(view.state)} and ${searchFilter(view.search)}`
  const rows = await hub.database.db.execute<PageRow>(sql`
    with ${allServers(hub, companyId)},
    counted as (
      select count(*)::int as all, (count(*) filter (where connectivity = 'online'))::int as online,
        (count(*) filter (where connectivity = 'down'))::int as down,
        (count(*) filter (where connectivity = 'unknown'))::int as unknown,
        (count(*) filter (where open_alerts > 0))::int as alerts,
        (count(*) filter (where ${matches}))::int as matching
      from all_servers),
    paged as (
      select c.all, c.online, c.down, c.unknown, c.alerts, c.matching, least(${view.page}::int, greatest(1, ceil(matching / ${pageSize}::numeric)::int)) as page from counted c)
    select p.all, p.online, p.down, p.unknown, p.alerts, p.matching, p.page, m.id, m.name, m.hostname, m.status,
      m.agent_id, m.last_seen_at, m.open_alerts, m.connectivity
    from paged p left join lateral (
      select id, name, hostname, status, agent_id, last_seen_at, open_alerts, connectivity from all_servers
      where ${matches} order by lower(name), id limit ${pageSize} offset (p.page - 1) * ${pageSize}) m on true
    order by lower(m.name), m.id`)
  const { all, online, down, unknown, alerts, matching, page } = rows[0] ?? NO_COUNTS
  const servers = rows.filter(row => row.id !== null).map(toRecord)
  return { servers, counts: { all, online, down, unknown, alerts }, matching, page }
}

const NO_COUNTS: CountRow = { all: 0, online: 0, down: 0, unknown: 0, alerts: 0, matching: 0, page: 1 }

/** False for a label that only repeats another one. */
const isTelling = (name: string, labels: Readonly<Record<string, string>>): boolean =>
  labels.mount === undefined || (name !== 'device' && name !== 'fstype')

/** Metric and telling labels of a series key; a shortened key is shown as it is, as is the group of a group alert. */
function partsOfSeries(type: AlertPicture['type'], key: string): { metric: string | null; series: string } {
  if (type === 'agent_down') return { metric: null, series: '' }
  if (type === 'group_down') return { metric: null, series: key }
  try {
    const { metric, labels } = parseSeriesKey(key)
    const telling = Object.entries(labels).filter(([name]) => isTelling(name, labels))
    return { metric, series: telling.map(([name, value]) => `${name}=${value}`).join(' ') }
  } catch {
    return { metric: null, series: key }
  }
}

function toPicture({ alert, server, rule, acknowledger }: AlertRow): AlertPicture {
  return {
    id: alert.id,
    type: alert.type,
    severity: alert.severity,
    state: alert.state === 'acknowledged' ? 'acknowledged' : 'open',
    serverName: server.name,
    ruleName: rule?.name ?? null,
    ...partsOfSeries(alert.type, alert.seriesKey),
    openedAtMs: alert.openedAt.getTime(),
    lastValue: alert.lastValue,
    threshold: alert.threshold,
    acknowledgedBy: acknowledger?.name ?? null,
    isSuppressed: alert.suppressed,
    isFlapping: alert.flapping,
    groupSize: alert.type === 'group_down' ? (alert.groupMemberIds?.length ?? alert.groupTotal ?? 0) : null,
  }
}

/** One page of the open alerts: the worst first, then those that nobody has acknowledged, then the newest. */
export async function pageOfAlerts(hub: Hub, companyId: string, wantedPage: number, pageSize: number) {
  const { db } = hub.database
  const stats = await alertStats(db, companyId)
  const page = Math.min(wantedPage, Math.max(1, Math.ceil(stats.active / pageSize)))
  const rows = await db.execute<{ id: string }>(sql`
    select id from monitoring_alerts
    where company_id = ${companyId} and state in ${activeStates}
    order by array_position(array['critical', 'warning', 'info'], severity), state = 'acknowledged', opened_at desc, id
    limit ${pageSize} offset ${(page - 1) * pageSize}`)
  const ids = rows.map(row => row.id)
  const found = new Map((await alertsByIds(db, companyId, ids)).map(row => [row.alert.id, toPicture(row)]))
  const alerts = ids.map(id => found.get(id)).filter(alert => alert !== undefined)
  const { critical = 0, warning = 0, info = 0 } = stats.by_severity
  return { alerts, total: stats.active, page, severities: { critical, warning, info } }
}
