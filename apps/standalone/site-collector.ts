// The collector of a site in one process: registry, bus, worker, ingest, heartbeat and ops listener, wired as its
// executables wire theirs, with the hub's metrics beside its own.
import type { Logger } from 'pino'
import { type BusWriter, isBusWritable } from '../collector/bus/bus.ts'
import { GROUP_WAIT_MS } from '../collector/bus/commit-pace.ts'
import { FileBusWriter } from '../collector/bus/file-bus-writer.ts'
import { ThreadBus } from '../collector/bus/thread-bus.ts'
import { type AllCollectorConfig, collectorPaths } from '../collector/config.ts'
import { AgentFeeds } from '../collector/hub-link/agent-feeds.ts'
import { Heartbeat } from '../collector/hub-link/heartbeat.ts'
import { HubClient } from '../collector/hub-link/hub-client.ts'
import { type RunningIngest, startIngest } from '../collector/ingest/ingest.ts'
import { RegistryStore } from '../collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../collector/store/registry/registry.ts'
import { type CollectorMetrics, createCollectorMetrics } from '../collector/telemetry.ts'
import type { ThreadFiles } from '../collector/thread-files.ts'
import { productVersion as version } from '../collector/version.ts'
import { shardThreadCount } from '../collector/worker/evaluation/shard-pool.ts'
import { type RunningWorker, startWorker } from '../collector/worker/worker.ts'
import { feedStatus } from '../collector/worker/worker-status.ts'
import { type OpsServer, startOpsServer } from '../http/ops-server.ts'
import type { RunningHub } from '../hub/hub.ts'
import { isMigrated } from '../hub/platform/db/migrate.ts'

/** The heartbeat counts the agents that were seen within this time. */
const AGENTS_SEEN_MS = 300_000

export type SiteThreads = Readonly<Record<keyof ThreadFiles, URL | string>>

type SiteCollectorParts = {
  readonly config: AllCollectorConfig
  /** Where /healthz, /readyz and /metrics of the site are served. */
  readonly opsListen: string
  /** Metrics of what else the site runs, asked at every scrape: parts that start later are added. */
  readonly otherMetrics: readonly (() => Promise<string>)[]
  readonly hub: RunningHub
  readonly collectorId: string
  /** The token by which the hub knows the collector. */
  readonly token: string
  readonly threads: SiteThreads
  readonly log: Logger
  readonly progress: (part: string) => void
  readonly onFailure: (error: Error) => void
}

export type RunningCollector = {
  readonly agentUrl: string
  readonly adminUrl: string
  readonly opsUrl: string
  /** What is read again, by its name; each by itself, since nothing may hold up the emergency stop of updates. */
  readonly reloads: Readonly<Record<string, (fresh: AllCollectorConfig) => Promise<void> | void>>
}

/** Starts the collector; what was started is left in `started` to be stopped, also when a later part cannot start. */
export async function startSiteCollector(
  parts: SiteCollectorParts,
  started: AsyncDisposableStack,
): Promise<RunningCollector> {
  const { config, log, progress } = parts
  progress('collector: registry, bus')
  const metrics = createCollectorMetrics(version, 'all')
  const paths = collectorPaths(config.data_dir)
  const registry = new AgentRegistry(new RegistryStore(paths.registry))
  const hub = hubClientOf(parts, metrics)
  let wake = () => {}
  const bus = await openBus(parts, () => wake())
  const shared = { config, registry, hub, log, metrics, nowMs: Date.now }
  const feeds = new AgentFeeds({ ...shared, directory: paths.feeds })
  started.defer(() => feeds.stop())
  await feeds.start()

  let worker: RunningWorker | null = null
  started.defer(async () => worker?.stop())
  // The bus is closed before the worker, so that the worker drains the last batches too.
  started.defer(() => bus.close())

  // Agents are answered while snapshots are loaded: what they send is safe on the bus.
  progress('collector: agent API')
  const ingest = await startIngest({ ...shared, bus, checks: feeds.checks, threads: listenerThreads(parts) })
  started.defer(() => ingest.stop())

  progress('collector: evaluation, samples store (ClickHouse), admin API')
  worker = await startWorker({
    ...shared,
    role: 'all',
    version,
    shardThreadUrl: parts.threads.shards,
    samplesThreadUrl: parts.threads.samples,
    threads: shardThreadCount(),
    reloadAgentFeeds: { checks: () => feeds.checks.reload() },
    checksStatus: () => ({ ...feedStatus(feeds.checks.status()), ...feeds.checks.counts() }),
    onFailure: parts.onFailure,
  })
  wake = worker.wake
  // For what was published since its threads looked at the bus.
  wake()
  const heartbeat = startHeartbeat(parts, hub, ingest, worker)
  started.defer(() => heartbeat.stop())
  const ops = startOps(parts, metrics, worker, registry, bus)
  started.defer(() => ops.stop())
  const { reloadAdmin } = worker
  return {
    agentUrl: ingest.url,
    adminUrl: worker.adminUrl,
    opsUrl: ops.url,
    reloads: {
      'update manifest': fresh => ingest.reloadManifest(fresh['update.stop']),
      'agent API': () => ingest.reloadCertificate(),
      'admin API': reloadAdmin,
    },
  }
}

const hubClientOf = ({ hub, token, collectorId, log }: SiteCollectorParts, metrics: CollectorMetrics): HubClient =>
  new HubClient({
    url: hub.url,
    token,
    collectorId,
    isPlainAllowed: true,
    log,
    nowMs: Date.now,
    onClockSkew: seconds => metrics.clockSkew.set(seconds),
  })

/**
 * One thread handles all connections unless the operator configures more: the other cores are for evaluation and the
 * store.
 */
const hasListenerThreads = ({ config }: SiteCollectorParts): boolean => config['ingest.threads'] > 1

function listenerThreads(parts: SiteCollectorParts) {
  const { config, threads, onFailure } = parts
  return hasListenerThreads(parts) ? { count: config['ingest.threads'], url: threads.listeners, onFailure } : null
}

/** The bus, with a separate writer thread where listeners have threads too. */
async function openBus(parts: SiteCollectorParts, onPublished: () => void): Promise<BusWriter> {
  const { config, threads, log, onFailure } = parts
  const options = {
    path: collectorPaths(config.data_dir).bus,
    bytesMax: config['bus.max_bytes'],
    ageMaxMs: config['bus.max_age'],
    groupWaitMs: GROUP_WAIT_MS,
  }
  const onError = (error: unknown) => log.error({ err: error }, 'cannot write to the bus; agents keep their batches')
  if (!hasListenerThreads(parts)) return new FileBusWriter({ ...options, nowMs: Date.now, onPublished, onError })
  return ThreadBus.open({ threadUrl: threads.bus, options, onPublished, onError, onFailure })
}

const startHeartbeat = (
  { config, log }: SiteCollectorParts,
  hub: HubClient,
  ingest: RunningIngest,
  worker: RunningWorker,
): Heartbeat =>
  new Heartbeat({
    hub,
    body: () => ({
      version,
      agent_count: ingest.agentsSeen(AGENTS_SEEN_MS),
      ingest_rps: ingest.requestsPerSecond(),
      outbox_depth: worker.outboxDepth(),
    }),
    intervalMs: config['heartbeat.interval'],
    log,
  })

const startOps = (
  { config, opsListen, otherMetrics, hub: { hub } }: SiteCollectorParts,
  metrics: CollectorMetrics,
  worker: RunningWorker,
  registry: AgentRegistry,
  bus: BusWriter,
): OpsServer =>
  startOpsServer(
    opsListen,
    config['ops.allowed_hosts'],
    metrics,
    [
      { name: 'hub', isReady: () => isMigrated(hub.database.client).catch(() => false) },
      { name: 'samples store', isReady: () => worker.isReady() },
      { name: 'registry', isReady: () => registry.isFilled },
      { name: 'bus', isReady: () => isBusWritable(bus) },
    ],
    otherMetrics,
  )
