// Messages between the main thread and the samples thread.

import type { RangePlan, SeriesPlan } from '../../../../core/query/query-plan.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type { ExpiredDays, Expiry } from '../../store/clickhouse/samples-delete.ts'
import type { MetricsResponse, SeriesResponse } from '../../store/clickhouse/samples-query.ts'
import type { RedisAddress } from '../../store/redis/redis-address.ts'
import type { AnswerMessage, CallMessage } from '../../thread-calls.ts'
import type { CompanyValues, LatestValue } from './latest-values.ts'

/** How long, and for how many bytes of the bus, samples may be buffered before they are stored. */
export type SampleHold = { readonly ms: number; readonly bytes: number }

/** Where the thread finds its bus. */
export type SamplesBus =
  | {
      readonly kind: 'file'
      readonly path: string
      readonly hold: SampleHold
      /** The bus is written in this process, which wakes the thread. */
      readonly isWoken?: boolean
    }
  | {
      readonly kind: 'redis'
      readonly address: RedisAddress
      readonly prefix: string
      /** Of all workers together. */
      readonly hold: SampleHold
    }

export type SamplesThreadOptions = {
  readonly bus: SamplesBus
  /** Every consumer of the bus, so that nothing is removed before all know of it. */
  readonly consumers: readonly string[]
  /** `embedded:DIR` or the URL of a ClickHouse server. */
  readonly clickhouse: string
  readonly database: string
  /** Of a server: the cluster whose nodes hold the tables. */
  readonly cluster?: string | null
  /** What is known of purges before the first sample is read. */
  readonly tombstones?: readonly Tombstone[]
}

export type RetentionMemoryRow = {
  readonly companyId: string
  readonly firstSeenAtMs: number
  /** The largest retention of the last 30 days; Infinity when it was unlimited. */
  readonly largestDays: number
}

export type SamplesStats = {
  /** The store answers and its schema is right. */
  readonly isReady: boolean
  readonly lastError: string | null
  readonly rowsStored: number
  readonly blocksStored: number
  readonly insertErrors: number
  readonly bufferRows: number
  readonly droppedPurged: number
  readonly droppedRetentionLocked: number
  /** Entries of the bus that are not stored yet. */
  readonly lagEntries: number
  readonly rollupErrors: number
  /** Cells of that width are complete before this instant, ms. */
  readonly completeBeforeMs: { readonly '5m': number; readonly '1h': number }
}

/** Every call of the main thread: its arguments and its answer. */
export type SamplesCalls = {
  querySeries: { args: [plan: SeriesPlan]; result: SeriesResponse }
  queryMetrics: { args: [plan: RangePlan, metrics: readonly string[]]; result: MetricsResponse }
  seriesKeys: { args: [companyId: string, serverId: string, metrics: readonly string[]]; result: string[] }
  latestValues: {
    args: [companyId: string, serverId: string, metrics: readonly string[], sinceMs: number]
    result: LatestValue[]
  }
  companyValues: {
    args: [companyId: string, metric: string, sinceMs: number, isOwnOnly?: boolean]
    result: CompanyValues
  }
  purge: { args: [companyId: string, serverId: string | null]; result: null }
  expire: { args: [expiries: readonly Expiry[], isDryRun: boolean]; result: ExpiredDays[] }
  reclaim: { args: []; result: null }
  companies: { args: []; result: string[] }
  rememberRetention: {
    args: [seen: readonly { readonly companyId: string; readonly retentionDays: number | null }[], nowMs: number]
    result: RetentionMemoryRow[]
  }
  runRollups: { args: [nowMs: number]; result: null }
  stats: { args: []; result: SamplesStats }
  flush: { args: []; result: null }
  stop: { args: []; result: null }
}

const serverCalls = ['querySeries', 'queryMetrics', 'seriesKeys', 'latestValues'] as const
export type ServerCall = (typeof serverCalls)[number]

/** What one worker asks of another: the one whose shard the server is in answers. */
export type ServerQuestion = {
  [C in ServerCall]: { readonly call: C; readonly serverId: string; readonly args: SamplesCalls[C]['args'] }
}[ServerCall]

/** Whether a message of another process of this collector is such a call; its arguments are taken as they are. */
export const isServerQuestion = (value: unknown): value is ServerQuestion =>
  typeof value === 'object' &&
  value !== null &&
  'call' in value &&
  serverCalls.some(call => call === value.call) &&
  'serverId' in value &&
  typeof value.serverId === 'string' &&
  'args' in value &&
  Array.isArray(value.args)

/** The servers of one worker, and how many of the shards it has. */
export type ValuesOfWorker = { readonly shards: number; readonly values: CompanyValues }

export const isValuesOfWorker = (value: unknown): value is ValuesOfWorker =>
  typeof value === 'object' &&
  value !== null &&
  'shards' in value &&
  typeof value.shards === 'number' &&
  'values' in value &&
  typeof value.values === 'object' &&
  value.values !== null &&
  'serverIds' in value.values

export type ToSamplesThread =
  | { readonly kind: 'start'; readonly options: SamplesThreadOptions }
  /** The bus has new entries. */
  | { readonly kind: 'wake' }
  /** The bus is full: buffered samples must be stored. */
  | { readonly kind: 'release' }
  | { readonly kind: 'tombstones'; readonly tombstones: readonly Tombstone[] }
  /** Over Redis: the partitions that this worker has the lease of, and whether rollups are its to compute. */
  | { readonly kind: 'partitions'; readonly partitions: readonly number[]; readonly isLeader: boolean }
  | {
      readonly kind: 'retention'
      readonly retentionDays: readonly (readonly [companyId: string, days: number | null])[]
    }
  | CallMessage<SamplesCalls>

export type FromSamplesThread =
  | { readonly kind: 'started' }
  /** The plan retention of these companies is to be told (`retention`). */
  | { readonly kind: 'retentionWanted'; readonly companyIds: readonly string[] }
  | { readonly kind: 'fatal'; readonly message: string }
  | AnswerMessage
  | { readonly kind: 'inserted'; readonly rows: number; readonly seconds: number }
  | { readonly kind: 'trouble'; readonly message: string }
