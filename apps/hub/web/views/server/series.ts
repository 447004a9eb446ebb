// The points of some metrics of a server over a range, as columns: one array of values a series, on one grid of time.
import type { ParsedMetrics, SeriesOfServer } from '../../../../../core/admin-api/series.ts'
import { aggregates } from '../../../../../core/query/series-request.ts'
import { askMetrics } from '../../../servers/collector-questions.ts'
import { rangeOf, type TimeRange } from '../../address/time-range.ts'
import type { View, ViewContext } from '../view.ts'
import type { Labels } from './charts.ts'
import { type CollectorState, shownServer } from './head.ts'

const METRICS_MAX = 12

export type GridSeries = {
  readonly labels: Labels
  /** At `startMs` and every `stepMs` from there; null where nothing was sent. */
  readonly values: readonly (number | null)[]
}

export type SeriesView = {
  /** The range that was asked for. */
  readonly fromMs: number
  readonly toMs: number
  readonly startMs: number
  readonly stepMs: number
  /** What is older cannot be read under the company's plan; null without such a limit. */
  readonly readableFromMs: number | null
  /** What is older is kept only until a grace ends; null without a grace. */
  readonly lockedBeforeMs: number | null
  readonly metrics: readonly { readonly metric: string; readonly series: readonly GridSeries[] }[]
  /** Metrics that the answer has no place for: to be asked for alone. */
  readonly leftOut: readonly string[]
  readonly collector: CollectorState
}

/** Enough digits for any axis, and a third of the bytes. */
const rounded = (value: number): number => Number(value.toPrecision(6))

/** A series on the grid. */
function onGrid({ labels, points }: SeriesOfServer, startMs: number, stepMs: number, length: number): GridSeries {
  const values: (number | null)[] = Array.from({ length }, () => null)
  for (const [tsMs, value] of points) {
    const index = Math.floor((tsMs - startMs) / stepMs)
    if (index >= 0 && index < length) values[index] = rounded(value)
  }
  return { labels, values }
}

/** Buckets are aligned to the epoch (decision G-133): so is the grid, which begins with the bucket of `from`. */
function gridOf(data: ParsedMetrics): Pick<SeriesView, 'startMs' | 'stepMs' | 'metrics'> {
  const stepMs = data.step_seconds * 1_000
  const startMs = Math.floor(Date.parse(data.from) / stepMs) * stepMs
  const length = Math.max(1, Math.floor((Date.parse(data.to) - startMs) / stepMs) + 1)
  return {
    startMs,
    stepMs,
    metrics: data.metrics.map(({ metric, series }) => ({
      metric,
      series: series.map(each => onGrid(each, startMs, stepMs, length)),
    })),
  }
}

const DAY_MS = 86_400_000

/** A collector moves `from` to where the plan lets one read, but leaves a range that lies before that as it is. */
function readableFrom(data: ParsedMetrics, { fromMs, toMs }: TimeRange, nowMs: number): number | null {
  if (data.retention_days === undefined) return null
  const answeredMs = Date.parse(data.from)
  if (answeredMs > fromMs) return answeredMs
  const limitMs = nowMs - data.retention_days * DAY_MS
  return data.retention_locked_before === undefined && toMs < limitMs ? limitMs : null
}

type AskedRange = TimeRange & { readonly agg: string }

/** The points of metrics of a server that the company has, over a range. */
export async function seriesOfServer(
  { hub, companyId }: ViewContext,
  serverId: string,
  metrics: readonly string[],
  { agg, ...range }: AskedRange,
): Promise<SeriesView> {
  const nowMs = hub.now()
  const { data, note } = await askMetrics(hub, { id: serverId, companyId }, metrics, { ...range, agg })
  return {
    ...range,
    ...(data === null ? { startMs: range.fromMs, stepMs: 30_000, metrics: [] } : gridOf(data)),
    readableFromMs: data === null ? null : readableFrom(data, range, nowMs),
    lockedBeforeMs: data?.retention_locked_before === undefined ? null : Date.parse(data.retention_locked_before),
    leftOut: data?.left_out ?? [],
    collector: note.reason ?? 'ok',
  }
}

export const serverSeriesView: View<SeriesView> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete'],
  params: ['server', 'metrics', 'from', 'to', 'agg'],
  ageMs: 10_000,
  async make(context) {
    const { hub, param } = context
    const { server } = await shownServer(context)
    const range = rangeOf(param('from'), param('to'), hub.now())
    const metrics = param('metrics').split(',').slice(0, METRICS_MAX)
    const agg = aggregates.find(known => known === param('agg')) ?? 'avg'
    return seriesOfServer(context, server.id, metrics, { ...range, agg })
  },
}
