// How fast are reads in a large store? One series over 24 hours of raw samples, one series over 400 days of 1-hour
// cells, the newest values of one server among few and among many, while samples keep coming in. Options: servers,
// series a server, hours, interval in s.
import { SamplesReader } from '../apps/collector/store/clickhouse/samples-query.ts'
import { LatestValues } from '../apps/collector/worker/samples/latest-values.ts'
import type { SeriesPlan } from '../core/query/query-plan.ts'
import { keyMetrics, metrics } from '../core/series/catalogue.ts'
import { fullSeriesKey, seriesId } from '../core/series/series-key.ts'
import { INTERVAL_MS } from './samples-fleet.ts'
import {
  companyOf,
  cpuMsOf,
  defineSeries,
  openBenchStore,
  rounded,
  say,
  serverOf,
  storeFleet,
  timesOf,
} from './samples-store.ts'

const servers = Number(process.argv[2] ?? 4_000)
const seriesCount = Number(process.argv[3] ?? 100)
const hours = Number(process.argv[4] ?? 25)
const intervalSeconds = Number(process.argv[5] ?? 30)
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const endMs = Math.floor(Date.now() / INTERVAL_MS) * INTERVAL_MS
const COMPANY = companyOf(1)
const READS = 60

const keys = [
  ...metrics.map(({ name }) => fullSeriesKey(name, {})),
  ...Array.from({ length: 200 }, (_, unit) => fullSeriesKey('disk_used_percent', { mount: `/${unit}` })),
].slice(0, seriesCount)
const ids = keys.map(key => {
  const { lo, hi } = seriesId(key)
  return (BigInt(hi) << 32n) + BigInt(lo)
})
const { store, remove } = await openBenchStore('reads')
/** Server m is serverOf(m), in SQL. */
const server = `toUUID(concat(substring(leftPad(lower(hex(toUInt64(m) * 2654435761)), 16, '0'), 9), '-0000-4000-8000-', leftPad(lower(hex(toUInt64(m))), 12, '0')))`

/** CHUNK_COLUMNS of a run (core/samples/block/chunk-codec.ts): ten values of two decimals. */
const RUN = 10
const CHANGES = 1
const run = (stepMs: number): string =>
  `bitOr(toUInt64(${2 | (CHANGES << 8) | ((RUN - 1) << 16)}), bitShiftLeft(toUInt64(${stepMs}), 32)), toInt64(5000 + number % 1000),
     substring(sipHash128(number), 1, ${RUN - 1})`

/** Rows for each server and series, every `stepMs`. */
const rowsSql = (
  table: string,
  columns: string,
  values: string,
  serverCount: number,
  rows: number,
  firstMs: number,
  stepMs: number,
): string =>
  `INSERT INTO bench.${table} (company_id, server_id, series_id, ts, ${columns})
   SELECT toUUID('${COMPANY}'), ${server}, [${ids.join(',')}][s + 1], fromUnixTimestamp64Milli(toInt64(${firstMs}) + t * ${stepMs}, 'UTC'), ${values}
   FROM (SELECT number, intDiv(number, ${seriesCount * rows}) AS m, intDiv(number, ${rows}) % ${seriesCount} AS s, number % ${rows} AS t
         FROM numbers(${serverCount * seriesCount * rows}))
   SETTINGS max_threads = 1, max_insert_threads = 1, max_partitions_per_insert_block = 0`

const pointsADay = DAY_MS / (intervalSeconds * 1000)
const firstMs = endMs - hours * HOUR_MS
for (let from = firstMs; from < endMs; ) {
  const next = Math.min(endMs, (Math.floor(from / DAY_MS) + 1) * DAY_MS)
  const rows = Math.floor((next - from) / (RUN * intervalSeconds * 1000))
  if (rows > 0)
    await store.command(
      rowsSql(
        'samples_raw',
        'seq, shape, first, points',
        `1, ${run(intervalSeconds * 1000)}`,
        servers,
        rows,
        from,
        RUN * intervalSeconds * 1000,
      ),
    )
  from = next
}
const cellServers = Math.min(servers, 10)
const cellsFirstMs = Math.floor((endMs - 399 * DAY_MS) / HOUR_MS) * HOUR_MS
await store.command(
  rowsSql(
    'rollup_1h',
    'count, decimals, last_digits, below, above, beside',
    '120, 2, cityHash64(number) % 10000, 5, 7, 900',
    cellServers,
    399 * 24,
    cellsFirstMs,
    HOUR_MS,
  ),
)
// Months that are over have been merged for long; the one that is not lies as the inserts left it.
const months = await store.rows(
  "SELECT DISTINCT partition FROM system.parts WHERE active AND table = 'rollup_1h' ORDER BY partition",
)
for (const [month] of months.slice(0, -1))
  await store.command(`OPTIMIZE TABLE bench.rollup_1h PARTITION ${month} FINAL`)
for (let from = 0; from < servers; from += 500)
  await defineSeries(
    store,
    Array.from({ length: Math.min(500, servers - from) }, (_, index) => ({
      companyId: COMPANY,
      serverId: serverOf(from + index),
    })),
    keys,
    firstMs,
  )

const reader = new SamplesReader(store, () => Date.now())
const plan = (over: Partial<SeriesPlan>): SeriesPlan => ({
  companyId: COMPANY,
  serverId: serverOf(0),
  metric: 'cpu_usage_percent',
  agg: 'avg',
  fromMs: endMs - DAY_MS,
  toMs: endMs,
  stepMs: 180_000,
  source: 'raw',
  oldestMs: Number.NEGATIVE_INFINITY,
  isEmpty: false,
  fallsBackToRaw: false,
  ...over,
})
for (const table of ['samples_raw', 'rollup_1h']) {
  const [held] = await store.rows(
    `SELECT sum(rows), count() FROM system.parts WHERE active AND database = 'bench' AND table = '${table}'`,
  )
  say('samples-reads', { question: `rows and parts of ${table}`, rows: held?.[0], parts: held?.[1] })
}
say('samples-reads', { question: 'the store', series_hours: servers * seriesCount * hours })
const pick = (turn: number, count: number): string => serverOf((turn * 7919) % count)
await timesOf(5, turn => reader.querySeries(plan({ serverId: pick(turn, servers) }), 0))
say('samples-reads', {
  question: 'one series, 24 hours, raw',
  points: Math.floor(pointsADay),
  ...(await timesOf(READS, turn => reader.querySeries(plan({ serverId: pick(turn, servers) }), 0))),
})
say('samples-reads', {
  question: 'one series, 400 days, cells of 1 hour',
  ...(await timesOf(READS, turn =>
    reader.querySeries(
      plan({ serverId: pick(turn, cellServers), fromMs: cellsFirstMs, stepMs: 24 * HOUR_MS, source: '1h' }),
      endMs,
    ),
  )),
})
const status = new LatestValues({
  reader,
  nowMs: () => Date.now(),
  isOwn: () => true,
  onTrouble: error => {
    throw error
  },
})
const latest = (count: number) =>
  timesOf(READS, turn => status.read(COMPANY, pick(turn, count), keyMetrics, Date.now() - 15 * 60_000))
say('samples-reads', {
  question: 'newest values of a server, from the store, keys unknown',
  ...(await latest(servers)),
})
status.start()
await Bun.sleep(50)
const loading = await latest(servers)
say('samples-reads', { question: 'newest values of a server, while those of all are read after a start', ...loading })
const loadBeganMs = performance.now()
const loadCpuMs = await cpuMsOf(async () => {
  // A server that never was is answered at once when all are known.
  for (let askedMs = 2; askedMs > 1; await Bun.sleep(200)) {
    const beganMs = performance.now()
    await status.read(COMPANY, companyOf(9), keyMetrics, Date.now() - 15 * 60_000)
    askedMs = performance.now() - beganMs
  }
})
say('samples-reads', {
  question: 'newest values of all servers, the rest of them',
  seconds: rounded((performance.now() - loadBeganMs) / 1000),
  cpu_ms_a_machine: rounded(loadCpuMs / servers, 2),
})

// Samples keep coming in: a block a second of the first thousand servers.
const sending = Math.min(servers, 1_000)
const fresh = Array.from({ length: sending }, (_, index) => ({
  companyId: COMPANY,
  serverId: serverOf(index),
  series: keys.map(key => ({ key, values: Float64Array.of(index % 100) })),
}))
let isWriting = true
const writing = (async () => {
  for (let turn = 0; isWriting; turn++) {
    await storeFleet(store, fresh, endMs + turn, block => {
      for (const server of block.servers()) status.take(server)
    })
    await Bun.sleep(900)
  }
})()
await Bun.sleep(10_000)
for (const count of [10, sending])
  say('samples-reads', {
    question: `newest values of a server among ${count} that send, samples coming in`,
    ...(await latest(count)),
  })
say('samples-reads', {
  question: `newest values of a server among ${servers}, most of which do not send, samples coming in`,
  ...(await latest(servers)),
})
isWriting = false
await writing
await remove()
