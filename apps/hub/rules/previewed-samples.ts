// The stored samples that a draft of a rule is judged on: of which servers, and whole. The rule editor's charts and the
// preview of the API read them here, so that both find the same alerts.
import { sql } from 'drizzle-orm'
import {
  metricsPath,
  parseMetricsResponse,
  parseSeriesResponse,
  seriesOf,
  seriesPath,
} from '../../../core/admin-api/series.ts'
import type { ReplayedSeries } from '../../../core/alerting/evaluate/backtest.ts'
import { limits } from '../../../core/limits.ts'
import type { Hub } from '../hub-context.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { FairTurns } from '../platform/fair-turns.ts'

export type PreviewedServer = { readonly id: string; readonly name: string }
export type Tenant = { readonly hub: Hub; readonly companyId: string }
/** What is asked after `endsAtMs` counts as not answered. */
export type Reading = Tenant & { readonly endsAtMs: number }
export type Range = { readonly fromMs: number; readonly toMs: number }

/** A preview reads samples of at most this many servers, since a user waits for it. */
const SERVERS_READ = 25
const READ_AT_ONCE = 5
/** A week of a server takes four questions, and so that of all servers a hundred. */
const READING_MS = 15_000
/**
 * Questions at once of all previews of a hub, so that they leave a collector its time; and of one company, so that long
 * previews of it leave others theirs.
 */
const ASKED_AT_ONCE = 10
const ASKED_OF_COMPANY = 5
/** What waits beyond is not answered. Of one preview five wait. */
const ASKED_MAX = 1_000
/** Every agent reports it with each batch, whatever else it reports. */
const HEARD = 'uptime_seconds'

const questions = new FairTurns(ASKED_AT_ONCE, ASKED_MAX, ASKED_OF_COMPANY)

/** Samples are read from now on, for as long as a user waits. */
export const startReading = ({ hub, companyId }: Tenant): Reading => ({
  hub,
  companyId,
  endsAtMs: hub.now() + READING_MS,
})

/** Servers with open alerts come first: what is bad now is what a draft is about. */
export async function serversToRead({ hub, companyId }: Tenant, ids: readonly string[]): Promise<PreviewedServer[]> {
  return hub.database.db.execute<PreviewedServer>(sql`
    select s.id, s.name from servers s
    left join (select distinct server_id from monitoring_alerts
      where company_id = ${companyId} and state in ('open', 'acknowledged', 'grouped')) a on a.server_id = s.id
    where s.company_id = ${companyId} and s.id = any(${uuidList(ids)}::uuid[]) and s.status <> 'draft'
    order by a.server_id is null, lower(s.name), s.id limit ${SERVERS_READ}`)
}

/** A few at a time: their samples are released before those of the next ones are read. */
export async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += READ_AT_ONCE)
    results.push(...(await Promise.all(items.slice(at, at + READ_AT_ONCE).map(act))))
  return results
}

function ask({ hub, companyId, endsAtMs }: Reading, serverId: string, name: string, path: string): Promise<unknown> {
  return questions.run(companyId, async () => {
    if (hub.now() >= endsAtMs) return null
    const target = await hub.collectors.targetOfServer(companyId, serverId)
    const answer = target ? await hub.collectors.query(target, name, path) : null
    return answer?.status === 200 ? answer.body : null
  })
}

const seconds = (ms: number): string => String(ms / 1000)

/** The worst value of each series in steps of `stepMs`; null when the collector does not answer. */
export async function coarseSeries(
  reading: Reading,
  serverId: string,
  {
    metric,
    worst,
    fromMs,
    toMs,
    stepMs,
  }: Range & {
    readonly metric: string
    readonly worst: 'high' | 'low'
    readonly stepMs: number
  },
): Promise<readonly ReplayedSeries[] | null> {
  const path = seriesPath(reading.companyId, serverId, {
    metric,
    from: seconds(fromMs),
    to: seconds(toMs),
    step: String(Math.ceil(stepMs / 1000)),
    agg: worst === 'high' ? 'max' : 'min',
  })
  const data = parseSeriesResponse(await ask(reading, serverId, 'series', path))
  return data && seriesOf(data)
}

/** A server's series of a metric with all their points, and when the server was heard, whatever it sent. */
export type WholeSeries = {
  readonly series: readonly ReplayedSeries[]
  readonly heardAtMs: readonly number[]
}

/** Null when the collector does not answer for the whole range. */
export async function wholeSeries(
  reading: Reading,
  serverId: string,
  metric: string,
  { fromMs, toMs }: Range,
): Promise<WholeSeries | null> {
  const stepMs = limits.queryStepMinMs
  const windowMs = Math.floor(limits.queryPointsMax / 2) * stepMs
  const found = new Map<
    string,
    { readonly labels: ReplayedSeries['labels']; readonly points: (readonly [number, number])[] }
  >()
  const heard = new Set<number>()
  for (let start = fromMs; start < toMs; start += windowMs) {
    // Both ends of a range count, so the next one begins after this one's end.
    const end = Math.min(toMs, start + windowMs - 1000)
    const query = { from: seconds(start), to: seconds(end), step: seconds(stepMs), agg: 'last' }
    const path = metricsPath(reading.companyId, serverId, [metric, HEARD], query)
    const answer = parseMetricsResponse(await ask(reading, serverId, 'metrics', path))
    if (answer === null) return null
    for (const { metric: name, series } of answer.metrics)
      for (const { labels, points: some } of series) {
        for (const [tsMs] of some) heard.add(tsMs)
        if (name !== metric) continue
        const key = JSON.stringify(labels)
        const known = found.get(key) ?? { labels, points: [] }
        found.set(key, known)
        const lastMs = known.points.at(-1)?.[0] ?? 0
        for (const point of some) if (point[0] > lastMs) known.points.push(point)
      }
  }
  return { series: [...found.values()], heardAtMs: [...heard].sort((one, other) => one - other) }
}
