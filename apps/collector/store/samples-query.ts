// Reading samples. Every statement is bound by company and server; every value is a bound parameter; every point counts once,
// however often it was sent.
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

/** A series of a machine: its id as the store knows it, and its full key. */
type Definition = { readonly id: bigint; readonly key: string }

const DEFINITIONS_MS = 10_000
const DEFINITIONS_MAX = 2_000

const OWNER = 'company_id = {company:UUID} AND server_id = {server:UUID}'
const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
/** Small reads are cheapest on one thread; a long range of raw samples is worth a second. */
const SETTINGS = 'SETTINGS max_threads = 1'
const SETTINGS_LONG = 'SETTINGS max_threads = 2'
const LONG_RANGE_MS = 2 * 86_400_000

/**
 * Orders rows of one series and time by when they came: parts are numbered as they are inserted, never overlap, and keep the
 * last row of their own. So a point that was sent again counts once, with its last value, and at a fifth of the cost of FINAL.
 */
const RECEIVED = "toUInt64(splitByChar('_', _part)[2])"

const BUCKET = 'intDiv(toUnixTimestamp64Milli(ts), {step:Int64}) * {step:Int64}'

/** Raw samples, each once, as (series_id, ts, value). */
const samplesOnce = (db: string, where: string): string =>
  `SELECT series_id, ts, argMax(value, ${RECEIVED}) AS value FROM ${db}.samples_raw
   WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${where} GROUP BY series_id, ts`

/** The cells of a rollup, each in its last version. */
const cellsOnce = (db: string, source: Exclude<SeriesSource, 'raw'>, where: string): string =>
  `SELECT series_id, ts, argMax((count, sum, min, max, last, last_ts), (version, ${RECEIVED})) AS cell FROM ${db}.rollup_${source}
   WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${where} GROUP BY series_id, ts`

/** The value of a point from raw samples. */
const OVER_SAMPLES: Readonly<Record<Aggregate, string>> = {
  avg: 'avg(value)',
  min: 'min(value)',
  max: 'max(value)',
  last: 'argMax(value, ts)',
}

/** The value of a point from cells: the average is weighted by their counts, the last value is the latest sample's. */
const OVER_CELLS: Readonly<Record<Aggregate, string>> = {
  avg: 'sum(cell_sum) / sum(cell_count)',
  min: 'min(cell_min)',
  max: 'max(cell_max)',
  last: 'argMax(cell_last, cell_last_ts)',
}

/** Buckets of every series as one row: id, starts, values. */
const oneRowASeries = (buckets: string, rangeMs: number): string =>
  `SELECT toString(series_id), groupArray(toFloat64(bucket)), groupArray(point)
   FROM (${buckets} ORDER BY series_id, bucket) GROUP BY series_id
   ${rangeMs > LONG_RANGE_MS ? SETTINGS_LONG : SETTINGS}`

const rawSql = (db: string, agg: Aggregate, rangeMs: number): string =>
  oneRowASeries(
    `SELECT series_id, ${BUCKET} AS bucket, ${OVER_SAMPLES[agg]} AS point
     FROM (${samplesOnce(db, `ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')}`)}) GROUP BY series_id, bucket`,
    rangeMs,
  )

/** Cells up to `complete`, and from there the raw samples, which have no complete cell yet. */
const rollupSql = (db: string, agg: Aggregate, source: Exclude<SeriesSource, 'raw'>, rangeMs: number): string =>
  oneRowASeries(
    `SELECT series_id, bucket, ${OVER_CELLS[agg]} AS point FROM (
       SELECT series_id, ${BUCKET} AS bucket, toFloat64(cell.1) AS cell_count, cell.2 AS cell_sum, cell.3 AS cell_min,
              cell.4 AS cell_max, cell.5 AS cell_last, cell.6 AS cell_last_ts
       FROM (${cellsOnce(db, source, `ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts < ${INSTANT('complete')}`)})
       UNION ALL
       SELECT series_id, ${BUCKET} AS bucket, toFloat64(1) AS cell_count, value AS cell_sum, value AS cell_min,
              value AS cell_max, value AS cell_last, ts AS cell_last_ts
       FROM (${samplesOnce(db, `ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts >= ${INSTANT('complete')}`)})
     ) GROUP BY series_id, bucket`,
    rangeMs,
  )

function seriesOf(rows: readonly unknown[][], definitions: readonly Definition[]): SeriesPoints[] {
  const byId = new Map(rows.map(row => [String(row[0]), row]))
  const series: SeriesPoints[] = []
  for (const { id, key } of definitions) {
    const [, times, values] = byId.get(String(id)) ?? []
    if (!Array.isArray(times) || !Array.isArray(values)) continue
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

/** Reads one store. Keeps the definitions of series that were asked for lately, so that a dashboard costs one statement. */
export class SamplesReader {
  private readonly store: ClickHouse
  private readonly nowMs: () => number
  private readonly known = new Map<string, { readonly definitions: readonly Definition[]; readonly untilMs: number }>()

  constructor(store: ClickHouse, nowMs: () => number) {
    this.store = store
    this.nowMs = nowMs
  }

  /** New series were stored, or some were deleted. Those of other processes are seen after DEFINITIONS_MS. */
  forgetDefinitions(): void {
    this.known.clear()
  }

  /** The series of a machine that belong to `metrics`, in the order of their keys. */
  private async definitionsOf(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
  ): Promise<readonly Definition[]> {
    const name = [companyId, serverId, ...metrics].join(' ')
    const nowMs = this.nowMs()
    const known = this.known.get(name)
    if (known && known.untilMs > nowMs) return known.definitions
    const rows = await this.store.rows(
      `SELECT DISTINCT toString(series_id), key FROM ${this.store.database}.series
       WHERE ${OWNER} AND metric IN {metrics:Array(String)} ORDER BY key ${SETTINGS}`,
      { company: companyId, server: serverId, metrics },
    )
    const definitions = rows.map(([id, key]) => ({ id: BigInt(String(id)), key: String(key) }))
    // An empty answer is not kept: the first samples of a machine are to be seen at once.
    if (definitions.length > 0) {
      if (this.known.size >= DEFINITIONS_MAX) this.known.clear()
      this.known.set(name, { definitions, untilMs: nowMs + DEFINITIONS_MS })
    }
    return definitions
  }

  /** Answers a plan. `completeMs` is up to where the cells of its source are computed. */
  async querySeries(plan: SeriesPlan, completeMs: number): Promise<SeriesAnswer> {
    if (plan.isEmpty) return { series: [], source: plan.source }
    const definitions = await this.definitionsOf(plan.companyId, plan.serverId, [plan.metric])
    if (definitions.length === 0) return { series: [], source: plan.source }
    const { store } = this
    const readFromMs = Math.max(plan.fromMs, plan.oldestMs)
    const rangeMs = plan.toMs - readFromMs
    const owned: QueryParams = {
      company: plan.companyId,
      server: plan.serverId,
      ids: definitions.map(({ id }) => id),
      to: plan.toMs,
      step: plan.stepMs,
    }
    const read = async (source: SeriesSource, sql: string, params: QueryParams): Promise<SeriesAnswer> => ({
      series: seriesOf(await store.rows(sql, { ...owned, ...params }), definitions),
      source,
    })
    const readRaw = () => read('raw', rawSql(store.database, plan.agg, rangeMs), { from: readFromMs })
    if (plan.source === 'raw') return readRaw()

    const width = cellMs[plan.source]
    const params = { from: Math.floor(readFromMs / width) * width, complete: completeMs }
    if (plan.fallsBackToRaw && !(await hasCells(store, plan.source, { ...owned, ...params }))) return readRaw()
    return read(plan.source, rollupSql(store.database, plan.agg, plan.source, rangeMs), params)
  }

  /** The newest value of every series of `metrics` on a machine, of those that have one since `sinceMs`. */
  async latestValues(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
    sinceMs: number,
  ): Promise<LatestValue[]> {
    const definitions = await this.definitionsOf(companyId, serverId, metrics)
    if (definitions.length === 0) return []
    const rows = await this.store.rows(
      `SELECT toString(series_id), argMax(value, (ts, ${RECEIVED})), toFloat64(toUnixTimestamp64Milli(max(ts)))
       FROM ${this.store.database}.samples_raw
       WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ts >= ${INSTANT('since')} GROUP BY series_id ${SETTINGS}`,
      { company: companyId, server: serverId, since: sinceMs, ids: definitions.map(({ id }) => id) },
    )
    const byId = new Map(rows.map(row => [String(row[0]), row]))
    const values: LatestValue[] = []
    for (const { id, key } of definitions) {
      const [, value, tsMs] = byId.get(String(id)) ?? []
      if (typeof value === 'number' && typeof tsMs === 'number') values.push({ ...parseSeriesKey(key), value, tsMs })
    }
    return values
  }
}

async function hasCells(
  store: ClickHouse,
  source: Exclude<SeriesSource, 'raw'>,
  params: QueryParams,
): Promise<boolean> {
  const rows = await store.rows(
    `SELECT 1 FROM ${store.database}.rollup_${source} WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)}
     AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts < ${INSTANT('complete')} LIMIT 1`,
    params,
  )
  return rows.length > 0
}
