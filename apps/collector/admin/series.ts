// GET /internal/v1/servers/{server_id}/series: request, read window, plan, store, reply (document 3 "Series parameters"
// and "Series response"). /series/by-metric answers for several metrics, /metrics says which series there are.
import type { MetricsResponse, SeriesListResponse, SeriesResponse } from '../../../core/admin-api/series.ts'
import { limits } from '../../../core/limits.ts'
import { planRange, planSeries, type RangePlan } from '../../../core/query/query-plan.ts'
import { parseMetricsRequest, parseSeriesRequest, type RangeRequest } from '../../../core/query/series-request.ts'
import { type ReadWindow, readWindow } from '../../../core/retention/readable-and-deletable.ts'
import { metrics as catalogue } from '../../../core/series/catalogue.ts'
import { parseSeriesKey } from '../../../core/series/series-key.ts'
import { badFields } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import type { AdminDeps } from './deps.ts'

const instant = (ms: number): string => new Date(ms).toISOString()

/** The members about retention: present only where the plan limits reading, and in a grace. */
const windowMembers = (window: ReadWindow) => ({
  ...(window.retentionDays === undefined ? {} : { retention_days: window.retentionDays }),
  ...(window.previousDays === undefined ? {} : { retention_previous_days: window.previousDays }),
  ...(window.graceUntilMs === undefined ? {} : { retention_grace_until: instant(window.graceUntilMs) }),
  ...(window.lockedBeforeMs === undefined ? {} : { retention_locked_before: instant(window.lockedBeforeMs) }),
})

/** The parameters of a range as the query string has them; absent is undefined. */
function rangeParams(query: URLSearchParams) {
  const param = (name: string): string | undefined => query.get(name) ?? undefined
  return {
    company_id: param('company_id'),
    from: param('from'),
    to: param('to'),
    step: param('step'),
    agg: param('agg'),
  }
}

/** What the company may read at `nowMs`, and what of a plan needs that. */
async function planContext(deps: AdminDeps, { companyId }: RangeRequest, serverId: string, nowMs: number) {
  const window = readWindow(await deps.retention(companyId), nowMs)
  return { window, context: { serverId, nowMs, readFromMs: window.readFromMs } }
}

const timed = async <T extends { readonly source: RangePlan['source'] }>(
  deps: AdminDeps,
  query: Promise<T>,
): Promise<T> => {
  const startedMs = performance.now()
  const answer = await query
  deps.onQuery(answer.source, (performance.now() - startedMs) / 1000)
  return answer
}

const rangeMembers = (plan: RangePlan, window: ReadWindow) => ({
  agg: plan.agg,
  from: instant(plan.fromMs),
  to: instant(plan.toMs),
  step_seconds: plan.stepMs / 1000,
  ...windowMembers(window),
})

export async function serverSeries(deps: AdminDeps, { params, query }: AdminCall): Promise<SeriesResponse> {
  const nowMs = deps.nowMs()
  const serverId = uuidOf('server_id', params.server_id)
  const parsed = parseSeriesRequest({ ...rangeParams(query), metric: query.get('metric') ?? undefined }, nowMs)
  if ('faults' in parsed) throw badFields(parsed.faults)
  const { window, context } = await planContext(deps, parsed.request, serverId, nowMs)
  const planned = planSeries(parsed.request, context)
  if ('fault' in planned) throw badFields([planned.fault])
  const { plan } = planned
  const answer = await timed(deps, deps.samples.querySeries(plan))
  return {
    server_id: serverId,
    company_id: plan.companyId,
    metric: plan.metric,
    ...rangeMembers(plan, window),
    series: answer.series,
  }
}

export async function seriesByMetric(deps: AdminDeps, { params, query }: AdminCall): Promise<MetricsResponse> {
  const nowMs = deps.nowMs()
  const serverId = uuidOf('server_id', params.server_id)
  const parsed = parseMetricsRequest({ ...rangeParams(query), metrics: query.get('metrics') ?? undefined }, nowMs)
  if ('faults' in parsed) throw badFields(parsed.faults)
  const { metrics } = parsed.request
  const { window, context } = await planContext(deps, parsed.request, serverId, nowMs)
  const planned = planRange(parsed.request, context)
  if ('fault' in planned) throw badFields([planned.fault])
  const { plan } = planned
  const { series, leftOut } = await timed(deps, deps.samples.queryMetrics(plan, metrics))
  return {
    server_id: serverId,
    company_id: plan.companyId,
    ...rangeMembers(plan, window),
    metrics: metrics
      .filter(metric => !leftOut.includes(metric))
      .map(metric => ({
        metric,
        series: series.filter(each => each.metric === metric).map(({ labels, points }) => ({ labels, points })),
      })),
    left_out: leftOut,
  }
}

/** Only metrics of the catalogue are listed, since no other can be queried (decision G-64). */
export async function seriesList(deps: AdminDeps, { params, query }: AdminCall): Promise<SeriesListResponse> {
  const serverId = uuidOf('server_id', params.server_id)
  const companyId = uuidOf('company_id', query.get('company_id'))
  const keys = await deps.samples.seriesKeys(
    companyId,
    serverId,
    catalogue.map(({ name }) => name),
  )
  const labelsOf = new Map<string, Readonly<Record<string, string>>[]>(catalogue.map(({ name }) => [name, []]))
  for (const key of keys) {
    const { metric, labels } = parseSeriesKey(key)
    labelsOf.get(metric)?.push(labels)
  }
  let left: number = limits.querySeriesListedMax
  const metrics = [...labelsOf].flatMap(([metric, all]) => {
    const labels = all.slice(0, left)
    left -= labels.length
    return labels.length > 0 ? [{ metric, labels }] : []
  })
  return { server_id: serverId, company_id: companyId, metrics, truncated: keys.length > limits.querySeriesListedMax }
}
