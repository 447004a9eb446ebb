// The bus between hosts: a Redis stream a shard (decision G-142). One script assigns positions, adds entries and
// refuses at the bound; another records a passed position and removes what all consumers have passed. An acknowledged
// batch is in Redis' append-only file with `appendfsync always`, and on `redis.wait_replicas` replicas. With
// `everysec` Redis may defer its writes for up to two seconds while its disk is busy, and loses what it acknowledged
// meanwhile when it is killed; a replica that is promoted may lack what came last. Such a loss is counted when the
// connection is back.

import type { Redis } from 'ioredis'
import { assert } from '../../../core/assert.ts'
import { type BusBound, isBusFull } from '../../../core/bus/bus-bound.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { limits } from '../../../core/limits.ts'
import { asBuffer, RedisScript, redisCause, whenReplicated } from '../store/redis/redis-client.ts'
import type { RedisKeys } from '../store/redis/redis-keys.ts'
import { LUA_NOW, LUA_TEXT } from '../store/redis/redis-scripts.ts'
import { type BusStats, type BusWriter, busConsumers, type PublishRefusal } from './bus.ts'
import { CommitPace, REDIS_GROUP_ENTRIES } from './commit-pace.ts'
import { LostBatches } from './lost-batches.ts'

const PARTITIONS = Array.from({ length: limits.stateShards }, (_, partition) => partition)
/** The most bytes of one script: Redis does nothing else while it runs. */
const FLUSH_BYTES_MAX = 2 * 1024 * 1024
/** The most bytes that may wait for Redis in this process; beyond it the bus counts as full. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
/**
 * How often a writer looks how old what waits is: that reads the state of every partition, and the bound of age is of
 * hours.
 */
const AGE_CHECK_MS = 100

/**
 * A value of more than 64 bytes: where a hash has one, Redis finds its fields by their hash and not one behind another,
 * which of the 250 of the state would cost a third of a commit.
 */
const ABOUT_STATE = 'Of each partition: the last position, the bytes ever published, the bytes that wait, since when'

/**
 * KEYS: state, a stream a group. ARGV: most bytes, most age or 0 where it is not looked at, then partition, count,
 * bytes a group. Returns the last position of each group, or 0 at the bound (`isBusFull`). The state is read and
 * written once for all groups.
 */
const PUBLISH = new RedisScript(`${LUA_NOW}${LUA_TEXT}
local call, state, nowMs = redis.call, KEYS[1], now()
local nowText = text(nowMs)
local function full()
  call('HSET', state, 'overflow', nowText)
  return 0
end
if ARGV[2] ~= '0' then
  local oldest = {'HMGET', state}
  for partition = 0, ${limits.stateShards - 1} do oldest[partition + 3] = 'oldest:' .. partition end
  for _, atMs in ipairs(call(unpack(oldest))) do
    if atMs and nowMs - tonumber(atMs) > tonumber(ARGV[2]) then return full() end
  end
  if call('HEXISTS', state, 'about') == 0 then call('HSET', state, 'about', '${ABOUT_STATE}') end
end
local fields, to = {'held'}, 1
for at = 3, #ARGV, 3 do
  local partition = ARGV[at]
  fields[to + 1], fields[to + 2] = 'head:' .. partition, 'bytes:' .. partition
  fields[to + 3], fields[to + 4] = 'held:' .. partition, 'oldest:' .. partition
  to = to + 4
end
local values = call('HMGET', state, unpack(fields))
local held = tonumber(values[1] or '0')
if held >= tonumber(ARGV[1]) then return full() end
local lasts, changed, rows = {}, {}, {}
to = 0
for group = 1, #KEYS - 1 do
  local at, value = group * 3, group * 4 - 2
  local count, bytes = ARGV[at + 1], ARGV[at + 2]
  local before, size = values[value + 1] or '0', #bytes
  local last = tonumber(values[value] or '0') + tonumber(count)
  local lastText = text(last)
  changed[to + 1], changed[to + 2] = fields[value], lastText
  changed[to + 3], changed[to + 4] = fields[value + 1], text(tonumber(before) + size)
  changed[to + 5], changed[to + 6] = fields[value + 2], text(tonumber(values[value + 2] or '0') + size)
  to = to + 6
  if not values[value + 3] then
    changed[to + 1], changed[to + 2] = fields[value + 3], nowText
    to = to + 2
  end
  held = held + size
  lasts[group] = last
  rows[group] = {'XADD', KEYS[group + 1], lastText .. '-0', 't', nowText, 'c', before, 'n', count, 'b', bytes}
end
call('HSET', state, 'held', text(held), unpack(changed))
for group = 1, #rows do call(unpack(rows[group])) end
return lasts
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

type RedisBusWriterOptions = BusBound & {
  readonly redis: Redis
  readonly keys: RedisKeys
  /** The pace of commits (CommitPace); 0, the default, commits whenever the commit before is done. */
  readonly groupWaitMs?: number
  /** Replicas that must have a batch before it is acknowledged. */
  readonly replicas?: number
  readonly onError: (cause: string) => void
  /** Redis has not any more so many of the batches that this process acknowledged. */
  readonly onLost?: (batches: number) => void
}

/**
 * The writer of the Redis bus, one for each process. Entries that arrive while a script runs, or before the pace of
 * commits lets the next one run, go with it together, so batches of a server keep their order. A script without a
 * response is not sent again: its publishers get `failed`, and the agents send again.
 */
export class RedisBusWriter implements BusWriter {
  private readonly options: RedisBusWriterOptions
  private pending: Pending[] = []
  private pendingBytes = 0
  private flushing: Promise<void> | null = null
  private isFailing = false
  /** Redis took no batch, last time, for want of memory. */
  private isOutOfMemory = false
  private readonly pace: CommitPace
  /** When the age of what waits is looked at next, on the monotonic clock. */
  private ageCheckAtMs = 0
  private readonly lostBatches = new LostBatches()
  private readonly onReady = (): void => void this.countLost().catch(error => this.options.onError(redisCause(error)))

  constructor(options: RedisBusWriterOptions) {
    this.options = options
    this.pace = new CommitPace(options.groupWaitMs ?? 0, REDIS_GROUP_ENTRIES)
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
      this.pace.arrived()
      this.flushing ??= this.flushAll()
    })
  }

  private async flushAll(): Promise<void> {
    // Waits a microtask, so that entries published in the same turn go together.
    await Promise.resolve()
    while (this.pending.length > 0) {
      const { waitMs } = this.pace
      if (waitMs > 0 && this.pendingBytes < FLUSH_BYTES_MAX) await Bun.sleep(waitMs)
      let count = 0
      let bytes = 0
      while (count < this.pending.length && bytes < FLUSH_BYTES_MAX) bytes += this.pending[count++]!.entry.length
      const group = this.pending.splice(0, count)
      this.pace.committed(count)
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
    const checksAge = performance.now() >= this.ageCheckAtMs
    const args: (string | number | Buffer)[] = [bytesMax, checksAge ? ageMaxMs : 0]
    for (const [partition, entries] of byPartition) {
      scriptKeys.push(keys.stream(partition))
      args.push(partition, entries.length, entries.length === 1 ? asBuffer(entries[0]!) : Buffer.concat(entries))
    }
    try {
      const lasts = await PUBLISH.run(redis, scriptKeys, args)
      this.isOutOfMemory = false
      if (!Array.isArray(lasts)) return 'full'
      if (checksAge) this.ageCheckAtMs = performance.now() + AGE_CHECK_MS
      await whenReplicated(redis, replicas)
      const atMs = performance.now()
      for (const [index, [partition, entries]] of [...byPartition].entries())
        this.lostBatches.noteAcknowledged(partition, Number(lasts[index]), entries.length, atMs)
      this.isFailing = false
      return null
    } catch (error) {
      const cause = redisCause(error)
      this.isOutOfMemory = cause.startsWith('OOM')
      if (this.isOutOfMemory) return 'full'
      if (!this.isFailing) onError(cause)
      this.isFailing = true
      return 'failed'
    }
  }

  /** Who is not ready is sent no batch that could show that there is memory again. */
  private async lookForMemory(): Promise<void> {
    const { redis, keys } = this.options
    this.isOutOfMemory = await redis.set(keys.replicationMark, '1').then(
      () => false,
      error => redisCause(error).startsWith('OOM'),
    )
  }

  async stats(): Promise<BusStats> {
    if (this.isOutOfMemory) await this.lookForMemory()
    const stats = await busStats(this.options.redis, this.options.keys, this.options)
    return { ...stats, isFull: stats.isFull || this.isOutOfMemory }
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

/** Lag and size of the bus over all partitions; ages are by the clock of Redis, as when it publishes. */
async function busStats(redis: Redis, keys: RedisKeys, bound: BusBound): Promise<BusStats> {
  const [state, passed, [seconds, microseconds]] = await Promise.all([
    redis.hgetall(keys.busState),
    redis.hgetall(keys.busPassed),
    redis.time(),
  ])
  let lagEntries = 0
  let oldestAtMs: number | null = null
  for (const partition of PARTITIONS) {
    const head = Number(state[`head:${partition}`] ?? 0)
    const passedTo = (consumer: string): number => Number(passed[`${consumer}:${partition}`] ?? 0)
    lagEntries += Math.max(0, head - Math.min(passedTo('evaluation'), passedTo('samples')))
    const oldest = state[`oldest:${partition}`]
    if (oldest !== undefined) oldestAtMs = Math.min(oldestAtMs ?? Number.POSITIVE_INFINITY, Number(oldest))
  }
  const fill = { bytes: Number(state.held ?? 0), oldestAtMs }
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  return { lagEntries, ...fill, isFull: isBusFull(fill, bound, nowMs) }
}
