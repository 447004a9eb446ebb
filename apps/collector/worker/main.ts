// The executable collector-worker, with the admin API: reads its configuration, builds the adapters, wires the worker, stops in order.
// Also `rules test FILE…`: rule scenario files through the production state machine.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import type { Logger } from 'pino'
import {
  allCollectorKeys,
  collectorPaths,
  describeFault,
  loadCollectorConfig,
  readConfigFile,
  type WorkerConfig,
} from '../config.ts'
import { createAgentsSync } from '../hub-link/agents-sync.ts'
import { Heartbeat } from '../hub-link/heartbeat.ts'
import { HubClient } from '../hub-link/hub-client.ts'
import { ChecksFeed } from '../ingest/checks-feed.ts'
import { startOpsServer } from '../ops-server.ts'
import { lockFile } from '../store/process-lock.ts'
import { AgentRegistry } from '../store/registry.ts'
import { type CollectorMetrics, createCollectorMetrics, createLogger } from '../telemetry.ts'
import { productVersion } from '../version.ts'
import { openWorkerPlace } from './open-place.ts'
import { runRulesTest } from './rules-test.ts'
import { threadFiles } from './thread-files.ts'
import { startWorker } from './worker.ts'
import { feedStatus } from './worker-status.ts'

const STOP_DEADLINE_MS = 14_000

const threads = threadFiles(import.meta.url)

/** The configuration; throws with every fault in it, a line each. Keys of ingest are known too: the two can share a file. */
function loadConfig(file: string | undefined): WorkerConfig {
  const { config, faults } = loadCollectorConfig(allCollectorKeys, file ? readConfigFile(file) : undefined, {})
  if (config['bus.kind'] === 'memory')
    faults.push({ key: 'bus.kind', value: 'memory', message: 'must be sqlite or redis: ingest is another process' })
  if (config['admin.token'] === null)
    faults.push({ key: 'admin.token', value: '', message: 'is needed: the hub calls with it' })
  if (faults.length > 0) throw new Error(faults.map(describeFault).join('\n'))
  return config
}

function createHub(config: WorkerConfig, log: Logger, metrics: CollectorMetrics): HubClient | null {
  const url = config['hub.url']
  const token = config['hub.token']
  if (url === null || token === null) {
    log.warn('no hub is configured: the rules on disk run, and events stay in the outbox')
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

/** Written beside and renamed, so that a reader never sees half of it. */
function writeReadyFile(path: string, content: Readonly<Record<string, unknown>>): void {
  writeFileSync(`${path}.tmp`, `${JSON.stringify(content)}\n`, { mode: 0o600 })
  renameSync(`${path}.tmp`, path)
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadConfig(configFile)
  const log = createLogger(config['log.level'], 'worker')
  const metrics = createCollectorMetrics(productVersion, 'worker')
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
  // Over Redis the shards are leased; on disk two workers would both evaluate all of them.
  const isOnDisk = config['bus.kind'] === 'sqlite'
  const lock = isOnDisk ? lockFile(join(config.data_dir, 'worker.lock'), 'collector-worker') : null
  const opened = await openWorkerPlace(config, log)
  const registry = new AgentRegistry(opened.registry)
  const hub = createHub(config, log, metrics)
  const shared = { hub, log, metrics, nowMs: Date.now }
  const agentsSync = createAgentsSync({ ...shared, registry, intervalMs: config['registry.sync_interval'] })
  // Ingest makes the agents' configs of its own copy; this one is for /status, and says at a reload call whether the hub answers.
  const checks = new ChecksFeed({
    ...shared,
    registry,
    directory: join(collectorPaths(config.data_dir).feeds, 'worker'),
    intervalMs: config['checks.sync_interval'],
  })
  const firstSync = Promise.all([agentsSync.start(), checks.start()])
  if (!registry.isFilled) await firstSync
  const worker = await startWorker({
    ...shared,
    config,
    place: opened.place,
    role: 'worker',
    version: productVersion,
    registry,
    shardThreadUrl: threads.shards,
    samplesThreadUrl: threads.samples,
    threads: Math.max(1, availableParallelism()),
    reloadAgentFeeds: {
      checks: async () => {
        const [outcome] = await Promise.all([checks.reload(), opened.reloadAgentFeeds.checks()])
        return outcome
      },
    },
    checksStatus: () => ({ ...feedStatus(checks.status()), ...checks.counts() }),
    onFailure: error => {
      log.fatal({ err: error }, 'evaluation failed; start again, nothing acknowledged is lost')
      process.exit(70)
    },
  })
  let looking: Promise<void> | null = null
  const look = async (): Promise<void> => {
    try {
      await opened.look()
      registry.refresh()
    } catch (error) {
      log.error({ err: error }, 'cannot read the registry that the processes share')
    }
    looking = null
  }
  const poll = setInterval(() => {
    looking ??= look()
  }, opened.lookMs)
  const opsListen = config['ops.listen']
  const ops =
    opsListen === null
      ? null
      : startOpsServer(opsListen, metrics, [
          { name: 'samples store', isReady: () => worker.isReady() },
          { name: 'rules', isReady: () => worker.hasRules() },
          ...opened.ready,
        ])
  const heartbeat = hub
    ? new Heartbeat({
        hub,
        log,
        intervalMs: config['heartbeat.interval'],
        facts: () => ({
          version: productVersion,
          agent_count: registry.countOf('active') + registry.countOf('pending'),
          outbox_depth: worker.outboxDepth(),
        }),
      })
    : null
  stopOnSignals(log, async () => {
    clearInterval(poll)
    await looking
    await Promise.all([agentsSync.stop(), checks.stop(), heartbeat?.stop()])
    await worker.stop()
    await ops?.stop()
    lock?.release()
    if (readyFile) rmSync(readyFile, { force: true })
  })
  if (readyFile) writeReadyFile(readyFile, { admin_url: worker.adminUrl, ops_url: ops?.url ?? null, pid: process.pid })
  log.info({ admin_url: worker.adminUrl }, 'ready')
}

/** Stops on SIGTERM and Ctrl-C; a second signal, or too long a stop, ends at once and loses nothing that was acknowledged. */
function stopOnSignals(log: Logger, stop: () => Promise<void>): void {
  let isStopping = false
  const onSignal = (): void => {
    if (isStopping) process.exit(130)
    isStopping = true
    log.info('stopping')
    setTimeout(() => process.exit(1), STOP_DEADLINE_MS).unref()
    void stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
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

const program = new Command('collector-worker')
  .description('Stores samples, evaluates alert rules, serves the admin API.')
  .version(productVersion)
  .option('--config <file>', 'YAML configuration')
  .option('--ready-file <file>', 'written once it answers: the addresses it listens on')
  .action((options: { config?: string; readyFile?: string }) => guarded(() => run(options.config, options.readyFile)))
program
  .command('check-config')
  .description('reads the configuration and says every fault')
  .option('--config <file>', 'YAML configuration')
  .action((options: { config?: string }) =>
    guarded(() => {
      loadConfig(options.config ?? program.opts<{ config?: string }>().config)
      console.log('the configuration is valid')
    }),
  )
program
  .command('rules')
  .description('rule scenarios')
  .command('test <files...>')
  .description('runs rule scenario files through the production state machine')
  .action((files: string[]) => guarded(async () => process.exit(await runRulesTest(files, line => console.log(line)))))
await program.parseAsync()
