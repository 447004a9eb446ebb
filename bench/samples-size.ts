// How large is a sample on the disk, after merges, of a fleet with realistic values? Raw samples, and both rollups by
// raw sample. Options: servers, hours; a third word `unrounded` takes every digit of a division, as agents other than
// ours may send.
import { runRollups } from '../apps/collector/store/clickhouse/samples-rollups.ts'
import { INTERVAL_MS, readRecording, serverSeries } from './samples-fleet.ts'
import { companyOf, mergeAll, openBenchStore, rounded, say, serverOf, sizeOf, storeFleet } from './samples-store.ts'

const servers = Number(process.argv[2] ?? 8)
const hours = Number(process.argv[3] ?? 24)
const isRounded = process.argv[4] !== 'unrounded'
const HOUR_MS = 3_600_000
const intervals = (hours * HOUR_MS) / INTERVAL_MS
const endMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS

const { store, remove } = await openBenchStore('size')
const recording = readRecording()
const fleet = Array.from({ length: servers }, (_, index) => ({
  companyId: companyOf(Math.floor(index / 4)),
  serverId: serverOf(index),
  series: serverSeries(recording, index, intervals, isRounded),
}))
const { rows } = await storeFleet(store, fleet, endMs - hours * HOUR_MS)
await mergeAll(store, 'samples_raw')
const raw = await sizeOf(store, 'samples_raw')
await runRollups(store, endMs + 120_000)
await mergeAll(store, 'rollup_5m')
await mergeAll(store, 'rollup_1h')
const [fine, coarse] = [await sizeOf(store, 'rollup_5m'), await sizeOf(store, 'rollup_1h')]
const columnsOf = (columns: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(columns).map(([name, bytes]) => [name, rounded(bytes / rows, 3)]))
say('samples-size', {
  question: 'bytes a raw sample on disk, after merges',
  values: isRounded ? 'as agents report them' : 'every digit',
  rows,
  points_a_run: rounded(rows / raw.rows),
  series_a_machine: fleet[0]?.series.length,
  raw: rounded(raw.bytes / rows, 3),
  both_rollups: rounded((fine.bytes + coarse.bytes) / rows, 3),
  raw_columns: columnsOf(raw.columns),
  rollup_5m_columns: columnsOf(fine.columns),
  rollup_1h_columns: columnsOf(coarse.columns),
})
await remove()
