// A whole site in one process: database, hub, bus, worker, ingest, and an agent for this localHost, started in that
// order and stopped in the other. Every part is the one that runs alone elsewhere; only the wiring is here.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { availableParallelism, hostname, networkInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { type RunningAgent, startAgent } from '../agent/agent.ts'
import type { BusWriter } from '../collector/bus/bus.ts'
import { FileBusWriter } from '../collector/bus/file-bus-writer.ts'
import { ThreadBus } from '../collector/bus/thread-bus.ts'
import { type AllCollectorConfig, collectorPaths } from '../collector/config.ts'
import { createAgentsSync } from '../collector/hub-link/agents-sync.ts'
import { ChecksFeed } from '../collector/hub-link/checks-feed.ts'
import { Heartbeat } from '../collector/hub-link/heartbeat.ts'
import { HubClient } from '../collector/hub-link/hub-client.ts'
import { startIngest } from '../collector/ingest/ingest.ts'
import { startOpsServer } from '../collector/ops-server.ts'
import { RegistryStore } from '../collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../collector/store/registry/registry.ts'
import { createCollectorMetrics, createLogger } from '../collector/telemetry.ts'
import type { ThreadFiles } from '../collector/thread-files.ts'
import { productVersion as version } from '../collector/version.ts'
import { startWorker } from '../collector/worker/worker.ts'
import { feedStatus } from '../collector/worker/worker-status.ts'
import { ensureFirstSite } from '../hub/bootstrap.ts'
import { startHub } from '../hub/hub.ts'
import { makeHubRole } from '../hub/platform/db/hub-role.ts'
import { isMigrated } from '../hub/platform/db/migrate.ts'
import type { SiteConfig, SiteOptions } from './config.ts'
import type { DataDir } from './data-dir.ts'
import { freePort } from './ports.ts'
import { startPostgres } from './postgres.ts'

export type SiteThreads = Readonly<Record<keyof ThreadFiles, URL | string>>

/** What the ready file and the terminal tell. */
export type SiteInfo = {
  readonly hub_url: string
  readonly agent_url: string
  readonly admin_url: string
  readonly ops_url: string
  readonly database_url: string
  readonly company_id: string
  readonly user_email: string
  /** First start only. */
  readonly user_password: string | null
  readonly api_token: string
  readonly admin_token: string
  readonly collector_token: string
  readonly matcher_token: string
  readonly license: string
  readonly data_dir: string
  readonly pid: number
}

export type RunningSite = { readonly facts: SiteInfo; stop(): Promise<void> }

/** Shown on the terminal as each part starts. */
export type Progress = (part: string) => void

/** What is undone at the stop, last started first. */
class Undo {
  private readonly steps: (() => Promise<unknown>)[] = []

  add(step: () => Promise<unknown>): void {
    this.steps.push(step)
  }

  async run(onError: (error: unknown) => void): Promise<void> {
    for (const step of this.steps.splice(0).reverse()) await step().catch(onError)
  }
}

const newSecret = (): string => randomBytes(32).toString('hex')

/** Addresses of this localHost, by which the hub may know it. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(addresses =>
    (addresses ?? []).filter(one => !one.internal).map(one => one.address),
  )

/** Port 0 of the admin API is chosen before it is served: the hub is told of it first. */
function withPort(address: string): string {
  return address.endsWith(':0') ? `${address.slice(0, -1)}${freePort()}` : address
}

export type SiteStart = {
  readonly options: SiteOptions
  readonly config: SiteConfig
  readonly dataDir: DataDir
  readonly threads: SiteThreads
  readonly withLocalAgent: boolean
  readonly progress: Progress
  readonly onFailure: (error: Error) => void
}

/** Starts everything. Rejects, with all that was started stopped again, when a part cannot start. */
export async function startSite(start: SiteStart): Promise<RunningSite> {
  const undo = new Undo()
  try {
    return await startParts(start, undo)
  } catch (error) {
    await undo.run(() => {})
    throw error
  }
}

async function startParts(start: SiteStart, undo: Undo): Promise<RunningSite> {
  const { options, config, dataDir, progress } = start
  mkdirSync(dataDir.of('logs'), { recursive: true, mode: 0o700 })
  const log = createLogger(config.logLevel, 'all', dataDir.of('logs', 'site.log'))
  const nowMs = Date.now
  for (const folder of ['collector', 'agent']) mkdirSync(dataDir.of(folder), { recursive: true, mode: 0o700 })
  const secrets: Record<string, string> = {
    postgres_password: newSecret(),
    database_password: newSecret(),
    admin_token: newSecret(),
    ...dataDir.secrets,
  }
  dataDir.saveSecrets(secrets)

  progress('PostgreSQL')
  const postgres = await startPostgres(
    dataDir.of('postgres'),
    secrets.postgres_password!,
    dataDir.of('logs', 'postgres.log'),
  )
  undo.add(() => postgres.stop())
  const databaseUrl = await makeHubRole(postgres.url, secrets.database_password!)

  progress('hub')
  const [adminListen, agentListen] = [withPort(options.adminListen), withPort(options.agentListen)]
  const hub = await startHub({
    config: config.hub({
      'database.url': databaseUrl,
      'collector.admin_token': secrets.admin_token!,
      'collector.admin_url': `http://${adminListen}`,
    }),
    log,
  })
  undo.add(() => hub.stop())
  const first = await ensureFirstSite(hub.hub, {
    kept: {
      apiToken: secrets.api_token,
      collectorToken: secrets.collector_token,
      matcherToken: secrets.matcher_token,
      license: secrets.license,
    },
    collectorAdminUrl: `http://${adminListen}`,
    collectorAdminToken: secrets.admin_token!,
    collectorBaseUrl: `http://${agentListen}`,
    localHost: start.withLocalAgent ? { hostname: hostname(), ipAddresses: ownAddresses() } : null,
  })
  Object.assign(secrets, {
    api_token: first.apiToken,
    collector_token: first.collectorToken,
    matcher_token: first.matcherToken,
    license: first.license,
  })
  dataDir.saveSecrets(secrets)

  progress('collector: registry, bus')
  const metrics = createCollectorMetrics(version, 'all')
  const collector = config.collector({
    data_dir: dataDir.of('collector'),
    listen: agentListen,
    'hub.url': hub.url,
    'hub.token': secrets.collector_token!,
    collector_id: first.collectorId,
    'admin.token': secrets.admin_token!,
    'admin.listen': adminListen,
  })
  const paths = collectorPaths(collector.data_dir)
  const registry = new AgentRegistry(new RegistryStore(paths.registry))
  const hubClient = new HubClient({
    url: hub.url,
    token: secrets.collector_token!,
    collectorId: first.collectorId,
    isPlainAllowed: true,
    log,
    nowMs,
    onClockSkew: seconds => metrics.clockSkew.set(seconds),
  })
  let wake = () => {}
  // One thread for everything that comes in, unless the operator asks for more: it leaves the cores to evaluation and
  // store.
  const listenerCount = collector['ingest.threads']
  const bus = await openBus({ start, collector, hasThread: listenerCount > 1, onPublished: () => wake(), log })
  const agents = createAgentsSync({
    registry,
    hub: hubClient,
    intervalMs: collector['registry.sync_interval'],
    log,
    metrics,
    nowMs,
  })
  const checks = new ChecksFeed({
    directory: paths.feeds,
    hub: hubClient,
    registry,
    intervalMs: collector['checks.sync_interval'],
    log,
    metrics,
    nowMs,
  })
  undo.add(() => Promise.all([agents.stop(), checks.stop()]))
  await Promise.all([agents.start(), checks.start()])

  progress('collector: evaluation, samples store (ClickHouse), admin API')
  const worker = await startWorker({
    config: collector,
    role: 'all',
    version,
    log,
    metrics,
    registry,
    hub: hubClient,
    nowMs,
    shardThreadUrl: start.threads.shards,
    samplesThreadUrl: start.threads.samples,
    threads: Math.max(1, availableParallelism()),
    reloadAgentFeeds: { checks: () => checks.reload() },
    checksStatus: () => ({ ...feedStatus(checks.status()), ...checks.counts() }),
    onFailure: start.onFailure,
  })
  wake = worker.wake
  undo.add(() => worker.stop())
  undo.add(() => bus.close())

  progress('collector: agent API')
  const threads =
    listenerCount > 1 ? { count: listenerCount, url: start.threads.listeners, onFailure: start.onFailure } : null
  const ingest = await startIngest({
    config: collector,
    log,
    metrics,
    registry,
    hub: hubClient,
    bus,
    checks,
    nowMs,
    threads,
  })
  undo.add(() => ingest.stop())
  const heartbeat = new Heartbeat({
    hub: hubClient,
    facts: () => ({
      version,
      agent_count: ingest.agentsSeen(300_000),
      ingest_rps: ingest.requestsPerSecond(),
      outbox_depth: worker.outboxDepth(),
    }),
    intervalMs: collector['heartbeat.interval'],
    log,
  })
  undo.add(() => heartbeat.stop())
  const ops = startOpsServer(
    options.opsListen,
    collector['ops.allowed_hosts'],
    metrics,
    [
      { name: 'hub', isReady: () => isMigrated(hub.hub.database.client).catch(() => false) },
      { name: 'samples store', isReady: () => worker.isReady() },
      { name: 'registry', isReady: () => registry.isFilled },
    ],
    [() => hub.hub.metrics.registry.metrics()],
  )
  undo.add(() => ops.stop())

  const agent = start.withLocalAgent ? await startLocalAgent(start, ingest.url, secrets.license!, log) : null
  if (agent) undo.add(() => agent.stop())

  const facts: SiteInfo = {
    hub_url: hub.url,
    agent_url: ingest.url,
    admin_url: worker.adminUrl,
    ops_url: ops.url,
    database_url: databaseUrl,
    company_id: first.companyId,
    user_email: first.userEmail,
    user_password: first.userPassword,
    api_token: secrets.api_token!,
    admin_token: secrets.admin_token!,
    collector_token: secrets.collector_token!,
    matcher_token: secrets.matcher_token!,
    license: secrets.license!,
    data_dir: dataDir.path,
    pid: process.pid,
  }
  return { facts, stop: () => undo.run(error => log.error({ err: error }, 'a part did not stop in order')) }
}

type BusParts = {
  readonly start: SiteStart
  readonly collector: AllCollectorConfig
  readonly hasThread: boolean
  readonly onPublished: () => void
  readonly log: Logger
}

/** The bus, written by a thread of its own where listeners have threads too. */
async function openBus({ start, collector, hasThread, onPublished, log }: BusParts): Promise<BusWriter> {
  const options = {
    path: collectorPaths(collector.data_dir).bus,
    bytesMax: collector['bus.max_bytes'],
    ageMaxMs: collector['bus.max_age'],
    groupWaitMs: 2,
  }
  const onError = (error: unknown) => log.error({ err: error }, 'cannot write to the bus; agents keep their batches')
  if (!hasThread) return new FileBusWriter({ ...options, nowMs: Date.now, onPublished, onError })
  const { onFailure, threads } = start
  return ThreadBus.open({ threadUrl: threads.bus, options, onPublished, onError, onFailure })
}

async function startLocalAgent(
  { config, dataDir, progress }: SiteStart,
  url: string,
  license: string,
  log: ReturnType<typeof createLogger>,
): Promise<RunningAgent> {
  progress('agent for this localHost')
  const options = config.agent({ collector_url: url, license, state_dir: dataDir.of('agent') })
  return startAgent({ options, log: log.child({ part: 'agent' }), firstSendImmediately: true })
}
