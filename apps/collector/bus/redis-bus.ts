// The bus between hosts: a Redis stream a shard (decision G-142). One script assigns positions, adds entries and
// refuses at the bound; another records a passed position and removes what all consumers have passed. An acknowledged
// batch is in Redis' append-only file with `appendfsync always`, and on `redis.wait_replicas` replicas. With
// `everysec` Redis may defer its writes for up to two seconds while its disk is busy, and loses what it acknowledged
// meanwhile when it is killed; a replica that is promoted may lack what came last. Such a loss is counted when the
// connection is back.

import type { Redis } from 'ioredis'
import { assert } from '../../../core/assert.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { limits } from '../../../core/limits.ts'
import { asBuffer, RedisScript, redisCause, whenReplicated } from '../store/redis/redis-client.ts'
import type { RedisKeys } from '../store/redis/redis-keys.ts'
import { LUA_NOW, LUA_PASS, LUA_TEXT, LUA_TRIM } from '../store/redis/redis-scripts.ts'
import {
  type BusGroup,
  type BusReader,
  type BusStats,
  type BusWriter,
  busConsumers,
  type PublishRefusal,
} from './bus.ts'
import { LostBatches } from './lost-batches.ts'

const PARTITIONS = Array.from({ length: limits.stateShards }, (_, partition) => partition)
/** The most bytes of one script: Redis does nothing else while it runs. */
const FLUSH_BYTES_MAX = 2 * 1024 * 1024
/** The most bytes that may wait for Redis in this process; beyond it the bus counts as full. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
const READ_ENTRIES_MAX = 64

/**
 * KEYS: state, a stream a group. ARGV: most bytes, most age, then partition, count, bytes a group. Returns the last
 * position of each group, or 0 at the bound.
 */
const PUBLISH = new RedisScript(`${LUA_NOW}${LUA_TEXT}
local state = KEYS[1]
local nowMs = now()
local function full()
  redis.call('HSET', state, 'overflow', text(nowMs))
  return 0
end
if tonumber(redis.call('HGET', state, 'held') or '0') >= tonumber(ARGV[1]) then return full() end
local oldest = {'HMGET', state}
for partition = 0, ${limits.stateShards - 1} do oldest[partition + 3] = 'oldest:' .. partition end
for _, atMs in ipairs(redis.call(unpack(oldest))) do
  if atMs and nowMs - tonumber(atMs) > tonumber(ARGV[2]) then return full() end
end
local lasts = {}
for group = 2, #KEYS do
  local at = 3 + (group - 2) * 3
  local partition, count, bytes = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local last = redis.call('HINCRBY', state, 'head:' .. partition, count)
  local total = redis.call('HINCRBY', state, 'bytes:' .. partition, #bytes)
  redis.call('HINCRBY', state, 'held:' .. partition, #bytes)
  redis.call('HINCRBY', state, 'held', #bytes)
  redis.call('HSETNX', state, 'oldest:' .. partition, text(nowMs))
  redis.call('XADD', KEYS[group], text(last) .. '-0', 't', text(nowMs), 'c', text(total - #bytes), 'n', count, 'b', bytes)
  lasts[group - 1] = last
end
return lasts
`)

/** The bus cannot be read because Redis is unreachable. */
export class BusAway extends Error {}

const away = (error: unknown): never => {
  throw new BusAway(redisCause(error), { cause: error })
}

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
 * KEYS: passed, state, streams. Returns the time at which the oldest entry came that the samples consumer has not
 * passed, or now.
 */
const STORED_BEFORE = new RedisScript(`${LUA_NOW}${LUA_TEXT}
local oldest = now()
for partition = 0, #KEYS - 3 do
  local passed = tonumber(redis.call('HGET', KEYS[1], '${busConsumers.samples}:' .. partition) or '0')
  if tonumber(redis.call('HGET', KEYS[2], 'head:' .. partition) or '0') > passed then
    local first = redis.call('XRANGE', KEYS[partition + 3], '(' .. text(passed) .. '-0', '+', 'COUNT', 1)[1]
    if first then oldest = math.min(oldest, tonumber(first[2][2])) end
  end
end
return text(oldest)
`)

type Pending = {
  readonly partition: number
  readonly entry: Uint8Array
  readonly resolve: (refusal: PublishRefusal | null) => void
}

type RedisBusWriterOptions = {
  readonly redis: Redis
  readonly keys: RedisKeys
  /** The bound: bytes and age of what at least one consumer has not passed. */
  readonly bytesMax: number
  readonly ageMaxMs: number
  /** Replicas that must have a batch before it is acknowledged. */
  readonly replicas?: number
  readonly onError: (cause: string) => void
  /** Redis has not any more so many of the batches that this process acknowledged. */
  readonly onLost?: (batches: number) => void
}

/**
 * The writer of the Redis bus, one for each process. Entries that arrive while a script runs go with the next one, so
 * batches of a server keep their order. A script without a response is not sent again: its publishers get `failed`, and
 * the agents send again.
 */
export class RedisBusWriter implements BusWriter {
  private readonly options: RedisBusWriterOptions
  private pending: Pending[] = []
  private pendingBytes = 0
  private flushing: Promise<void> | null = null
  private isFailing = false
  private readonly lostBatches = new LostBatches()
  private readonly onReady = (): void => void this.countLost().catch(error => this.options.onError(redisCause(error)))

  constructor(options: RedisBusWriterOptions) {
    this.options = options
    options.redis.on('ready', this.onReady)
  }

  /** Runs as the first command of a connection, so that nothing of this process is published before. */
  private async countLost(): Promise<void> {
    const { redis, keys, onLost } = this.options
    const heads = await readHeads(redis, keys)
    const lost = heads.reduce((sum, head, partition) => sum + this.lostBatches.takeLost(partition, head), 0)
    if (lost > 0) onLost?.(lost)
  }

  publish(serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    if (this.pendingBytes >= PENDING_BYTES_MAX) return Promise.resolve('full')
    return new Promise(resolve => {
      this.pending.push({ partition: shardOfServer(serverId), entry: entry.slice(), resolve })
      this.pendingBytes += entry.length
      this.flushing ??= this.flushAll()
    })
  }

  private async flushAll(): Promise<void> {
    // Waits a microtask, so that entries published in the same turn go together.
    await Promise.resolve()
    while (this.pending.length > 0) {
      let count = 0
      let bytes = 0
      while (count < this.pending.length && bytes < FLUSH_BYTES_MAX) bytes += this.pending[count++]!.entry.length
      const group = this.pending.splice(0, count)
      const refusal = await this.send(group)
      this.pendingBytes -= bytes
      assert(this.pendingBytes >= 0, 'no more is sent than was handed over')
      for (const { resolve } of group) resolve(refusal)
    }
    this.flushing = null
  }

  private async send(group: readonly Pending[]): Promise<PublishRefusal | null> {
    const { redis, keys, bytesMax, ageMaxMs, replicas = 0, onError } = this.options
    const byPartition = new Map<number, Uint8Array[]>()
    for (const { partition, entry } of group) {
      const entries = byPartition.get(partition)
      if (entries) entries.push(entry)
      else byPartition.set(partition, [entry])
    }
    const scriptKeys = [keys.busState]
    const args: (string | number | Buffer)[] = [bytesMax, ageMaxMs]
    for (const [partition, entries] of byPartition) {
      scriptKeys.push(keys.stream(partition))
      args.push(partition, entries.length, entries.length === 1 ? asBuffer(entries[0]!) : Buffer.concat(entries))
    }
    try {
      const lasts = await PUBLISH.run(redis, scriptKeys, args)
      if (!Array.isArray(lasts)) return 'full'
      await whenReplicated(redis, replicas)
      const atMs = performance.now()
      for (const [index, [partition, entries]] of [...byPartition].entries())
        this.lostBatches.noteAcknowledged(partition, Number(lasts[index]), entries.length, atMs)
      this.isFailing = false
      return null
    } catch (error) {
      const cause = redisCause(error)
      if (cause.startsWith('OOM')) return 'full'
      if (!this.isFailing) onError(cause)
      this.isFailing = true
      return 'failed'
    }
  }

  async stats(): Promise<BusStats> {
    return busStats(this.options.redis, this.options.keys)
  }

  async close(): Promise<void> {
    this.options.redis.off('ready', this.onReady)
    await this.flushing
  }
}

/** The last position of every partition. */
export async function readHeads(redis: Redis, keys: RedisKeys): Promise<number[]> {
  const found = await redis.hmget(keys.busState, ...PARTITIONS.map(partition => `head:${partition}`))
  return found.map(text => Number(text ?? 0))
}

/** Every batch that came before this instant, ms by the clock of Redis, is in the samples store. */
export async function storedBeforeMs(redis: Redis, keys: RedisKeys): Promise<number> {
  const streams = PARTITIONS.map(partition => keys.stream(partition))
  return Number(await STORED_BEFORE.run(redis, [keys.busPassed, keys.busState, ...streams], []))
}

/** Lag and size of the bus over all partitions. */
export async function busStats(redis: Redis, keys: RedisKeys): Promise<BusStats> {
  const [state, passed] = await Promise.all([redis.hgetall(keys.busState), redis.hgetall(keys.busPassed)])
  let lagEntries = 0
  let oldestAtMs: number | null = null
  for (const partition of PARTITIONS) {
    const head = Number(state[`head:${partition}`] ?? 0)
    const passedTo = (consumer: string): number => Number(passed[`${consumer}:${partition}`] ?? 0)
    lagEntries += Math.max(0, head - Math.min(passedTo('evaluation'), passedTo('samples')))
    const oldest = state[`oldest:${partition}`]
    if (oldest !== undefined) oldestAtMs = Math.min(oldestAtMs ?? Number.POSITIVE_INFINITY, Number(oldest))
  }
  return { lagEntries, bytes: Number(state.held ?? 0), oldestAtMs }
}

/**
 * A reader of the Redis bus. It polls the last positions of all partitions with one command every few milliseconds, and
 * reads only partitions that have something new. `partitions` are those that this process has leases for.
 */
export class RedisBusReader implements BusReader {
  partitions: readonly number[] = []
  private heads = new Float64Array(limits.stateShards)
  private hasHeads = false
  private timer: ReturnType<typeof setTimeout> | null = null
  private isClosed = false

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
    this.poll()
  }

  private poll(): void {
    if (this.isClosed) return
    this.readHeads()
      .catch(() => {
        // The connection logs its own trouble; the next poll finds what came meanwhile.
        this.hasHeads = false
      })
      .finally(() => {
        if (!this.isClosed) this.timer = setTimeout(() => this.poll(), this.pollMs)
      })
  }

  private async readHeads(): Promise<void> {
    const heads = await readHeads(this.redis, this.keys)
    this.hasHeads = true
    for (const [partition, head] of heads.entries()) this.noteHead(partition, head)
  }

  /** Whoever learns of a new head first tells of it: the next poll finds nothing new. */
  private noteHead(partition: number, head: number): void {
    if (head === this.heads[partition]) return
    this.heads[partition] = head
    this.onNews(partition)
  }

  async read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]> {
    if (this.hasHeads && this.heads[partition] === position) return []
    const from = `(${position}-0`
    const rows = await this.redis
      .xrangeBuffer(this.keys.stream(partition), from, '+', 'COUNT', READ_ENTRIES_MAX)
      .catch(away)
    const groups: BusGroup[] = []
    let bytes = 0
    for (const [id, fields] of rows) {
      const last = Number.parseInt(id.toString('latin1'), 10)
      const count = Number(fields[5]!.toString('latin1'))
      const batches = fields[7]!
      groups.push({ partition, firstPosition: last - count + 1, count, bytes: batches })
      bytes += batches.length
      if (bytes >= bytesMax) break
    }
    return groups
  }

  async lastPosition(partition: number): Promise<number> {
    const head = Number((await this.redis.hget(this.keys.busState, `head:${partition}`).catch(away)) ?? 0)
    this.noteHead(partition, head)
    return head
  }

  async passed(consumer: string, partition: number): Promise<number> {
    const { busPassed, busState } = this.keys
    const found = await PASSED.run(this.redis, [busPassed, busState], [consumer, partition]).catch(away)
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
    if (this.timer !== null) clearTimeout(this.timer)
  }
}
