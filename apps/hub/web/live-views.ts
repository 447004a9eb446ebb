// The snapshot of a company at one moment: the hub's records, completed by the collector's answers about the servers on
// the page. Viewers share a snapshot and its query to the collector; a slow or unreachable collector delays nobody.
import pTimeout from 'p-timeout'
import { isObject } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'
import { askCollector, type ServerNow, serverSeries, summaryOf } from '../servers/health.ts'
import { pageOfAlerts, pageOfServers, type ServerCounts, type ServerRecord, type ServerView } from './live-records.ts'
import {
  type CollectorState,
  chartMinutes,
  type LiveSnapshot,
  type ServerPicture,
  type ServerSeries,
} from './live-view.ts'
import { RecentValues } from './recent-values.ts'

const SERVERS_PER_PAGE = 15
const ALERTS_PER_PAGE = 6
const PICTURE_AGE_MS = 2_000
const ANSWER_AGE_MS = 4_000
/** An older answer is shown while the collector is slow to give the next one. */
const ANSWER_USABLE_MS = 30_000
/** How long a snapshot waits for the collector. */
const COLLECTOR_WAIT_MS = 1_500
const SERIES_AGE_MS = 15_000
const SERIES_STEP_SECONDS = 30
const SHARED_MAX = 5_000

export type LiveView = ServerView & { readonly alertsPage: number }

/**
 * A server as the page shows it: its key values, the state that the collector reports or else the recorded one, and
 * the later of both last-seen times.
 */
function toPicture(record: ServerRecord, answer: ServerNow | null): ServerPicture {
  const status = answer?.status ?? null
  const { cpu_percent, memory_percent, disk_percent, load1, sampled_at } = summaryOf(status)
  const seenAtMs = status?.last_seen ? Date.parse(status.last_seen) : null
  const times = [record.lastSeenAtMs, seenAtMs].filter(time => time !== null)
  return {
    id: record.id,
    name: record.name,
    hostname: record.hostname,
    status: record.status,
    connectivity: status?.state ?? record.connectivity,
    lastSeenAtMs: times.length > 0 ? Math.max(...times) : null,
    openAlerts: record.openAlerts,
    latest: status && {
      cpu: cpu_percent,
      memory: memory_percent,
      disk: disk_percent,
      load1,
      sampledAtMs: sampled_at?.getTime() ?? null,
    },
  }
}

/** Counts that agree with the page: where the collector's state replaced the recorded one, the counts follow it. */
function countsAsShown(
  counts: ServerCounts,
  records: readonly ServerRecord[],
  shown: readonly ServerPicture[],
): ServerCounts {
  const agreed = { ...counts }
  records.forEach((record, index) => {
    agreed[record.connectivity]--
    agreed[shown[index]?.connectivity ?? record.connectivity]++
  })
  return agreed
}

function collectorState(answers: readonly (ServerNow | null)[]): CollectorState {
  const reasons = new Set(answers.filter(answer => answer?.note.available === false).map(answer => answer?.note.reason))
  if (reasons.has('unavailable')) return 'unavailable'
  return reasons.has('not_configured') ? 'not_configured' : 'ok'
}

export class LivePictures {
  private readonly snapshots: RecentValues<LiveSnapshot>
  private readonly answers: RecentValues<ServerNow>
  private readonly series: RecentValues<ServerSeries | null>

  constructor(private readonly hub: Hub) {
    this.snapshots = new RecentValues(PICTURE_AGE_MS, SHARED_MAX, hub.now)
    this.answers = new RecentValues(ANSWER_AGE_MS, SHARED_MAX, hub.now)
    this.series = new RecentValues(SERIES_AGE_MS, SHARED_MAX, hub.now)
  }

  /** The snapshot of a view, at most two seconds old. */
  snapshot(companyId: string, view: LiveView): Promise<LiveSnapshot> {
    const key = JSON.stringify([companyId, view.page, view.search, view.state, view.alertsPage])
    return this.snapshots.get(key, () => this.compose(companyId, view))
  }

  private async answersOf(companyId: string, records: readonly ServerRecord[]): Promise<(ServerNow | null)[]> {
    const keyOf = (record: ServerRecord) => `${companyId} ${record.id} ${record.agentId}`
    const asked = records.map(record =>
      this.answers.get(keyOf(record), () =>
        askCollector(this.hub, { server: { id: record.id, companyId }, agentId: record.agentId }),
      ),
    )
    const answered = Promise.all(asked).catch(error => this.hub.log.warn({ err: error }, 'cannot ask the collector'))
    await pTimeout(answered, { milliseconds: COLLECTOR_WAIT_MS, fallback: () => {} })
    return records.map(record => this.answers.last(keyOf(record), ANSWER_USABLE_MS))
  }

  private async compose(companyId: string, view: LiveView): Promise<LiveSnapshot> {
    const { hub } = this
    const [found, open] = await Promise.all([
      pageOfServers(hub, companyId, view, SERVERS_PER_PAGE),
      pageOfAlerts(hub, companyId, view.alertsPage, ALERTS_PER_PAGE),
    ])
    const answers = await this.answersOf(companyId, found.servers)
    const servers = found.servers.map((record, index) => toPicture(record, answers[index] ?? null))
    return {
      nowMs: hub.now(),
      counts: countsAsShown(found.counts, found.servers, servers),
      severities: open.severities,
      servers,
      matching: found.matching,
      page: found.page,
      pageSize: SERVERS_PER_PAGE,
      alerts: open.alerts,
      alertsTotal: open.total,
      alertsPage: open.page,
      alertsPageSize: ALERTS_PER_PAGE,
      collector: collectorState(answers),
    }
  }

  /** CPU and memory of a server over the last hour; null when the collector does not answer. */
  async seriesOf(companyId: string, serverId: string): Promise<ServerSeries | null> {
    return this.series.get(`${companyId} ${serverId}`, async () => {
      const [cpu, memory] = await Promise.all([
        this.pointsOf(companyId, serverId, 'cpu_usage_percent'),
        this.pointsOf(companyId, serverId, 'mem_used_percent'),
      ])
      if (cpu === null || memory === null) return null
      const times = [...new Set([...cpu.keys(), ...memory.keys()])].sort((a, b) => a - b)
      return {
        serverId,
        stepSeconds: SERIES_STEP_SECONDS,
        times,
        cpu: times.map(time => cpu.get(time) ?? null),
        memory: times.map(time => memory.get(time) ?? null),
      }
    })
  }

  /** Values by their time in seconds. */
  private async pointsOf(companyId: string, serverId: string, metric: string): Promise<Map<number, number> | null> {
    const toMs = this.hub.now()
    const search = new URLSearchParams({
      metric,
      from: new Date(toMs - chartMinutes * 60_000).toISOString(),
      to: new Date(toMs).toISOString(),
      step: String(SERIES_STEP_SECONDS),
    })
    const { data, collector } = await serverSeries(this.hub, { server: { id: serverId, companyId } }, search)
    if (!collector.available) return null
    return pointsOfResponse(data)
  }
}

/** The first series of an answer: the metrics of the chart have one each. */
function pointsOfResponse(data: unknown): Map<number, number> {
  const points = new Map<number, number>()
  const series: unknown = isObject(data) && Array.isArray(data.series) ? data.series[0] : null
  if (!isObject(series) || !Array.isArray(series.points)) return points
  for (const point of series.points) {
    if (!Array.isArray(point)) continue
    const [tsMs, value]: unknown[] = point
    if (typeof tsMs === 'number' && typeof value === 'number') points.set(Math.round(tsMs / 1000), value)
  }
  return points
}
