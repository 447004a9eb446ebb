// The storage of a worker for state that must survive it and that it shares with others: files of its host, or Redis
// together with the other workers of the collector. main.ts chooses; the worker only knows this interface.

import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type { RetentionStatus } from '../../admin/collector-status.ts'
import type { FeedStore } from '../../store/feed-store.ts'
import type { OutboxStore, Soon } from '../../store/outbox-store.ts'
import type { ServerAlerting, ShardStatus, ShardStorage } from '../evaluation/shard-messages.ts'
import type { ShardPool } from '../evaluation/shard-pool.ts'
import type { SamplesClient } from '../samples/samples-client.ts'
import type { SamplesBus, ServerQuestion, ValuesOfWorker } from '../samples/samples-messages.ts'

type ReloadFeed = 'rules' | 'silences' | 'checks' | 'settings'

/** The store of the open groups. Only the leader, which has the leader token, sweeps them. */
export type GroupStore = {
  /**
   * The leader token while this worker is the leader, else null. A changed token means that another worker was the
   * leader in between.
   */
  leaderToken(): string | null
  load(): Soon<unknown>
  /**
   * Stores the groups with the events that led to them. False when this worker is no longer the leader; nothing was
   * stored.
   */
  commit(events: readonly AlertEvent[], groups: unknown, nowMs: number): Soon<boolean>
  /** Servers that are declared lost, of all workers; null where the shards of this worker are all there are. */
  readonly down: (() => Promise<[serverId: string, sinceMs: number][]>) | null
  /** Drops servers that were purged or have no agent any more. */
  forgetDown(serverIds: readonly string[]): Soon<void>
}

/** The counts of one worker's shards for /status, and its last retention sweep. */
export type WorkerCounts = {
  readonly online: number
  readonly pending: number
  readonly firing: number
  readonly noData: number
  readonly flapping: number
  /**
   * Batches on the bus that were not taken by evaluation, or cannot be queried yet; a worker of before does not say.
   */
  readonly lag?: number
  /** Events that wait for the hub; a worker of before does not say. */
  readonly outboxDepth?: number
  /** Alert keys and companies whose events are set aside; a worker of before does not say. */
  readonly setAside?: number
  readonly retention: RetentionStatus | null
}

/** What the shards of other workers know. */
export type OtherWorkers = {
  /** Whether the shard of a server is this worker's, and how many shards are. */
  readonly isOwn: (serverId: string) => boolean
  readonly ownShards: () => number
  /** What the worker of a server answers to a call about its samples; undefined when none does in time. */
  readonly samples: (question: ServerQuestion) => Promise<unknown>
  /** Newest values of a company from the workers that answer in time, each of its own servers. */
  readonly companyValues: (companyId: string, metric: string, sinceMs: number) => Promise<readonly ValuesOfWorker[]>
  readonly alerting: (serverId: string) => Promise<ServerAlerting | null>
  readonly online: (companyId: string) => Promise<number>
  /** The counts of each worker that answers within a second. */
  readonly counts: () => Promise<readonly WorkerCounts[]>
  /** Resolves once every other worker that answers in time has pulled the feed and put it in force. */
  readonly reload: (feed: ReloadFeed) => Promise<void>
}

/** What the worker provides to its storage once it runs. */
export type StorageParts = {
  readonly shards: ShardPool
  /** The counts that this worker reports to the others. */
  readonly counts: () => Promise<WorkerCounts>
  readonly samples: SamplesClient
  /** True once the set of rules is known: no shard is evaluated before. */
  readonly hasRules: () => boolean
  /**
   * A reload of a feed was requested at another process. Resolves once the feed is in force here, or cannot be pulled.
   */
  readonly onReload: (feed: ReloadFeed) => Promise<void>
  /** Another process wrote tombstones. Resolves once the state of their tenants is dropped here. */
  readonly onTombstones: (news: readonly Tombstone[]) => Promise<void>
}

export type WorkerStorage = {
  readonly shards: ShardStorage
  readonly samplesBus: SamplesBus
  readonly outbox: OutboxStore
  readonly groups: GroupStore
  readonly tombstones: {
    living(): readonly Tombstone[]
    kept(): readonly Tombstone[]
    write(tombstone: Tombstone): Soon<void>
  }
  /** The saved set of a feed. */
  readonly feedStore: (feed: 'rules' | 'silences') => Promise<FeedStore>
  /** The number of batches of this worker's shards that evaluation has not processed, or queries cannot see yet. */
  readonly lag: (statuses: readonly ShardStatus[], samplesLag: number) => Promise<number>
  /** Asks every process to pull; null: this process is the only one that pulls. */
  readonly raiseReload: ((feed: ReloadFeed) => Promise<void>) | null
  readonly others: OtherWorkers | null
  readonly isReady: () => boolean
  /** Starts the background work: polls, and over Redis the leases. */
  readonly start: (parts: StorageParts) => Soon<void>
  /** Evaluation of a shard ended by itself. */
  readonly lost: (shard: number, token: string, cause: string) => void
  /** The worker stops: hands over leases, or records the last positions. */
  readonly stop: () => Promise<void>
  /** Called after the threads have ended. */
  readonly close: () => Promise<void>
}
