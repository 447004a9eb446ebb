// The executable collector-ingest: reads its configuration, builds the adapters, wires ingest, and stops in order.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { BusWriter } from '../bus/bus.ts'
import {
  allCollectorKeys,
  collectorPaths,
  describeFault,
  type IngestConfig,
  loadCollectorConfig,
  readConfigFile,
} from '../config.ts'
import { createProgram, failureExit, pollEvery, ReadyFile, stopOnSignals } from '../executable.ts'
import { createAgentsSync } from '../hub-link/agents-sync.ts'
import { ChecksFeed } from '../hub-link/checks-feed.ts'
import { connectHub } from '../hub-link/connect-hub.ts'
import { Heartbeat, sharedHeartbeat } from '../hub-link/heartbeat.ts'
import { startOpsServer } from '../ops-server.ts'
import { AgentRegistry } from '../store/registry/registry.ts'
import { createCollectorMetrics, createLogger } from '../telemetry.ts'
import { threadFiles } from '../thread-files.ts'
import { productVersion } from '../version.ts'
import { startIngest } from './ingest.ts'
import { openIngestStorage } from './ingest-storage.ts'

const files = threadFiles(import.meta.url)

/**
 * The configuration; throws with every fault in it, a line each. Keys of the worker are known too: the two can share a
 * file.
 */
function loadConfig(file: string | undefined): IngestConfig {
  const { config, faults } = loadCollectorConfig(allCollectorKeys, file ? readConfigFile(file) : undefined, {})
  if (faults.length > 0) throw new Error(faults.map(describeFault).join('\n'))
  return config
}

async function isBusWritable(bus: BusWriter, config: IngestConfig): Promise<boolean> {
  try {
    return (await bus.stats()).bytes < config['bus.max_bytes']
  } catch {
    return false
  }
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadConfig(configFile)
  const log = createLogger(config['log.level'], 'ingest')
  const metrics = createCollectorMetrics(productVersion, 'ingest')
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
  const paths = collectorPaths(config.data_dir)
  const onFailure = failureExit(log)
  const threadCount = config['ingest.threads'] || availableParallelism()
  const hasThreads = threadCount > 1
  const storage = await openIngestStorage(config, log, hasThreads ? { url: files.bus, onFailure } : null)
  const { bus } = storage
  const ready = new ReadyFile(readyFile)
  const registry = new AgentRegistry(storage.registry)
  const hub = connectHub(config, log, metrics, 'only agents that were pushed can send')
  const shared = { hub, log, metrics, nowMs: Date.now }
  const agentsSync = createAgentsSync({ ...shared, registry, intervalMs: config['registry.sync_interval'] })
  const checks = new ChecksFeed({
    ...shared,
    registry,
    directory: paths.feeds,
    intervalMs: config['checks.sync_interval'],
  })
  const firstSync = Promise.all([agentsSync.start(), checks.start()])
  if (!registry.isFilled) await firstSync
  const threads = hasThreads ? { count: threadCount, url: files.listeners, onFailure } : null
  const ingest = await startIngest({ ...shared, config, registry, bus, checks, threads })
  const polling = pollEvery(
    storage.pollMs,
    async () => {
      const hasNewChecks = await storage.poll()
      registry.refresh()
      if (hasNewChecks) void checks.reload()
    },
    log,
  )
  const opsListen = config['ops.listen']
  const ops =
    opsListen === null
      ? null
      : startOpsServer(opsListen, config['ops.allowed_hosts'], metrics, [
          { name: 'registry', isReady: () => hub === null || registry.isFilled },
          { name: 'bus', isReady: () => isBusWritable(bus, config) },
        ])
  const heartbeat = hub
    ? new Heartbeat({
        hub,
        log,
        intervalMs: config['heartbeat.interval'],
        facts: () =>
          sharedHeartbeat(
            storage.facts,
            { ingestRps: ingest.requestsPerSecond() },
            { version: productVersion, agent_count: registry.countOf('active') + registry.countOf('pending') },
            log,
          ),
      })
    : null

  const reloadPart = async (part: string, read: () => Promise<void> | void): Promise<void> => {
    try {
      await read()
      log.info(`${part} is read again`)
    } catch (error) {
      log.error({ err: error }, `cannot reload the ${part}; what was read before stays in force`)
    }
  }
  // One by one: a certificate that cannot be read must not hold up the emergency stop of updates.
  const reload = async () => {
    await reloadPart('update manifest', () => ingest.reloadManifest(loadConfig(configFile)['update.stop']))
    await reloadPart('certificate', () => ingest.reloadCertificate())
  }
  stopOnSignals(log, async () => {
    await polling.stop()
    await ingest.stop()
    await Promise.all([agentsSync.stop(), checks.stop(), heartbeat?.stop()])
    await storage.close()
    await ops?.stop()
    ready.remove()
  })
  process.on('SIGHUP', () => void reload())
  const content = { agent_url: ingest.url, ops_url: ops?.url ?? null, pid: process.pid }
  ready.write(content)
  log.info(content, 'ready')
}

await createProgram(
  'collector-ingest',
  'Takes metric batches from agents and puts them on the bus.',
  run,
  loadConfig,
).parseAsync()
