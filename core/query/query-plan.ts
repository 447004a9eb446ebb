// How a series request is answered: which store, which step, from when (document 3 "Series parameters", decisions G-133
// and G-134). The samples store turns a plan into SQL and decides nothing.
import { DAY_MS, limits } from '../limits.ts'
import type { Aggregate, SeriesFault, SeriesRequest } from './series-request.ts'

export type SeriesSource = 'raw' | '5m' | '1h'

/** The width of a rollup's cells. */
export const cellMs: Readonly<Record<Exclude<SeriesSource, 'raw'>, number>> = { '5m': 300_000, '1h': 3_600_000 }

/** A client that asks for exactly seven days says so a moment before the collector hears it. */
const RAW_SLACK_MS = 60_000

export type SeriesPlan = {
  readonly companyId: string
  readonly serverId: string
  readonly metric: string
  readonly agg: Aggregate
  /** What the reply says was read, both ends included. */
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
  readonly source: SeriesSource
  /** Nothing older than this is read, whatever the buckets' alignment. */
  readonly oldestMs: number
  /** The range lies wholly outside what the company may read: no store is asked. */
  readonly isEmpty: boolean
  /** Raw is read when the rollup turns out to be empty. */
  readonly fallsBackToRaw: boolean
}

export type PlanContext = {
  readonly serverId: string
  readonly nowMs: number
  /** The read limit of the company's plan (`readWindow`); -Infinity without one. */
  readonly readFromMs: number
}

const ceilTo = (value: number, unit: number): number => Math.ceil(value / unit) * unit

/** The plan of a request, or the fault of asking for too many points. */
export function planSeries(
  request: SeriesRequest,
  context: PlanContext,
): { readonly plan: SeriesPlan } | { readonly fault: SeriesFault } {
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
      metric: request.metric,
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
