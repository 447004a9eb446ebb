// Reading samples. Every statement is bound by company and server; every value is a bound parameter; every point counts once,
// however often it was sent.
import { cellMs, type SeriesPlan, type SeriesSource } from '../../../core/query/query-plan.ts'
import type { Aggregate } from '../../../core/query/series-request.ts'
import type { MachineName, NewestValue, StoredNewest } from '../../../core/samples/newest-values.ts'
import { parseSeriesKey } from '../../../core/series/series-key.ts'
import type { ClickHouse, QueryParams } from './clickhouse.ts'

/** One series of an answer: labels without the metric's name, points in time order, stamped with their bucket's start. */
export type SeriesPoints = { readonly labels: Record<string, string>; readonly points: [tsMs: number, value: number][] }
export type SeriesAnswer = {
  readonly series: SeriesPoints[]
  /** What was read in the end, for telemetry. */
  readonly source: SeriesSource
}

/** A series of a machine: its id as the store knows it, and its full key. */
type Definition = { readonly id: bigint; readonly key: string }

const DEFINITIONS_MS = 10_000
const DEFINITIONS_MAX = 2_000

const OWNER = 'company_id = {company:UUID} AND server_id = {server:UUID}'
const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
/** To compile a statement takes the engine 100 ms, once it has come a few times: more than all reads of a day would win by it. */
const UNCOMPILED = 'compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0'
/** Small reads are cheapest on one thread; a long range is worth a second. */
const SETTINGS = `SETTINGS max_threads = 1, ${UNCOMPILED}`
const SETTINGS_LONG = `SETTINGS max_threads = 2, ${UNCOMPILED}`
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

/**
 * Columns of a rollup's cells, each cell in its last version. Ordered and cut, which for the thousands of cells of a series costs half of
 * what an aggregate over their columns does.
 */
const cellsOnce = (db: string, source: Exclude<SeriesSource, 'raw'>, columns: string, where: string): string =>
  `SELECT series_id, ts, ${columns} FROM ${db}.rollup_${source} WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${where}
   ORDER BY series_id, ts, version DESC, ${RECEIVED} DESC LIMIT 1 BY series_id, ts`

/**
 * How a bucket is made of cells or of samples: its part, and what parts of one bucket are put together by (`together`). The average is
 * weighted by counts, the last value is the latest sample's.
 */
type Parts = { readonly columns: string; readonly ofCells: string; readonly ofSamples: string }

const PARTS: Readonly<Record<Aggregate, Parts>> = {
  avg: {
    columns: 'count, sum',
    ofCells: 'sum(sum) AS part, toFloat64(sum(count)) AS weight',
    ofSamples: 'sum(value) AS part, toFloat64(count()) AS weight',
  },
  min: { columns: 'min', ofCells: 'min(min) AS part, 1 AS weight', ofSamples: 'min(value) AS part, 1 AS weight' },
  max: { columns: 'max', ofCells: 'max(max) AS part, 1 AS weight', ofSamples: 'max(value) AS part, 1 AS weight' },
  last: {
    columns: 'last, last_ts',
    ofCells: 'argMax(last, last_ts) AS part, toFloat64(toUnixTimestamp64Milli(max(last_ts))) AS weight',
    ofSamples: 'argMax(value, ts) AS part, toFloat64(toUnixTimestamp64Milli(max(ts))) AS weight',
  },
}

/** Buckets of every series as one row: id, starts, parts, weights. */
const bucketsSql = (parts: string, from: string, rangeMs: number): string =>
  `SELECT toString(series_id), groupArray(toFloat64(bucket)), groupArray(part), groupArray(weight)
   FROM (SELECT series_id, ${BUCKET} AS bucket, ${parts} FROM (${from}) GROUP BY series_id, bucket ORDER BY series_id, bucket)
   GROUP BY series_id ${rangeMs > LONG_RANGE_MS ? SETTINGS_LONG : SETTINGS}`

const RANGE = `ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')}`

const bucketsOfSamples = (db: string, agg: Aggregate, rangeMs: number): string =>
  bucketsSql(PARTS[agg].ofSamples, samplesOnce(db, RANGE), rangeMs)

const bucketsOfCells = (db: string, agg: Aggregate, source: Exclude<SeriesSource, 'raw'>, rangeMs: number): string => {
  const { columns, ofCells } = PARTS[agg]
  return bucketsSql(ofCells, cellsOnce(db, source, columns, `${RANGE} AND ts < ${INSTANT('complete')}`), rangeMs)
}

/** Of the samples of one series: its id in two halves, the newest value and its time. */
const NEWEST = `toUInt32(bitShiftRight(series_id, 32)), toUInt32(bitAnd(series_id, 4294967295)),
       argMax(value, (ts, ${RECEIVED})), toFloat64(toUnixTimestamp64Milli(max(ts)))`

const storedNewest = ([hi, lo, value, tsMs]: readonly unknown[]): StoredNewest => ({
  hi: Number(hi),
  lo: Number(lo),
  value: typeof value === 'number' ? value : null,
  tsMs: Number(tsMs),
})

type Bucket = { readonly startMs: number; readonly part: number; readonly weight: number }

/** Two parts of one bucket, the one of the cells first. */
function together(agg: Aggregate, cells: Bucket, samples: Bucket): Bucket {
  const { startMs } = cells
  switch (agg) {
    case 'avg':
      return { startMs, part: cells.part + samples.part, weight: cells.weight + samples.weight }
    case 'min':
      return { startMs, part: Math.min(cells.part, samples.part), weight: 1 }
    case 'max':
      return { startMs, part: Math.max(cells.part, samples.part), weight: 1 }
    case 'last':
      return cells.weight > samples.weight ? cells : samples
  }
}

/** Buckets by series, in the order of time. */
function bucketsOf(rows: readonly unknown[][]): Map<string, Bucket[]> {
  const bySeries = new Map<string, Bucket[]>()
  // JSON has no infinity: a sum that left the range of numbers comes as null.
  const numberOf = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN)
  for (const [id, starts, parts, weights] of rows) {
    if (!Array.isArray(starts) || !Array.isArray(parts) || !Array.isArray(weights)) continue
    const buckets = starts.map((start: unknown, index) => ({
      startMs: numberOf(start),
      part: numberOf(parts[index]),
      weight: numberOf(weights[index]),
    }))
    bySeries.set(String(id), buckets)
  }
  return bySeries
}

/** The series of an answer. Cells end where the samples begin: at most one bucket is of both. */
function seriesOf(
  agg: Aggregate,
  ofCells: ReadonlyMap<string, Bucket[]>,
  ofSamples: ReadonlyMap<string, Bucket[]>,
  definitions: readonly Definition[],
): SeriesPoints[] {
  const series: SeriesPoints[] = []
  for (const { id, key } of definitions) {
    const buckets = [...(ofCells.get(String(id)) ?? [])]
    for (const bucket of ofSamples.get(String(id)) ?? []) {
      const last = buckets.at(-1)
      if (last?.startMs === bucket.startMs) buckets[buckets.length - 1] = together(agg, last, bucket)
      else buckets.push(bucket)
    }
    const points: [tsMs: number, value: number][] = []
    for (const { startMs, part, weight } of buckets) {
      const value = agg === 'avg' ? part / weight : part
      if (Number.isFinite(value)) points.push([startMs, value])
    }
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
    const { agg, source, toMs } = plan
    const readFromMs = Math.max(plan.fromMs, plan.oldestMs)
    const rangeMs = toMs - readFromMs
    const read = async (sql: string, range: QueryParams): Promise<Map<string, Bucket[]>> =>
      bucketsOf(
        await store.rows(sql, {
          company: plan.companyId,
          server: plan.serverId,
          ids: definitions.map(({ id }) => id),
          step: plan.stepMs,
          to: toMs,
          ...range,
        }),
      )
    const samplesFrom = (fromMs: number) => read(bucketsOfSamples(store.database, agg, toMs - fromMs), { from: fromMs })
    if (source !== 'raw') {
      const fromMs = Math.floor(readFromMs / cellMs[source]) * cellMs[source]
      // Two statements at once: together they take longer to plan than to run.
      const [cells, young] = await Promise.all([
        read(bucketsOfCells(store.database, agg, source, rangeMs), { from: fromMs, complete: completeMs }),
        toMs < completeMs ? new Map<string, Bucket[]>() : samplesFrom(Math.max(fromMs, completeMs)),
      ])
      if (cells.size > 0 || !plan.fallsBackToRaw) return { series: seriesOf(agg, cells, young, definitions), source }
    }
    return { series: seriesOf(agg, new Map(), await samplesFrom(readFromMs), definitions), source: 'raw' }
  }

  /** The newest value of every series of `metrics` on a machine, of those that have one since `sinceMs`, in the order of their keys. */
  async newestValues(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
    sinceMs: number,
  ): Promise<NewestValue[]> {
    const definitions = await this.definitionsOf(companyId, serverId, metrics)
    if (definitions.length === 0) return []
    const rows = await this.store.rows(
      `SELECT toString(series_id), argMax(value, (ts, ${RECEIVED})), toFloat64(toUnixTimestamp64Milli(max(ts)))
       FROM ${this.store.database}.samples_raw
       WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ts >= ${INSTANT('since')} GROUP BY series_id ${SETTINGS}`,
      { company: companyId, server: serverId, since: sinceMs, ids: definitions.map(({ id }) => id) },
    )
    const byId = new Map(rows.map(row => [String(row[0]), row]))
    const values: NewestValue[] = []
    for (const { id, key } of definitions) {
      const [, value, tsMs] = byId.get(String(id)) ?? []
      if (typeof value === 'number' && typeof tsMs === 'number') values.push({ key, value, tsMs })
    }
    return values
  }

  /** The newest sample since `sinceMs` of every series of a machine, without their keys: one statement instead of two. */
  async newestSamples(companyId: string, serverId: string, sinceMs: number): Promise<StoredNewest[]> {
    const rows = await this.store.rows(
      `SELECT ${NEWEST} FROM ${this.store.database}.samples_raw
       WHERE ${OWNER} AND ts >= ${INSTANT('since')} GROUP BY series_id ${SETTINGS}`,
      { company: companyId, server: serverId, since: sinceMs },
    )
    return rows.map(storedNewest)
  }

  /** Machines that have series of these metrics, in the order in which the store has them. */
  async machinesOf(metrics: readonly string[]): Promise<MachineName[]> {
    const rows = await this.store.rows(
      `SELECT DISTINCT company_id, server_id FROM ${this.store.database}.series
       WHERE metric IN {metrics:Array(String)} ORDER BY company_id, server_id ${SETTINGS}`,
      { metrics },
    )
    return rows.map(([companyId, serverId]) => ({ companyId: String(companyId), serverId: String(serverId) }))
  }

  /** The newest sample since `sinceMs` of every series of these machines. */
  async newestOfMachines(machines: readonly MachineName[], sinceMs: number): Promise<(MachineName & StoredNewest)[]> {
    const rows = await this.store.rows(
      `SELECT ${NEWEST}, company_id, server_id FROM ${this.store.database}.samples_raw
       WHERE (company_id, server_id) IN arrayZip({companies:Array(UUID)}, {servers:Array(UUID)}) AND ts >= ${INSTANT('since')}
       GROUP BY company_id, server_id, series_id ${SETTINGS}`,
      {
        companies: machines.map(({ companyId }) => companyId),
        servers: machines.map(({ serverId }) => serverId),
        since: sinceMs,
      },
    )
    return rows.map(row => ({ ...storedNewest(row), companyId: String(row[4]), serverId: String(row[5]) }))
  }

  /** Keys of all series of these metrics, over all machines, up to `countMax`. */
  async keysOf(metrics: readonly string[], countMax: number): Promise<string[]> {
    const rows = await this.store.rows(
      `SELECT DISTINCT key FROM ${this.store.database}.series WHERE metric IN {metrics:Array(String)} LIMIT {count:UInt32} ${SETTINGS}`,
      { metrics, count: countMax },
    )
    return rows.map(([key]) => String(key))
  }
}
