// The last 24 hours of checks on a server, hour by hour, from its collector: one call for all checks that it runs.
import { metricsPath, type ParsedMetrics, parseMetricsResponse } from '../../../../core/admin-api/series.ts'
import { compileMatchers } from '../../../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../../../core/alerting/rules/matches-labels.ts'
import { type Target, targetMatchers } from '../../checks/check-target.ts'
import { defaultCheckRule } from '../../checks/rule-of-new-check.ts'
import type { Hub } from '../../hub-context.ts'
import type { CheckType } from '../../platform/db/schema.ts'

const HOURS = 24
const HOUR_MS = 3_600_000

const SECONDS: Partial<Readonly<Record<CheckType, string>>> = {
  http: 'http_duration_seconds',
  tcp: 'tcp_connect_seconds',
}

type CheckRow = { readonly type: CheckType; readonly name: string; readonly target: Target }

/** The share of results that were good, 0 to 1, by hour, oldest first; null: no result. */
type Hours = readonly (number | null)[]
export type CheckDay = {
  readonly hours: Hours
  /** How long the newest answer took; null: it is not measured, or not known. */
  readonly seconds: number | null
  /** For how many days the certificate is good; null as above. */
  readonly days: number | null
}

const noHours: Hours = Array.from({ length: HOURS }, () => null)

/** The metrics that say how checks of a type fare. */
export const metricsOfCheck = ({ type, name }: Pick<CheckRow, 'type' | 'name'>): readonly string[] =>
  [defaultCheckRule(type, name).metric, SECONDS[type]].filter(metric => metric !== undefined)

/** A certificate that is good for a day or more counts as a good result. */
const goodShare = (type: CheckType, value: number): number => (type === 'cert' ? (value >= 1 ? 1 : 0) : value)

const endOfDay = (nowMs: number): number => Math.ceil(nowMs / HOUR_MS) * HOUR_MS

/** The last hours until the end of this one, and how long each point of them stands for. */
export type DaySpan = { readonly hours: number; readonly stepMs: number }
const WHOLE_DAY: DaySpan = { hours: HOURS, stepMs: HOUR_MS }

/** The series of these metrics on a server; null where its collector does not answer. */
export async function readDay(
  hub: Hub,
  companyId: string,
  serverId: string,
  metrics: readonly string[],
  agg: 'avg' | 'last' = 'avg',
  { hours, stepMs } = WHOLE_DAY,
): Promise<ParsedMetrics['metrics'] | null> {
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  if (target === null) return null
  const from = String((endOfDay(hub.now()) - hours * HOUR_MS) / 1000)
  const path = metricsPath(companyId, serverId, metrics, { from, step: String(stepMs / 1000), agg })
  const answer = await hub.collectors.query(target, 'series', path)
  return answer?.status === 200 ? (parseMetricsResponse(answer.body)?.metrics ?? null) : null
}

type Metrics = ParsedMetrics['metrics'] | null

/** The points of a metric that are of a check, oldest first. */
function pointsOf(metrics: Metrics, { type, target }: Omit<CheckRow, 'name'>, metric: string | undefined) {
  const { matchers } = compileMatchers(targetMatchers(type, target), null)
  const series = metrics?.find(each => each.metric === metric)?.series
  return series?.find(({ labels }) => matchesLabels(matchers, labels))?.points ?? []
}

/** When the newest result of a check was taken; null: there is none. */
export const lastAtOf = (metrics: Metrics, check: CheckRow): number | null =>
  pointsOf(metrics, check, defaultCheckRule(check.type, check.name).metric).at(-1)?.[0] ?? null

/** What the series of a server say of one check. */
export function dayOf(metrics: Metrics, check: CheckRow, nowMs: number): CheckDay {
  const { type, name } = check
  const endMs = endOfDay(nowMs)
  const hours = [...noHours]
  const points = pointsOf(metrics, check, defaultCheckRule(type, name).metric)
  for (const [tsMs, value] of points) {
    const hour = HOURS - 1 - Math.floor((endMs - 1 - tsMs) / HOUR_MS)
    if (hour >= 0 && hour < HOURS) hours[hour] = goodShare(type, value)
  }
  const last = points.at(-1)?.[1] ?? null
  return {
    hours,
    seconds: pointsOf(metrics, check, SECONDS[type]).at(-1)?.[1] ?? null,
    days: type === 'cert' ? last : null,
  }
}

const least = (values: readonly (number | null)[]): number | null => {
  const known = values.filter(value => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}

const most = (values: readonly (number | null)[]): number | null => {
  const known = values.filter(value => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** Of several servers the worst of each: an hour in which one of them failed is no good hour. */
export const worstDay = (days: readonly CheckDay[]): CheckDay => ({
  hours: noHours.map((_, hour) => least(days.map(day => day.hours[hour] ?? null))),
  seconds: most(days.map(day => day.seconds)),
  days: least(days.map(day => day.days)),
})
