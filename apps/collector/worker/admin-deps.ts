// What the admin API is given by a worker: the registry, presence, reloads, retention and purges, each as the API asks
// for it.
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import type { ReloadFeed } from '../../../core/admin-api/calls.ts'
import { downAfterMs, presenceIntervalSeconds } from '../../../core/alerting/evaluate/presence.ts'
import { planDays, type RetentionSettings } from '../../../core/retention/window.ts'
import { AdminError } from '../admin/admin-error.ts'
import type { AdminDeps, ReloadOutcome } from '../admin/deps.ts'
import { createPurger } from '../admin/purge.ts'
import type { WorkerConfig } from '../config.ts'
import type { CompanySettings, CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { JsonObject } from '../store/registry/agent-record.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { Groups } from './evaluation/group-incidents.ts'
import type { ServerAlerting } from './evaluation/shard-messages.ts'
import type { ShardPool } from './evaluation/shard-pool.ts'
import type { SamplesClient } from './samples/samples-client.ts'
import type { Tombstone } from './samples/samples-messages.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'
import type { WorkerStatus } from './worker-status.ts'

/** A hub waits ten seconds for the answer to a reload call. */
const RELOAD_WAIT_MS = 6_000
const RELOAD_RETRY_S = 5

/** Reloads of what ingest reads from the hub. */
export type ReloadAgentFeeds = { readonly checks: () => Promise<'applied' | 'unavailable'> }

type AdminDepsSources = {
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
  readonly reloadRules: () => Promise<'applied' | 'unavailable'>
  readonly reloadSilences: () => Promise<'applied' | 'unavailable'>
  readonly reloadAgentFeeds: ReloadAgentFeeds | null
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
  /** Another process wrote tombstones: their tenants are forgotten here too. */
  readonly learnTombstones: (news: readonly Tombstone[]) => Promise<void>
  readonly stopPurges: () => void
}

export function createAdminDeps(sources: AdminDepsSources): CreatedAdminDeps {
  const { config, log, metrics, registry, hub, nowMs, shards, samples, settings, storage } = sources
  const { tombstones, others } = storage
  const onError = (what: string, error: unknown): void => log.error({ err: error }, what)
  /** The state of a purged tenant, and what it still had to tell. */
  const forget = async (companyId: string, serverId: string | null): Promise<void> => {
    await shards.forget(companyId, serverId)
    await sources.groups.forget(companyId, serverId)
    await storage.outbox.removeEventsOf(companyId, serverId)
    if (serverId === null) settings.forget(companyId)
  }
  const learnTombstones = async (news: readonly Tombstone[]): Promise<void> => {
    shards.setTombstones(tombstones.living())
    samples.setTombstones(tombstones.living())
    for (const { companyId, serverId } of news) await forget(companyId, serverId)
  }
  /** What the registry was told is kept for every process; where it cannot be now, the hub calls again. */
  const kept = async <T>(result: T): Promise<T> => {
    try {
      await registry.flushed()
    } catch (error) {
      onError('cannot keep a change of the registry; it is in force here, and kept later', error)
      throw new AdminError('unavailable', 'the change cannot be kept now; call again')
    }
    return result
  }
  const purger = createPurger({
    nowMs,
    tombstones: {
      write: async tombstone => {
        await tombstones.write(tombstone)
        await learnTombstones([tombstone])
      },
    },
    registry: {
      removeCompany: companyId => kept(registry.removeCompany(companyId)),
      removeServer: (companyId, serverId) => kept(registry.removeServer(companyId, serverId)),
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

  const reloadHere = async (feed: ReloadFeed): Promise<'applied' | 'unavailable'> => {
    if (feed === 'rules') return sources.reloadRules()
    if (feed === 'silences') return sources.reloadSilences()
    if (feed === 'checks') return sources.reloadAgentFeeds ? sources.reloadAgentFeeds.checks() : 'applied'
    settings.clear()
    return 'applied'
  }
  /**
   * Workers are asked and answer; ingest, and a worker that does not answer, pull by the counter within two seconds.
   */
  const reloadElsewhere = async (feed: ReloadFeed): Promise<void> => {
    try {
      await storage.raiseReload?.(feed)
      await others?.reload(feed)
    } catch (error) {
      onError('cannot tell the other processes of a reload call', error)
      throw new AdminError('unavailable', 'the other processes cannot be told now; call again', RELOAD_RETRY_S)
    }
  }
  const reload = async (feed: ReloadFeed): Promise<ReloadOutcome> => {
    if (!hub) return 'not_configured'
    const reloading = Promise.all([reloadHere(feed), reloadElsewhere(feed)])
    const outcome = await pTimeout(reloading, { milliseconds: RELOAD_WAIT_MS, fallback: () => null })
    if (outcome !== null) return outcome[0]
    // Nobody waits for it any more; what became of it stands in the log of the feed.
    reloading.catch(() => {})
    throw new AdminError('unavailable', 'what is to be reloaded is not in force yet; call again', RELOAD_RETRY_S)
  }

  const alertingOf = async (serverId: string): Promise<ServerAlerting | null> =>
    (await shards.alerting(serverId)) ?? (others ? others.alerting(serverId) : null)

  const adminDeps: AdminDeps = {
    nowMs,
    tokens: sources.adminTokens,
    registry: {
      push: async record => {
        const applied = await kept(registry.push(record))
        if (record.state === 'revoked') await sources.untilIngestPolled()
        return { applied, version: registry.byAgent(record.agentId)?.version ?? record.version }
      },
      // The answer says that the next send of the agent is refused.
      revoke: async agentId => {
        await kept(registry.revoke(agentId))
        await sources.untilIngestPolled()
      },
      hasServer: (companyId, serverId) => {
        const isOfCompany = () => registry.agentsOfServer(serverId).some(record => record.companyId === companyId)
        if (isOfCompany()) return true
        // Ingest, in another process, may just have enrolled it.
        registry.refresh()
        return isOfCompany()
      },
      summary: async companyId => {
        const { agentsTotal } = registry.companySummary(companyId, () => false)
        const elsewhere = others ? others.online(companyId) : 0
        const online = Math.min(agentsTotal, (await shards.online(companyId)) + (await elsewhere))
        return { agentsTotal, online, offline: agentsTotal - online }
      },
    },
    presence: {
      state: async (companyId, serverId) => {
        const alerting = await alertingOf(serverId)
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
      const alerting = await alertingOf(serverId)
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
    },
    retention: async companyId => {
      const retention = retentionOf(await settings.get(companyId))
      const days = planDays(retention)
      if (days !== null) samples.setRetentionDays(new Map([[companyId, days]]))
      return retention
    },
    samples,
    purge: purger.purge,
    onRequest: (method, path, status, seconds) => {
      const { requests } = metrics.hot
      const key = `${path} ${status}`
      requests.set(key, (requests.get(key) ?? 0) + 1)
      log.debug({ method, path, status, seconds }, 'admin call')
    },
    onQuery: (source, seconds) => metrics.querySeconds.observe({ source }, seconds),
    onError,
  }
  return { adminDeps, reloadHere, learnTombstones, stopPurges: purger.stop }
}
