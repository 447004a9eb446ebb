// A collector in one process for benchmarks: ingest, SQLite bus, evaluation with the default rules, embedded
// ClickHouse; no hub, unless the settings name one, which then takes the events.
// Usage: bun bench/collector-site.ts DIR AGENTS [SETTINGS [THREADS]] — SETTINGS: JSON. Writes DIR/ready.json and
// DIR/tokens.json, ends on SIGTERM after draining. On SIGUSR2 the clock of ingest goes on by an hour.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GROUP_WAIT_MS } from '../apps/collector/bus/commit-pace.ts'
import { FileBusWriter } from '../apps/collector/bus/file-bus-writer.ts'
import { allCollectorKeys, collectorPaths, loadCollectorConfig } from '../apps/collector/config.ts'
import { ChecksFeed } from '../apps/collector/hub-link/checks-feed.ts'
import { connectHub } from '../apps/collector/hub-link/connect-hub.ts'
import { startIngest } from '../apps/collector/ingest/ingest.ts'
import { isRawRecord } from '../apps/collector/store/feed-store.ts'
import { FileFeedStore } from '../apps/collector/store/file-feed-store.ts'
import { parseAgentRecord } from '../apps/collector/store/registry/agent-record-faults.ts'
import { AgentRegistry } from '../apps/collector/store/registry/registry.ts'
import { createCollectorMetrics, createLogger } from '../apps/collector/telemetry.ts'
import { shardThreadCount } from '../apps/collector/worker/evaluation/shard-pool.ts'
import { startWorker } from '../apps/collector/worker/worker.ts'
import { sha256Hex } from '../core/series/hash.ts'
import { company, defaultRules, uuid } from './default-rules.ts'

const [dir = '', agentCount = '1000', settings = '{}', threads = String(shardThreadCount())] = process.argv.slice(2)
const own: Readonly<Record<string, string>> = JSON.parse(settings)
mkdirSync(join(dir, 'feeds'), { recursive: true })

const { config } = loadCollectorConfig(allCollectorKeys, undefined, {
  data_dir: dir,
  listen: '127.0.0.1:0',
  'admin.listen': '127.0.0.1:0',
  'admin.token': 'bench',
  'log.level': 'warn',
  'ingest.limits.metrics_per_minute': '1000000',
  'ingest.limits.metrics_burst': '1000000',
  ...own,
})
const log = createLogger('warn', 'all', join(dir, 'site.log'))
const metrics = createCollectorMetrics('0.0.0', 'all')
const nowMs = Date.now

const paths = collectorPaths(dir)
await new FileFeedStore(paths.feeds, 'rules', log).save({
  since: 7,
  syncedAtMs: nowMs(),
  records: new Map(defaultRules.filter(isRawRecord).map(record => [record.id, record])),
})

const registry = new AgentRegistry(null)
const tokens: string[] = []
for (let index = 0; index < Number(agentCount); index++) {
  const token = `agt_bench${index}`
  tokens.push(token)
  const record = parseAgentRecord(
    { company_id: company, server_id: uuid('2', index), state: 'active', token_hash: sha256Hex(token), version: 1 },
    uuid('3', index),
  )
  if ('field' in record) throw new Error(`bad record: ${record.field}`)
  registry.push(record)
}

let wake = () => {}
const bus = new FileBusWriter({
  path: paths.bus,
  bytesMax: config['bus.max_bytes'],
  ageMaxMs: config['bus.max_age'],
  groupWaitMs: GROUP_WAIT_MS,
  nowMs,
  onPublished: () => wake(),
  onError: error => log.error({ err: error }, 'bus'),
})
const checks = new ChecksFeed({ directory: paths.feeds, hub: null, registry, intervalMs: 60_000, log, metrics, nowMs })
const hub = connectHub(config, log, metrics, 'events stay here')
let hours = 0
process.on('SIGUSR2', () => {
  hours++
})
const ingestNowMs = (): number => Date.now() + hours * 3_600_000
const ingest = await startIngest({ config, log, metrics, registry, hub: null, bus, checks, nowMs: ingestNowMs })
writeFileSync(join(dir, 'answers'), ingest.url)
const worker = await startWorker({
  config,
  role: 'all',
  version: '0.0.0',
  log,
  metrics,
  registry,
  hub,
  nowMs,
  shardThreadUrl: new URL('../apps/collector/worker/evaluation/shard-thread.ts', import.meta.url),
  samplesThreadUrl: new URL('../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
  threads: Number(threads),
  reloadAgentFeeds: null,
  checksStatus: null,
  onFailure: error => {
    throw error
  },
})
wake = worker.wake
wake()
writeFileSync(join(dir, 'tokens.json'), JSON.stringify(tokens))
writeFileSync(
  join(dir, 'ready.json'),
  JSON.stringify({ agent_url: ingest.url, admin_url: worker.adminUrl, pid: process.pid }),
)

process.on('SIGTERM', async () => {
  await ingest.stop()
  await bus.close()
  await worker.stop()
  process.exit(0)
})
