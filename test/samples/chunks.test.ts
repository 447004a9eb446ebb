import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { CHUNK_COLUMN_COUNT, ChunkWriter } from '../../core/samples/block/chunk-codec.ts'
import { splitDecimal } from '../../core/samples/block/decimal.ts'
import { NativeWriter } from '../../core/samples/block/native-writer.ts'
import { olderPoints, randomRuns } from '../support/chunks.ts'
import { openTestStore } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'

const OLDER_FROM = 1_000

let store: ClickHouse
beforeAll(async () => {
  store = await openTestStore()
})
afterAll(() => store.close())

test('[STO-001] whoever looks into the store finds the points as they were, in rows of this form and of the one before', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  const startMs = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 86_400_000
  const runs = randomRuns(randomFrom(seed), startMs, 300, 30)
  const chunks = new ChunkWriter()
  const writer = new NativeWriter()
  for (const points of runs) {
    const digits = new Float64Array(points.length)
    const decimals = Uint8Array.from(points, ([, value], at) => splitDecimal(value, at, digits))
    chunks.add(
      Float64Array.from(points, ([tsMs]) => tsMs),
      decimals,
      digits,
      0,
      points.length,
    )
  }
  writer.begin(2 + CHUNK_COLUMN_COUNT, runs.length)
  for (const [name, type, values] of [
    ['series_id', 'UInt64', runs.map((_, index) => index)],
    ['ts', "DateTime64(3, 'UTC')", runs.map(([first]) => first![0])],
  ] as const) {
    const at = writer.column({ name, type, bytesPerRow: 8 }, runs.length)
    for (const [row, value] of values.entries()) writer.memory().setBigInt64(at + row * 8, BigInt(value), true)
  }
  chunks.write(writer)
  await store.insertBlock('samples_raw', writer.finish(), `chunks-${seed}`)
  const older = runs.map(
    (run, index) =>
      `(${OLDER_FROM + index}, fromUnixTimestamp64Milli(${run[0]![0]}, 'UTC'), unhex('${Buffer.from(olderPoints(run)).toString('hex')}'))`,
  )
  await store.command(`INSERT INTO ${store.database}.samples_raw (series_id, ts, points) VALUES ${older.join(', ')}`)
  const rows = await store.rows(
    `SELECT toUInt32(series_id), times, values FROM ${store.database}.samples_runs ORDER BY series_id`,
  )
  expect(rows).toHaveLength(2 * runs.length)
  for (const [id, times, values] of rows) {
    const run = runs[Number(id) % OLDER_FROM]!
    expect([seed, id, Array.isArray(times) && times.map(Number)]).toEqual([seed, id, run.map(([tsMs]) => tsMs)])
    // The engine divides as this program does, so that no digit differs; among decimals there is one zero.
    expect([seed, id, values]).toEqual([seed, id, run.map(([, value]) => value + 0)])
  }
})
