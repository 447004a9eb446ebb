// What a point costs on its way from the bus to the samples store, engine included, and how fast the newest values of
// one server among many are read. Prints one JSON line a question. CPU is of the whole process: the thread's own by
// what it did, the engine's threads together, until the merges of what was counted are over. The next block waits until
// the engine has nothing left to merge, as in a store that keeps up: without that, parts gather and a run is merged
// seldom. The first blocks are not counted: what is measured is a worker at work, not one whose code is being compiled.
// Options: points a block, blocks, servers.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openClickHouse } from '../apps/collector/store/clickhouse/clickhouse.ts'
import { SamplesReader } from '../apps/collector/store/clickhouse/samples-query.ts'
import { migrateSamples } from '../apps/collector/store/clickhouse/samples-schema.ts'
import { LatestValues } from '../apps/collector/worker/samples/latest-values.ts'
import { EntryReader, encodeEntry } from '../core/bus/entry.ts'
import { NativeWriter } from '../core/samples/block/native-writer.ts'
import { SampleBlock } from '../core/samples/block/sample-block.ts'
import { definedBy, definitionList, writeSeriesBlock } from '../core/samples/block/series-definitions.ts'
import { keyMetrics, metrics } from '../core/series/catalogue.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../core/series/series-key.ts'

const SERVERS = Number(process.argv[4] ?? 2_000)
const SERIES = 150
const COMPILED_AFTER = 12
const WARM_UP_BLOCKS = 3
const ROUND_MS = 30_000
const blockRows = Number(process.argv[2] ?? 3_000_000)
const blockCount = Number(process.argv[3] ?? 20)
/** As many batches as a read of the bus hands over. */
const BATCHES = 500
const COMPANY = '11111111-1111-4111-8111-111111111111'
const serverId = (index: number): string => `aaaaaaaa-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
const round = (value: number): number => Math.round(value * 10) / 10
const say = (line: Record<string, unknown>): void => console.log(JSON.stringify({ bench: 'insert', ...line }))

/** The series of one server: the whole catalogue, the rest as more disks. */
function seriesOfServer(): string[] {
  const keys = metrics.map(({ name }) => fullSeriesKey(name, {}))
  for (let disk = 0; keys.length < SERIES; disk++)
    keys.push(fullSeriesKey('disk_used_percent', { device: `sd${disk}`, mount: `/data/${disk}`, fstype: 'ext4' }))
  return keys
}

const keys = seriesOfServer()
const ids = keys.map(seriesId)
const batch = new SampleBatch()
ids.forEach((id, index) => {
  batch.idLo[index] = id.lo
  batch.idHi[index] = id.hi
  batch.pointStart[index + 1] = index + 1
})
batch.seriesCount = SERIES
batch.pointCount = SERIES

function entryAt(server: number, atMs: number, turn: number): Uint8Array {
  for (let index = 0; index < SERIES; index++) {
    batch.tsMs[index] = atMs
    batch.value[index] =
      index % 5 === 0 ? index * 4096 : Math.round((Math.sin((turn + server + index) / 9) + 1) * 5000) / 100
  }
  const header = { companyId: COMPANY, agentId: serverId(server), receivedAtMs: atMs, seq: turn, intervalSeconds: 30 }
  return encodeEntry({ ...header, serverId: serverId(server) }, batch)
}

const directory = mkdtempSync(join(tmpdir(), 'bench-insert-'))
const store = openClickHouse({ url: `embedded:${directory}`, database: 'bench' })
await migrateSamples(store)
const readsABlock = Math.ceil(blockRows / (BATCHES * SERIES))
const readsARound = SERVERS / BATCHES
const startMs = Date.now() - Math.ceil(((WARM_UP_BLOCKS + blockCount) * readsABlock) / readsARound) * ROUND_MS

const block = new SampleBlock()
const writer = new NativeWriter()
const reader = new EntryReader()
const rule = { purged: false, lockedBeforeMs: Number.NEGATIVE_INFINITY }
/** CPU of this thread, in microseconds. */
const nothing = { add: 0, write: 0, hold: 0, insert: 0, wallMs: 0, rows: 0, blocks: 0 }
let spent = { ...nothing }
let blockNumber = 0
let pointsStored = 0
const samples = new SamplesReader(store, () => Date.now())
const latest = new LatestValues({
  reader: samples,
  nowMs: () => Date.now(),
  isOwn: () => true,
  onTrouble: error => {
    throw error
  },
})
const sum = ({ user, system }: NodeJS.CpuUsage): number => user + system
const ofThread = async (act: () => unknown): Promise<number> => {
  const before = process.threadCpuUsage()
  await act()
  return sum(process.threadCpuUsage(before))
}

async function insertBlock(): Promise<void> {
  while ((await insertPart()) > 0);
  spent.blocks++
  block.clear()
}

/** Stores the next part of the block; returns its points. */
async function insertPart(): Promise<number> {
  let rows = 0
  spent.write += await ofThread(() => {
    rows = block.write(writer, blockNumber)
  })
  if (rows === 0) return 0
  const beganMs = performance.now()
  spent.insert += await ofThread(() => store.insertBlock('samples_raw', writer.finish(), `bench-${blockNumber++}`))
  spent.wallMs += performance.now() - beganMs
  spent.rows += rows
  pointsStored += rows
  spent.hold += await ofThread(() => {
    for (const server of block.servers()) latest.take(server)
    latest.blockStored()
  })
  return rows
}

const list = definitionList(keys.map((key, index) => ({ idLo: ids[index]!.lo, idHi: ids[index]!.hi, key })))
const servers = Array.from({ length: SERVERS }, (_, server) => ({ companyId: COMPANY, serverId: serverId(server) }))
writeSeriesBlock(
  writer,
  servers.map(server => definedBy(server, list, startMs)),
)
await store.insertBlock('series', writer.finish(), 'bench-series')

function addBatches(first: number, turn: number): Promise<number> {
  const entries = Array.from({ length: BATCHES }, (_, index) =>
    entryAt(first + index, startMs + turn * ROUND_MS + (index % 7), turn),
  )
  return ofThread(() => {
    for (const entry of entries) {
      reader.open(entry)
      while (reader.next()) block.add(reader, () => rule)
    }
  })
}

/** What the engine has done so far: runs inserted, and merged, each as often as it was. */
async function runsSoFar(): Promise<{ inserted: number; merged: number }> {
  const rows = await store.rows("SELECT event, value FROM system.events WHERE event IN ('InsertedRows', 'MergedRows')")
  const of = (event: string): number => Number(rows.find(row => row[0] === event)?.[1] ?? 0)
  return { inserted: of('InsertedRows'), merged: of('MergedRows') }
}

async function merged(quietLooks: number): Promise<void> {
  for (let quiet = 0; quiet < quietLooks; await Bun.sleep(50)) {
    const [running] = await store.rows('SELECT count() FROM system.merges')
    quiet = Number(running?.[0]) === 0 ? quiet + 1 : 0
  }
}

/** Round after round all servers send; a block is of the reads that fill it. */
async function blocks(from: number, to: number): Promise<void> {
  for (let read = from * readsABlock; read < to * readsABlock; read++) {
    spent.add += await addBatches((read % readsARound) * BATCHES, Math.floor(read / readsARound))
    if (block.rows < blockRows) continue
    await insertBlock()
    await merged(2)
  }
}

// Blocks that are not inserted until the code is compiled, then some that are.
for (let turn = 0; turn < COMPILED_AFTER; turn++) {
  for (let first = 0; first < SERVERS; first += BATCHES) await addBatches(first, 0)
  while (block.write(writer, 0) > 0) for (const server of block.servers()) latest.take(server)
  block.clear()
}
await blocks(0, WARM_UP_BLOCKS)
await merged(10)
// That the store is read for all servers once after a start is no part of a row.
latest.stop()
spent = { ...nothing }
const runsBefore = await runsSoFar()
const before = { all: process.cpuUsage(), thread: process.threadCpuUsage() }
await blocks(WARM_UP_BLOCKS, WARM_UP_BLOCKS + blockCount)
const mergesAfter = process.cpuUsage()
await merged(10)
const engine = sum(process.cpuUsage(before.all)) - sum(process.threadCpuUsage(before.thread))
const perRow = (micros: number): number => round((micros * 1000) / spent.rows)
const runs = await runsSoFar()
const inserted = runs.inserted - runsBefore.inserted
say({
  question: 'CPU a point, ns',
  servers: SERVERS,
  points: spent.rows,
  blocks: spent.blocks,
  points_a_run: round(spent.rows / inserted),
  merges_a_run: round((runs.merged - runsBefore.merged) / inserted),
  add: perRow(spent.add),
  order_and_write: perRow(spent.write),
  newest_values: perRow(spent.hold),
  hand_over: perRow(spent.insert),
  engine: perRow(engine),
  of_it_after_the_last_block: perRow(sum(process.cpuUsage(mergesAfter))),
  total: perRow(spent.add + spent.write + spent.hold + spent.insert + engine),
  insert_wall_ms_a_block: round(spent.wallMs / spent.blocks),
})

async function timed(question: string, act: (server: number) => Promise<unknown>): Promise<void> {
  const times: number[] = []
  for (let turn = 0; turn < 100; turn++) {
    const beganMs = performance.now()
    await act((turn * 17) % SERVERS)
    times.push(performance.now() - beganMs)
  }
  times.sort((a, b) => a - b)
  say({ question, p50_ms: round(percentile(times, 0.5)), p95_ms: round(percentile(times, 0.95)) })
}

const newest = (server: number) => latest.read(COMPANY, serverId(server), keyMetrics, Date.now() - 15 * 60_000)
await timed('newest values of the key metrics of a server', newest)
await timed('one hour of one metric of a server, raw', server =>
  samples.querySeries(
    {
      companyId: COMPANY,
      serverId: serverId(server),
      metric: 'disk_used_percent',
      agg: 'avg',
      fromMs: Date.now() - 3_600_000,
      toMs: Date.now(),
      stepMs: 30_000,
      source: 'raw',
      oldestMs: Number.NEGATIVE_INFINITY,
      isEmpty: false,
      fallsBackToRaw: false,
    },
    0,
  ),
)
const size = await store.rows(
  "SELECT sum(bytes_on_disk), count() FROM system.parts WHERE database = 'bench' AND table = 'samples_raw' AND active",
)
say({
  question: 'bytes a point on disk, and parts',
  bytes: Math.round((Number(size[0]?.[0]) / pointsStored) * 100) / 100,
  parts: Number(size[0]?.[1]),
})
const resting = process.cpuUsage()
await Bun.sleep(2_000)
say({
  question: 'idle engine',
  cpu_ms_a_second: round(sum(process.cpuUsage(resting)) / 2_000),
  rss_mib: Math.round(process.memoryUsage().rss / 1024 ** 2),
})
await store.close()
rmSync(directory, { recursive: true, force: true })
