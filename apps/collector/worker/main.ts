// The executable collector-worker, with the admin API: reads its configuration, builds the adapters, wires the worker,
// stops in order. Also `rules test FILE…`: rule scenario files through the production state machine.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import {
  allCollectorKeys,
  collectorPaths,
  describeFault,
  loadCollectorConfig,
  readConfigFile,
  type WorkerConfig,
} from '../config.ts'
import { createProgram, failureExit, guarded, pollEvery, ReadyFile, stopOnSignals } from '../executable.ts'
import { createAgentsSync } from '../hub-link/agents-sync.ts'
import { ChecksFeed } from '../hub-link/checks-feed.ts'
import { connectHub } from '../hub-link/connect-hub.ts'
import { Heartbeat, sharedHeartbeat } from '../hub-link/heartbeat.ts'
import { startOpsServer } from '../ops-server.ts'
import { AgentRegistry } from '../store/registry/registry.ts'
import { createCollectorMetrics, createLogger } from '../telemetry.ts'
import { threadFiles } from '../thread-files.ts'
import { productVersion } from '../version.ts'
import { runRulesTest } from './evaluation/rules-test.ts'
import { openWorkerStorage } from './storage/open-storage.ts'
import { startWorker } from './worker.ts'
import { feedStatus } from './worker-status.ts'

const threads = threadFiles(import.meta.url)

/**
 * The configuration; throws with every fault in it, a line each. Keys of ingest are known too: the two can share a
 * file.
 */
function loadConfig(file: string | undefined): WorkerConfig {
  const { config, faults } = loadCollectorConfig(allCollectorKeys, file ? readConfigFile(file) : undefined, {})
  // An empty one, as of a file that was cut, opens nothing: it must not take the storage of one that does.
  if (!config['admin.token'])
    faults.push({ key: 'admin.token', value: '', message: 'is needed: the hub calls with it' })
  if (faults.length > 0) throw new Error(faults.map(describeFault).join('\n'))
  return config
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadConfig(configFile)
  const log = createLogger(config['log.level'], 'worker')
  const metrics = createCollectorMetrics(productVersion, 'worker')
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
  const opened = await openWorkerStorage(config, log)
  const ready = new ReadyFile(readyFile)
  const registry = new AgentRegistry(opened.registry)
  const hub = connectHub(config, log, metrics, 'the rules on disk run, and events stay in the outbox')
  const shared = { hub, log, metrics, nowMs: Date.now }
  const agentsSync = createAgentsSync({ ...shared, registry, intervalMs: config['registry.sync_interval'] })
  // Ingest makes the agents' configs of its own copy; this one is for /status, and says at a reload call whether the
  // hub answers.
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
    storage: opened.storage,
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
    untilIngestPolled: opened.untilIngestPolled,
    checksStatus: () => ({ ...feedStatus(checks.status()), ...checks.counts() }),
    onFailure: failureExit(log),
  })
  const polling = pollEvery(
    opened.pollMs,
    async () => {
      await opened.poll()
      registry.refresh()
    },
    log,
  )
  const opsListen = config['ops.listen']
  const ops =
    opsListen === null
      ? null
      : startOpsServer(opsListen, config['ops.allowed_hosts'], metrics, [
          { name: 'samples store', isReady: () => worker.isReady() },
          { name: 'rules', isReady: () => worker.hasRules() },
          ...opened.ready,
        ])
  const heartbeat = hub
    ? new Heartbeat({
        hub,
        log,
        intervalMs: config['heartbeat.interval'],
        facts: () =>
          sharedHeartbeat(
            opened.facts,
            { outboxDepth: worker.outboxDepth() },
            { version: productVersion, agent_count: registry.countOf('active') + registry.countOf('pending') },
            log,
          ),
      })
    : null
  stopOnSignals(log, async () => {
    await polling.stop()
    await Promise.all([agentsSync.stop(), checks.stop(), heartbeat?.stop()])
    await worker.stop()
    await ops?.stop()
    opened.release()
    ready.remove()
  })
  process.on('SIGHUP', () => {
    try {
      worker.reloadAdmin(loadConfig(configFile))
      log.info('certificate and admin tokens are read again')
    } catch (error) {
      log.error({ err: error }, 'cannot reload; what was read before stays in force')
    }
  })
  ready.write({ admin_url: worker.adminUrl, ops_url: ops?.url ?? null, pid: process.pid })
  log.info({ admin_url: worker.adminUrl }, 'ready')
}

const program = createProgram(
  'collector-worker',
  'Stores samples, evaluates alert rules, serves the admin API.',
  run,
  loadConfig,
)
program
  .command('rules')
  .description('rule scenarios')
  .command('test <files...>')
  .description('runs rule scenario files through the production state machine')
  .action((files: string[]) => guarded(async () => process.exit(await runRulesTest(files, line => console.log(line)))))
await program.parseAsync()
