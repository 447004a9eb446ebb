// What the hub's own records tell the live page: servers with their state, counts of all, and open alerts with the worst first.
import { type SQL, sql } from 'drizzle-orm'
import { parseSeriesKey } from '../../../core/series/series-key.ts'
import { type AlertRow, activeStates, alertStats, alertsByIds } from '../alerts/alerts.ts'
import type { ServerStatus } from '../db/schema.ts'
import type { Hub } from '../hub-context.ts'
import { likePattern } from '../licenses/licenses.ts'
import type { AlertPicture, Connectivity, ServerState } from './picture.ts'

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

/** The company's servers as `s`, each with its agent, its open alerts, and online, down or unknown as the API's list has them. */
const machines = (hub: Hub, companyId: string): SQL => {
  const oldest = new Date(hub.now() - hub.config['agents.online_threshold']).toISOString()
  return sql`
    agents as (
      select distinct on (server_id) server_id, id, last_seen_at from monitoring_agents
      where company_id = ${companyId} and state <> 'revoked' and server_id is not null
      order by server_id, enrolled_at desc),
    troubles as (
      select server_id, count(*) filter (where state <> 'grouped')::int as open_alerts,
        bool_or(type = 'agent_down') as is_down
      from monitoring_alerts where company_id = ${companyId} and state in ('open', 'acknowledged', 'grouped')
      group by server_id),
    machines as (
      select s.id, s.name, s.hostname, s.ip_address, s.status, a.id as agent_id, a.last_seen_at,
        coalesce(t.open_alerts, 0) as open_alerts,
        case when a.last_seen_at is null then 'unknown'
          when coalesce(t.is_down, false) or a.last_seen_at < ${oldest}::timestamptz then 'down'
          else 'online' end as connectivity
      from servers s left join agents a on a.server_id = s.id left join troubles t on t.server_id = s.id
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

type MachineRow = {
  id: string
  name: string
  hostname: string | null
  status: ServerStatus
  agent_id: string | null
  last_seen_at: string | null
  open_alerts: number
  connectivity: Connectivity
}

export type ServerView = { readonly search: string; readonly state: ServerState | null; readonly page: number }

/** One page of the servers that match, by name. A page past the end is the last one. */
export async function pageOfServers(hub: Hub, companyId: string, view: ServerView, pageSize: number) {
  const matches = sql`${stateFilter(view.state)} and ${searchFilter(view.search)}`
  const [counted] = await hub.database.db.execute<ServerCounts & { matching: number }>(sql`
    with ${machines(hub, companyId)}
    select count(*)::int as all, (count(*) filter (where connectivity = 'online'))::int as online,
      (count(*) filter (where connectivity = 'down'))::int as down,
      (count(*) filter (where connectivity = 'unknown'))::int as unknown,
      (count(*) filter (where open_alerts > 0))::int as alerts,
      (count(*) filter (where ${matches}))::int as matching
    from machines`)
  const { matching, ...counts } = counted ?? { all: 0, online: 0, down: 0, unknown: 0, alerts: 0, matching: 0 }
  const page = Math.min(view.page, Math.max(1, Math.ceil(matching / pageSize)))
  const rows = await hub.database.db.execute<MachineRow>(sql`
    with ${machines(hub, companyId)}
    select id, name, hostname, status, agent_id, last_seen_at, open_alerts, connectivity from machines
    where ${matches} order by lower(name), id limit ${pageSize} offset ${(page - 1) * pageSize}`)
  const servers = rows.map(
    (row): ServerRecord => ({
      id: row.id,
      name: row.name,
      hostname: row.hostname,
      status: row.status,
      agentId: row.agent_id,
      lastSeenAtMs: row.last_seen_at === null ? null : new Date(row.last_seen_at).getTime(),
      connectivity: row.connectivity,
      openAlerts: row.open_alerts,
    }),
  )
  return { servers, counts, matching, page }
}

/** Labels that only repeat what another one says. */
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
