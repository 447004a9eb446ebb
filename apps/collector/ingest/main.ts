// The executable collector-ingest: reads its configuration, builds the adapters, wires ingest, and stops in order.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Command } from 'commander'
import type { Logger } from 'pino'
import type { BusWriter } from '../bus/bus.ts'
import {
  allCollectorKeys,
  collectorPaths,
  describeFault,
  type IngestConfig,
  loadCollectorConfig,
  readConfigFile,
} from '../config.ts'
import { createAgentsSync } from '../hub-link/agents-sync.ts'
import { Heartbeat } from '../hub-link/heartbeat.ts'
import { HubClient } from '../hub-link/hub-client.ts'
import { startOpsServer } from '../ops-server.ts'
import { AgentRegistry } from '../store/registry.ts'
import { type CollectorMetrics, createCollectorMetrics, createLogger } from '../telemetry.ts'
import { productVersion } from '../version.ts'
import { threadFiles } from '../worker/thread-files.ts'
import { ChecksFeed } from './checks-feed.ts'
import { startIngest } from './ingest.ts'
import { openIngestPlace } from './place.ts'

/** The exit code of a process of which a part died. */
const EXIT_FAILED = 70
const STOP_DEADLINE_MS = 14_000
const FLUSH_LIMIT_MS = 500

const files = threadFiles(import.meta.url)

/** The configuration; throws with every fault in it, a line each. Keys of the worker are known too: the two can share a file. */
function loadConfig(file: string | undefined): IngestConfig {
  const { config, faults } = loadCollectorConfig(allCollectorKeys, file ? readConfigFile(file) : undefined, {})
  if (config['bus.kind'] === 'memory')
    faults.push({ key: 'bus.kind', value: 'memory', message: 'must be sqlite or redis: a worker is another process' })
  if (faults.length > 0) throw new Error(faults.map(describeFault).join('\n'))
  return config
}

/** Runs a command; what goes wrong is said to the operator, without a stack. */
async function guarded(command: () => void | Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}

function createHub(config: IngestConfig, log: Logger, metrics: CollectorMetrics): HubClient | null {
  const url = config['hub.url']
  const token = config['hub.token']
  if (url === null || token === null) {
    log.warn('no hub is configured: only agents that were pushed can send')
    return null
  }
  return new HubClient({
    url,
    token,
    collectorId: config.collector_id,
    isPlainAllowed: config['listen.insecure'],
    log,
    nowMs: Date.now,
    onClockSkew: seconds => metrics.clockSkew.set(seconds),
  })
}

async function isBusWritable(bus: BusWriter, config: IngestConfig): Promise<boolean> {
  try {
    return (await bus.stats()).bytes < config['bus.max_bytes']
  } catch {
    return false
  }
}

/** Written beside and renamed, so that a reader never sees half of it. */
function writeReadyFile(path: string, content: Readonly<Record<string, unknown>>): void {
  writeFileSync(`${path}.tmp`, `${JSON.stringify(content)}\n`, { mode: 0o600 })
  renameSync(`${path}.tmp`, path)
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadConfig(configFile)
  const log = createLogger(config['log.level'], 'ingest')
  const metrics = createCollectorMetrics(productVersion, 'ingest')
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
  const paths = collectorPaths(config.data_dir)
  const onFailure = (error: Error) => {
    log.fatal({ err: error }, 'a part of ingest has failed; start it again, nothing acknowledged is lost')
    log.flush(() => process.exit(EXIT_FAILED))
    setTimeout(() => process.exit(EXIT_FAILED), FLUSH_LIMIT_MS)
  }
  const threadCount = config['ingest.threads'] || availableParallelism()
  const hasThreads = threadCount > 1
  const place = await openIngestPlace(config, log, hasThreads ? { url: files.bus, onFailure } : null)
  const { bus } = place
  const registry = new AgentRegistry(place.registry)
  const hub = createHub(config, log, metrics)
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
  let looking: Promise<void> | null = null
  const look = async (): Promise<void> => {
    try {
      const hasChecksNews = await place.look()
      registry.refresh()
      if (hasChecksNews) void checks.reload()
    } catch (error) {
      log.error({ err: error }, 'cannot read the registry that the processes share')
    }
    looking = null
  }
  const poll = setInterval(() => {
    looking ??= look()
  }, place.lookMs)
  const opsListen = config['ops.listen']
  const ops =
    opsListen === null
      ? null
      : startOpsServer(opsListen, metrics, [
          { name: 'registry', isReady: () => hub === null || registry.isFilled },
          { name: 'bus', isReady: () => isBusWritable(bus, config) },
        ])
  const heartbeat = hub
    ? new Heartbeat({
        hub,
        log,
        intervalMs: config['heartbeat.interval'],
        facts: () => ({
          version: productVersion,
          agent_count: registry.countOf('active') + registry.countOf('pending'),
          ingest_rps: ingest.requestsPerSecond(),
        }),
      })
    : null

  const reload = async () => {
    try {
      await ingest.reloadCertificate()
      ingest.reloadManifest(loadConfig(configFile)['update.stop'])
      log.info('certificate and update manifest are read again')
    } catch (error) {
      log.error({ err: error }, 'cannot reload; what was read before stays in force')
    }
  }
  const stop = async () => {
    log.info('stopping')
    clearInterval(poll)
    await ingest.stop()
    await Promise.all([agentsSync.stop(), checks.stop(), heartbeat?.stop()])
    await looking
    await place.close()
    await ops?.stop()
    if (readyFile) rmSync(readyFile, { force: true })
    process.exit(0)
  }
  let isStopping = false
  const onStop = () => {
    if (isStopping) process.exit(1)
    isStopping = true
    setTimeout(() => process.exit(1), STOP_DEADLINE_MS).unref()
    void stop()
  }
  process.on('SIGTERM', onStop)
  process.on('SIGINT', onStop)
  process.on('SIGHUP', () => void reload())
  const content = { agent_url: ingest.url, ops_url: ops?.url ?? null, pid: process.pid }
  if (readyFile) writeReadyFile(readyFile, content)
  log.info(content, 'ready')
}

const program = new Command('collector-ingest')
  .description('Takes metric batches from agents and puts them on the bus.')
  .version(productVersion)
  .option('--config <file>', 'configuration, YAML')
  .option('--ready-file <file>', 'written once it answers, removed at the stop')
  .action((options: { config?: string; readyFile?: string }) => guarded(() => run(options.config, options.readyFile)))
program
  .command('check-config')
  .description('reads the configuration and says every fault in it')
  .option('--config <file>', 'configuration, YAML')
  .action((options: { config?: string }) =>
    guarded(() => {
      loadConfig(options.config ?? program.opts<{ config?: string }>().config)
      console.log('the configuration is valid')
    }),
  )
await program.parseAsync()
