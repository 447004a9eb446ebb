// The worker of a collector, wired: feeds of the hub, shard threads, samples thread, outbox, admin API. Used by
// collector-worker and by the all-in-one; whoever calls it builds the adapters and names the thread files.

import { join } from 'node:path'
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { planDays } from '../../../core/retention/readable-and-deletable.ts'
import { startAdminListener } from '../../admin-api/listener.ts'
import type { ChecksStatus } from '../admin/collector-status.ts'
import { createCollectorAdmin } from '../admin/server.ts'
import { busConsumers } from '../bus/bus.ts'
import { PacedNotice } from '../bus/paced-notice.ts'
import type { WorkerConfig } from '../config.ts'
import { CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { createAdminDeps, retentionOf } from './admin-deps.ts'
import { AlertingFeeds } from './alerting-feeds.ts'
import { Groups } from './evaluation/group-incidents.ts'
import { OutboxSender } from './evaluation/outbox-sender.ts'
import type { FromShardThread } from './evaluation/shard-messages.ts'
import { ShardPool } from './evaluation/shard-pool.ts'
import type { ReloadAgentFeeds } from './reload-calls.ts'
import { RetentionSweeper } from './samples/retention-sweep.ts'
import { type SamplesClient, startSamples } from './samples/samples-client.ts'
import { allAttributes, changedAttributes } from './server-attributes.ts'
import { snapshotIntervalMs } from './storage/bus-room.ts'
import { alertingDirOf, FileWorkerStorage } from './storage/file-storage.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'
import { WorkerStatus } from './worker-status.ts'

const STOP_WAIT_MS = 3000
/** How often, at most, the samples thread is told of new entries. */
const SAMPLES_TOLD_MS = 100

type WorkerDeps = {
  readonly config: WorkerConfig
  /** Where state is kept, and shared with other workers; without one on the disk, in data_dir. */
  readonly storage?: WorkerStorage
  readonly role: 'worker' | 'all'
  readonly version: string
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly nowMs: () => number
  readonly shardThreadUrl: URL | string
  readonly samplesThreadUrl: URL | string
  readonly threads: number
  /** Reload of what ingest reads from the hub; null where ingest is another process. */
  readonly reloadAgentFeeds: ReloadAgentFeeds | null
  /** Resolves once ingest, in a process of its own, has looked into the registry. */
  readonly untilIngestPolled?: () => Promise<void>
  /** The checks in force, where ingest is in this process. */
  readonly checksStatus: (() => ChecksStatus) | null
  /** A pause of the host (`ShardLoopConfig`); 30 s unless the clock of the threads is moved by hand. */
  readonly pauseMs?: number
  /** Called when the process can no longer do its work and must end. */
  readonly onFailure: (error: Error) => void
}

/** A loop looks every quarter of a second or more often; agents are lost after 90 s of silence. */
const PAUSE_MS = 30_000

export type RunningWorker = {
  readonly adminUrl: string
  /**
   * Takes the admin tokens of a configuration that was read again, and reads the certificate again. Throws when that
   * cannot be used.
   */
  readonly reloadAdmin: (fresh: WorkerConfig) => void
  /** The bus has new entries. The samples thread is told less often: nothing waits for it. */
  readonly wake: () => void
  /** The samples store answers. */
  readonly isReady: () => Promise<boolean>
  /**
   * True when rules were read from the hub, now or before a restart. Without rules a worker would look healthy and open
   * no alert (G-43).
   */
  readonly hasRules: () => boolean
  readonly outboxDepth: () => number
  /** Drains the bus to evaluation and store, saves, ends. Ingest must have stopped. */
  readonly stop: () => Promise<void>
}

function openOutbox({ hub, log, metrics, config, nowMs }: WorkerDeps, storage: WorkerStorage): OutboxSender | null {
  if (!hub) return null
  return new OutboxSender({
    store: storage.outbox,
    hub,
    log,
    deadLetterPath: join(alertingDirOf(config), 'dead-letters.jsonl'),
    nowMs,
    onSent: (result, count) => metrics.outboxSent.inc({ result }, count),
    onDropped: count => metrics.outboxSent.inc({ result: 'dropped' }, count),
    onSetAside: count => metrics.outboxSetAside.set(count),
  })
}

/** What is done with what the shard threads report. */
function shardMessages(
  { log, metrics }: WorkerDeps,
  storage: WorkerStorage,
  groups: Groups,
  outbox: OutboxSender | null,
): (message: FromShardThread) => void {
  return message => {
    if (message.kind === 'events') {
      for (const [type, count] of Object.entries(message.types)) metrics.events.inc({ type }, count)
      for (const ms of message.sampleToEventMs) metrics.sampleToEventSeconds.add(ms / 1000)
      outbox?.wake()
    } else if (message.kind === 'presence') {
      groups.presence(message.serverId, message.state, message.atMs)
    } else if (message.kind === 'ready') {
      for (const fault of message.faults) {
        metrics.snapshotErrors.inc()
        log.error({ fault }, 'a snapshot cannot be used; the journal gives the open alerts')
      }
    } else if (message.kind === 'wentBack') {
      metrics.busWentBack.inc()
      const { shard, from, to } = message
      log.error({ shard, from, to }, 'the bus ends before what was evaluated of it: Redis has lost what came last')
    } else if (message.kind === 'committedAgain') {
      metrics.recommitted.inc(message.events)
      log.warn({ shard: message.shard, events: message.events }, 'Redis has lost events; they are committed again')
    } else if (message.kind === 'lost') storage.lost(message.shard, message.token, message.cause)
    else if (message.kind === 'log') log[message.level](message.fields, message.message)
  }
}

/** Starts the shard threads with the sets that are known; resolves once every snapshot is loaded. */
function startShards(
  deps: WorkerDeps,
  storage: WorkerStorage,
  feeds: AlertingFeeds,
  onMessage: (message: FromShardThread) => void,
): Promise<ShardPool> {
  const { config, registry } = deps
  return ShardPool.start({
    threadUrl: deps.shardThreadUrl,
    threads: deps.threads,
    config: {
      storage: storage.shards,
      settings: {
        noDataAfterMs: config['alerting.no_data_after'],
        flapping: {
          windowMs: config['alerting.flap_window'],
          transitions: config['alerting.flap_transitions'],
          stableMs: config['alerting.flap_stable'],
        },
      },
      snapshotIntervalMs: snapshotIntervalMs(config),
      sweepIntervalMs: Math.min(config['alerting.sweep_interval'], config['alerting.presence_sweep']),
      presenceGraceMinMs: config['alerting.startup_grace_min'],
      pauseMs: deps.pauseMs ?? PAUSE_MS,
    },
    ...feeds.current,
    attributes: allAttributes(registry),
    tombstones: storage.tombstones.kept(),
    onMessage,
    onFailure: deps.onFailure,
  })
}

type Stoppable = { readonly stop: () => Promise<void> }

/** What starts side by side, since neither waits for the other; where one cannot start the other is stopped. */
async function bothStarted<A extends Stoppable, B extends Stoppable>(
  one: Promise<A>,
  other: Promise<B>,
): Promise<[A, B]> {
  try {
    return await Promise.all([one, other])
  } catch (error) {
    for (const each of await Promise.allSettled([one, other])) if (each.status === 'fulfilled') await each.value.stop()
    throw error
  }
}

/** Starts the worker. Resolves once snapshots are loaded, the store is open and the admin API answers. */
export async function startWorker(deps: WorkerDeps): Promise<RunningWorker> {
  const { config, log, registry } = deps
  const storage = deps.storage ?? new FileWorkerStorage({ ...deps, isWoken: deps.role === 'all' })
  const settings = new CompanySettingsCache(deps.hub, config['settings.cache'], deps.nowMs)
  const status = new WorkerStatus(deps, storage)
  const feeds = await AlertingFeeds.open(deps, storage, status)
  const outbox = openOutbox(deps, storage)
  const groups = new Groups({ ...deps, settings, store: storage.groups, status, onEvents: () => outbox?.wake() })
  const [samples, shards] = await bothStarted(
    startWorkerSamples(deps, storage, settings),
    startShards(deps, storage, feeds, shardMessages(deps, storage, groups, outbox)),
  )
  const samplesNotice = new PacedNotice(SAMPLES_TOLD_MS, samples.wake)
  // Once more: agents that changed while the threads loaded their snapshots.
  shards.setAttributes(allAttributes(registry))
  const stopListening = registry.onChange(changes => shards.setAttributes(changedAttributes(registry, changes)))
  status.watch(shards, samples, feeds.both)
  await feeds.start(shards)
  await groups.start(shards)
  outbox?.start()
  status.sender = outbox

  const parts = { storage, settings, status, feeds, samples, groups, shards }
  const admin = startAdmin(deps, parts)
  const sweeper = startRetentionSweeper(deps, storage, samples, settings)
  status.retention = sweeper
  const hasRules = (): boolean => deps.hub === null || feeds.hasRules
  await storage.start({
    shards,
    counts: () => status.counts(),
    samples,
    hasRules,
    onReload: async name => {
      await admin.reloadHere(name)
    },
    onTombstones: news =>
      admin.learnTombstones(news).catch(error => log.error({ err: error }, 'cannot forget a purged tenant')),
  })

  return {
    adminUrl: admin.url,
    reloadAdmin: admin.reload,
    wake: () => {
      shards.wake()
      samplesNotice.raise()
    },
    isReady: async () => (await samples.stats()).isReady,
    hasRules,
    outboxDepth: () => storage.outbox.outboxDepth(),
    stop: async () => {
      await admin.stop()
      stopListening()
      samplesNotice.stop()
      await stopWorker({ ...parts, sweeper, outbox })
    },
  }
}

type WorkerParts = {
  readonly storage: WorkerStorage
  readonly settings: CompanySettingsCache
  readonly status: WorkerStatus
  readonly feeds: AlertingFeeds
  readonly samples: SamplesClient
  readonly groups: Groups
  readonly shards: ShardPool
}

/** The admin API on its listener, and what it shares with what other processes tell this one. */
function startAdmin(deps: WorkerDeps, parts: WorkerParts) {
  let tokens = adminTokensOf(deps.config)
  const { adminDeps, reloadHere, learnTombstones, stopPurges } = createAdminDeps({
    ...deps,
    ...parts,
    adminTokens: () => tokens,
    reloadRules: () => parts.feeds.reload('rules'),
    reloadSilences: () => parts.feeds.reload('silences'),
    untilIngestPolled: deps.untilIngestPolled ?? (async () => {}),
  })
  const app = createCollectorAdmin(adminDeps)
  const listener = startAdminListener(deps.config, request => app.handle(request))
  return {
    url: listener.url,
    reloadHere,
    learnTombstones,
    /** The certificate is read again first: tokens are taken only with one that can be used. */
    reload: (fresh: WorkerConfig): void => {
      listener.reloadCertificate()
      tokens = adminTokensOf(fresh)
    },
    stop: async (): Promise<void> => {
      await listener.stop()
      stopPurges()
    },
  }
}

/** Ends what the admin API has stood on, in the order in which each part needs the next. */
async function stopWorker(
  parts: WorkerParts & { readonly sweeper: RetentionSweeper; readonly outbox: OutboxSender | null },
): Promise<void> {
  const { storage, feeds, samples, groups, shards, sweeper, outbox } = parts
  groups.stop()
  // A hub that does not answer does not delay the stop; the feeds are pulled again after the next start.
  await pTimeout(Promise.all([sweeper.stop(), feeds.stop()]), {
    milliseconds: STOP_WAIT_MS,
    fallback: () => {},
  })
  await storage.stop()
  await Promise.all([shards.stop(), samples.stop()])
  await outbox?.stop()
  await storage.close()
}

/** Both while the token is being changed. */
const adminTokensOf = (config: WorkerConfig): readonly string[] =>
  [config['admin.token'], config['admin.token_previous']].filter(token => token !== null)

async function startWorkerSamples(
  deps: WorkerDeps,
  storage: WorkerStorage,
  settings: CompanySettingsCache,
): Promise<SamplesClient> {
  const { config, log, metrics } = deps
  const tellRetention = async (companyId: string): Promise<void> => {
    const retention = retentionOf(await settings.get(companyId))
    if (retention) samples.setRetentionDays(new Map([[companyId, planDays(retention)]]))
  }
  const samples = await startSamples({
    threadUrl: deps.samplesThreadUrl,
    bus: storage.samplesBus,
    consumers: Object.values(busConsumers),
    clickhouse: config['clickhouse.url'] ?? `embedded:${join(config.data_dir, 'clickhouse')}`,
    database: config['clickhouse.database'],
    cluster: config['clickhouse.cluster'],
    tombstones: storage.tombstones.kept(),
    // Samples would stay on the bus until it is full: the process ends, and is started anew by its supervisor.
    onFailure: deps.onFailure,
    onInserted: (rows, seconds) => {
      metrics.storeRows.inc(rows)
      metrics.storeInsertSeconds.add(seconds)
    },
    onRetentionWanted: companyIds => {
      for (const companyId of companyIds) void tellRetention(companyId)
    },
    onTrouble: message => {
      metrics.storeErrors.inc()
      log.warn({ cause: message }, 'the samples store cannot take samples; they wait on the bus')
    },
  })
  return samples
}

function startRetentionSweeper(
  deps: WorkerDeps,
  storage: WorkerStorage,
  samples: SamplesClient,
  settings: CompanySettingsCache,
): RetentionSweeper {
  const { config, log, metrics, nowMs } = deps
  const sweeper = new RetentionSweeper({
    samples,
    askRetention: async companyId => retentionOf(await settings.fresh(companyId)) ?? undefined,
    nowMs,
    sweepEveryMs: config['retention.sweep'],
    isLeader: () => storage.groups.leaderToken() !== null,
    newCompanyWaitMs: config['retention.new_company_wait'],
    isDryRun: config['retention.dry_run'],
    onDaysDeleted: days => metrics.retentionDaysDeleted.inc(days),
    onError: (what, error) => {
      metrics.retentionSweepErrors.inc()
      log.error({ err: error }, what)
    },
  })
  sweeper.start()
  return sweeper
}
