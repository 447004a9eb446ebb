// A samples store filled by the product's own writer code with a fleet (samples-fleet.ts), for the benches of size and
// reads.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ClickHouse, openClickHouse } from '../apps/collector/store/clickhouse/clickhouse.ts'
import { migrateSamples } from '../apps/collector/store/clickhouse/samples-schema.ts'
import { EntryReader, encodeEntry } from '../core/bus/entry.ts'
import { NativeWriter } from '../core/samples/block/native-writer.ts'
import { SampleBlock } from '../core/samples/block/sample-block.ts'
import { definedBy, definitionList, writeSeriesBlock } from '../core/samples/block/series-definitions.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { seriesId } from '../core/series/series-key.ts'
import { type FleetSeries, INTERVAL_MS } from './samples-fleet.ts'

const BLOCK_ROWS = 3_000_000
/** As long as the collector holds samples before it stores them. */
const HOLD_MS = 300_000
const FREE = { purged: false, lockedBeforeMs: Number.NEGATIVE_INFINITY }

export const companyOf = (index: number): string => `11111111-1111-4111-8111-${index.toString(16).padStart(12, '0')}`
export const serverOf = (index: number): string =>
  `${(index * 2_654_435_761).toString(16).padStart(8, '0').slice(-8)}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

export const say = (bench: string, line: Record<string, unknown>): void =>
  console.log(JSON.stringify({ bench, ...line }))
export const rounded = (value: number, digits = 1): number => Number(value.toFixed(digits))

/** CPU of this process, engine included, in milliseconds. */
export async function cpuMsOf(act: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** p50 and p95 of the wall time of `act`, and the mean CPU of the process meanwhile, in milliseconds. */
export async function timesOf(count: number, act: (turn: number) => Promise<unknown>) {
  const times: number[] = []
  const cpuMs = await cpuMsOf(() => measure(count, act, times))
  times.sort((a, b) => a - b)
  const at = (share: number): number => rounded(times[Math.min(count - 1, Math.floor(count * share))] ?? 0)
  return { p50_ms: at(0.5), p95_ms: at(0.95), cpu_ms: rounded(cpuMs / count) }
}

async function measure(count: number, act: (turn: number) => Promise<unknown>, times: number[]): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    const beganMs = performance.now()
    await act(turn)
    times.push(performance.now() - beganMs)
  }
}

/** An empty store in a directory of its own, which `remove` deletes. */
export async function openBenchStore(name: string) {
  const directory = mkdtempSync(join(tmpdir(), `bench-${name}-`))
  const store = openClickHouse({ url: `embedded:${directory}`, database: 'bench' })
  await migrateSamples(store)
  return {
    store,
    remove: async () => {
      await store.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Writes definitions of the series of a server. */
export async function defineSeries(
  store: ClickHouse,
  owners: readonly { companyId: string; serverId: string }[],
  keys: readonly string[],
  seenAtMs: number,
): Promise<void> {
  const writer = new NativeWriter()
  const list = definitionList(
    keys.map(key => {
      const { lo, hi } = seriesId(key)
      return { idLo: lo, idHi: hi, key }
    }),
  )
  writeSeriesBlock(
    writer,
    owners.map(owner => definedBy(owner, list, seenAtMs)),
  )
  await store.insertBlock('series', writer.finish(), `series-${owners[0]?.serverId}-${owners.length}`)
}

/**
 * Stores samples in blocks as the writer of the collector makes them: in the order of time, what all servers send in
 * five minutes together.
 */
const block = new SampleBlock()
const writer = new NativeWriter()
const reader = new EntryReader()

export async function storeFleet(
  store: ClickHouse,
  fleet: readonly { companyId: string; serverId: string; series: readonly FleetSeries[] }[],
  startMs: number,
  onStored?: (block: SampleBlock) => void,
): Promise<{ rows: number; blocks: number }> {
  const batches = fleet.map(({ series }) => batchOf(series))
  const intervals = fleet[0]?.series[0]?.values.length ?? 0
  let rows = 0
  let blocks = 0
  const insert = async (): Promise<void> => {
    if (block.rows === 0) return
    for (let part = block.write(writer, startMs + blocks); part > 0; part = block.write(writer, startMs + blocks)) {
      rows += part
      await store.insertBlock('samples_raw', writer.finish(), `fleet-${startMs}-${blocks++}`)
      onStored?.(block)
    }
    block.clear()
  }
  for (let turn = 0; turn < intervals; turn++) {
    if (turn > 0 && (turn * INTERVAL_MS) % HOLD_MS === 0) await insert()
    for (const [index, { companyId, serverId, series }] of fleet.entries()) {
      const batch = batches[index]!
      const tsMs = startMs + turn * INTERVAL_MS
      series.forEach(({ values }, at) => {
        batch.tsMs[at] = tsMs
        batch.value[at] = values[turn]!
      })
      const header = { companyId, serverId, agentId: serverId, receivedAtMs: tsMs, seq: turn, intervalSeconds: 30 }
      reader.open(encodeEntry(header, batch))
      while (reader.next()) block.add(reader, () => FREE)
      if (block.rows >= BLOCK_ROWS) await insert()
    }
  }
  await insert()
  return { rows, blocks }
}

const idOf = new Map<string, ReturnType<typeof seriesId>>()
function cachedId(key: string): ReturnType<typeof seriesId> {
  const id = idOf.get(key) ?? seriesId(key)
  idOf.set(key, id)
  return id
}

function batchOf(series: readonly FleetSeries[]): SampleBatch {
  const batch = new SampleBatch()
  series.forEach(({ key }, index) => {
    const { lo, hi } = cachedId(key)
    batch.idLo[index] = lo
    batch.idHi[index] = hi
    batch.pointStart[index + 1] = index + 1
  })
  batch.seriesCount = series.length
  batch.pointCount = series.length
  return batch
}

/** Merges every partition of a table into one part. */
export const mergeAll = (store: ClickHouse, table: string): Promise<void> =>
  store.command(`OPTIMIZE TABLE ${store.database}.${table} FINAL`)

type TableSize = { readonly rows: number; readonly bytes: number; readonly columns: Record<string, number> }

/** Rows and bytes of a table on disk, and the bytes of each column. */
export async function sizeOf(store: ClickHouse, table: string): Promise<TableSize> {
  const where = `WHERE database = '${store.database}' AND table = '${table}' AND active`
  const [total] = await store.rows(`SELECT sum(rows), sum(bytes_on_disk) FROM system.parts ${where}`)
  const columns = await store.rows(
    `SELECT column, sum(column_data_compressed_bytes) FROM system.parts_columns ${where} GROUP BY column ORDER BY column`,
  )
  return {
    rows: Number(total?.[0]),
    bytes: Number(total?.[1]),
    columns: Object.fromEntries(columns.map(([name, bytes]) => [String(name), Number(bytes)])),
  }
}
