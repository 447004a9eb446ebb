// What processes of one collector announce to each other through Redis: reload calls (a counter for each feed),
// tombstones of purged tenants, and that ingest had to refuse batches. Each process polls all of it with one round trip
// every second.

import type { Redis } from 'ioredis'
import { isInForce, type Tombstone } from '../../../../core/retention/tombstone.ts'
import { isKeptAt, isTombstone } from '../tombstones.ts'
import { RedisScript } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

export const reloadFeeds = ['rules', 'silences', 'checks', 'settings'] as const
export type ReloadFeed = (typeof reloadFeeds)[number]

/**
 * KEYS: tombstones, newest notes of rules. ARGV: field, JSON, purged company or empty, prefix of rule texts, then
 * fields that ran out.
 */
const WRITE_TOMBSTONE = new RedisScript(`
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for at = 5, #ARGV do redis.call('HDEL', KEYS[1], ARGV[at]) end
if ARGV[3] ~= '' then
  local notes = redis.call('HGETALL', KEYS[2])
  for at = 1, #notes, 2 do
    local note = cjson.decode(notes[at + 1])
    if note.c == ARGV[3] then
      redis.call('HDEL', KEYS[2], notes[at])
      for _, name in ipairs({ note.a, note.b }) do
        if name ~= cjson.null then redis.call('DEL', ARGV[4] .. name) end
      end
    end
  end
end
return 1
`)

type SharedChanges = {
  /** Feeds whose reload was requested since the last poll. */
  readonly reloads: readonly ReloadFeed[]
  /** Tombstones that were not there at the last poll. */
  readonly tombstones: readonly Tombstone[]
  /** When ingest last refused a batch at the bound, if that changed since the last poll; ms. */
  readonly overflowAtMs: number | null
}

const fieldOf = ({ companyId, serverId }: Tombstone): string => `${companyId} ${serverId ?? ''}`

/** Tombstones that hold, or held not long ago, as Redis has them now. */
export async function readTombstones(redis: Redis, keys: RedisKeys, nowMs: number): Promise<Tombstone[]> {
  const texts = await redis.hvals(keys.tombstones)
  return texts
    .map((text): unknown => JSON.parse(text))
    .filter(isTombstone)
    .filter(isKeptAt(nowMs))
}

export class RedisShared {
  private counts: readonly (string | null)[] | null = null
  private held: readonly Tombstone[] = []
  /** What the texts of the last poll say. */
  private read: ReadonlyMap<string, unknown> = new Map()
  private overflowAtMs = 0

  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly nowMs: () => number,
  ) {}

  /** Asks every process to pull a feed now. Rejects when Redis does not accept it. */
  async raiseReload(feed: ReloadFeed): Promise<void> {
    await this.redis.incr(this.keys.reload(feed))
  }

  /** Reads what changed. The first poll returns the tombstones in force, and no reloads. */
  async poll(): Promise<SharedChanges> {
    const [counts, tombstones, overflow] = await Promise.all([
      this.redis.mget(reloadFeeds.map(feed => this.keys.reload(feed))),
      this.redis.hvals(this.keys.tombstones),
      this.redis.hget(this.keys.busState, 'overflow'),
    ])
    const before = this.counts
    this.counts = counts
    const overflowAtMs = Number(overflow ?? 0)
    const isNewOverflow = overflowAtMs > this.overflowAtMs
    this.overflowAtMs = overflowAtMs
    return {
      reloads: reloadFeeds.filter((_, index) => before !== null && counts[index] !== before[index]),
      tombstones: this.take(tombstones),
      overflowAtMs: isNewOverflow ? overflowAtMs : null,
    }
  }

  private take(texts: readonly string[]): Tombstone[] {
    const nowMs = this.nowMs()
    const before = this.read
    // There may be thousands of a week, and nearly all of them are those of the last poll.
    this.read = new Map(texts.map(text => [text, before.get(text) ?? JSON.parse(text)]))
    const kept = [...this.read.values()].filter(isTombstone).filter(isKeptAt(nowMs))
    const untilOf = new Map(this.held.map(held => [fieldOf(held), held.untilMs]))
    this.held = kept
    return kept.filter(
      found => isInForce(found, nowMs) && found.untilMs > (untilOf.get(fieldOf(found)) ?? Number.NEGATIVE_INFINITY),
    )
  }

  /** Tombstones that still hold, as of the last poll. */
  living(): readonly Tombstone[] {
    const nowMs = this.nowMs()
    return this.held.filter(tombstone => isInForce(tombstone, nowMs))
  }

  /** Those that hold, or held not long ago: what was received before their end may still come from the bus. */
  kept(): readonly Tombstone[] {
    return this.held.filter(isKeptAt(this.nowMs()))
  }

  /** Makes a tombstone known to every process. Rejects when it cannot be written. */
  async write(tombstone: Tombstone): Promise<void> {
    const isKept = isKeptAt(this.nowMs())
    const over = this.held.filter(held => !isKept(held)).map(fieldOf)
    await WRITE_TOMBSTONE.run(
      this.redis,
      [this.keys.tombstones, this.keys.newestRules],
      [
        fieldOf(tombstone),
        JSON.stringify(tombstone),
        tombstone.serverId === null ? tombstone.companyId : '',
        this.keys.ruleText(''),
        ...over.filter(field => field !== fieldOf(tombstone)),
      ],
    )
    this.held = [...this.held.filter(held => fieldOf(held) !== fieldOf(tombstone)), tombstone]
  }
}
