// What the worker knows of itself, gathered for /status and for the metrics.
import type { Logger } from 'pino'
import {
  activeSilences,
  compileSilences,
  emptySilenceSet,
  type SilenceRecord,
  type SilenceSet,
} from '../../../core/alerting/evaluate/suppression.ts'
import type { RejectedRule } from '../../../core/alerting/rules/rule.ts'
import type { SyncStatus } from '../../hub-link/sync-loop.ts'
import type { ChecksStatus, CollectorStatus, FeedStatus, RetentionStatus } from '../admin/collector-status.ts'
import type { FeedSync } from '../hub-link/feed-sync.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { ShardStatus } from './evaluation/shard-messages.ts'
import type { ShardPool } from './evaluation/shard-pool.ts'
import type { SamplesClient } from './samples/samples-client.ts'
import type { WorkerCounts, WorkerStorage } from './storage/worker-storage.ts'

type WorkerStatusDeps = {
  readonly version: string
  readonly role: 'worker' | 'all'
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
  readonly checksStatus: (() => ChecksStatus) | null
}

/** The cursor and the last pull of a feed, as /status shows them. */
export const feedStatus = (status: SyncStatus): FeedStatus => ({
  since: status.since,
  lastSyncAtMs: status.lastSyncAtMs ?? 0,
  lastSyncError: status.lastSyncError,
})

export class WorkerStatus {
  private readonly startedAtMs: number
  private rulesLoaded = 0
  private rejected: readonly RejectedRule[] = []
  private silences: SilenceSet = emptySilenceSet
  private shards: ShardPool | null = null
  private samples: SamplesClient | null = null
  private feeds: { rules: FeedSync; silences: FeedSync } | null = null
  private evaluationsBefore = 0
  retention: { readonly last: RetentionStatus | null } | null = null
  sender: { readonly setAsideCount: number } | null = null

  constructor(
    private readonly deps: WorkerStatusDeps,
    private readonly storage: Pick<WorkerStorage, 'outbox' | 'lag' | 'others'>,
  ) {
    this.startedAtMs = deps.nowMs()
    deps.metrics.onScrape(() => this.scrape())
  }

  setRules(loaded: number, rejected: readonly RejectedRule[]): void {
    this.rulesLoaded = loaded
    this.rejected = rejected
    this.deps.metrics.rulesLoaded.set(loaded)
    this.deps.metrics.rulesInvalid.set(rejected.length)
  }

  setSilences(raw: readonly SilenceRecord[]): void {
    this.silences = compileSilences(raw)
    const unread = raw.length - this.silences.loaded
    if (unread > 0)
      this.deps.log.warn(
        { silences: unread },
        'silences of the hub cannot be read (company_id, scope, starts_at or ends_at): they silence nothing',
      )
  }

  get silenceSet(): SilenceSet {
    return this.silences
  }

  watch(shards: ShardPool, samples: SamplesClient, feeds: { rules: FeedSync; silences: FeedSync }): void {
    this.shards = shards
    this.samples = samples
    this.feeds = feeds
  }

  /** What this worker has to tell another, whose /status is asked for. */
  async counts(): Promise<WorkerCounts> {
    const all = (await this.shards?.status()) ?? []
    return { ...this.countsOf(all), lag: await this.lag(all) }
  }

  private countsOf(all: readonly ShardStatus[]): Omit<WorkerCounts, 'lag'> {
    const sum = (of: (status: ShardStatus) => number) => all.reduce((total, status) => total + of(status), 0)
    return {
      online: sum(status => status.online),
      pending: sum(status => status.pending),
      firing: sum(status => status.firing),
      noData: sum(status => status.noData),
      flapping: sum(status => status.flapping),
      outboxDepth: this.storage.outbox.outboxDepth(),
      setAside: this.sender?.setAsideCount ?? 0,
      retention: this.retention?.last ?? null,
    }
  }

  /** The whole collector: what other workers count is added. */
  async status(): Promise<CollectorStatus> {
    const { others } = this.storage
    // A worker that cannot ask tells of itself: the hub is better served with a part than with nothing.
    const asked = others ? others.counts().catch(() => []) : []
    const all = (await this.shards?.status()) ?? []
    const workers = [{ ...this.countsOf(all), lag: await this.lag(all) }, ...(await asked)]
    const sum = (of: (counts: WorkerCounts) => number) => workers.reduce((total, counts) => total + of(counts), 0)
    const sweeps = workers.map(({ retention }) => retention).filter(retention => retention !== null)
    return {
      version: this.deps.version,
      role: this.deps.role,
      startedAtMs: this.startedAtMs,
      busLag: sum(counts => counts.lag ?? 0),
      outboxDepth: sum(counts => counts.outboxDepth ?? 0),
      outboxSetAside: sum(counts => counts.setAside ?? 0),
      agentsOnline: sum(counts => counts.online),
      rules: this.feeds && {
        ...feedStatus(this.feeds.rules.status()),
        loaded: this.rulesLoaded,
        invalid: this.rejected.length,
        pending: sum(counts => counts.pending),
        firing: sum(counts => counts.firing),
        noData: sum(counts => counts.noData),
        flapping: sum(counts => counts.flapping),
        invalidRules: this.rejected,
      },
      silences: this.feeds && {
        ...feedStatus(this.feeds.silences.status()),
        loaded: this.silences.loaded,
        active: activeSilences(this.silences, this.deps.nowMs()),
      },
      checks: this.deps.checksStatus?.() ?? null,
      // One worker at a time sweeps, not for ever the same.
      retention: sweeps.reduce<RetentionStatus | null>(
        (last, each) => (last && last.atMs > each.atMs ? last : each),
        null,
      ),
    }
  }

  /** Batches that evaluation or the store has not taken yet. */
  private async lag(all: readonly ShardStatus[]): Promise<number> {
    const stored = (await this.samples?.stats().catch(() => null))?.lagEntries ?? 0
    return this.storage.lag(all, stored)
  }

  private async scrape(): Promise<void> {
    const { metrics, nowMs } = this.deps
    const all = (await this.shards?.status()) ?? []
    const sum = (of: (status: ShardStatus) => number) => all.reduce((total, status) => total + of(status), 0)
    const evaluations = sum(status => status.evaluations)
    metrics.evaluations.inc(Math.max(0, evaluations - this.evaluationsBefore))
    this.evaluationsBefore = evaluations
    metrics.ruleStates.set(
      { state: 'ok' },
      sum(status => status.states - status.pending - status.firing),
    )
    metrics.ruleStates.set(
      { state: 'pending' },
      sum(status => status.pending),
    )
    metrics.ruleStates.set(
      { state: 'firing' },
      sum(status => status.firing),
    )
    metrics.agentsOnline.set(sum(status => status.online))
    metrics.snapshotBytes.set(sum(status => status.snapshotBytes))
    metrics.silencesActive.set(activeSilences(this.silences, nowMs()))
    metrics.outboxDepth.set(this.storage.outbox.outboxDepth())
    const oldest = this.storage.outbox.oldestEventMs()
    metrics.outboxAge.set(oldest === null ? 0 : Math.max(0, (nowMs() - oldest) / 1000))
    metrics.busLag.set(await this.lag(all))
    const stats = await this.samples?.stats().catch(() => null)
    if (!stats) return
    metrics.storeBufferRows.set(stats.bufferRows)
    // Both are dropped on the way to the store, by nobody else.
    metrics.hot.dropped.retention_locked = stats.droppedRetentionLocked
    metrics.hot.dropped.purged = stats.droppedPurged
  }
}
