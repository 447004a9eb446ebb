// Stores the raw set of a feed, so that a restart while the hub is unreachable runs the last set: in a file
// (file-feed-store.ts) or in Redis (redis/redis-feed-store.ts); the tests of test/contract/ run against both.
import type { FeedRecord, FeedState } from '../../../core/sync/feed.ts'
import { isJsonObject, type JsonObject } from './registry/agent-record.ts'

/** A record as the hub gave it, unchanged: fields that this version does not know are kept. */
export type RawRecord = FeedRecord & JsonObject

/** True for a value with the members that every record of a feed has: an id and a sync_version. */
export const isRawRecord = (value: unknown): value is RawRecord =>
  isJsonObject(value) &&
  typeof value.id === 'string' &&
  value.id !== '' &&
  typeof value.sync_version === 'number' &&
  Number.isSafeInteger(value.sync_version)

export interface FeedStore {
  /** The set of the last save as it was when the store was opened; empty when there is none, or it cannot be read. */
  load(): FeedState<RawRecord>
  /** Keeps a set durably. */
  save(state: FeedState<RawRecord>): Promise<void>
}
