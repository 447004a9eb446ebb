// What do rollups cost: in the steady state, a pass every minute while samples come in, at an interval of 30 s and with
// one sample a cell (300 s), with cells from samples as they pass and from the raw samples; for an hour that a whole
// fleet sends late; for one cell that few or many servers send late? CPU of the process, engine included.
import type { ClickHouse } from '../apps/collector/store/clickhouse/clickhouse.ts'
import { insertLateCells, runRollups } from '../apps/collector/store/clickhouse/samples-rollups.ts'
import { CellStream } from '../core/samples/rollup/cell-stream.ts'
import { computableBeforeMs } from '../core/samples/rollup/computable-before.ts'
import { INTERVAL_MS, readRecording, serverSeries } from './samples-fleet.ts'
import { companyOf, cpuMsOf, openBenchStore, rounded, say, serverOf, storeFleet } from './samples-store.ts'

const servers = Number(process.argv[2] ?? 500)
const minutes = Number(process.argv[3] ?? 60)
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const CELL_MS = 300_000
const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS
const recording = readRecording()
const intervals = (minutes * MINUTE_MS) / INTERVAL_MS
const whole = Array.from({ length: servers }, (_, index) => ({
  companyId: companyOf(Math.floor(index / 4)),
  serverId: serverOf(index),
  series: serverSeries(recording, index, intervals),
}))
const seriesCount = whole[0]?.series.length ?? 0
const part = (from: number, to: number, every = 1) =>
  whole.map(server => ({
    ...server,
    series: server.series.map(({ key, values }) => ({
      key,
      values: values.subarray(from, to).filter((_, at) => at % every === 0),
    })),
  }))
const cells = (count: number, fromMs: number, spanMs: number) =>
  whole.slice(0, count).flatMap(({ companyId, serverId }) =>
    Array.from({ length: spanMs / CELL_MS }, (_, cell) => ({
      companyId,
      serverId,
      startMs: fromMs + cell * CELL_MS,
    })),
  )
const aRow = (ms: number, rows: number): number => rounded((ms * 1e6) / rows)

/**
 * The fleet's samples, stored every five minutes, with a pass every minute: at an interval of 30 s, or of 300 s. Cells
 * come from the samples as they pass (`isStreamed`), or are read from the raw samples.
 */
async function steady(store: ClickHouse, intervalSeconds: 30 | 300, isStreamed: boolean): Promise<void> {
  const stream = isStreamed ? new CellStream() : null
  stream?.start(Number.NEGATIVE_INFINITY)
  let claimedMs = 0
  let rows = 0
  const spent = { insert: 0, stream: 0, rollups: 0 }
  const pass = async (nowMs: number): Promise<void> => {
    claimedMs = computableBeforeMs(nowMs, nowMs)
    spent.rollups += await cpuMsOf(() => runRollups(store, nowMs, nowMs, stream))
  }
  for (let minute = 0; minute < minutes; minute += 5) {
    const due = part(minute * 2, minute * 2 + (intervalSeconds === 30 ? 10 : 1))
    let added = 0
    spent.insert += await cpuMsOf(async () => {
      const stored = await storeFleet(store, due, startMs + minute * MINUTE_MS, block => {
        const before = process.cpuUsage()
        for (const server of block.servers()) stream?.add(server, claimedMs)
        const used = process.cpuUsage(before)
        added += (used.user + used.system) / 1000
      })
      rows += stored.rows
    })
    spent.insert -= added
    spent.stream += added
    for (let passed = 1; passed <= 5; passed++) await pass(startMs + (minute + passed) * MINUTE_MS)
  }
  await pass(endMs + 2 * MINUTE_MS)
  const [cells] = await store.rows('SELECT count() FROM bench.rollup_5m')
  say('samples-rollups', {
    question: `CPU a raw row in the steady state at an interval of ${intervalSeconds} s, ns`,
    cells: isStreamed ? 'from samples as they pass' : 'from the raw samples',
    rows,
    cells_5m: Number(cells?.[0]),
    series: servers * seriesCount,
    insert_and_merges: aRow(spent.insert, rows),
    stream: aRow(spent.stream, rows),
    rollups: aRow(spent.rollups, rows),
  })
}

const endMs = startMs + minutes * MINUTE_MS
for (const [interval, isStreamed] of [
  [300, false],
  [300, true],
  [30, false],
] as const) {
  const own = await openBenchStore('rollups')
  await steady(own.store, interval, isStreamed)
  await own.remove()
}
const { store, remove } = await openBenchStore('rollups')
await steady(store, 30, true)

const late = async (question: string, count: number, fromMs: number, spanMs: number): Promise<void> => {
  const noted = cells(count, fromMs, spanMs)
  const touched = (noted.length * seriesCount * CELL_MS) / INTERVAL_MS
  const ms = await cpuMsOf(async () => {
    await insertLateCells(store, `late-${question}`, noted)
    await runRollups(store, endMs + 3 * MINUTE_MS)
  })
  say('samples-rollups', {
    question,
    servers: count,
    cells: noted.length,
    cpu_ms: rounded(ms),
    ns_a_touched_row: aRow(ms, touched),
  })
}
const lateFromMs = startMs + 30 * MINUTE_MS
await late('late: one cell of one server', 1, lateFromMs, CELL_MS)
await late('late: one cell of a tenth of the servers', Math.ceil(servers / 10), lateFromMs, CELL_MS)
await late('late: one cell of every server', servers, lateFromMs, CELL_MS)
await late('late: half an hour of every server', servers, startMs, 30 * MINUTE_MS)
await remove()
