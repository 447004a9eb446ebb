// The samples store for tests: the embedded engine, one a process, in a directory of its own, or the server that
// CLICKHOUSE_URL names. Every suite has a database of its own in it, `suite_…`.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { type ClickHouse, openClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { storedTable } from '../../apps/collector/store/clickhouse/cluster.ts'
import { migrateSamples } from '../../apps/collector/store/clickhouse/samples-schema.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../../core/series/series-key.ts'

/** How long the samples thread may hold samples where a test looks into the store. */
export const briefly = { ms: 1_000, bytes: 1024 ** 3 }

/** Where the engine of this process lives; removed when the process ends. */
export const engineDirectory: string = mkdtempSync(join(tmpdir(), 'samples-engine-'))
process.on('exit', () => rmSync(engineDirectory, { recursive: true, force: true }))
export const engineUrl = process.env.CLICKHOUSE_URL ?? `embedded:${engineDirectory}`
/** The cluster of that server on which tables are made, null for the server alone. */
export const engineCluster = process.env.CLICKHOUSE_CLUSTER ?? null

let databaseCount = 0
/** A name that no other suite has. */
export const freshDatabase = (): string => `suite_${process.pid}_${++databaseCount}`

/** An open store with its schema, in a database of its own. */
export async function openTestStore(): Promise<ClickHouse> {
  const store = openClickHouse({ url: engineUrl, database: freshDatabase(), cluster: engineCluster })
  await migrateSamples(store)
  return store
}

/** Takes all rows of a table away. */
export const emptyTable = (store: ClickHouse, table: string): Promise<void> =>
  store.command(`TRUNCATE TABLE ${storedTable(store, table)}`)

/** A bus in a directory of its own. Entries stay on it while one of `otherConsumers` has not passed them. */
export function openTestBus(otherConsumers: readonly string[] = []) {
  const directory = mkdtempSync(join(tmpdir(), 'samples-bus-'))
  const path = join(directory, 'bus.sqlite')
  const consumers = [busConsumers.samples, ...otherConsumers]
  const writer = new FileBusWriter({
    path,
    bytesMax: 1024 ** 3,
    ageMaxMs: 24 * 3_600_000,
    groupWaitMs: 1,
    nowMs: () => Date.now(),
    onPublished: () => undefined,
    onError: error => {
      throw error
    },
  })
  return {
    path,
    consumers,
    writer,
    openReader: () => new FileBusReader(path, consumers),
    close: async () => {
      await writer.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export type TestSeries = {
  readonly metric: string
  readonly labels?: Readonly<Record<string, string>>
  readonly points: readonly (readonly [tsMs: number, value: number])[]
}

const AGENT = '99999999-9999-4999-8999-999999999999'

/** One batch of a server as it lies on the bus, with the definition of every series in it. */
export function entryOf(
  companyId: string,
  serverId: string,
  series: readonly TestSeries[],
  receivedAtMs = Date.now(),
  from: { readonly agentId?: string; readonly intervalSeconds?: number } = {},
): Uint8Array {
  const batch = new SampleBatch()
  for (const { metric, labels = {}, points } of series) {
    const key = fullSeriesKey(metric, labels)
    const id = seriesId(key)
    if (batch.seriesCount + 1 >= batch.idLo.length) batch.growSeries()
    batch.definitions.push({ seriesIndex: batch.seriesCount, key })
    batch.idLo[batch.seriesCount] = id.lo
    batch.idHi[batch.seriesCount] = id.hi
    batch.pointStart[batch.seriesCount++] = batch.pointCount
    for (const [tsMs, value] of points) {
      if (batch.pointCount >= batch.tsMs.length) batch.growPoints()
      batch.tsMs[batch.pointCount] = tsMs
      batch.value[batch.pointCount++] = value
    }
    batch.pointStart[batch.seriesCount] = batch.pointCount
  }
  const { agentId = AGENT, intervalSeconds = 30 } = from
  return encodeEntry({ companyId, serverId, agentId, receivedAtMs, seq: 1, intervalSeconds }, batch)
}
