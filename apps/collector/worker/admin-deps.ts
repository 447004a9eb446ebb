// What the admin API is given by a worker: the registry, presence, reloads, retention and purges, each as the API asks for it.
import type { Logger } from 'pino'
import { downAfterMs, presenceIntervalSeconds } from '../../../core/alerting/presence.ts'
import { planDays, type RetentionSettings } from '../../../core/retention/window.ts'
import type { AdminDeps, ReloadOutcome } from '../admin/deps.ts'
import { createPurger } from '../admin/purge.ts'
import type { WorkerConfig } from '../config.ts'
import type { CompanySettings, CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { JsonObject } from '../store/agent-record.ts'
import type { EvaluationStore } from '../store/evaluation-store.ts'
import type { AgentRegistry } from '../store/registry.ts'
import type { Tombstones } from '../store/tombstones.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { Groups } from './groups.ts'
import type { SamplesClient } from './samples-client.ts'
import type { ShardPool } from './shard-pool.ts'
import type { WorkerStatus } from './worker-status.ts'

/** Reloads of what ingest reads from the hub. */
export type ReloadAgentFeeds = { readonly checks: () => Promise<'applied' | 'unavailable'> }

export type AdminDepsSources = {
  readonly config: WorkerConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly nowMs: () => number
  readonly shards: ShardPool
  readonly samples: SamplesClient
  readonly settings: CompanySettingsCache
  readonly tombstones: Tombstones
  readonly status: WorkerStatus
  readonly groups: Groups
  readonly evaluationStore: Pick<EvaluationStore, 'removeEventsOf'>
  readonly reloadRules: () => Promise<'applied' | 'unavailable'>
  readonly reloadSilences: () => Promise<'applied' | 'unavailable'>
  readonly reloadAgentFeeds: ReloadAgentFeeds | null
}

export const retentionOf = (settings: CompanySettings | null): RetentionSettings | null =>
  settings && {
    retentionDays: settings.retentionDays,
    previousDays: settings.previousDays,
    graceUntilMs: settings.graceUntilMs,
  }

export function createAdminDeps(sources: AdminDepsSources): { adminDeps: AdminDeps; stopPurges: () => void } {
  const { config, log, metrics, registry, hub, nowMs, shards, samples, settings, tombstones } = sources
  const onError = (what: string, error: unknown): void => log.error({ err: error }, what)
  /** The state of a purged tenant, and what it still had to tell. */
  const forget = async (companyId: string, serverId: string | null): Promise<void> => {
    await shards.forget(companyId, serverId)
    sources.groups.forget(companyId, serverId)
    sources.evaluationStore.removeEventsOf(companyId, serverId)
    if (serverId === null) settings.forget(companyId)
  }
  const purger = createPurger({
    nowMs,
    tombstones: {
      write: async tombstone => {
        tombstones.write(tombstone)
        shards.setTombstones(tombstones.living())
        samples.setTombstones(tombstones.living())
        await forget(tombstone.companyId, tombstone.serverId)
      },
    },
    registry: {
      removeCompany: async companyId => registry.removeCompany(companyId),
      removeServer: async (companyId, serverId) => registry.removeServer(companyId, serverId),
    },
    samples,
    tombstoneMs: config['purge.tombstone_ttl'],
    secondDeleteAfterMs: config['purge.second_delete_after'],
    onPurge: result => metrics.purges.inc({ result }),
    onError,
  })
  // A purge that a restart cut short goes on: the threads forgot the tenant before they evaluated anything.
  for (const { companyId, serverId } of tombstones.living()) {
    if (serverId === null) registry.removeCompany(companyId)
    else registry.removeServer(companyId, serverId)
    void forget(companyId, serverId).catch(error => onError('cannot forget a purged tenant', error))
    purger.resume(companyId, serverId)
  }

  const reload = async (feed: 'rules' | 'silences' | 'checks' | 'settings'): Promise<ReloadOutcome> => {
    if (!hub) return 'not_configured'
    if (feed === 'rules') return sources.reloadRules()
    if (feed === 'silences') return sources.reloadSilences()
    if (feed === 'checks') return sources.reloadAgentFeeds ? sources.reloadAgentFeeds.checks() : 'applied'
    settings.clear()
    return 'applied'
  }

  const adminDeps: AdminDeps = {
    nowMs,
    tokens: () => [config['admin.token'], config['admin.token_previous']].filter(token => token !== null),
    hasRollups: true,
    registry: {
      push: async record => {
        const applied = registry.push(record)
        return { applied, version: registry.byAgent(record.agentId)?.version ?? record.version }
      },
      revoke: async agentId => registry.revoke(agentId),
      hasServer: (companyId, serverId) =>
        registry.agentsOfServer(serverId).some(record => record.companyId === companyId),
      summary: async companyId => {
        const { agentsTotal } = registry.companySummary(companyId, () => false)
        const online = Math.min(agentsTotal, await shards.online(companyId))
        return { agentsTotal, online, offline: agentsTotal - online }
      },
    },
    presence: {
      state: async (companyId, serverId) => {
        const alerting = await shards.alerting(serverId)
        if (!alerting || alerting.companyId !== companyId) return { state: 'unknown', lastSeenAtMs: null }
        const { state, lastSeenMs, intervalSeconds } = alerting.presence
        const managed = registry.latestOfServer(companyId, serverId)?.intervalSeconds ?? 0
        const isSilent = nowMs() - lastSeenMs > downAfterMs(presenceIntervalSeconds(intervalSeconds, managed))
        const lastSeenAtMs = lastSeenMs > 0 ? lastSeenMs : null
        if (state === 'down') return { state: 'down', lastSeenAtMs }
        return { state: state === 'up' && !isSilent ? 'online' : 'unknown', lastSeenAtMs }
      },
    },
    reload,
    status: () => sources.status.status(),
    alerting: async (companyId, serverId): Promise<JsonObject | null> => {
      if (!registry.agentsOfServer(serverId).some(record => record.companyId === companyId)) return null
      const alerting = await shards.alerting(serverId)
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
      }
    },
    retention: async companyId => {
      const retention = retentionOf(await settings.get(companyId))
      const days = planDays(retention)
      if (days !== null) samples.setRetentionDays(new Map([[companyId, days]]))
      return retention
    },
    samples,
    purge: purger.purge,
    onRequest: (endpoint, status, seconds) => {
      log.debug({ endpoint, status, seconds }, 'admin call')
    },
    onQuery: (source, seconds) => metrics.querySeconds.observe({ source }, seconds),
    onError,
  }
  return { adminDeps, stopPurges: purger.stop }
}
