// Reading samples. Every statement is bound by company and server; every value is a bound parameter; every point counts once,
// however often it was sent.
import { cellMs, type SeriesPlan, type SeriesSource } from '../../../core/query/query-plan.ts'
import type { Aggregate } from '../../../core/query/series-request.ts'
import { type HeldSource, idOf, nothingHeld } from '../../../core/samples/held-points.ts'
import type { MachineName, NewestValue, StoredNewest } from '../../../core/samples/newest-values.ts'
import { eachPoint, lastPoint, RUN_SPAN_MS } from '../../../core/samples/point-run.ts'
import { PointsOfSeries } from '../../../core/samples/series-points.ts'
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
const DAY_MS = 86_400_000
/** A few hundred runs, of many parts: what helps with many rows costs more than it saves. */
const OF_RUNS = 'optimize_read_in_order = 0, optimize_move_to_prewhere = 0'
const LONG_RANGE_MS = 2 * DAY_MS

/** Of two cells of one version the one that came later counts: parts are numbered as they are inserted and never overlap. */
const RECEIVED = "toUInt64(splitByChar('_', _part)[2])"

/** Runs that may have points in [since, until]. */
const RUNS_SINCE = `ts > fromUnixTimestamp64Milli({since:Int64} - ${RUN_SPAN_MS}, 'UTC')`
const RUNS = `${RUNS_SINCE} AND ts <= ${INSTANT('until')}`
/** What is read of a run: to take it apart costs the engine several times what it costs here. */
const RUN_COLUMNS = 'toFloat64(toUnixTimestamp64Milli(ts)), toFloat64(seq), base64Encode(points)'
/** Series and days that are read at once: their points are in memory together. */
const SERIES_DAYS_MAX = 64

const BUCKET = 'intDiv(toUnixTimestamp64Milli(ts), {step:Int64}) * {step:Int64}'

/**
 * Columns of a rollup's cells, each cell in its last version. Ordered and cut, which for the thousands of cells of a series costs half of
 * what an aggregate over their columns does.
 */
const cellsOnce = (db: string, source: Exclude<SeriesSource, 'raw'>, columns: string, where: string): string =>
  `SELECT series_id, ts, ${columns} FROM ${db}.rollup_${source} WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${where}
   ORDER BY series_id, ts, version DESC, ${RECEIVED} DESC LIMIT 1 BY series_id, ts`

/**
 * How a bucket is made of cells: its part, and what parts of one bucket are put together by (`together`). The average is weighted by
 * counts, the last value is the latest sample's.
 */
type Parts = { readonly columns: string; readonly ofCells: string }

const PARTS: Readonly<Record<Aggregate, Parts>> = {
  avg: { columns: 'count, sum', ofCells: 'sum(sum) AS part, toFloat64(sum(count)) AS weight' },
  min: { columns: 'min', ofCells: 'min(min) AS part, 1 AS weight' },
  max: { columns: 'max', ofCells: 'max(max) AS part, 1 AS weight' },
  last: {
    columns: 'last, last_ts',
    ofCells: 'argMax(last, last_ts) AS part, toFloat64(toUnixTimestamp64Milli(max(last_ts))) AS weight',
  },
}

/** Buckets of every series as one row: id, starts, parts, weights. */
const bucketsSql = (parts: string, from: string, rangeMs: number): string =>
  `SELECT toString(series_id), groupArray(toFloat64(bucket)), groupArray(part), groupArray(weight)
   FROM (SELECT series_id, ${BUCKET} AS bucket, ${parts} FROM (${from}) GROUP BY series_id, bucket ORDER BY series_id, bucket)
   GROUP BY series_id ${rangeMs > LONG_RANGE_MS ? SETTINGS_LONG : SETTINGS}`

const RANGE = `ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')}`

const bucketsOfCells = (db: string, agg: Aggregate, source: Exclude<SeriesSource, 'raw'>, rangeMs: number): string => {
  const { columns, ofCells } = PARTS[agg]
  return bucketsSql(ofCells, cellsOnce(db, source, columns, `${RANGE} AND ts < ${INSTANT('complete')}`), rangeMs)
}

type Bucket = { readonly startMs: number; readonly part: number; readonly weight: number }

/** Two parts of one bucket, the earlier one first. */
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

/** Points of one series, in the order of time, as buckets. */
function bucketsOfPoints(agg: Aggregate, { tsMs, value }: PointsOfSeries, stepMs: number): Bucket[] {
  const buckets: Bucket[] = []
  for (const [at, time] of tsMs.entries()) {
    const startMs = Math.floor(time / stepMs) * stepMs
    const bucket = { startMs, part: value[at]!, weight: agg === 'last' ? time : 1 }
    const last = buckets.at(-1)
    if (last?.startMs === startMs) buckets[buckets.length - 1] = together(agg, last, bucket)
    else buckets.push(bucket)
  }
  return buckets
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

/** `points` of a row's `RUN_COLUMNS`. */
const bytesOf = ([, , bytes]: readonly unknown[]): Uint8Array => Buffer.from(String(bytes), 'base64')

/** Reads one store. Keeps the definitions of series that were asked for lately, so that a dashboard costs one statement. */
export class SamplesReader {
  private readonly store: ClickHouse
  private readonly nowMs: () => number
  private readonly held: HeldSource
  private readonly known = new Map<string, { readonly definitions: readonly Definition[]; readonly untilMs: number }>()

  /** `held` are points that the store does not have yet. */
  constructor(store: ClickHouse, nowMs: () => number, held: HeldSource = nothingHeld) {
    this.store = store
    this.nowMs = nowMs
    this.held = held
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
    const samplesFrom = async (fromMs: number): Promise<Map<string, Bucket[]>> => {
      const points = await this.points(plan, definitions, fromMs, toMs)
      return new Map([...points].map(([id, ofSeries]) => [String(id), bucketsOfPoints(agg, ofSeries, plan.stepMs)]))
    }
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

  /** The raw points of some series of a machine in [fromMs, toMs], each time once, in the order of time. */
  private async points(
    { companyId, serverId }: MachineName,
    definitions: readonly Definition[],
    fromMs: number,
    toMs: number,
  ): Promise<Map<bigint, PointsOfSeries>> {
    const points = new Map(definitions.map(({ id }) => [id, new PointsOfSeries()]))
    const take = (id: bigint, seq: number) => (tsMs: number, value: number) => {
      if (tsMs >= fromMs && tsMs <= toMs) points.get(id)?.add(tsMs, value, seq)
    }
    // Before the store is asked: what is stored meanwhile is in both.
    const held = [...this.held(companyId, serverId)]
    const spanMs = Math.max(1, Math.floor(SERIES_DAYS_MAX / definitions.length)) * DAY_MS
    for (let sinceMs = fromMs; sinceMs <= toMs; sinceMs += spanMs) {
      // A run that reaches from one span into the next is read twice, and its points count once.
      const rows = await this.store.rows(
        `SELECT toString(series_id), ${RUN_COLUMNS} FROM ${this.store.database}.samples_raw
         WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${RUNS} ORDER BY series_id, ts, seq
         ${toMs - fromMs > LONG_RANGE_MS ? SETTINGS_LONG : SETTINGS}, ${OF_RUNS}`,
        {
          company: companyId,
          server: serverId,
          ids: definitions.map(({ id }) => id),
          since: sinceMs,
          until: Math.min(toMs, sinceMs + spanMs - 1),
        },
      )
      for (const [id, ...run] of rows) eachPoint(bytesOf(run), Number(run[0]), take(BigInt(String(id)), Number(run[1])))
    }
    for (const point of held) take(idOf(point), Number.POSITIVE_INFINITY)(point.tsMs, point.value)
    for (const ofSeries of points.values()) ofSeries.order()
    return points
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
    const points = await this.points({ companyId, serverId }, definitions, sinceMs, this.nowMs() + DAY_MS)
    const values: NewestValue[] = []
    for (const { id, key } of definitions) {
      const { tsMs, value } = points.get(id) ?? new PointsOfSeries()
      if (tsMs.length > 0) values.push({ key, value: value.at(-1)!, tsMs: tsMs.at(-1)! })
    }
    return values
  }

  /** The newest sample since `sinceMs` of every series of a machine, without their keys: one statement instead of two. */
  newestSamples(companyId: string, serverId: string, sinceMs: number): Promise<StoredNewest[]> {
    return this.newestOf(OWNER, { company: companyId, server: serverId }, sinceMs)
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

  /** The newest stored sample since `sinceMs` of every series of these machines. */
  newestOfMachines(machines: readonly MachineName[], sinceMs: number): Promise<(MachineName & StoredNewest)[]> {
    const owners = {
      companies: machines.map(({ companyId }) => companyId),
      servers: machines.map(({ serverId }) => serverId),
    }
    const isOne = '(company_id, server_id) IN arrayZip({companies:Array(UUID)}, {servers:Array(UUID)})'
    return this.newestOf(isOne, owners, sinceMs)
  }

  private async newestOf(
    isOwned: string,
    owners: QueryParams,
    sinceMs: number,
  ): Promise<(MachineName & StoredNewest)[]> {
    const rows = await this.store.rows(
      `SELECT company_id, server_id, toUInt32(bitShiftRight(series_id, 32)), toUInt32(bitAnd(series_id, 4294967295)), ${RUN_COLUMNS}
       FROM ${this.store.database}.samples_raw
       WHERE ${isOwned} AND ${RUNS_SINCE}
       ORDER BY company_id, server_id, series_id, ts, seq ${SETTINGS}, ${OF_RUNS}`,
      { ...owners, since: sinceMs },
    )
    const newest: (MachineName & { hi: number; lo: number; value: number; tsMs: number; seq: number })[] = []
    for (const [companyId, serverId, high, low, ...run] of rows) {
      const [hi, lo, seq] = [Number(high), Number(low), Number(run[1])]
      const { tsMs, value } = lastPoint(bytesOf(run), Number(run[0]))
      if (tsMs < sinceMs) continue
      const last = newest.at(-1)
      if (!last || last.lo !== lo || last.hi !== hi || last.serverId !== serverId || last.companyId !== companyId)
        newest.push({ companyId: String(companyId), serverId: String(serverId), hi, lo, value, tsMs, seq })
      else if (tsMs > last.tsMs || (tsMs === last.tsMs && seq >= last.seq)) Object.assign(last, { value, tsMs, seq })
    }
    return newest
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
