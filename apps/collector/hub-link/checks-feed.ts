// The checks feed as a set that agents' configs are made of (document 1 "Check sync envelope").
import type { Logger } from 'pino'
import { isGone } from '../../../core/sync/gone-records.ts'
import { type CheckCounts, type CheckCoverage, CheckSet, type Server } from '../../../core/wire/checks-of-server.ts'
import type { SyncResult, SyncStatus } from '../../hub-link/sync-loop.ts'
import type { ChecksSource } from '../ingest/ingest.ts'
import { FileFeedStore } from '../store/file-feed-store.ts'
import type { AgentRecord } from '../store/registry/agent-record.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { FeedSync } from './feed-sync.ts'
import type { HubClient } from './hub-client.ts'

export class ChecksFeed implements ChecksSource {
  private set = new CheckSet()
  private readonly listeners = new Set<() => void>()
  private readonly sync: FeedSync
  private readonly registry: { all(): Iterable<AgentRecord> }

  /** Puts the saved checks in force at once; `start` pulls. */
  constructor(parts: {
    readonly directory: string
    readonly hub: HubClient | null
    readonly registry: { all(): Iterable<AgentRecord> }
    readonly intervalMs: number
    readonly log: Logger
    readonly metrics: CollectorMetrics
    readonly nowMs: () => number
  }) {
    const { directory, hub, registry, intervalMs, log, metrics, nowMs } = parts
    this.registry = registry
    metrics.onScrape(() => metrics.checksTruncated.set(this.counts().truncated))
    this.sync = new FeedSync({
      feed: 'checks',
      intervalMs,
      hub,
      store: new FileFeedStore(directory, 'checks', log),
      isGone: isGone.checks,
      onApplied: records => {
        const known = new Set(this.set.invalidIds)
        this.set = new CheckSet(records.values())
        for (const checkId of this.set.invalidIds)
          if (!known.has(checkId)) log.warn({ check_id: checkId }, 'a check of the hub is not valid and is skipped')
        metrics.checksLoaded.set(this.set.counts.loaded)
        for (const listener of this.listeners) listener()
      },
      log,
      metrics,
      nowMs,
    })
  }

  current(): CheckSet {
    return this.set
  }
  onChange(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
  counts(): CheckCounts & CheckCoverage {
    return { ...this.set.counts, ...this.set.coverage(this.servers()) }
  }
  private *servers(): Iterable<Server> {
    for (const record of this.registry.all()) if (record.state !== 'revoked') yield record
  }
  start(): Promise<SyncResult> {
    return this.sync.start()
  }
  reload(): Promise<SyncResult> {
    return this.sync.reload()
  }
  status(): SyncStatus {
    return this.sync.status()
  }
  stop(): Promise<void> {
    return this.sync.stop()
  }
}
