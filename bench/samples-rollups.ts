// What do rollups cost: in the steady state, a pass every minute while samples come in; for an hour that a whole fleet sends late; for
// one cell that few or many machines send late; with one sample a cell (an interval of 300 s)? CPU of the process, engine included.
import { insertLateCells, runRollups } from '../apps/collector/store/samples-rollups.ts'
import { INTERVAL_MS, machineSeries, readRecording } from './samples-fleet.ts'
import { companyOf, cpuMsOf, openBenchStore, rounded, say, serverOf, storeFleet } from './samples-store.ts'

const machines = Number(process.argv[2] ?? 500)
const minutes = Number(process.argv[3] ?? 60)
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const CELL_MS = 300_000
const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS
const recording = readRecording()
const intervals = (minutes * MINUTE_MS) / INTERVAL_MS
const whole = Array.from({ length: machines }, (_, index) => ({
  companyId: companyOf(Math.floor(index / 4)),
  serverId: serverOf(index),
  series: machineSeries(recording, index, intervals),
}))
const seriesCount = whole[0]?.series.length ?? 0
const part = (from: number, to: number, every = 1) =>
  whole.map(machine => ({
    ...machine,
    series: machine.series.map(({ key, values }) => ({
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

const { store, remove } = await openBenchStore('rollups')
let rows = 0
let insertMs = 0
let rollupMs = 0
for (let minute = 0; minute < minutes; minute++) {
  insertMs += await cpuMsOf(async () => {
    rows += (await storeFleet(store, part(minute * 2, minute * 2 + 2), startMs + minute * MINUTE_MS)).rows
  })
  rollupMs += await cpuMsOf(() => runRollups(store, startMs + (minute + 1) * MINUTE_MS))
}
const endMs = startMs + minutes * MINUTE_MS
rollupMs += await cpuMsOf(() => runRollups(store, endMs + 2 * MINUTE_MS))
say('samples-rollups', {
  question: 'CPU a raw row in the steady state, ns',
  rows,
  series: machines * seriesCount,
  insert_and_merges: aRow(insertMs, rows),
  rollups: aRow(rollupMs, rows),
})

const late = async (question: string, count: number, fromMs: number, spanMs: number): Promise<void> => {
  const noted = cells(count, fromMs, spanMs)
  const touched = (noted.length * seriesCount * CELL_MS) / INTERVAL_MS
  const ms = await cpuMsOf(async () => {
    await insertLateCells(store, `late-${question}`, noted)
    await runRollups(store, endMs + 3 * MINUTE_MS)
  })
  say('samples-rollups', {
    question,
    machines: count,
    cells: noted.length,
    cpu_ms: rounded(ms),
    ns_a_touched_row: aRow(ms, touched),
  })
}
const lateFromMs = startMs + 30 * MINUTE_MS
await late('late: one cell of one machine', 1, lateFromMs, CELL_MS)
await late('late: one cell of a tenth of the machines', Math.ceil(machines / 10), lateFromMs, CELL_MS)
await late('late: one cell of every machine', machines, lateFromMs, CELL_MS)
await late('late: half an hour of every machine', machines, startMs, 30 * MINUTE_MS)
await remove()
