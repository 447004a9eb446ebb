// Reading samples. Every statement is bound by company and server; every value is a bound parameter; every point counts once,
// however often it was sent (FINAL).
import { cellMs, type SeriesPlan, type SeriesSource } from '../../../core/query/query-plan.ts'
import type { Aggregate } from '../../../core/query/series-request.ts'
import { parseSeriesKey } from '../../../core/series/series-key.ts'
import type { ClickHouse, QueryParams } from './clickhouse.ts'

/** One series of an answer: labels without the metric's name, points in time order, stamped with their bucket's start. */
export type SeriesPoints = { readonly labels: Record<string, string>; readonly points: [tsMs: number, value: number][] }
export type SeriesAnswer = {
  readonly series: SeriesPoints[]
  /** What was read in the end, for telemetry. */
  readonly source: SeriesSource
}

/** The newest value of a series. */
export type LatestValue = {
  readonly metric: string
  readonly labels: Record<string, string>
  readonly value: number
  readonly tsMs: number
}

const OWNER = 'company_id = {company:UUID} AND server_id = {server:UUID}'
const IDS = (db: string): string =>
  `series_id IN (SELECT series_id FROM ${db}.series WHERE ${OWNER} AND metric = {metric:String})`
const SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1, max_threads = 2'
const MILLIS = 'toUnixTimestamp64Milli(ts)'
const BUCKET = `intDiv(${MILLIS}, {step:Int64}) * {step:Int64}`
const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`

/** The value of a point from raw samples. */
const OVER_SAMPLES: Readonly<Record<Aggregate, string>> = {
  avg: 'avg(value)',
  min: 'min(value)',
  max: 'max(value)',
  last: 'argMax(value, ts)',
}

/** The value of a point from cells: the average is weighted by their counts, the last value is the latest cell's. */
const OVER_CELLS: Readonly<Record<Aggregate, string>> = {
  avg: 'sum(cell_sum) / sum(cell_count)',
  min: 'min(cell_min)',
  max: 'max(cell_max)',
  last: 'argMax(cell_last, cell_last_ts)',
}

const boundParams = (plan: SeriesPlan, fromMs: number): QueryParams => ({
  company: plan.companyId,
  server: plan.serverId,
  metric: plan.metric,
  from: fromMs,
  to: plan.toMs,
  step: plan.stepMs,
})

const byKey = (db: string, buckets: string): string => `
SELECT key, groupArray(toFloat64(bucket)) AS times, groupArray(point) AS points
FROM (${buckets} ORDER BY series_id, bucket) AS buckets
INNER JOIN (
  SELECT DISTINCT series_id, key FROM ${db}.series WHERE ${OWNER} AND metric = {metric:String}
) AS definitions USING series_id
GROUP BY key ORDER BY key ${SETTINGS}`

function rawSql(db: string, agg: Aggregate): string {
  return byKey(
    db,
    `SELECT series_id, ${BUCKET} AS bucket, ${OVER_SAMPLES[agg]} AS point
     FROM ${db}.samples_raw FINAL
     WHERE ${OWNER} AND ${IDS(db)} AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')}
     GROUP BY series_id, bucket`,
  )
}

/** Cells up to `complete`, and from there the raw samples, which have no complete cell yet. */
function rollupSql(db: string, agg: Aggregate, source: Exclude<SeriesSource, 'raw'>): string {
  return byKey(
    db,
    `SELECT series_id, bucket, ${OVER_CELLS[agg]} AS point FROM (
       SELECT series_id, ${BUCKET} AS bucket, toFloat64(count) AS cell_count, sum AS cell_sum, min AS cell_min,
              max AS cell_max, last AS cell_last, last_ts AS cell_last_ts
       FROM ${db}.rollup_${source} FINAL
       WHERE ${OWNER} AND ${IDS(db)} AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts < ${INSTANT('complete')}
       UNION ALL
       SELECT series_id, ${BUCKET} AS bucket, toFloat64(1) AS cell_count, value AS cell_sum, value AS cell_min,
              value AS cell_max, value AS cell_last, ts AS cell_last_ts
       FROM ${db}.samples_raw FINAL
       WHERE ${OWNER} AND ${IDS(db)} AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts >= ${INSTANT('complete')}
     ) GROUP BY series_id, bucket`,
  )
}

function seriesOf(rows: readonly unknown[][]): SeriesPoints[] {
  const series: SeriesPoints[] = []
  for (const [key, times, values] of rows) {
    if (typeof key !== 'string' || !Array.isArray(times) || !Array.isArray(values)) continue
    const points: [number, number][] = []
    times.forEach((time, index) => {
      const value: unknown = values[index]
      // JSON has no infinity: a sum that left the range of numbers comes as null.
      if (typeof time === 'number' && typeof value === 'number') points.push([time, value])
    })
    if (points.length > 0) series.push({ labels: parseSeriesKey(key).labels, points })
  }
  return series
}

/** Answers a plan. `completeMs` is up to where the cells of its source are computed. */
export async function querySeries(store: ClickHouse, plan: SeriesPlan, completeMs: number): Promise<SeriesAnswer> {
  if (plan.isEmpty) return { series: [], source: plan.source }
  const readFromMs = Math.max(plan.fromMs, plan.oldestMs)
  const readRaw = async (): Promise<SeriesAnswer> => ({
    series: seriesOf(await store.rows(rawSql(store.database, plan.agg), boundParams(plan, readFromMs))),
    source: 'raw',
  })
  if (plan.source === 'raw') return readRaw()

  const width = cellMs[plan.source]
  const fromMs = Math.floor(readFromMs / width) * width
  const params = { ...boundParams(plan, fromMs), complete: completeMs }
  if (plan.fallsBackToRaw && !(await hasCells(store, plan.source, params))) return readRaw()
  const rows = await store.rows(rollupSql(store.database, plan.agg, plan.source), params)
  return { series: seriesOf(rows), source: plan.source }
}

async function hasCells(
  store: ClickHouse,
  source: Exclude<SeriesSource, 'raw'>,
  params: QueryParams,
): Promise<boolean> {
  const db = store.database
  const rows = await store.rows(
    `SELECT 1 FROM ${db}.rollup_${source}
     WHERE ${OWNER} AND ${IDS(db)} AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts < ${INSTANT('complete')}
     LIMIT 1`,
    params,
  )
  return rows.length > 0
}

/** The newest value of every series of `metrics` on a machine, of those that have one since `sinceMs`. */
export async function latestValues(
  store: ClickHouse,
  companyId: string,
  serverId: string,
  metrics: readonly string[],
  sinceMs: number,
): Promise<LatestValue[]> {
  const db = store.database
  const rows = await store.rows(
    `SELECT key, newest_value, toFloat64(toUnixTimestamp64Milli(newest_ts)) FROM (
       SELECT series_id, argMax(value, ts) AS newest_value, max(ts) AS newest_ts FROM ${db}.samples_raw FINAL
       WHERE ${OWNER} AND ts >= ${INSTANT('since')} AND series_id IN (
         SELECT series_id FROM ${db}.series WHERE ${OWNER} AND metric IN {metrics:Array(String)})
       GROUP BY series_id
     ) AS newest INNER JOIN (
       SELECT DISTINCT series_id, key FROM ${db}.series WHERE ${OWNER} AND metric IN {metrics:Array(String)}
     ) AS definitions USING series_id
     ORDER BY key ${SETTINGS}`,
    { company: companyId, server: serverId, since: sinceMs, metrics },
  )
  const values: LatestValue[] = []
  for (const [key, value, tsMs] of rows)
    if (typeof key === 'string' && typeof value === 'number' && typeof tsMs === 'number')
      values.push({ ...parseSeriesKey(key), value, tsMs })
  return values
}
