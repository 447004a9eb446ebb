// The reading side of the Redis bus. One command asks for what is new on all partitions that are read here, every few
// milliseconds: a command a partition costs ten times as much, since each brings one or two batches.

import type { Redis } from 'ioredis'
import { limits } from '../../../core/limits.ts'
import { RedisScript, redisAway, redisCause } from '../store/redis/redis-client.ts'
import type { RedisKeys } from '../store/redis/redis-keys.ts'
import { LUA_PASS, LUA_TEXT, LUA_TRIM } from '../store/redis/redis-scripts.ts'
import type { BusGroup, BusReader } from './bus.ts'

/** The most entries of a stream that one command brings: where somebody asks for them, and of every partition. */
const READ_ENTRIES_MAX = 64
const NEWS_ENTRIES_MAX = 16
/** A partition whose entries nobody took for so long is not read here any more, or is behind: it is asked for then. */
const UNTAKEN_MAX_MS = 5_000

/** Nothing comes behind it. */
const LAST_ID = '18446744073709551615-18446744073709551615'

/**
 * KEYS: passed, state. ARGV: consumer, partition. A position ahead of the last one published is of a bus that is lost:
 * it counts no more, since its number is given out again. Returns the position that counts, and the lost one or 0.
 */
const PASSED = new RedisScript(`
local field = ARGV[1] .. ':' .. ARGV[2]
local passed = tonumber(redis.call('HGET', KEYS[1], field) or '0')
local head = tonumber(redis.call('HGET', KEYS[2], 'head:' .. ARGV[2]) or '0')
if passed <= head then return {passed, 0} end
redis.call('HDEL', KEYS[1], field)
return {0, passed}
`)

/** KEYS: passed, state, stream. ARGV: consumer, partition, position. */
const PASS = new RedisScript(`${LUA_TEXT}${LUA_TRIM}${LUA_PASS}
if pass(ARGV[1], ARGV[2], ARGV[3], KEYS[1]) then trim(ARGV[2], KEYS[3], KEYS[2], KEYS[1]) end
return 1
`)

/**
 * What the server refuses of the poll, for the operator: without it batches are found only by looking at the heads, a
 * quarter of a second or more after they came. Rights that were set for an older version may lack XREAD.
 */
export async function pollFaults(redis: Redis, keys: RedisKeys): Promise<string[]> {
  const cause = await redis.xread('COUNT', 1, 'STREAMS', keys.stream(0), LAST_ID).then(() => '', redisCause)
  return cause.startsWith('NOPERM')
    ? ['Redis refuses XREAD: alerts and samples come late; add +xread to the rights of the Redis user']
    : []
}

/** What is known of a partition that is read here. */
type Followed = {
  /** What was handed out ends here. */
  position: number
  /** The groups behind it that have come, since when. */
  ready: BusGroup[]
  readyAtMs: number
  /** Whether there was nothing more behind these. */
  isWhole: boolean
}

type Row = [id: Buffer, fields: Buffer[]]

const groupsOf = (partition: number, rows: readonly Row[]): BusGroup[] =>
  rows.map(([id, fields]) => {
    const last = Number.parseInt(id.toString('latin1'), 10)
    const count = Number(fields[5]!.toString('latin1'))
    return { partition, firstPosition: last - count + 1, count, bytes: fields[7]! }
  })

/** Hands out the first groups, about so many bytes. */
function take(followed: Followed, bytesMax: number): BusGroup[] {
  let count = 0
  for (let bytes = 0; count < followed.ready.length && bytes < bytesMax; count++)
    bytes += followed.ready[count]!.bytes.length
  const taken = followed.ready.splice(0, count)
  const last = taken.at(-1)
  if (last) followed.position = last.firstPosition + last.count - 1
  return taken
}

/**
 * A reader of the Redis bus, for one consumer. A partition is followed from the first read of it on: the poll asks for
 * what came behind the position that was handed out. Whoever reads from another position asks for it by itself.
 */
export class RedisBusReader implements BusReader {
  /** Those that this process has leases for. */
  partitions: readonly number[] = []
  private readonly followed = new Map<number, Followed>()
  /** The last position of each partition, as last asked for: less may be known of what came until then. */
  private readonly heads = new Float64Array(limits.stateShards)
  private timer: ReturnType<typeof setTimeout> | null = null
  private isClosed = false
  /** Redis may come back with other entries under the positions of those that are ready. */
  private readonly forgetAll = (): void => this.followed.clear()

  /**
   * `onNews` is called when some partition has new entries. `pollMs` is the poll interval. `onWentBack` is called when
   * a partition ends before a position that was passed on it.
   */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly pollMs: number,
    private readonly onNews: (partition: number) => void,
    private readonly onWentBack: (partition: number, passed: number) => void = () => {},
  ) {
    redis.on('close', this.forgetAll)
    this.poll()
  }

  private poll(): void {
    if (this.isClosed) return
    this.readNews()
      // The connection logs its own trouble; the next poll finds what came meanwhile.
      .catch(this.forgetAll)
      .finally(() => {
        if (!this.isClosed) this.timer = setTimeout(() => this.poll(), this.pollMs)
      })
  }

  private async readNews(): Promise<void> {
    const nowMs = performance.now()
    const asked: { readonly partition: number; readonly position: number }[] = []
    for (const [partition, { position, ready, readyAtMs }] of this.followed)
      if (ready.length === 0) asked.push({ partition, position })
      else if (nowMs - readyAtMs > UNTAKEN_MAX_MS) this.followed.delete(partition)
    if (asked.length === 0) return
    const streams = asked.map(({ partition }) => this.keys.stream(partition))
    const after = asked.map(({ position }) => `${position}-0`)
    const found = await this.redis.xreadBuffer('COUNT', NEWS_ENTRIES_MAX, 'STREAMS', ...streams, ...after)
    const rowsOf = new Map(found?.map(([key, rows]) => [key.toString(), rows]))
    for (const [index, { partition, position }] of asked.entries()) {
      const followed = this.followed.get(partition)
      // It was read meanwhile.
      if (followed?.position !== position || followed.ready.length > 0) continue
      const rows = rowsOf.get(streams[index]!) ?? []
      followed.isWhole = rows.length < NEWS_ENTRIES_MAX
      if (rows.length === 0) continue
      followed.ready = groupsOf(partition, rows)
      followed.readyAtMs = performance.now()
      this.onNews(partition)
    }
  }

  async read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]> {
    const followed = this.followed.get(partition)
    if (followed?.position === position) {
      if (followed.ready.length > 0) return take(followed, bytesMax)
      if (followed.isWhole && this.heads[partition]! <= position) return []
    }
    const rows = await this.redis
      .xrangeBuffer(this.keys.stream(partition), `(${position}-0`, '+', 'COUNT', READ_ENTRIES_MAX)
      .catch(redisAway)
    const anew: Followed = {
      position,
      ready: groupsOf(partition, rows),
      readyAtMs: performance.now(),
      isWhole: rows.length < READ_ENTRIES_MAX,
    }
    this.followed.set(partition, anew)
    return take(anew, bytesMax)
  }

  hasMore(partition: number): boolean {
    const followed = this.followed.get(partition)
    return !followed?.isWhole || followed.ready.length > 0
  }

  /** Whoever learns of a new head first tells of it, and what is known to be whole is so only up to there. */
  async lastPosition(partition: number): Promise<number> {
    const head = Number((await this.redis.hget(this.keys.busState, `head:${partition}`).catch(redisAway)) ?? 0)
    if (head !== this.heads[partition]) {
      this.heads[partition] = head
      this.onNews(partition)
    }
    return head
  }

  async passed(consumer: string, partition: number): Promise<number> {
    const { busPassed, busState } = this.keys
    const found = await PASSED.run(this.redis, [busPassed, busState], [consumer, partition]).catch(redisAway)
    const [passed, lost] = Array.isArray(found) ? found.map(Number) : []
    if (lost) this.onWentBack(partition, lost)
    return passed ?? 0
  }

  async pass(consumer: string, partition: number, position: number): Promise<void> {
    const { busPassed, busState, stream } = this.keys
    await PASS.run(this.redis, [busPassed, busState, stream(partition)], [consumer, partition, position])
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.redis.off('close', this.forgetAll)
    if (this.timer !== null) clearTimeout(this.timer)
  }
}
