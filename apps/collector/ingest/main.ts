// The executable collector-ingest: reads its configuration, builds the adapters, wires ingest, and stops in order.
import '../../process/reload-on-hang-up.ts'
import '../../process/allocator-setting.ts'
import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import { startConfiguredOps } from '../../http/ops-server.ts'
import { warnOfCertificate } from '../../process/certificate-files.ts'
import { describeFault, fileFaults } from '../../process/config-file.ts'
import { checkReadyFile, createProgram, ReadyFile } from '../../process/executable.ts'
import { reloadOnHangUp } from '../../process/reload-on-hang-up.ts'
import { failureExit, stopOnSignals } from '../../process/stop-on-signals.ts'
import { isBusWritable } from '../bus/bus.ts'
import { type AllCollectorConfig, collectorPaths } from '../config.ts'
import { loadConfig, openProcess, pollRegistry, readConfig } from '../executable.ts'
import { AgentFeeds } from '../hub-link/agent-feeds.ts'
import type { ChecksFeed } from '../hub-link/checks-feed.ts'
import { connectHub } from '../hub-link/connect-hub.ts'
import { startSharedHeartbeat } from '../hub-link/heartbeat.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import { AgentRegistry } from '../store/registry/registry.ts'
import { threadFiles } from '../thread-files.ts'
import { type RunningIngest, startIngest } from './ingest.ts'
import { type IngestStorage, openIngestStorage } from './ingest-storage.ts'

const files = threadFiles(import.meta.url)

const loadIngestConfig = (file: string | undefined): AllCollectorConfig =>
  loadConfig(file, config => fileFaults(config, ['update.manifest_file', 'update.public_key_file']))

/** Whether updates are stopped. Only what is wrong with this key itself keeps it from being read. */
function isUpdateStopped(configFile: string | undefined): boolean {
  const { config, faults } = readConfig(configFile)
  const own = faults.filter(({ key }) => key === 'update.stop' || key === '(file)')
  if (own.length > 0) throw new Error(own.map(describeFault).join('\n'))
  return config['update.stop']
}

/** Fetches what other processes of the collector wrote: agents, and that checks are to be pulled. */
function pollStorage(
  storage: IngestStorage,
  registry: AgentRegistry,
  checks: ChecksFeed,
  log: Logger,
): { stop(): Promise<void> } {
  const poll = async (): Promise<void> => {
    const hasNewChecks = await storage.poll()
    registry.refresh()
    if (hasNewChecks) void checks.reload()
  }
  return pollRegistry(storage.pollMs, poll, log)
}

/** One by one: a certificate that cannot be read must not hold up the emergency stop of updates. */
async function reload(
  ingest: RunningIngest,
  hub: HubClient | null,
  config: AllCollectorConfig,
  configFile: string | undefined,
  log: Logger,
): Promise<void> {
  const reloadPart = async (part: string, read: () => Promise<void> | void): Promise<void> => {
    try {
      await read()
      log.info(`${part} is read again`)
    } catch (error) {
      log.error({ err: error }, `cannot reload the ${part}; what was read before stays in force`)
    }
  }
  await reloadPart('update manifest', () => ingest.reloadManifest(isUpdateStopped(configFile)))
  // With it every fault of the configuration is told.
  await reloadPart('token of the hub', () => hub?.useToken(loadIngestConfig(configFile)['hub.token'] ?? ''))
  await reloadPart('certificate', async () => {
    await ingest.reloadCertificate()
    warnOfCertificate(config, log)
  })
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadIngestConfig(configFile)
  checkReadyFile(readyFile, config.data_dir)
  const { log, metrics } = openProcess(config, 'ingest')
  warnOfCertificate(config, log)
  const onFailure = failureExit(log)
  const threadCount = config['ingest.threads'] || availableParallelism()
  const hasThreads = threadCount > 1
  const storage = await openIngestStorage(config, log, metrics, hasThreads ? { url: files.bus, onFailure } : null)
  const { bus } = storage
  const ready = new ReadyFile(readyFile)
  const registry = new AgentRegistry(storage.registry)
  const hub = connectHub(config, log, metrics, 'only agents that were pushed can send')
  const shared = { config, registry, hub, log, metrics, nowMs: Date.now }
  const feeds = new AgentFeeds({ ...shared, directory: collectorPaths(config.data_dir).feeds })
  await feeds.startWaitingIfEmpty()
  const threads = hasThreads ? { count: threadCount, url: files.listeners, onFailure } : null
  const ingest = await startIngest({ ...shared, bus, checks: feeds.checks, threads })
  const polling = pollStorage(storage, registry, feeds.checks, log)
  const ops = startConfiguredOps(config, metrics, [
    { name: 'registry', isReady: () => hub === null || registry.isFilled },
    { name: 'bus', isReady: () => isBusWritable(bus) },
  ])
  const own = () => ({ ingestRps: ingest.requestsPerSecond() })
  const heartbeat = startSharedHeartbeat({ ...shared, board: storage.heartbeats, own })
  stopOnSignals(log, async () => {
    await polling.stop()
    await ingest.stop()
    await Promise.all([feeds.stop(), heartbeat?.stop()])
    await storage.close()
    await ops?.stop()
    ready.remove()
  })
  const content = { agent_url: ingest.url, ops_url: ops?.url ?? null, pid: process.pid }
  ready.write(content)
  log.info(content, 'ready')
  reloadOnHangUp(() => void reload(ingest, hub, config, configFile, log))
}

await createProgram(
  'collector-ingest',
  'Takes metric batches from agents and puts them on the bus.',
  run,
  loadIngestConfig,
).parseAsync()
