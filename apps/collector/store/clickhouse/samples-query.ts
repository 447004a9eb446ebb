// Reads samples. Every statement is bound to a company and server, every value is a bound parameter, and a point that
// was sent several times counts once.
import { LRUCache } from 'lru-cache'
import type { RangePlan, SeriesPlan, SeriesSource } from '../../../../core/query/query-plan.ts'
import type { Aggregate } from '../../../../core/query/series-request.ts'
import { CHUNK_COLUMNS, CHUNK_SPAN_MS, ChunkReader } from '../../../../core/samples/block/chunk-codec.ts'
import { NativeReader } from '../../../../core/samples/block/native-reader.ts'
import { replaces } from '../../../../core/samples/block/repeated-point.ts'
import { ServerIndex, serverWords } from '../../../../core/samples/block/uuid-words.ts'
import { type BufferedSource, idOf, nothingBuffered } from '../../../../core/samples/latest/buffered-points.ts'
import type { NewestValue, ServerName, StoredNewest } from '../../../../core/samples/latest/newest-values.ts'
import { PointsOfSeries } from '../../../../core/samples/latest/series-points.ts'
import { cellMs } from '../../../../core/samples/rollup/cell-width.ts'
import { metricOf, parseSeriesKey } from '../../../../core/series/series-key.ts'
import type { ClickHouse } from './clickhouse.ts'

/**
 * One series of an answer: labels without the metric's name, points in time order, stamped with their bucket's start.
 */
type SeriesPoints = { readonly labels: Record<string, string>; readonly points: [tsMs: number, value: number][] }
export type SeriesResponse = {
  readonly series: SeriesPoints[]
  /** The source that the query read in the end, for telemetry. */
  readonly source: SeriesSource
}
type MetricSeries = SeriesPoints & { readonly metric: string }
export type MetricsResponse = {
  /** In the order of the metrics asked for, then of their keys. */
  readonly series: MetricSeries[]
  /** Metrics that were not read, since the answer had its points. */
  readonly leftOut: readonly string[]
  readonly source: SeriesSource
}

/** A series of a server: its id as the store knows it, and its full key. */
type Definition = { readonly id: bigint; readonly key: string }

/** Series of a server whose definitions are not stored yet. */
type PendingDefinitions = (companyId: string, serverId: string) => Iterable<Definition>
const nothingPending: PendingDefinitions = () => []

type KnownDefinitions = { readonly definitions: readonly Definition[]; readonly untilMs: number }
const DEFINITIONS_MS = 10_000
const DEFINITIONS_MAX = 2_000

const OWNER = 'company_id = {company:UUID} AND server_id = {server:UUID}'
const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
/**
 * Without this the engine compiles an expression that it has seen a few times, which takes 100 ms: more than
 * compilation would save on all reads of a day.
 */
const UNCOMPILED = 'compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0'
/** Small reads are cheapest on one thread; a long range is worth a second. */
const SETTINGS = `SETTINGS max_threads = 1, ${UNCOMPILED}`
const SETTINGS_LONG = `SETTINGS max_threads = 2, ${UNCOMPILED}`
const DAY_MS = 86_400_000
const UUID_BYTES = 16
/** For reads of a few hundred rows from many parts: optimisations for many rows cost more than they save. */
const FEW_ROWS = 'optimize_read_in_order = 0, optimize_move_to_prewhere = 0'
const LONG_RANGE_MS = 2 * DAY_MS

/**
 * Chunks that may have points in [since, until]. Their points are decoded and filtered in this process, since the
 * engine needs several times as long for that.
 */
const CHUNKS_SINCE = `ts > fromUnixTimestamp64Milli({since:Int64} - ${CHUNK_SPAN_MS}, 'UTC')`
const CHUNKS = `${CHUNKS_SINCE} AND ts <= ${INSTANT('until')}`
/** Series and days that are read at once: their points are in memory together. */
const SERIES_DAYS_MAX = 64

/**
 * The value that a cell contributes to a bucket, and the weight with which parts of one bucket are merged (`together`):
 * the average is weighted by counts, the last value is the latest sample's.
 */
const PARTS: Readonly<Record<Aggregate, string>> = {
  avg: 'sum, toFloat64(count)',
  min: 'min, toFloat64(1)',
  max: 'max, toFloat64(1)',
  last: 'last, toFloat64(toUnixTimestamp64Milli(last_ts))',
}

/**
 * Of two cells of one version the one that came later counts: parts of a month lie in the order in which they were
 * inserted.
 */
const PARTS_MAX = 2_048

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

/**
 * Buckets of one series from its values in time order. Cells end where the samples begin, so at most one bucket is made
 * of both.
 */
function bucketsOf(agg: Aggregate, values: readonly (PointsOfSeries | undefined)[], stepMs: number): Bucket[] {
  const buckets: Bucket[] = []
  for (const { tsMs, value, weight } of values.filter(each => each !== undefined))
    for (let at = 0; at < tsMs.length; at++) {
      const startMs = Math.floor(tsMs[at]! / stepMs) * stepMs
      const bucket = { startMs, part: value[at]!, weight: weight[at]! }
      const last = buckets.at(-1)
      if (last?.startMs === startMs) buckets[buckets.length - 1] = together(agg, last, bucket)
      else buckets.push(bucket)
    }
  return buckets
}

type ValuesOfSeries = ReadonlyMap<bigint, PointsOfSeries>

/** The series of an answer. */
function seriesOf(
  { agg, stepMs }: RangePlan,
  cells: ValuesOfSeries,
  samples: ValuesOfSeries,
  definitions: readonly Definition[],
): MetricSeries[] {
  const series: MetricSeries[] = []
  for (const { id, key } of definitions) {
    const points: [tsMs: number, value: number][] = []
    for (const { startMs, part, weight } of bucketsOf(agg, [cells.get(id), samples.get(id)], stepMs)) {
      const value = agg === 'avg' ? part / weight : part
      if (Number.isFinite(value)) points.push([startMs, value])
    }
    if (points.length > 0) series.push({ ...parseSeriesKey(key), points })
  }
  return series
}

const pointCountOf = (series: readonly MetricSeries[]): number =>
  series.reduce((count, { points }) => count + points.length, 0)

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

const emptySeries = (definitions: readonly Definition[]): Map<bigint, PointsOfSeries> =>
  new Map(definitions.map(({ id }) => [id, new PointsOfSeries()]))

/** Newest samples of a company, and the keys of their series by id. */
type CompanyNewest = {
  readonly keys: ReadonlyMap<bigint, string>
  readonly samples: readonly (ServerName & StoredNewest)[]
  readonly truncated: boolean
}

/** Series in the order of their keys. */
const eachOnce = (definitions: readonly Definition[]): Definition[] =>
  [...new Map(definitions.map(definition => [definition.key, definition])).values()].sort((one, other) =>
    one.key < other.key ? -1 : 1,
  )

/**
 * Series of blocks of ids and keys. Several parts of the table may have one; the engine takes half as long again when
 * it has to find that out and order them.
 */
function definitionsIn(bytes: Uint8Array): Definition[] {
  const reader = new NativeReader(bytes)
  const definitions: Definition[] = []
  for (let rows = reader.begin(); rows > 0; rows = reader.begin()) {
    const ids = reader.column(rows * 8)
    reader.column(0)
    for (let row = 0; row < rows; row++) {
      const length = reader.text()
      const key = utf8.decode(bytes.subarray(reader.end() - length, reader.end()))
      definitions.push({ id: reader.view.getBigUint64(ids + row * 8, true), key })
    }
  }
  return eachOnce(definitions)
}

/** Reads one store. Caches the definitions of recently queried series, so that a dashboard costs one statement. */
export class SamplesReader {
  private readonly store: ClickHouse
  private readonly nowMs: () => number
  private readonly buffered: BufferedSource
  private readonly pending: PendingDefinitions
  private readonly known = new LRUCache<string, KnownDefinitions>({ max: DEFINITIONS_MAX })

  /** `buffered` returns points and `pending` returns series that are not stored yet. */
  constructor(
    store: ClickHouse,
    nowMs: () => number,
    buffered: BufferedSource = nothingBuffered,
    pending: PendingDefinitions = nothingPending,
  ) {
    this.store = store
    this.pending = pending
    this.nowMs = nowMs
    this.buffered = buffered
  }

  /**
   * Clears the cache after new series were stored or some were deleted. Changes by other processes are seen after
   * DEFINITIONS_MS.
   */
  forgetDefinitions(): void {
    this.known.clear()
  }

  /**
   * The series of a server that belong to `metrics`, ordered by key. Pending definitions are included, since a sample
   * can be read before its series is stored.
   */
  private async definitionsOf(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
  ): Promise<readonly Definition[]> {
    // Read before the query, so that a definition that is stored meanwhile is in one of the two or in both, never in
    // neither.
    const pending = [...this.pending(companyId, serverId)].filter(({ key }) => metrics.includes(metricOf(key)))
    const stored = await this.storedDefinitions(companyId, serverId, metrics)
    if (pending.length === 0) return stored
    return eachOnce([...stored, ...pending])
  }

  private async storedDefinitions(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
  ): Promise<readonly Definition[]> {
    const name = [companyId, serverId, ...metrics].join(' ')
    const nowMs = this.nowMs()
    const known = this.known.get(name)
    if (known && known.untilMs > nowMs) return known.definitions
    const bytes = await this.store.blocks(
      `SELECT series_id, key FROM ${this.store.database}.series
       WHERE ${OWNER} AND metric IN {metrics:Array(String)} ${SETTINGS}, ${FEW_ROWS}`,
      { company: companyId, server: serverId, metrics },
    )
    const definitions = definitionsIn(bytes)
    // An empty result is not cached: the first samples of a server must be visible at once.
    if (definitions.length > 0) this.known.set(name, { definitions, untilMs: nowMs + DEFINITIONS_MS })
    return definitions
  }

  /** Answers a plan for one metric. Cells of its source are complete and correct before `completeMs`. */
  async querySeries(plan: SeriesPlan, completeMs: number): Promise<SeriesResponse> {
    const answer = await this.queryMetrics(plan, [plan.metric], completeMs, Number.POSITIVE_INFINITY)
    return { series: answer.series.map(({ labels, points }) => ({ labels, points })), source: answer.source }
  }

  /**
   * The same for several metrics, in their order. Once the answer has `pointsMax` points, metrics that are not read to
   * their end are left out; the first one never is.
   */
  async queryMetrics(
    plan: RangePlan,
    metrics: readonly string[],
    completeMs: number,
    pointsMax: number,
  ): Promise<MetricsResponse> {
    const { source, companyId, serverId } = plan
    if (plan.isEmpty) return { series: [], leftOut: [], source }
    const placeOf = new Map(metrics.map((metric, index) => [metric, index]))
    const place = ({ key }: Definition): number => placeOf.get(metricOf(key)) ?? metrics.length
    const found = await this.definitionsOf(companyId, serverId, metrics)
    const definitions = [...found].sort((one, other) => place(one) - place(other))
    if (source === 'raw')
      return { ...(await this.readParts(plan, 'raw', definitions, Number.NEGATIVE_INFINITY, pointsMax)), source }
    const ofCells = await this.readParts(plan, source, definitions, completeMs, pointsMax)
    const { withCells, leftOut } = ofCells
    const bare = definitions.filter(({ key }) => !withCells.has(metricOf(key)) && !leftOut.includes(metricOf(key)))
    if (!plan.fallsBackToRaw || bare.length === 0) return { ...ofCells, source }
    const kept = ofCells.series.filter(({ metric }) => withCells.has(metric))
    const left = Math.max(0, pointsMax - pointCountOf(kept))
    const ofSamples = await this.readParts(plan, 'raw', bare, Number.NEGATIVE_INFINITY, left)
    const order = (one: MetricSeries, other: MetricSeries) => placeOf.get(one.metric)! - placeOf.get(other.metric)!
    return {
      series: [...kept, ...ofSamples.series].sort(order),
      leftOut: [...leftOut, ...ofSamples.leftOut],
      source: kept.length > 0 ? source : 'raw',
    }
  }

  /**
   * Reads series by series, a few at a time: cells before `completeMs`, samples from there. `withCells` are the metrics
   * that have cells.
   */
  private async readParts(
    plan: RangePlan,
    source: SeriesSource,
    definitions: readonly Definition[],
    completeMs: number,
    pointsMax: number,
  ): Promise<{
    readonly series: MetricSeries[]
    readonly leftOut: readonly string[]
    readonly withCells: ReadonlySet<string>
  }> {
    const { agg, toMs } = plan
    const readFromMs = Math.max(plan.fromMs, plan.oldestMs)
    const fromMs = source === 'raw' ? readFromMs : Math.floor(readFromMs / cellMs[source]) * cellMs[source]
    const youngFromMs = Math.max(fromMs, completeMs)
    const none: ValuesOfSeries = new Map()
    const days = Math.max(1, Math.ceil((toMs - youngFromMs) / DAY_MS))
    const together = Math.max(1, Math.floor(SERIES_DAYS_MAX / days))
    const series: MetricSeries[] = []
    const withCells = new Set<string>()
    const first = definitions[0] && metricOf(definitions[0].key)
    let points = 0
    for (let at = 0; at < definitions.length; at += together) {
      const some = definitions.slice(at, at + together)
      if (points >= pointsMax && metricOf(some[0]!.key) !== first) {
        const leftOut = [...new Set(definitions.slice(at).map(({ key }) => metricOf(key)))]
        return { series: series.filter(({ metric }) => !leftOut.includes(metric)), leftOut, withCells }
      }
      // Both statements run concurrently, since planning them takes longer than running them.
      const [cells, young] = await Promise.all([
        source === 'raw' ? none : this.cells(plan, source, some, fromMs, completeMs),
        toMs < completeMs ? none : this.points(plan, some, agg, youngFromMs, toMs),
      ])
      for (const { id, key } of some) if ((cells.get(id)?.tsMs.length ?? 0) > 0) withCells.add(metricOf(key))
      const read = seriesOf(plan, cells, young, some)
      points += pointCountOf(read)
      series.push(...read)
    }
    return { series, leftOut: [], withCells }
  }

  /** Keys of the series of a server that belong to `metrics`, ordered by key. */
  async keysOfServer(companyId: string, serverId: string, metrics: readonly string[]): Promise<string[]> {
    return (await this.definitionsOf(companyId, serverId, metrics)).map(({ key }) => key)
  }

  /**
   * What the cells of some series contribute to an aggregate from `fromMs` and before `completeMs`, each cell in its
   * latest version.
   */
  private async cells(
    { companyId, serverId, agg, toMs }: RangePlan,
    source: Exclude<SeriesSource, 'raw'>,
    definitions: readonly Definition[],
    fromMs: number,
    completeMs: number,
  ): Promise<ValuesOfSeries> {
    const cells = emptySeries(definitions)
    const bytes = await this.store.blocks(
      `SELECT series_id, ts, version, _part_index, ${PARTS[agg]} FROM ${this.store.database}.rollup_${source}
       WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)}
         AND ts >= ${INSTANT('from')} AND ts <= ${INSTANT('to')} AND ts < ${INSTANT('complete')} ${SETTINGS}, ${FEW_ROWS}`,
      {
        company: companyId,
        server: serverId,
        ids: definitions.map(({ id }) => id),
        from: fromMs,
        to: toMs,
        complete: completeMs,
      },
    )
    const reader = new NativeReader(bytes)
    const { view } = reader
    for (let rows = reader.begin(); rows > 0; rows = reader.begin()) {
      const [ids, times, versions, parts, values, weights] = [0, 1, 2, 3, 4, 5].map(() => reader.column(rows * 8))
      for (let at = 0; at < rows * 8; at += 8) {
        const seq = reader.int64(versions! + at) * PARTS_MAX + Math.min(PARTS_MAX - 1, reader.int64(parts! + at))
        const [value, weight] = [view.getFloat64(values! + at, true), view.getFloat64(weights! + at, true)]
        cells.get(view.getBigUint64(ids! + at, true))?.add(reader.int64(times! + at), value, seq, weight)
      }
    }
    for (const ofSeries of cells.values()) ofSeries.order()
    return cells
  }

  /** The raw points of some series of a server in [fromMs, toMs], each time once, in the order of time. */
  private async points(
    { companyId, serverId }: ServerName,
    definitions: readonly Definition[],
    agg: Aggregate,
    fromMs: number,
    toMs: number,
  ): Promise<ValuesOfSeries> {
    const points = emptySeries(definitions)
    const take = (ofSeries: PointsOfSeries | undefined, seq: number) => (tsMs: number, value: number) => {
      if (tsMs >= fromMs && tsMs <= toMs) ofSeries?.add(tsMs, value, seq, agg === 'last' ? tsMs : 1)
    }
    // Read before the query, so that a point that is stored meanwhile is in one of the two or in both, never in
    // neither.
    const buffered = [...this.buffered(companyId, serverId)]
    const bytes = await this.store.blocks(
      `SELECT series_id, ts, seq, ${CHUNK_COLUMNS} FROM ${this.store.database}.samples_raw
       WHERE ${OWNER} AND series_id IN {ids:Array(UInt64)} AND ${CHUNKS}
       ${toMs - fromMs > LONG_RANGE_MS ? SETTINGS_LONG : SETTINGS}, ${FEW_ROWS}`,
      { company: companyId, server: serverId, ids: definitions.map(({ id }) => id), since: fromMs, until: toMs },
    )
    const reader = new NativeReader(bytes)
    const chunks = new ChunkReader(reader)
    const { view } = reader
    for (let rows = reader.begin(); rows > 0; rows = reader.begin()) {
      const [ids, times, seqs] = [0, 1, 2].map(() => reader.column(rows * 8))
      chunks.open(rows)
      for (let at = 0; at < rows * 8; at += 8) {
        chunks.next()
        const ofSeries = points.get(view.getBigUint64(ids! + at, true))
        chunks.eachPoint(reader.int64(times! + at), take(ofSeries, reader.int64(seqs! + at)))
      }
    }
    for (const point of buffered) take(points.get(idOf(point)), Number.POSITIVE_INFINITY)(point.tsMs, point.value)
    for (const ofSeries of points.values()) ofSeries.order()
    return points
  }

  /**
   * The newest value of every series of `metrics` on a server, of those that have one since `sinceMs`, in the order of
   * their keys.
   */
  async newestValues(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
    sinceMs: number,
  ): Promise<NewestValue[]> {
    const definitions = await this.definitionsOf(companyId, serverId, metrics)
    if (definitions.length === 0) return []
    const server = { companyId, serverId }
    const points = await this.points(server, definitions, 'last', sinceMs, this.nowMs() + DAY_MS)
    const values: NewestValue[] = []
    for (const { id, key } of definitions) {
      const { tsMs, value } = points.get(id) ?? new PointsOfSeries()
      if (tsMs.length > 0) values.push({ key, value: value.at(-1)!, tsMs: tsMs.at(-1)! })
    }
    return values
  }

  /**
   * The newest sample since `sinceMs` of every series of a server, without their keys: one statement instead of two.
   */
  async newestSamples(companyId: string, serverId: string, sinceMs: number): Promise<StoredNewest[]> {
    const params = { company: companyId, server: serverId, since: sinceMs }
    return newestOf(await this.store.blocks(this.runsSince(OWNER), params), [{ companyId, serverId }], sinceMs)
  }

  private runsSince(isOwned: string): string {
    return `SELECT company_id, server_id, series_id, ts, seq, ${CHUNK_COLUMNS} FROM ${this.store.database}.samples_raw
            WHERE ${isOwned} AND ${CHUNKS_SINCE} ${SETTINGS}, ${FEW_ROWS}`
  }

  /** Servers that have series of these metrics, in the order in which the store has them. */
  async serversOf(metrics: readonly string[]): Promise<ServerName[]> {
    const rows = await this.store.rows(
      `SELECT DISTINCT company_id, server_id FROM ${this.store.database}.series
       WHERE metric IN {metrics:Array(String)} ORDER BY company_id, server_id ${SETTINGS}`,
      { metrics },
    )
    return rows.map(([companyId, serverId]) => ({ companyId: String(companyId), serverId: String(serverId) }))
  }

  /**
   * The newest stored sample since `sinceMs` of every series of these servers. Other queries do not wait for this one.
   */
  async newestOfServers(servers: readonly ServerName[], sinceMs: number): Promise<(ServerName & StoredNewest)[]> {
    const isOne = '(company_id, server_id) IN arrayZip({companies:Array(UUID)}, {servers:Array(UUID)})'
    const bytes = await this.store.scan(this.runsSince(isOne), {
      companies: servers.map(({ companyId }) => companyId),
      servers: servers.map(({ serverId }) => serverId),
      since: sinceMs,
    })
    return newestOf(bytes, servers, sinceMs)
  }

  /**
   * The newest stored sample since `sinceMs` of every series of a metric on all servers of a company, with its key. Of
   * more than `countMax` series some are left out, and that is said. Other queries do not wait for this one.
   */
  async newestOfCompany(companyId: string, metric: string, sinceMs: number, countMax: number): Promise<CompanyNewest> {
    const rows = await this.store.rows(
      `SELECT DISTINCT server_id, toString(series_id), key FROM ${this.store.database}.series
       WHERE company_id = {company:UUID} AND metric = {metric:String} LIMIT {count:UInt32} ${SETTINGS}`,
      { company: companyId, metric, count: countMax + 1 },
    )
    const series = rows.slice(0, countMax)
    const keys = new Map(series.map(([, id, key]) => [BigInt(String(id)), String(key)]))
    const servers = [...new Set(series.map(([serverId]) => String(serverId)))].map(serverId => ({
      companyId,
      serverId,
    }))
    const truncated = rows.length > countMax
    if (servers.length === 0) return { keys, samples: [], truncated }
    const isWanted = 'company_id = {company:UUID} AND series_id IN {ids:Array(UInt64)}'
    const params = { company: companyId, ids: [...keys.keys()], since: sinceMs }
    return {
      keys,
      samples: newestOf(await this.store.scan(this.runsSince(isWanted), params), servers, sinceMs),
      truncated,
    }
  }

  /** Keys of all series of these metrics, over all servers, up to `countMax`. */
  async keysOf(metrics: readonly string[], countMax: number): Promise<string[]> {
    const rows = await this.store.rows(
      `SELECT DISTINCT key FROM ${this.store.database}.series WHERE metric IN {metrics:Array(String)} LIMIT {count:UInt32} ${SETTINGS}`,
      { metrics, count: countMax },
    )
    return rows.map(([key]) => String(key))
  }
}

/** The newest sample since `sinceMs` of every series in rows of samples_raw, which are of these servers. */
function newestOf(bytes: Uint8Array, servers: readonly ServerName[], sinceMs: number): (ServerName & StoredNewest)[] {
  const newest = servers.map(() => new Map<bigint, { value: number; tsMs: number; seq: number }>())
  const index = new ServerIndex(serverWords(servers))
  const reader = new NativeReader(bytes)
  const chunks = new ChunkReader(reader)
  const { view } = reader
  for (let rows = reader.begin(); rows > 0; rows = reader.begin()) {
    const [companies, servers] = [reader.column(rows * UUID_BYTES), reader.column(rows * UUID_BYTES)]
    const [ids, times, seqs] = [0, 1, 2].map(() => reader.column(rows * 8))
    chunks.open(rows)
    for (let row = 0; row < rows; row++) {
      chunks.next()
      const ofServer = newest[index.placeOf(view, companies + row * UUID_BYTES, servers + row * UUID_BYTES)]
      const id = view.getBigUint64(ids! + row * 8, true)
      const firstMs = reader.int64(times! + row * 8)
      const last = ofServer?.get(id)
      if (!ofServer || (last && firstMs + CHUNK_SPAN_MS < last.tsMs)) continue
      const seq = reader.int64(seqs! + row * 8)
      const { tsMs, value } = chunks.last(firstMs)
      if (tsMs < sinceMs || (last && (tsMs < last.tsMs || (tsMs === last.tsMs && !replaces(seq, last.seq))))) continue
      ofServer.set(id, { value, tsMs, seq })
    }
  }
  return newest.flatMap((ofServer, at) =>
    [...ofServer].map(([id, { value, tsMs }]) => ({
      companyId: servers[at]!.companyId,
      serverId: servers[at]!.serverId,
      hi: Number(id >> 32n),
      lo: Number(id & 0xffff_ffffn),
      value,
      tsMs,
    })),
  )
}
