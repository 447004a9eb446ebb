// What a worker provides to the admin API: registry, presence, reloads, retention and purges.
import type { Logger } from 'pino'
import type { ReloadFeed } from '../../../core/admin-api/calls.ts'
import { shownPresence } from '../../../core/alerting/evaluate/agent-down.ts'
import { limits } from '../../../core/limits.ts'
import { planDays, type RetentionSettings } from '../../../core/retention/readable-and-deletable.ts'
import type { Tombstone } from '../../../core/retention/tombstone.ts'
import type { AdminDeps } from '../admin/deps.ts'
import type { WorkerConfig } from '../config.ts'
import type { CompanySettings, CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { JsonObject } from '../store/registry/agent-record.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { Groups } from './evaluation/group-incidents.ts'
import type { ServerAlerting } from './evaluation/shard-messages.ts'
import type { ShardPool } from './evaluation/shard-pool.ts'
import { ReloadCalls, type ReloadCallsDeps } from './reload-calls.ts'
import type { SamplesClient } from './samples/samples-client.ts'
import { samplesOfAll } from './samples/samples-of-all.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'
import { keptByRegistry, TenantPurges } from './tenant-purges.ts'
import type { WorkerStatus } from './worker-status.ts'

type AdminDepsSources = Pick<ReloadCallsDeps, 'reloadRules' | 'reloadSilences' | 'reloadAgentFeeds'> & {
  readonly config: WorkerConfig
  /** The tokens that open the admin API now. */
  readonly adminTokens: () => readonly string[]
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly nowMs: () => number
  readonly shards: ShardPool
  readonly samples: SamplesClient
  readonly settings: CompanySettingsCache
  readonly storage: Pick<WorkerStorage, 'tombstones' | 'outbox' | 'raiseReload' | 'others'>
  readonly status: WorkerStatus
  readonly groups: Groups
  readonly untilIngestPolled: () => Promise<void>
}

export const retentionOf = (settings: CompanySettings | null): RetentionSettings | null =>
  settings && {
    retentionDays: settings.retentionDays,
    previousDays: settings.previousDays,
    graceUntilMs: settings.graceUntilMs,
  }

type CreatedAdminDeps = {
  readonly adminDeps: AdminDeps
  /** Pulls a feed and puts it in force in this process. */
  readonly reloadHere: (feed: ReloadFeed) => Promise<'applied' | 'unavailable'>
  /** Another process wrote tombstones: drops the state of their tenants in this process too. */
  readonly learnTombstones: (tombstones: readonly Tombstone[]) => Promise<void>
  readonly stopPurges: () => void
}

type Sources = AdminDepsSources & { readonly onError: (what: string, error: unknown) => void }

export function createAdminDeps(given: AdminDepsSources): CreatedAdminDeps {
  const { log, metrics, nowMs, samples, settings } = given
  const sources: Sources = { ...given, onError: (what, error) => log.error({ err: error }, what) }
  const purges = new TenantPurges(sources)
  const reloads = new ReloadCalls(sources)
  const adminDeps: AdminDeps = {
    nowMs,
    tokens: sources.adminTokens,
    registry: registryCalls(sources),
    presence: presenceCalls(sources),
    reload: reloads.reload,
    status: () => sources.status.status(),
    alerting: (companyId, serverId) => alertingResponse(sources, companyId, serverId),
    retention: async companyId => {
      const retention = retentionOf(await settings.get(companyId))
      const days = planDays(retention)
      if (days !== null) samples.setRetentionDays(new Map([[companyId, days]]))
      return retention
    },
    samples: samplesOfAll(samples, sources.storage.others, limits.stateShards),
    purge: purges.purge,
    onRequest: (method, path, status, seconds) => {
      const { requests } = metrics.hot
      const key = `${path} ${status}`
      requests.set(key, (requests.get(key) ?? 0) + 1)
      log.debug({ method, path, status, seconds }, 'admin call')
    },
    onQuery: (source, seconds) => metrics.querySeconds.observe({ source }, seconds),
    onError: sources.onError,
  }
  return {
    adminDeps,
    reloadHere: feed => reloads.reloadHere(feed),
    learnTombstones: tombstones => purges.learnTombstones(tombstones),
    stopPurges: () => purges.stop(),
  }
}

/** Agents that the hub pushes and revokes. The answer to a revocation says that the next send is refused. */
function registryCalls(sources: Sources): AdminDeps['registry'] {
  const { registry, shards, storage, untilIngestPolled } = sources
  return {
    push: async record => {
      const applied = await keptByRegistry(sources, registry.push(record))
      if (record.state === 'revoked') await untilIngestPolled()
      return { applied, version: registry.byAgent(record.agentId)?.version ?? record.version }
    },
    revoke: async agentId => {
      await keptByRegistry(sources, registry.revoke(agentId))
      await untilIngestPolled()
    },
    hasServer: (companyId, serverId) => {
      const isOfCompany = () => registry.agentsOfServer(serverId).some(record => record.companyId === companyId)
      if (isOfCompany()) return true
      // Ingest, in another process, may have enrolled the agent just now.
      registry.refresh()
      return isOfCompany()
    },
    summary: async companyId => {
      const { agentsTotal } = registry.companySummary(companyId, () => false)
      const [own, elsewhere] = await Promise.all([shards.online(companyId), storage.others?.online(companyId) ?? 0])
      const online = Math.min(agentsTotal, own + elsewhere)
      return { agentsTotal, online, offline: agentsTotal - online }
    },
  }
}

/** What the shard of a server knows of it, in this worker or another. */
const alertingOf = async ({ shards, storage }: Sources, serverId: string): Promise<ServerAlerting | null> =>
  (await shards.alerting(serverId)) ?? (storage.others ? storage.others.alerting(serverId) : null)

function presenceCalls(sources: Sources): AdminDeps['presence'] {
  const { registry, nowMs } = sources
  return {
    state: async (companyId, serverId) => {
      const alerting = await alertingOf(sources, serverId)
      if (!alerting || alerting.companyId !== companyId) return { state: 'unknown', lastSeenAtMs: null }
      const { lastSeenMs } = alerting.presence
      const managed = registry.latestOfServer(companyId, serverId)?.intervalSeconds ?? 0
      const state = shownPresence(alerting.presence, managed, nowMs())
      return { state, lastSeenAtMs: lastSeenMs > 0 ? lastSeenMs : null }
    },
  }
}

/** The alerting state of a server as JSON; null when the server is not of the company. */
async function alertingResponse(sources: Sources, companyId: string, serverId: string): Promise<JsonObject | null> {
  if (!sources.registry.agentsOfServer(serverId).some(record => record.companyId === companyId)) return null
  const alerting = await alertingOf(sources, serverId)
  const presence = alerting?.presence ?? { state: 'unknown', lastSeenMs: 0, intervalSeconds: 0 }
  return {
    server_id: serverId,
    company_id: companyId,
    presence: {
      state: presence.state,
      last_seen: presence.lastSeenMs > 0 ? new Date(presence.lastSeenMs).toISOString() : null,
      interval_seconds: presence.intervalSeconds,
    },
    series: alerting?.series ?? [],
    rules: alerting?.rules ?? [],
  }
}
