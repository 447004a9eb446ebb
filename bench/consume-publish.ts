// Publishes rounds of batches on a bus, in groups as ingest commits them under load; says over IPC after each commit.
// Usage: bun bench/consume-publish.ts BUS_PATH SERVERS FROM_ROUND ROUNDS
import { FileBusWriter } from '../apps/collector/bus/file-bus-writer.ts'
import { EntryEncoder } from '../core/bus/entry.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../core/series/series-key.ts'
import { hostSeries } from './batches.ts'
import { company, uuid } from './default-rules.ts'

const [path = '', servers = '', fromRound = '', rounds = ''] = process.argv.slice(2)
const SERIES = 150
/** Batches of one commit: what comes in a few milliseconds at thousands of requests a second. */
const GROUP = 20
const ROUND_MS = 30_000

const bus = new FileBusWriter({
  path,
  bytesMax: 2 ** 40,
  ageMaxMs: 86_400_000,
  groupWaitMs: 0,
  nowMs: Date.now,
  onPublished: () => process.send?.('published'),
  onError: error => {
    throw error
  },
})
const keys = hostSeries(SERIES).map(({ name, labels }) => fullSeriesKey(name, labels))
const batch = new SampleBatch()
batch.seriesCount = SERIES
batch.pointCount = SERIES
keys.forEach((key, index) => {
  const { lo, hi } = seriesId(key)
  batch.idLo[index] = lo
  batch.idHi[index] = hi
  batch.pointStart[index + 1] = index + 1
})
const encoder = new EntryEncoder()
const startMs = Date.now() - (Number(rounds) + 10) * ROUND_MS
for (let round = Number(fromRound); round < Number(fromRound) + Number(rounds); round++) {
  const atMs = startMs + round * ROUND_MS
  batch.definitions.length = 0
  if (round === 0) batch.definitions.push(...keys.map((key, seriesIndex) => ({ seriesIndex, key })))
  let pending: Promise<unknown>[] = []
  for (let server = 0; server < Number(servers); server++) {
    for (let index = 0; index < SERIES; index++) {
      batch.tsMs[index] = atMs
      batch.value[index] = 20 + ((index + round + server) % 40)
    }
    const serverId = uuid('2', server)
    const header = { companyId: company, serverId, agentId: uuid('3', server), receivedAtMs: atMs, seq: round }
    pending.push(bus.publish(serverId, encoder.encode({ ...header, intervalSeconds: 30 }, batch)))
    if (pending.length === GROUP) {
      await Promise.all(pending)
      pending = []
    }
  }
  await Promise.all(pending)
}
await bus.close()
