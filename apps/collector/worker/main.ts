// The executable collector-worker, with the admin API: reads its configuration, builds the adapters, wires the worker,
// stops in order. Also `rules test FILE…`: rule scenario files through the production state machine.
import '../../process/reload-on-hang-up.ts'
import '../../process/allocator-setting.ts'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type ReadyPart, startConfiguredOps } from '../../http/ops-server.ts'
import { warnOfCertificate } from '../../process/certificate-files.ts'
import { checkReadyFile, createProgram, guarded, ReadyFile } from '../../process/executable.ts'
import { reloadOnHangUp } from '../../process/reload-on-hang-up.ts'
import { failureExit, stopOnSignals } from '../../process/stop-on-signals.ts'
import { type AllCollectorConfig, collectorPaths } from '../config.ts'
import { loadConfig, openProcess, pollRegistry } from '../executable.ts'
import { AgentFeeds } from '../hub-link/agent-feeds.ts'
import type { ChecksFeed } from '../hub-link/checks-feed.ts'
import { connectHub } from '../hub-link/connect-hub.ts'
import { startSharedHeartbeat } from '../hub-link/heartbeat.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import { AgentRegistry } from '../store/registry/registry.ts'
import { threadFiles } from '../thread-files.ts'
import { productVersion } from '../version.ts'
import { runRulesTest } from './evaluation/rules-test.ts'
import { shardThreadCount } from './evaluation/shard-pool.ts'
import type { ReloadAgentFeeds } from './reload-calls.ts'
import { type OpenedStorage, openWorkerStorage } from './storage/open-storage.ts'
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

function reload(worker: RunningWorker, hub: HubClient | null, configFile: string | undefined, log: Logger): void {
  try {
    const fresh = loadWorkerConfig(configFile)
    worker.reloadAdmin(fresh)
    warnOfCertificate(fresh, log)
    hub?.useToken(fresh['hub.token'] ?? '')
    log.info('certificate, admin tokens and the token of the hub are read again')
  } catch (error) {
    log.error({ err: error }, 'cannot reload; what was read before stays in force')
  }
}

/** What has been opened of a worker: what is not there yet is not ready. */
type Opened = { storage: OpenedStorage | null; worker: RunningWorker | null }

const readyParts = (config: AllCollectorConfig, opened: Opened): ReadyPart[] => [
  { name: 'samples store', isReady: () => opened.worker?.isReady() ?? false },
  { name: 'rules', isReady: () => opened.worker?.hasRules() ?? false },
  ...(config['bus.kind'] === 'redis' ? [{ name: 'redis', isReady: () => opened.storage?.isReady() ?? false }] : []),
]

async function run(configFile: string | undefined, readyFile: string | undefined): Promise<void> {
  const config = loadWorkerConfig(configFile)
  checkReadyFile(readyFile, config.data_dir)
  const { log, metrics } = openProcess(config, 'worker')
  warnOfCertificate(config, log)
  const parts: Opened = { storage: null, worker: null }
  // Before the first wait: a worker that waits for Redis or the hub says so.
  const ops = startConfiguredOps(config, metrics, readyParts(config, parts))
  const opened = await openWorkerStorage(config, log)
  const ready = new ReadyFile(readyFile)
  parts.storage = opened
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
  parts.worker = worker
  const poll = async (): Promise<void> => {
    await opened.poll()
    registry.refresh()
  }
  const polling = pollRegistry(opened.pollMs, poll, log)
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
  ready.write({ admin_url: worker.adminUrl, ops_url: ops?.url ?? null, pid: process.pid })
  log.info({ admin_url: worker.adminUrl }, 'ready')
  reloadOnHangUp(() => reload(worker, hub, configFile, log))
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
