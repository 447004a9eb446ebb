// A server's health: latest values and series from the collector, open alerts from the hub's own records (document 1
// "Servers"; decisions G-109 to G-112). A collector that cannot answer is never an error of the request.

import { sql } from 'drizzle-orm'
import { messageOfRefusal } from '../../../core/admin-api/envelope.ts'
import { parseSeriesResponse, seriesParameters, seriesPath } from '../../../core/admin-api/series.ts'
import {
  type LatestSample,
  parseServerStatus,
  type ServerStatusResponse,
  serverStatusPath,
} from '../../../core/admin-api/status.ts'
import type { AgentState } from '../../../core/lifecycle/agent.ts'
import { connectivityOf } from '../../../core/lifecycle/agent-shown-online.ts'
import { isActiveDownAlert } from '../agents/connectivity-sql.ts'
import { openAlertsOf, presentAlerts } from '../alerts/alert-list.ts'
import type { CollectorResponse } from '../collectors/collector-client.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type ApiError, invalid } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'

export type CollectorNote = { available: boolean; reason: null | 'unavailable' | 'not_configured' | 'no_data' }

type Status = Pick<ServerStatusResponse, 'state' | 'last_seen' | 'metrics'>

/** The fields of a server that a query to its collector needs. */
type ServerRef = {
  readonly server: { readonly id: string; readonly companyId: string }
  readonly agentId: string | null
}
type ServerNow = { readonly status: Status | null; readonly note: CollectorNote }

export const NO_DATA: CollectorNote = { available: true, reason: 'no_data' }
export const UNAVAILABLE: CollectorNote = { available: false, reason: 'unavailable' }
const UNKNOWN: Status = { state: 'unknown', last_seen: null, metrics: {} }

/** The collector's view of a server now: its state and the newest values. */
export async function askCollector(hub: Hub, { server, agentId }: ServerRef): Promise<ServerNow> {
  // Nothing is asked about a server without agent: that a collector is registered is enough (G-109).
  if (agentId === null && (await hub.collectors.ids(hub.database.db)).length > 0)
    return { status: UNKNOWN, note: NO_DATA }
  const target = await hub.collectors.targetOfServer(server.companyId, server.id)
  if (!target) return { status: null, note: { available: false, reason: 'not_configured' } }
  const answer = await hub.collectors.query(target, 'status', serverStatusPath(server.companyId, server.id))
  if (!answer) return { status: null, note: UNAVAILABLE }
  if (answer.status === 404) return { status: UNKNOWN, note: NO_DATA }
  const status = answer.status === 200 ? parseServerStatus(answer.body) : null
  if (!status) return { status: null, note: UNAVAILABLE }
  const hasData = status.last_seen !== null || Object.values(status.metrics).some(list => list.length > 0)
  return { status, note: hasData ? { available: true, reason: null } : NO_DATA }
}

const MESSAGE_MAX = 200
const ROOT_MOUNTS = ['/', 'C:']

/** The key values of a server: percent, load, and when they were sampled. */
function summaryOf(status: Status | null) {
  const first = (name: string): LatestSample | undefined => status?.metrics[name]?.[0]
  const disks = status?.metrics.disk_used_percent ?? []
  const root = disks.find(sample => ROOT_MOUNTS.includes(sample.labels.mount ?? ''))
  const picked = [first('cpu_usage_percent'), first('mem_used_percent'), root, first('cpu_load1')]
  const times = picked.filter(sample => sample !== undefined).map(sample => sample.ts_ms)
  return {
    connectivity: status?.state ?? null,
    cpu_percent: picked[0]?.value ?? null,
    memory_percent: picked[1]?.value ?? null,
    disk_percent: picked[2]?.value ?? null,
    load1: picked[3]?.value ?? null,
    sampled_at: times.length > 0 ? new Date(Math.max(...times)) : null,
  }
}

export async function serverHealth(hub: Hub, row: ServerRef) {
  const { companyId, id } = row.server
  const [{ status, note }, open, seen] = await Promise.all([
    askCollector(hub, row),
    openAlertsOf(hub.database.db, companyId, id),
    lastSeenOf(hub.database.db, companyId, [id]),
  ])
  const metrics = Object.fromEntries(
    Object.entries(status?.metrics ?? {}).map(([name, list]) => [
      name,
      list.map(({ labels, value, ts_ms }) => ({ labels, value, ts: new Date(ts_ms) })),
    ]),
  )
  return {
    data: {
      status: status?.state ?? null,
      last_seen: status?.last_seen ?? seen.get(id)?.lastSeenAt ?? null,
      summary: summaryOf(status),
      metrics,
      open_alerts: presentAlerts(open),
    },
    collector: note,
  }
}

const isParameter = (field: string): boolean => seriesParameters.some(name => name === field)
const refused = (message: string) => words('collector_refused', { message: message.slice(0, MESSAGE_MAX) })

/**
 * The contract's error response has only a message: without further members, the first parameter that the message names
 * is taken.
 */
const namedIn = (message: string): string =>
  seriesParameters.find(name => new RegExp(`\\b${name}\\b`).test(message)) ??
  (/range/.test(message) ? 'from' : 'metric')

/** The collector's refusal as faults by parameter. */
export function refusalOfSeries(answer: CollectorResponse): ApiError {
  const message = messageOfRefusal(answer.body)
  const faults = answer.faults
    .filter(({ field }) => isParameter(field))
    .map(({ field, message }) => [field, refused(`${field} ${message}`)] as const)
  return invalid(
    faults.length > 0 ? Object.fromEntries(faults) : { [namedIn(message)]: refused(message || 'bad request') },
  )
}

/** The collector's series, passed through. A refusal of the collector becomes 422 on the parameter that it names. */
export async function serverSeries(hub: Hub, row: Pick<ServerRef, 'server'>, search: URLSearchParams) {
  const { server } = row
  const empty = { server_id: server.id, company_id: server.companyId, metric: search.get('metric'), series: [] }
  const target = await hub.collectors.targetOfServer(server.companyId, server.id)
  if (!target) return { data: empty, collector: { available: false, reason: 'not_configured' } }
  const query = Object.fromEntries(seriesParameters.map(name => [name, search.get(name)]))
  const answer = await hub.collectors.query(target, 'series', seriesPath(server.companyId, server.id, query))
  if (answer?.status === 400) throw refusalOfSeries(answer)
  const data = answer?.status === 200 ? parseSeriesResponse(answer.body) : null
  if (!data) return { data: empty, collector: UNAVAILABLE }
  const hasSeries = data.series.length > 0
  return { data, collector: hasSeries ? { available: true, reason: null } : NO_DATA }
}

type SeenRow = { server_id: string; state: AgentState; last_seen_at: string | null; has_down: boolean }
type Seen = { readonly lastSeenAt: Date | null; readonly state: AgentState; readonly hasDownAlert: boolean }

/** When servers' agents were last seen, from the hub's own records. */
async function lastSeenOf(db: Executor, companyId: string, serverIds: readonly string[]): Promise<Map<string, Seen>> {
  if (serverIds.length === 0) return new Map()
  const rows = await db.execute<SeenRow>(sql`
    select distinct on (a.server_id) a.server_id, a.state, a.last_seen_at, exists (
      select 1 from monitoring_alerts x where x.company_id = a.company_id and x.server_id = a.server_id
        and ${isActiveDownAlert(sql`x`)}) as has_down
    from monitoring_agents a where a.company_id = ${companyId} and a.state <> 'revoked'
      and a.server_id = any(${`{${serverIds.join(',')}}`}::uuid[])
    order by a.server_id, a.enrolled_at desc`)
  return new Map(
    rows.map(row => [
      row.server_id,
      {
        lastSeenAt: row.last_seen_at ? new Date(row.last_seen_at) : null,
        state: row.state,
        hasDownAlert: row.has_down,
      },
    ]),
  )
}

/** The health blocks of a list's servers, without calling a collector (decision G-110). */
export async function healthBlocks(hub: Hub, companyId: string, serverIds: readonly string[]) {
  const { db } = hub.database
  const seen = await lastSeenOf(db, companyId, serverIds)
  const counts = await db.execute<{ server_id: string; count: number }>(sql`
    select server_id, count(*)::int as count from monitoring_alerts
    where company_id = ${companyId} and state in ('open', 'acknowledged')
      and server_id = any(${`{${serverIds.join(',')}}`}::uuid[]) group by server_id`)
  const open = new Map(counts.map(row => [row.server_id, row.count]))
  return (serverId: string) => {
    const known = seen.get(serverId)
    const agent = known && { state: known.state, lastSeenAtMs: known.lastSeenAt?.getTime() ?? null }
    const thresholdMs = hub.config['agents.online_threshold']
    return {
      connectivity: connectivityOf(agent, known?.hasDownAlert ?? false, hub.now(), thresholdMs),
      last_seen_at: known?.lastSeenAt ?? null,
      open_alerts: open.get(serverId) ?? 0,
    }
  }
}
