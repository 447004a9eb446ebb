// Wide-area incidents in a worker: presence of all its shards in, group events into the outbox, after every presence
// sweep (document 2 "Wide-area incident grouping"). The open groups are stored together with the events that led to
// them.
import type { Logger } from 'pino'
import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import {
  type GroupDownState,
  newGroupDown,
  presenceChanged,
  presenceKnown,
  type SavedGroups,
  saveGroups,
  sweepGroups,
} from '../../../../core/alerting/evaluate/group-down.ts'
import { type GroupOverride, groupParameters } from '../../../../core/alerting/evaluate/group-parameters.ts'
import { suppressReason } from '../../../../core/alerting/evaluate/suppression.ts'
import type { ServerAttributes } from '../../../../core/alerting/state/evaluation-state.ts'
import { groupOverrides, type WorkerConfig } from '../../config.ts'
import type { CompanySettingsCache } from '../../hub-link/company-settings.ts'
import type { AgentRegistry } from '../../store/registry/registry.ts'
import type { CollectorMetrics } from '../../telemetry.ts'
import type { GroupStore } from '../storage/worker-storage.ts'
import type { WorkerStatus } from '../worker-status.ts'
import type { ShardPool } from './shard-pool.ts'

type GroupsDeps = {
  readonly config: WorkerConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly settings: CompanySettingsCache
  readonly store: GroupStore
  readonly status: WorkerStatus
  readonly nowMs: () => number
  readonly onEvents: () => void
}

const isSaved = (value: unknown): value is SavedGroups =>
  typeof value === 'object' && value !== null && 'lastSeq' in value && 'open' in value && Array.isArray(value.open)

export class Groups {
  private state: GroupDownState = newGroupDown(null)
  /** The leader token under which the groups were loaded; null = another worker is the leader. */
  private leaderToken: string | null = null
  private shards: ShardPool | null = null
  /** Presence changes that arrive while the shards are asked who is lost; they are newer than some of the answers. */
  private whileAsking: { serverId: string; state: 'up' | 'down'; atMs: number }[] | null = null
  private sweeping: Promise<void> | null = null
  private readonly overrides: ReadonlyMap<string, GroupOverride>
  private timer: ReturnType<typeof setInterval> | null = null

  constructor(private readonly deps: GroupsDeps) {
    this.overrides = groupOverrides(deps.config)
  }

  /** Reads which servers are lost from the shards, then sweeps at every interval. */
  async start(shards: ShardPool): Promise<void> {
    this.shards = shards
    await this.isLeader()
    const { config, log } = this.deps
    this.timer = setInterval(() => {
      this.sweeping ??= this.sweep()
        .catch(error => log.error({ err: error }, 'cannot sweep the groups'))
        .finally(() => {
          this.sweeping = null
        })
    }, config['alerting.presence_sweep'])
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer)
  }

  presence(serverId: string, state: 'up' | 'down', atMs: number): void {
    this.whileAsking?.push({ serverId, state, atMs })
    presenceChanged(this.state, serverId, state, atMs)
  }

  /** Asks the shards of this worker which servers are lost; each answers at its own time. */
  private async askShards(shards: ShardPool): Promise<void> {
    this.whileAsking = []
    presenceKnown(this.state, await shards.down())
    for (const { serverId, state, atMs } of this.whileAsking) presenceChanged(this.state, serverId, state, atMs)
    this.whileAsking = null
  }

  /**
   * Whether this worker is the leader and sweeps the groups. If it is, groups and presence are loaded when this
   * resolves.
   */
  private async isLeader(): Promise<boolean> {
    const { store } = this.deps
    const leaderToken = store.leaderToken()
    if (leaderToken !== null && leaderToken !== this.leaderToken) {
      const saved = await store.load()
      this.state = newGroupDown(isSaved(saved) ? saved : null)
      if (!store.down && this.shards) await this.askShards(this.shards)
    }
    this.leaderToken = leaderToken
    if (leaderToken === null) return false
    if (store.down) presenceKnown(this.state, await this.downNow(store.down))
    return true
  }

  /**
   * The lost servers of all workers. Servers without an agent are dropped, because no event will report them as back.
   */
  private async downNow(ask: NonNullable<GroupStore['down']>): Promise<[serverId: string, sinceMs: number][]> {
    const { registry, store } = this.deps
    const down = await ask()
    const isSomebodys = (serverId: string): boolean =>
      registry.agentsOfServer(serverId).some(record => record.state !== 'revoked')
    const unknown = down.filter(([serverId]) => !isSomebodys(serverId))
    if (unknown.length > 0) await store.forgetDown(unknown.map(([serverId]) => serverId))
    return down.filter(([serverId]) => isSomebodys(serverId))
  }

  /** Drops the groups of a purged tenant without an event. */
  async forget(companyId: string, serverId: string | null): Promise<void> {
    if (this.leaderToken === null) return
    for (const id of [...this.state.downSinceMs.keys()])
      if (serverId === null ? this.isOf(companyId, id) : id === serverId) this.state.downSinceMs.delete(id)
    if (serverId === null)
      for (const [key, group] of this.state.open) if (group.companyId === companyId) this.state.open.delete(key)
    await this.deps.store.commit([], saveGroups(this.state), this.deps.nowMs())
  }

  /** Whether a server is of the company; the registry still has it when a purge begins. */
  private isOf(companyId: string, serverId: string): boolean {
    return this.deps.registry.agentsOfServer(serverId).some(record => record.companyId === companyId)
  }

  private async sweep(): Promise<void> {
    const { config, metrics, settings, status, nowMs, onEvents } = this.deps
    if (!(await this.isLeader())) {
      metrics.groupsOpen.set(0)
      return
    }
    if (this.state.downSinceMs.size === 0 && this.state.open.size === 0) return
    const attributes = this.activeServers()
    // A server without an agent is out of its groups, and what was known of it is not true of its next agent (decision
    // G-48).
    for (const serverId of [...this.state.downSinceMs.keys()])
      if (!attributes.has(serverId)) this.state.downSinceMs.delete(serverId)
    const companies = new Set<string>([...this.state.open.values()].map(group => group.companyId))
    for (const serverId of this.state.downSinceMs.keys()) {
      const companyId = attributes.get(serverId)?.companyId
      if (companyId) companies.add(companyId)
    }
    // Settings are asked for before the sweep, which is one step and waits for nobody.
    await Promise.all([...companies].map(companyId => settings.get(companyId)))
    const atMs = nowMs()
    const events = sweepGroups(this.state, {
      attributes,
      parametersOf: companyId => this.parametersOf(companyId),
      suppressionOf: (companyId, serverId, occurredAtMs) =>
        suppressReason(
          status.silenceSet,
          companyId,
          serverId,
          [],
          attributes.get(serverId)?.status ?? '',
          occurredAtMs,
        ),
      isEnabled: config['alerting.group_down.enabled'],
      nowMs: atMs,
    })
    metrics.groupsOpen.set(this.state.open.size)
    if (events.length === 0) return
    await this.keep(events, atMs)
    for (const event of events) metrics.events.inc({ type: event.type })
    onEvents()
  }

  /** Stores events and groups. When that fails, the groups return to what was stored before. */
  private async keep(events: readonly AlertEvent[], atMs: number): Promise<void> {
    let isKept = false
    try {
      isKept = await this.deps.store.commit(events, saveGroups(this.state), atMs)
    } finally {
      if (!isKept) this.leaderToken = null
    }
    if (!isKept) throw new Error('the leaderToken to sweep groups went to another worker')
  }

  private parametersOf(companyId: string) {
    const { config, settings } = this.deps
    const hub = settings.known(companyId)
    return groupParameters(
      hub && {
        group_down_min: hub.groupDownMin,
        group_down_ratio: hub.groupDownRatio,
        group_down_window_seconds: hub.groupDownWindowSeconds,
      },
      this.overrides.get(companyId),
      {
        windowMs: config['alerting.group_down.window'],
        min: config['alerting.group_down.min'],
        ratio: config['alerting.group_down.ratio'],
      },
    )
  }

  /** Servers with a non-revoked active agent, as the latest non-revoked one describes them (decision G-47). */
  private activeServers(): Map<string, ServerAttributes> {
    const servers = new Map<string, ServerAttributes>()
    for (const record of this.deps.registry.all()) {
      if (record.state !== 'active' || record.serverId === '') continue
      const latest = this.deps.registry.latestOfServer(record.companyId, record.serverId) ?? record
      const { companyId, serverStatus: status, subnetId, datacenter, hostname, intervalSeconds } = latest
      servers.set(record.serverId, { companyId, status, subnetId, datacenter, hostname, intervalSeconds })
    }
    return servers
  }
}
