// The raw set of a feed and its cursor in Redis, for all workers of a collector: one that is started on an empty host
// while the hub is down runs the set that the others run. A set with a lower cursor never replaces one with a higher.
import type { Redis } from 'ioredis'
import { emptyFeed, type FeedState } from '../../../../core/sync/feed.ts'
import { type FeedStore, isRawRecord, type RawRecord } from '../feed-store.ts'
import { isJsonObject } from '../registry/agent-record.ts'
import { RedisScript } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

/** KEYS: hash of a feed. ARGV: since, time, records. */
const SAVE = new RedisScript(`
if tonumber(redis.call('HGET', KEYS[1], 'since') or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'since', ARGV[1], 'synced_at_ms', ARGV[2], 'records', ARGV[3])
return 1
`)

export class RedisFeedStore implements FeedStore {
  private constructor(
    private readonly redis: Redis,
    private readonly key: string,
    private readonly found: FeedState<RawRecord>,
  ) {}

  /** Reads the set that was kept. */
  static async open(redis: Redis, keys: RedisKeys, feed: string): Promise<RedisFeedStore> {
    const key = keys.feed(feed)
    const [since, syncedAtMs, text] = await redis.hmget(key, 'since', 'synced_at_ms', 'records')
    if (!text) return new RedisFeedStore(redis, key, emptyFeed())
    const parsed: unknown = JSON.parse(text)
    const records = new Map<string, RawRecord>()
    for (const record of Array.isArray(parsed) ? parsed : [])
      if (isJsonObject(record) && isRawRecord(record)) records.set(record.id, record)
    return new RedisFeedStore(redis, key, { since: Number(since ?? 0), syncedAtMs: Number(syncedAtMs ?? 0), records })
  }

  /** The set as it was at the opening. */
  load(): FeedState<RawRecord> {
    return this.found
  }

  async save(state: FeedState<RawRecord>): Promise<void> {
    const records = JSON.stringify([...state.records.values()])
    await SAVE.run(this.redis, [this.key], [state.since, state.syncedAtMs, records])
  }
}
