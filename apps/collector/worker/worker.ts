// The worker of a collector, wired: feeds of the hub, shard threads, samples thread, outbox, admin API. Used by
// collector-worker and by the all-in-one; whoever calls it builds the adapters and names the thread files.

import { join } from 'node:path'
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import type { RawSilence } from '../../../core/alerting/evaluate/suppression.ts'
import { packRule } from '../../../core/alerting/rules/packed-rule.ts'
import { compileRule, type RawRule } from '../../../core/alerting/rules/rule.ts'
import { planDays } from '../../../core/retention/window.ts'
import type { ChecksStatus } from '../admin/collector-status.ts'
import { startAdminListener } from '../admin/listener.ts'
import { createAdminApp } from '../admin/server.ts'
import { busConsumers } from '../bus/bus.ts'
import type { WorkerConfig } from '../config.ts'
import { CompanySettingsCache } from '../hub-link/company-settings.ts'
import { FeedSync, isExpiredSilence, isGone } from '../hub-link/feed-sync.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { RawRecord } from '../store/feed-store.ts'
import type { AgentChange, AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { createAdminDeps, type ReloadAgentFeeds, retentionOf } from './admin-deps.ts'
import { Groups } from './evaluation/group-incidents.ts'
import { Outbox } from './evaluation/outbox-sender.ts'
import type { FromShardThread, ServerAttributesUpdate } from './evaluation/shard-messages.ts'
import { ShardPool } from './evaluation/shard-pool.ts'
import { Janitor } from './samples/retention-sweep.ts'
import { type SamplesClient, startSamples } from './samples/samples-client.ts'
import { alertingDirOf, FileWorkerStorage } from './storage/file-storage.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'
import { WorkerStatus } from './worker-status.ts'

const STOP_WAIT_MS = 3000
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
  /** The process cannot do its work any more and must end. */
  readonly onFailure: (error: Error) => void
}

export type RunningWorker = {
  readonly adminUrl: string
  /**
   * Takes the admin tokens of a configuration that was read again, and reads the certificate again. Throws when that
   * cannot be used.
   */
  readonly reloadAdmin: (fresh: WorkerConfig) => void
  /** The bus holds something new. */
  readonly wake: () => void
  /** The samples store answers. */
  readonly isReady: () => Promise<boolean>
  /**
   * Rules were read from the hub, now or before a restart: without any a worker would look healthy and open no alert
   * (G-43).
   */
  readonly hasRules: () => boolean
  readonly outboxDepth: () => number
  /** Drains the bus to evaluation and store, saves, ends. Ingest must have stopped. */
  readonly stop: () => Promise<void>
}

/** The attributes of a server after a change of its agents: the latest agent that is not revoked speaks for it. */
function attributesUpdate(
  registry: AgentRegistry,
  companyId: string,
  serverId: string,
  agentIds: readonly string[],
): ServerAttributesUpdate {
  const record = registry.latestOfServer(companyId, serverId)
  if (!record) return { serverId, attributes: null, revokedAgentIds: agentIds }
  const { serverStatus: status, subnetId, datacenter, hostname, intervalSeconds } = record
  return {
    serverId,
    attributes: { companyId, status, subnetId, datacenter, hostname, intervalSeconds },
  }
}

function attributesOf(registry: AgentRegistry, changes: readonly AgentChange[]): ServerAttributesUpdate[] {
  const servers = new Map<string, { companyId: string; agentIds: string[] }>()
  for (const { agentId, before, record } of changes)
    for (const side of [before, record]) {
      if (!side?.serverId) continue
      const server = servers.get(side.serverId)
      if (server) server.agentIds.push(agentId)
      else servers.set(side.serverId, { companyId: side.companyId, agentIds: [agentId] })
    }
  return [...servers].map(([serverId, { companyId, agentIds }]) =>
    attributesUpdate(registry, companyId, serverId, agentIds),
  )
}

const allAttributes = (registry: AgentRegistry): ServerAttributesUpdate[] =>
  attributesOf(
    registry,
    [...registry.all()].map(record => ({ agentId: record.agentId, before: null, record })),
  )

/** The rules of the feed as threads take them; a record that stays gives the same object. */
function ruleHandover(): (records: ReadonlyMap<string, RawRecord>) => RawRule[] {
  const packed = new WeakMap<RawRecord, RawRule>()
  const ruleOf = (record: RawRecord): RawRule => {
    const rule = packed.get(record) ?? packRule(record as unknown as RawRule)
    packed.set(record, rule)
    return rule
  }
  return records => [...records.values()].map(ruleOf)
}

const asSilences = (records: ReadonlyMap<string, RawRecord>): RawSilence[] =>
  [...records.values()] as unknown as RawSilence[]

/** Starts the worker. Resolves once snapshots are loaded, the store is open and the admin API answers. */
export async function startWorker(deps: WorkerDeps): Promise<RunningWorker> {
  const { config, log, metrics, registry, nowMs } = deps
  const storage = deps.storage ?? new FileWorkerStorage(deps)
  const { tombstones } = storage
  const settings = new CompanySettingsCache(deps.hub, config['settings.cache'], nowMs)
  const status = new WorkerStatus(deps, storage)

  let pool: ShardPool | null = null
  let applied: Promise<void> = Promise.resolve()
  const rejectedBefore = new Set<string>()
  const feed = async (
    name: 'rules' | 'silences',
    onApplied: (records: ReadonlyMap<string, RawRecord>, since: number) => Promise<void>,
  ): Promise<FeedSync> =>
    new FeedSync({
      feed: name,
      intervalMs: config[`alerting.${name}_sync_interval`],
      hub: deps.hub,
      store: await storage.feedStore(name),
      isGone: isGone[name],
      ...(name === 'silences' ? { isExpired: isExpiredSilence } : {}),
      onApplied,
      log,
      metrics,
      nowMs,
    })
  const asRules = ruleHandover()
  const rules = await feed('rules', (records, since) => {
    const running = asRules(records)
    noteRejected(deps, running, rejectedBefore, status)
    applied = pool?.setRules(running, since) ?? applied
    return applied
  })
  const silences = await feed('silences', records => {
    status.setSilences(asSilences(records))
    applied = pool?.setSilences(asSilences(records)) ?? applied
    return applied
  })

  const samples = await startWorkerSamples(deps, storage, settings)
  samples.setTombstones(tombstones.living())
  const outbox = deps.hub
    ? new Outbox({
        store: storage.outbox,
        hub: deps.hub,
        log,
        deadLetterPath: join(alertingDirOf(config), 'dead-letters.jsonl'),
        nowMs,
        onSent: (result, count) => metrics.outboxSent.inc({ result }, count),
        onDropped: count => metrics.outboxSent.inc({ result: 'dropped' }, count),
      })
    : null
  const groups = new Groups({ ...deps, settings, store: storage.groups, status, onEvents: () => outbox?.wake() })
  const receive = (message: FromShardThread): void => {
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
    } else if (message.kind === 'lost') storage.lost(message.shard, message.token, message.cause)
    else if (message.kind === 'log') log[message.level](message.fields, message.message)
  }
  pool = await ShardPool.start({
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
      snapshotIntervalMs: config['alerting.rules_state_interval'],
      sweepIntervalMs: Math.min(config['alerting.sweep_interval'], config['alerting.presence_sweep']),
      presenceGraceMinMs: config['alerting.startup_grace_min'],
    },
    rules: asRules(rules.records),
    rulesSince: rules.status().since,
    silences: asSilences(silences.records),
    attributes: allAttributes(registry),
    tombstones: tombstones.living(),
    onMessage: receive,
    onFailure: deps.onFailure,
  })
  const shards = pool
  shards.setAttributes(allAttributes(registry))
  const stopListening = registry.onChange(changes => shards.setAttributes(attributesOf(registry, changes)))
  status.watch(shards, samples, { rules, silences })
  await Promise.all([rules.start(), silences.start()])
  await applied
  await groups.start(shards)
  outbox?.start()

  let adminTokens = adminTokensOf(config)
  const { adminDeps, reloadHere, learnTombstones, stopPurges } = createAdminDeps({
    ...deps,
    adminTokens: () => adminTokens,
    shards,
    samples,
    settings,
    storage,
    status,
    groups,
    reloadRules: async () => afterApplied(await rules.reload()),
    reloadSilences: async () => afterApplied(await silences.reload()),
    untilIngestPolled: deps.untilIngestPolled ?? (async () => {}),
  })
  async function afterApplied(result: 'applied' | 'unavailable'): Promise<'applied' | 'unavailable'> {
    await applied
    return result
  }
  const app = createAdminApp(adminDeps)
  const admin = startAdminListener(config, request => app.handle(request))

  const janitor = startJanitor(deps, storage, samples, settings)
  status.janitor = janitor
  const hasRules = (): boolean => deps.hub === null || rules.isFilled
  await storage.start({
    shards,
    counts: () => status.counts(),
    samples,
    hasRules,
    onReload: async name => {
      await reloadHere(name)
    },
    onTombstones: news =>
      learnTombstones(news).catch(error => log.error({ err: error }, 'cannot forget a purged tenant')),
  })

  return {
    adminUrl: admin.url,
    reloadAdmin: fresh => {
      admin.reloadCertificate()
      adminTokens = adminTokensOf(fresh)
    },
    wake: () => {
      shards.wake()
      samples.wake()
    },
    isReady: async () => (await samples.stats()).isReady,
    hasRules,
    outboxDepth: () => storage.outbox.outboxDepth(),
    stop: async () => {
      await admin.stop()
      stopListening()
      stopPurges()
      groups.stop()
      // A hub that does not answer is not waited for: what it may still say is pulled again after the next start.
      await pTimeout(Promise.all([janitor.stop(), rules.stop(), silences.stop()]), {
        milliseconds: STOP_WAIT_MS,
        fallback: () => {},
      })
      await storage.stop()
      await Promise.all([shards.stop(), samples.stop()])
      await outbox?.stop()
      await storage.close()
    },
  }
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

function startJanitor(
  deps: WorkerDeps,
  storage: WorkerStorage,
  samples: SamplesClient,
  settings: CompanySettingsCache,
): Janitor {
  const { config, log, metrics, nowMs } = deps
  const janitor = new Janitor({
    samples,
    askRetention: async companyId => retentionOf(await settings.fresh(companyId)) ?? undefined,
    nowMs,
    sweepEveryMs: config['retention.sweep'],
    isLeader: () => storage.groups.leaderToken() !== null,
    newCompanyWaitMs: config['retention.new_company_wait'],
    isDryRun: config['retention.dry_run'],
    onDaysDeleted: days => metrics.janitorDaysDeleted.inc(days),
    onError: (what, error) => {
      metrics.janitorErrors.inc()
      log.error({ err: error }, what)
    },
  })
  janitor.start()
  return janitor
}

/** Each rejected rule is told once a version: a log line, a counter; all of them stand in /status. */
function noteRejected(deps: WorkerDeps, rules: readonly RawRule[], before: Set<string>, status: WorkerStatus): void {
  const results = rules.map(compileRule)
  const rejected = results.flatMap(result => (result.kind === 'rejected' ? [result.rejected] : []))
  status.setRules(results.filter(result => result.kind === 'compiled').length, rejected)
  for (const rule of rejected) {
    const key = `${rule.rule_id}:${rule.version}`
    if (before.has(key)) continue
    before.add(key)
    deps.metrics.rulesRejected.inc({ reason: rule.reason })
    deps.log.warn({ ...rule }, 'a rule of the hub is not valid and is skipped')
  }
}
