// How a series request is answered: from which table, with which step, from which instant on (document 3 "Series
// parameters", decisions G-133 and G-134). The samples store turns a plan into SQL; it decides only where cells end and
// raw samples begin, and reads raw where a rollup has no cells.
import { DAY_MS, limits } from '../limits.ts'
import { cellMs } from '../samples/rollup/cell-width.ts'
import type { Aggregate, RangeRequest, SeriesFault, SeriesRequest } from './series-request.ts'

export type SeriesSource = 'raw' | '5m' | '1h'

/**
 * Slack for a client that asks for exactly seven days of raw samples: its request arrives a moment after it computed
 * the range.
 */
const RAW_SLACK_MS = 60_000

export type RangePlan = {
  readonly companyId: string
  readonly serverId: string
  readonly agg: Aggregate
  /** The range that the response states, both ends included. */
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
  readonly source: SeriesSource
  /** Samples older than this are not read, even if a bucket begins before it. */
  readonly oldestMs: number
  /** The whole range is outside what the company may read, so the store is not asked. */
  readonly isEmpty: boolean
  /** When the rollup has no cells of the range, the raw samples are read. */
  readonly fallsBackToRaw: boolean
}
export type SeriesPlan = RangePlan & { readonly metric: string }

type PlanContext = {
  readonly serverId: string
  readonly nowMs: number
  /** The read limit of the company's plan (`readWindow`); -Infinity without one. */
  readonly readFromMs: number
}

const ceilTo = (value: number, unit: number): number => Math.ceil(value / unit) * unit

type Planned<T> = { readonly plan: T } | { readonly fault: SeriesFault }

/** Plans a request for one metric; returns a fault when it asks for too many points. */
export function planSeries(request: SeriesRequest, context: PlanContext): Planned<SeriesPlan> {
  const planned = planRange(request, context)
  return 'fault' in planned ? planned : { plan: { ...planned.plan, metric: request.metric } }
}

/** Plans a request, whatever its metrics; returns a fault when a series of it would have too many points. */
export function planRange(request: RangeRequest, context: PlanContext): Planned<RangePlan> {
  const { nowMs, readFromMs } = context
  const isEmpty = request.toMs < readFromMs
  const fromMs = isEmpty ? request.fromMs : Math.max(request.fromMs, readFromMs)
  const rangeMs = request.toMs - fromMs
  const wantedMs = request.stepMs ?? Math.max(limits.queryStepMinMs, ceilTo(rangeMs / limits.queryPointsDefault, 1000))

  const isRecent = fromMs >= nowMs - limits.queryRawMaxAgeMs - RAW_SLACK_MS
  const source = isRecent ? 'raw' : wantedMs >= cellMs['1h'] ? '1h' : '5m'
  const stepMs = source === 'raw' ? wantedMs : ceilTo(wantedMs, cellMs[source])
  if (Math.ceil(rangeMs / stepMs) > limits.queryPointsMax)
    return {
      fault: {
        field: 'step',
        message: `must be larger: this range would have more than ${limits.queryPointsMax} points`,
      },
    }
  return {
    plan: {
      companyId: request.companyId,
      serverId: context.serverId,
      agg: request.agg,
      fromMs,
      toMs: request.toMs,
      stepMs,
      source,
      oldestMs: Math.max(readFromMs, nowMs - limits.rollupRetentionDays * DAY_MS),
      isEmpty,
      fallsBackToRaw: source !== 'raw' && fromMs >= nowMs - limits.rawRetentionDays * DAY_MS,
    },
  }
}
