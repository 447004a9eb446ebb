// Where a worker keeps what must outlive it, and what it shares with others: on the disk of its host, or in Redis with
// the other workers of its collector. The worker is wired against this; main.ts chooses.

import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type { RetentionStatus } from '../../admin/collector-status.ts'
import type { FeedStore } from '../../store/feed-store.ts'
import type { OutboxStore, Soon } from '../../store/outbox-store.ts'
import type { ServerAlerting, ShardStatus, ShardStorage } from '../evaluation/shard-messages.ts'
import type { ShardPool } from '../evaluation/shard-pool.ts'
import type { SamplesClient } from '../samples/samples-client.ts'
import type { SamplesBus } from '../samples/samples-messages.ts'

type ReloadFeed = 'rules' | 'silences' | 'checks' | 'settings'

/** Where the open groups are kept. One worker at a time has the leaderToken to sweep them. */
export type GroupStore = {
  /** Names the leaderToken while this worker has it; another name means that it was another's in between. */
  leaderToken(): string | null
  load(): Soon<unknown>
  /** Keeps the groups with the events that led to them. False: the leaderToken is another's, nothing was kept. */
  commit(events: readonly AlertEvent[], groups: unknown, nowMs: number): Soon<boolean>
  /** Servers that are declared lost, of all workers; null where the shards of this worker are all there are. */
  readonly down: (() => Promise<[serverId: string, sinceMs: number][]>) | null
  /** Of these nobody speaks any more. */
  forgetDown(serverIds: readonly string[]): Soon<void>
}

/** What /status counts over the shards of one worker, and the last sweep of its janitor. */
export type WorkerCounts = {
  readonly online: number
  readonly pending: number
  readonly firing: number
  readonly noData: number
  readonly flapping: number
  readonly retention: RetentionStatus | null
}

/** What the shards of other workers know. */
export type OtherWorkers = {
  readonly alerting: (serverId: string) => Promise<ServerAlerting | null>
  readonly online: (companyId: string) => Promise<number>
  /** Of each that answers within a second. */
  readonly counts: () => Promise<readonly WorkerCounts[]>
  /** Resolves once every other worker that answers in time has pulled the feed and put it in force. */
  readonly reload: (feed: ReloadFeed) => Promise<void>
}

/** What a storage is given once the worker runs. */
export type StorageParts = {
  readonly shards: ShardPool
  /** What this worker tells others of itself. */
  readonly counts: () => Promise<WorkerCounts>
  readonly samples: SamplesClient
  /** The set of rules is known: before that no shard is evaluated. */
  readonly hasRules: () => boolean
  /** Another process was told to pull a feed. Resolves once it is in force here, or cannot be pulled. */
  readonly onReload: (feed: ReloadFeed) => Promise<void>
  /** Another process wrote a tombstone. Resolves once its tenant is forgotten here. */
  readonly onTombstones: (news: readonly Tombstone[]) => Promise<void>
}

export type WorkerStorage = {
  readonly shards: ShardStorage
  readonly samplesBus: SamplesBus
  readonly outbox: OutboxStore
  readonly groups: GroupStore
  readonly tombstones: { living(): readonly Tombstone[]; write(tombstone: Tombstone): Soon<void> }
  /** The saved set of a feed. */
  readonly feedStore: (feed: 'rules' | 'silences') => Promise<FeedStore>
  /** Batches that evaluation has not taken yet, or the samples store. */
  readonly lag: (statuses: readonly ShardStatus[], samplesLag: number) => Promise<number>
  /** Tells every process to pull; null: this process is the only one that does. */
  readonly raiseReload: ((feed: ReloadFeed) => Promise<void>) | null
  readonly others: OtherWorkers | null
  readonly isReady: () => boolean
  /** Starts what goes on beside evaluation. */
  readonly start: (parts: StorageParts) => Soon<void>
  /** Evaluation of a shard ended by itself. */
  readonly lost: (shard: number, token: string, cause: string) => void
  /** Nothing more comes in: what runs is handed over or told for the last time. */
  readonly stop: () => Promise<void>
  /** After the threads have ended. */
  readonly close: () => Promise<void>
}
