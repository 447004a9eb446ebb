// The executable collector-worker, with the admin API: reads its configuration, builds the adapters, wires the worker,
// stops in order. Also `rules test FILE…`: rule scenario files through the production state machine.
import '../../process/allocator-setting.ts'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { startConfiguredOps } from '../../http/ops-server.ts'
import { createProgram, guarded, ReadyFile } from '../../process/executable.ts'
import { failureExit, stopOnSignals } from '../../process/stop-on-signals.ts'
import { type AllCollectorConfig, collectorPaths } from '../config.ts'
import { loadConfig, openProcess, pollEvery } from '../executable.ts'
import { AgentFeeds } from '../hub-link/agent-feeds.ts'
import type { ChecksFeed } from '../hub-link/checks-feed.ts'
import { connectHub } from '../hub-link/connect-hub.ts'
import { startSharedHeartbeat } from '../hub-link/heartbeat.ts'
import { AgentRegistry } from '../store/registry/registry.ts'
import { threadFiles } from '../thread-files.ts'
import { productVersion } from '../version.ts'
import { runRulesTest } from './evaluation/rules-test.ts'
import { shardThreadCount } from './evaluation/shard-pool.ts'
import type { ReloadAgentFeeds } from './reload-calls.ts'
import { openWorkerStorage } from './storage/open-storage.ts'
import { type RunningWorker, startWorker } from './worker.ts'
import { feedStatus } from './worker-status.ts'

const threads = threadFiles(import.meta.url)

/**
 * A configuration without a token, as of a file that was cut, opens nothing: it must not take the place of a whole one.
 */
const loadWorkerConfig = (file: string | undefined): AllCollectorConfig =>
  loadConfig(file, config =>
    config['admin.token'] ? [] : [{ key: 'admin.token', value: '', message: 'is needed: the hub calls with it' }],
  )

/** A reload call pulls the checks here, which says whether the hub answers, and is passed on to ingest. */
const reloadChecks = (checks: ChecksFeed, ofIngest: ReloadAgentFeeds): ReloadAgentFeeds => ({
  checks: async () => {
    const [outcome] = await Promise.all([checks.reload(), ofIngest.checks()])
    return outcome
  },
})

function reload(worker: RunningWorker, configFile: string | undefined, log: Logger): void {
  try {
    worker.reloadAdmin(loadWorkerConfig(configFile))
    log.info('certificate and admin tokens are read again')
  } catch (error) {
    log.error({ err: error }, 'cannot reload; what was read before stays in force')
  }
}

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadWorkerConfig(configFile)
  const { log, metrics } = openProcess(config, 'worker')
  const opened = await openWorkerStorage(config, log)
  const ready = new ReadyFile(readyFile)
  const registry = new AgentRegistry(opened.registry)
  const hub = connectHub(config, log, metrics, 'the rules on disk run, and events stay in the outbox')
  const shared = { config, registry, hub, log, metrics, nowMs: Date.now }
  // Ingest makes the agents' configs of its own copy of the checks; this one is for /status and reload calls.
  const feeds = new AgentFeeds({ ...shared, directory: join(collectorPaths(config.data_dir).feeds, 'worker') })
  await feeds.startWaitingIfEmpty()
  const { checks } = feeds
  const worker = await startWorker({
    ...shared,
    storage: opened.storage,
    role: 'worker',
    version: productVersion,
    shardThreadUrl: threads.shards,
    samplesThreadUrl: threads.samples,
    threads: shardThreadCount(),
    reloadAgentFeeds: reloadChecks(checks, opened.reloadAgentFeeds),
    untilIngestPolled: opened.untilIngestPolled,
    checksStatus: () => ({ ...feedStatus(checks.status()), ...checks.counts() }),
    onFailure: failureExit(log),
  })
  const poll = async (): Promise<void> => {
    await opened.poll()
    registry.refresh()
  }
  const polling = pollEvery(opened.pollMs, poll, log)
  const ops = startConfiguredOps(config, metrics, [
    { name: 'samples store', isReady: () => worker.isReady() },
    { name: 'rules', isReady: () => worker.hasRules() },
    ...opened.ready,
  ])
  const own = () => ({ outboxDepth: worker.outboxDepth() })
  const heartbeat = startSharedHeartbeat({ ...shared, board: opened.heartbeats, own })
  stopOnSignals(log, async () => {
    await polling.stop()
    await Promise.all([feeds.stop(), heartbeat?.stop()])
    await worker.stop()
    await ops?.stop()
    opened.release()
    ready.remove()
  })
  process.on('SIGHUP', () => reload(worker, configFile, log))
  ready.write({ admin_url: worker.adminUrl, ops_url: ops?.url ?? null, pid: process.pid })
  log.info({ admin_url: worker.adminUrl }, 'ready')
}

const program = createProgram(
  'collector-worker',
  'Stores samples, evaluates alert rules, serves the admin API.',
  run,
  loadWorkerConfig,
)
program
  .command('rules')
  .description('rule scenarios')
  .command('test <files...>')
  .description('runs rule scenario files through the production state machine')
  .action((files: string[]) => guarded(async () => process.exit(await runRulesTest(files, line => console.log(line)))))
await program.parseAsync()
