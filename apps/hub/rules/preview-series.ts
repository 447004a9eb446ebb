// The samples that the rule editor judges: the worst series that a draft covers, whole, and what its matchers meet.
// Labels are matched here, with RE2, so that browsers need no regular expressions.
import { sql } from 'drizzle-orm'
import {
  metricsPath,
  parseMetricsResponse,
  parseSeriesResponse,
  seriesOf,
  seriesPath,
} from '../../../core/admin-api/series.ts'
import type { ReplayedSeries } from '../../../core/alerting/evaluate/backtest.ts'
import { compileMatchers } from '../../../core/alerting/rules/matchers.ts'
import { type Matcher, matchesLabels } from '../../../core/alerting/rules/matches-labels.ts'
import { limits } from '../../../core/limits.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import type { Hub } from '../hub-context.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { resolveScope, type ScopeInput, toScope } from '../scopes/scope.ts'

/** What decides which series are shown; a threshold moves without a new question. */
type PreviewedDraft = {
  readonly metric: string
  readonly matchers: Readonly<Record<string, unknown>>
  readonly scope: ScopeInput
  /** Whether high or low values are the bad ones. */
  readonly worst: 'high' | 'low'
  readonly hours: number
}

type Server = { readonly id: string; readonly name: string }
type Tenant = { readonly hub: Hub; readonly companyId: string }
type Range = { readonly fromMs: number; readonly toMs: number }

const SERVERS_READ = 25
const READ_AT_ONCE = 5
const SERIES_SHOWN = 5
const LABELS_SHOWN = 200
const HOUR_MS = 3_600_000
/** Steps of the first look, which only finds the worst series. */
const COARSE_STEPS = 288
/** Every agent reports it with each batch, whatever else it reports. */
const HEARD = 'uptime_seconds'

/** A series whole, and when its server was heard. */
type PreviewedSeries = {
  readonly server: Server
  readonly labels: Readonly<Record<string, string>>
  readonly points: ReplayedSeries['points']
  readonly heardAtMs: readonly number[]
}

export type LabelSet = {
  readonly labels: Readonly<Record<string, string>>
  readonly servers: number
  readonly isMatched: boolean
}

/** Servers with open alerts come first: what is bad now is what a draft is about. */
async function serversToRead({ hub, companyId }: Tenant, ids: readonly string[]): Promise<Server[]> {
  return hub.database.db.execute<Server>(sql`
    select s.id, s.name from servers s
    left join (select distinct server_id from monitoring_alerts
      where company_id = ${companyId} and state in ('open', 'acknowledged', 'grouped')) a on a.server_id = s.id
    where s.company_id = ${companyId} and s.id = any(${uuidList(ids)}::uuid[]) and s.status <> 'draft'
    order by a.server_id is null, lower(s.name), s.id limit ${SERVERS_READ}`)
}

async function ask({ hub, companyId }: Tenant, serverId: string, name: string, path: string): Promise<unknown> {
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  const answer = target ? await hub.collectors.query(target, name, path) : null
  return answer?.status === 200 ? answer.body : null
}

const seconds = (ms: number): string => String(ms / 1000)

/** The worst value of each series of a server in coarse steps; null when the collector does not answer. */
async function coarseSeries(tenant: Tenant, serverId: string, draft: PreviewedDraft, { fromMs, toMs }: Range) {
  const stepMs = Math.max(limits.queryStepMinMs, (toMs - fromMs) / COARSE_STEPS)
  const path = seriesPath(tenant.companyId, serverId, {
    metric: draft.metric,
    from: seconds(fromMs),
    to: seconds(toMs),
    step: String(Math.ceil(stepMs / 1000)),
    agg: draft.worst === 'high' ? 'max' : 'min',
  })
  const data = parseSeriesResponse(await ask(tenant, serverId, 'series', path))
  return data && seriesOf(data)
}

/** All points of a server's series of the metric, and when the server was heard. */
async function wholeSeries(tenant: Tenant, serverId: string, metric: string, { fromMs, toMs }: Range) {
  const stepMs = limits.queryStepMinMs
  const windowMs = Math.floor(limits.queryPointsMax / 2) * stepMs
  const points = new Map<
    string,
    { readonly labels: Readonly<Record<string, string>>; points: ReplayedSeries['points'] }
  >()
  const heard = new Set<number>()
  for (let start = fromMs; start < toMs; start += windowMs) {
    // Both ends of a range count, so the next one begins after this one's end.
    const end = Math.min(toMs, start + windowMs - 1000)
    const query = { from: seconds(start), to: seconds(end), step: seconds(stepMs), agg: 'last' }
    const path = metricsPath(tenant.companyId, serverId, [metric, HEARD], query)
    const answer = parseMetricsResponse(await ask(tenant, serverId, 'metrics', path))
    for (const { metric: name, series } of answer?.metrics ?? [])
      for (const { labels, points: some } of series) {
        for (const [tsMs] of some) heard.add(tsMs)
        if (name !== metric) continue
        const key = JSON.stringify(labels)
        const known = points.get(key)?.points ?? []
        const last = known.at(-1)?.[0] ?? 0
        points.set(key, { labels, points: [...known, ...some.filter(([tsMs]) => tsMs > last)] })
      }
  }
  return { points, heardAtMs: [...heard].sort((one, other) => one - other) }
}

type Found = { readonly server: Server; readonly labels: Readonly<Record<string, string>>; readonly worst: number }

/** Distinct label sets over all servers that were read, the matched ones first. */
function labelSets(found: readonly Found[], matchers: readonly Matcher[]): LabelSet[] {
  const sets = new Map<string, { labels: Readonly<Record<string, string>>; servers: number; isMatched: boolean }>()
  for (const { labels } of found) {
    const key = JSON.stringify(Object.entries(labels).sort())
    const known = sets.get(key) ?? { labels, servers: 0, isMatched: matchesLabels(matchers, labels) }
    sets.set(key, { ...known, servers: known.servers + 1 })
  }
  const all = [...sets.values()].sort((one, other) => Number(other.isMatched) - Number(one.isMatched))
  return all.slice(0, LABELS_SHOWN)
}

/** The matchers of a draft; throws 422 on their fields. */
function matchersOf({ metric, matchers }: PreviewedDraft): readonly Matcher[] {
  const known = metricByName(metric)
  if (!known) throw invalidField('metric', 'unknown_reference')
  const compiled = compileMatchers(matchers, known.labels)
  const faults = compiled.faults.map(
    ({ reason, label, message }) => [`matchers.${label}`, words(`rule_${reason}`, { message })] as const,
  )
  if (faults.length > 0) throw faultsError(new Map(faults), 'invalid_request')
  return compiled.matchers
}

async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += READ_AT_ONCE)
    results.push(...(await Promise.all(items.slice(at, at + READ_AT_ONCE).map(act))))
  return results
}

/** The worst series of at most 25 servers that the draft covers. Throws ApiError 422 for a draft that is none. */
export async function previewSeries(tenant: Tenant, draft: PreviewedDraft) {
  const { hub, companyId } = tenant
  const matchers = matchersOf(draft)
  const ids = await resolveScope(hub.database.db, companyId, toScope(draft.scope))
  const servers = await serversToRead(tenant, ids)
  const stepMs = limits.queryStepMinMs
  const toMs = Math.floor(hub.now() / stepMs) * stepMs
  const range = { fromMs: toMs - draft.hours * HOUR_MS, toMs }

  const coarse = await inTurns(servers, server => coarseSeries(tenant, server.id, draft, range))
  const sign = draft.worst === 'high' ? 1 : -1
  const found = coarse.flatMap((series, at) =>
    (series ?? []).map(
      ({ labels, points }): Found => ({
        server: servers[at]!,
        labels,
        worst: points.reduce((worst, [, value]) => Math.max(worst, sign * value), Number.NEGATIVE_INFINITY),
      }),
    ),
  )
  const matched = found.filter(({ labels }) => matchesLabels(matchers, labels))
  const shown = [...matched].sort((one, other) => other.worst - one.worst).slice(0, SERIES_SHOWN)
  const ofServers = [...new Map(shown.map(({ server }) => [server.id, server])).values()]
  const whole = new Map(
    await inTurns(ofServers, async ({ id }) => [id, await wholeSeries(tenant, id, draft.metric, range)] as const),
  )
  const series = shown.flatMap(({ server, labels }): PreviewedSeries[] => {
    const read = whole.get(server.id)
    const own = read?.points.get(JSON.stringify(labels))
    return read && own ? [{ server, labels, points: own.points, heardAtMs: read.heardAtMs }] : []
  })
  const unanswered = coarse.filter(each => each === null).length
  const isConfigured = unanswered === 0 || (await hub.collectors.targets()).length > 0
  return {
    range,
    servers: { covered: ids.length, read: servers.length, unanswered },
    collector:
      unanswered === 0 ? ('ok' as const) : isConfigured ? ('unavailable' as const) : ('not_configured' as const),
    matched: matched.length,
    labels: labelSets(found, matchers),
    series,
  }
}
