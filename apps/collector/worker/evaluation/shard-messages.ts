// Messages between the main thread of a worker and its shard threads. Rules, silences and attributes go to the threads
// as plain data; events do not come back this way but through the outbox.

import type { RuleAlerting, SeriesAlerting } from '../../../../core/admin-api/alerting.ts'
import type { SilenceRecord } from '../../../../core/alerting/evaluate/suppression.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import type { EvaluationSettings, ServerAttributes } from '../../../../core/alerting/state/evaluation-state.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type { RedisAddress } from '../../store/redis/redis-address.ts'
import type { AnswerMessage, CallMessage } from '../../thread-calls.ts'

/** The configuration of a shard loop. */
export type ShardLoopConfig = {
  /** Shards of this loop; a shard has one loop. */
  readonly shards: readonly number[]
  readonly threadIndex: number
  /** The partition of the bus that holds these shards. */
  readonly partition: number
  /** How often the loop polls the bus without a wake-up (when another process publishes). */
  readonly pollMs: number
  readonly settings: EvaluationSettings
  readonly snapshotIntervalMs: number
  readonly sweepIntervalMs: number
  readonly presenceGraceMinMs: number
  /**
   * A turn that comes so long after the one before says that the host was paused or its clock set forward: nobody was
   * silent, nobody was heard. Left out, as where time is simulated, it is not looked at.
   */
  readonly pauseMs?: number
  /** How often the loop checks for series that are no longer sent; one that two checks in a row miss is dropped. */
  readonly seriesSweepIntervalMs: number
}

/** Where a thread finds its bus and stores its durable state. */
export type ShardStorage =
  | {
      readonly kind: 'file'
      readonly busPath: string
      readonly dataDir: string
      readonly snapshotDir: string
      /** In which the threads write what is stored, the outbox too. */
      readonly turns: SharedArrayBuffer
      /** The bus is written in this process, which wakes the thread. */
      readonly isWoken?: boolean
    }
  | { readonly kind: 'redis'; readonly address: RedisAddress; readonly prefix: string }

export type ShardThreadConfig = Omit<ShardLoopConfig, 'partition' | 'pollMs' | 'seriesSweepIntervalMs'> & {
  readonly storage: ShardStorage
}

/** Attributes of a server; null when all its agents were revoked, whose ids are then listed. */
export type ServerAttributesUpdate =
  | { readonly serverId: string; readonly attributes: ServerAttributes }
  | { readonly serverId: string; readonly attributes: null; readonly revokedAgentIds: readonly string[] }

export type ToShardThread =
  | {
      readonly kind: 'start'
      readonly config: ShardThreadConfig
      readonly rules: readonly RuleRecord[]
      /** The feed's cursor of the set. */
      readonly rulesSince: number
      readonly silences: readonly SilenceRecord[]
      readonly attributes: readonly ServerAttributesUpdate[]
      /** Tombstones in force: saved state of these tenants is dropped before anything is evaluated. */
      readonly tombstones: readonly Tombstone[]
    }
  | { readonly kind: 'wake' }
  /** Over Redis: this worker has acquired the lease of a shard, or has lost it. */
  | { readonly kind: 'acquire'; readonly shard: number; readonly token: string }
  | { readonly kind: 'revoke'; readonly shard: number }
  | { readonly kind: 'attributes'; readonly updates: readonly ServerAttributesUpdate[] }
  /** All tombstones in force: batches of these tenants are dropped. */
  | { readonly kind: 'tombstones'; readonly tombstones: readonly Tombstone[] }
  | { readonly kind: 'overflow'; readonly atMs: number }
  | CallMessage<ShardCalls>

/** Every call of the main thread: its arguments and its answer. */
export type ShardCalls = {
  /**
   * Over Redis: hands the lease of a shard to another worker. Answered once the shard is saved and its evaluation has
   * ended.
   */
  handOver: { args: [shard: number]; result: null }
  /** The difference from the rules of the previous call. Answered once every loop runs the new set. */
  setRules: {
    args: [changed: readonly RuleRecord[], removed: readonly string[], rulesSince: number]
    result: null
  }
  setSilences: { args: [silences: readonly SilenceRecord[]]; result: null }
  forget: { args: [companyId: string, serverId: string | null]; result: null }
  /** The number of the company's servers whose agent is up. */
  online: { args: [companyId: string]; result: number }
  /** Servers that are declared lost, and since when. */
  down: { args: []; result: readonly (readonly [serverId: string, sinceMs: number])[] }
  alerting: { args: [serverId: string]; result: ServerAlerting | null }
  status: { args: []; result: readonly ShardStatus[] }
  stop: { args: []; result: null }
}

/** The status of one loop: of all shards of a thread, or of a single shard. */
export type ShardStatus = {
  readonly partition: number
  readonly position: number
  readonly servers: number
  readonly online: number
  readonly series: number
  readonly states: number
  readonly pending: number
  readonly firing: number
  readonly noData: number
  readonly flapping: number
  readonly evaluations: number
  readonly samples: number
  readonly snapshotSeconds: number
  readonly snapshotBytes: number
  readonly undefinedSeries: number
}

export type ServerAlerting = {
  readonly companyId: string
  readonly presence: {
    readonly state: 'unknown' | 'up' | 'down'
    readonly lastSeenMs: number
    readonly intervalSeconds: number
  }
  readonly series: readonly SeriesAlerting[]
  readonly rules: readonly RuleAlerting[]
}

export type FromShardThread = ShardNotice | AnswerMessage

export type ShardNotice =
  | { readonly kind: 'ready'; readonly positions: readonly number[]; readonly faults: readonly string[] }
  | {
      readonly kind: 'events'
      readonly count: number
      readonly types: Readonly<Record<string, number>>
      readonly sampleToEventMs: readonly number[]
    }
  | {
      readonly kind: 'presence'
      readonly serverId: string
      readonly companyId: string
      readonly state: 'up' | 'down'
      readonly atMs: number
    }
  /** Every shard of the loop is saved up to this position of the bus. */
  | { readonly kind: 'snapshot'; readonly position: number }
  /** Over Redis: the partition ends before a position that was evaluated; what is on it now is evaluated whole. */
  | { readonly kind: 'wentBack'; readonly shard: number; readonly from: number; readonly to: number }
  /** Over Redis: events that it had lost are in the outbox again, and the states behind them in the journal. */
  | { readonly kind: 'committedAgain'; readonly shard: number; readonly events: number }
  /** Over Redis: the evaluation of a shard ended by itself; its lease must be acquired again. */
  | { readonly kind: 'lost'; readonly shard: number; readonly token: string; readonly cause: string }
  | {
      readonly kind: 'log'
      readonly level: 'info' | 'warn' | 'error'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    }
