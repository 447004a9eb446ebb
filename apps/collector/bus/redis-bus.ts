// The bus between hosts: 64 partitions in four Redis streams (decision G-142), since each item that a commit adds costs
// as much as a batch does. One script assigns positions, adds entries and refuses at the bound; another records a
// passed position and removes what all consumers have passed. An acknowledged batch is in Redis' append-only file with
// `appendfsync always`, and on `redis.wait_replicas` replicas. With `everysec` Redis may defer its writes for up to two
// seconds while its disk is busy, and loses what it acknowledged meanwhile when it is killed; a replica that is
// promoted may lack what came last. Such a loss is counted when the connection is back.

import type { Redis } from 'ioredis'
import { assert } from '../../../core/assert.ts'
import { type BusBound, isBusFull } from '../../../core/bus/bus-bound.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { limits } from '../../../core/limits.ts'
import { RedisScript, redisCause, whenReplicated } from '../store/redis/redis-client.ts'
import { BUS_STREAMS, PARTITIONS_A_STREAM, type RedisKeys, STREAM_WORKER, streamOf } from '../store/redis/redis-keys.ts'
import { LUA_MOVE, LUA_NOW, LUA_TEXT, MOVED_GROUPS } from '../store/redis/redis-scripts.ts'
import { type BusStats, type BusWriter, busConsumers, type PublishRefusal } from './bus.ts'
import { CommitPace, REDIS_GROUP_ENTRIES } from './commit-pace.ts'
import { LostBatches } from './lost-batches.ts'

const PARTITIONS = Array.from({ length: limits.stateShards }, (_, partition) => partition)
/** The most bytes of one script: Redis does nothing else while it runs. */
const FLUSH_BYTES_MAX = 2 * 1024 * 1024
/** The most bytes that may wait for Redis in this process; beyond it the bus counts as full. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
/**
 * How often a writer looks how old what waits is, which reads the state of every partition while the bound of age is of
 * hours, and which workers there are.
 */
const CHECK_POLL_MS = 100

/**
 * A value of more than 64 bytes: where a hash has one, Redis finds its fields by their hash and not one behind another,
 * which of the 80 of the state would cost a third of a commit.
 */
const ABOUT_STATE = 'Of partitions the last position; of streams the last item, the bytes ever, those that wait, since'

/**
 * KEYS: state, workers, streams. ARGV: most bytes, most age or 0 where neither ages nor workers are looked at, prefix
 * of former streams, then of each stream its number, the bytes of all its runs, how many runs, and partition, count and
 * bytes of each. Returns the last position of each run; 0 at the bound (`isBusFull`) and while what a former version
 * left is being moved; -1 where a worker of a former version runs, which would pass what it does not see. The state is
 * read and written once for all.
 */
const PUBLISH = new RedisScript(`${LUA_NOW}${LUA_TEXT}${LUA_MOVE}
local call, state, nowMs = redis.call, KEYS[1], now()
local nowText = text(nowMs)
local function full()
  call('HSET', state, 'overflow', nowText)
  return 0
end
if ARGV[2] ~= '0' then
  local oldest = {}
  for stream = 0, ${BUS_STREAMS - 1} do oldest[stream + 1] = 'stream-oldest:' .. stream end
  for partition = 0, ${limits.stateShards - 1} do oldest[#oldest + 1] = 'oldest:' .. partition end
  for _, atMs in ipairs(call('HMGET', state, unpack(oldest))) do
    if atMs and nowMs - tonumber(atMs) > tonumber(ARGV[2]) then return full() end
  end
  for _, worker in ipairs(call('ZRANGEBYSCORE', KEYS[2], nowText, '+inf')) do
    if string.sub(worker, -${STREAM_WORKER.length}) ~= '${STREAM_WORKER}' then return -1 end
  end
  if call('HEXISTS', state, 'about') == 0 then call('HSET', state, 'about', '${ABOUT_STATE}') end
end
local fields, to, at = {'held'}, 1, 4
for stream = 3, #KEYS do
  local index = ARGV[at]
  fields[to + 1], fields[to + 2] = 'stream-last:' .. index, 'stream-bytes:' .. index
  fields[to + 3], fields[to + 4] = 'stream-held:' .. index, 'stream-oldest:' .. index
  to, at = to + 4, at + 3
  for _ = 1, tonumber(ARGV[at - 1]) do
    fields[to + 1], fields[to + 2] = 'head:' .. ARGV[at], 'bytes:' .. ARGV[at]
    to, at = to + 2, at + 3
  end
end
local values = call('HMGET', state, unpack(fields))
local held = tonumber(values[1] or '0')
if held >= tonumber(ARGV[1]) then return full() end
local isMoving, hasMoved = false, false
to, at = 1, 4
for stream = 3, #KEYS do
  local index = ARGV[at]
  to, at = to + 4, at + 3
  for _ = 1, tonumber(ARGV[at - 1]) do
    if values[to + 2] then
      local more = moveFormer(ARGV[at], ARGV[3] .. ARGV[at], index, KEYS[stream], state, ${MOVED_GROUPS})
      isMoving, hasMoved = isMoving or more, true
    end
    to, at = to + 2, at + 3
  end
end
if isMoving then return full() end
if hasMoved then
  values = call('HMGET', state, unpack(fields))
  held = tonumber(values[1] or '0')
end
local lasts, changed = {}, {}
to, at = 1, 4
for stream = 3, #KEYS do
  local index, bytes, runs = ARGV[at], ARGV[at + 1], {}
  local item = text(tonumber(values[to + 1] or '0') + 1)
  local before = values[to + 2] or '0'
  local n = #changed
  changed[n + 1], changed[n + 2] = fields[to + 1], item
  changed[n + 3], changed[n + 4] = fields[to + 2], text(tonumber(before) + #bytes)
  changed[n + 5], changed[n + 6] = fields[to + 3], text(tonumber(values[to + 3] or '0') + #bytes)
  n = n + 6
  if not values[to + 4] then
    changed[n + 1], changed[n + 2] = fields[to + 4], nowText
    n = n + 2
  end
  held = held + #bytes
  to, at = to + 4, at + 3
  for run = 1, tonumber(ARGV[at - 1]) do
    local last = tonumber(values[to + 1] or '0') + tonumber(ARGV[at + 1])
    local lastText = text(last)
    changed[n + 1], changed[n + 2] = fields[to + 1], lastText
    n = n + 2
    lasts[#lasts + 1] = last
    runs[run] = ARGV[at] .. ' ' .. lastText .. ' ' .. ARGV[at + 1] .. ' ' .. ARGV[at + 2]
    to, at = to + 2, at + 3
  end
  call('XADD', KEYS[stream], item .. '-0', 't', nowText, 'c', before, 'r', table.concat(runs, ' '), 'b', bytes)
end
call('HSET', state, 'held', text(held), unpack(changed))
return lasts
`)

/**
 * KEYS: passed, state, streams. Returns a time at which the oldest entry that the samples consumer has not passed came,
 * or an older one, or now. While ingest of a former version runs it may be as much newer as that waits to be moved.
 */
const STORED_BEFORE = new RedisScript(`${LUA_NOW}${LUA_TEXT}
local oldest = now()
for stream = 0, #KEYS - 3 do
  local behind
  for partition = stream * ${PARTITIONS_A_STREAM}, stream * ${PARTITIONS_A_STREAM} + ${PARTITIONS_A_STREAM - 1} do
    local of = redis.call('HMGET', KEYS[2], 'head:' .. partition, 'oldest:' .. partition)
    local at = redis.call('HMGET', KEYS[1], '${busConsumers.samples}:' .. partition,
      '${busConsumers.samples}-item:' .. partition)
    if tonumber(of[1] or '0') > tonumber(at[1] or '0') then
      behind = math.min(behind or math.huge, tonumber(at[2] or '0'))
      oldest = math.min(oldest, tonumber(of[2] or oldest))
    end
  end
  if behind then
    local first = redis.call('XRANGE', KEYS[stream + 3], '(' .. text(behind) .. '-0', '+', 'COUNT', 1)[1]
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

/** What a commit has of a partition. */
type CommittedRun = { readonly partition: number; readonly entries: Uint8Array[]; bytes: number }

/** In the order of the partitions, and so of the streams. */
function runsOf(group: readonly Pending[]): CommittedRun[] {
  const runs = new Map<number, CommittedRun>()
  for (const { partition, entry } of group) {
    const run = runs.get(partition)
    if (!run) runs.set(partition, { partition, entries: [entry], bytes: entry.length })
    else {
      run.entries.push(entry)
      run.bytes += entry.length
    }
  }
  return [...runs.values()].sort((a, b) => a.partition - b.partition)
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
  /** When ages and workers are looked at next, on the monotonic clock. */
  private checkAtMs = 0
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
    const runs = runsOf(group)
    const scriptKeys = [keys.busState, keys.workers]
    const checks = performance.now() >= this.checkAtMs
    const args: (string | number | Buffer)[] = [bytesMax, checks ? ageMaxMs : 0, keys.formerStream('')]
    for (let stream = 0; stream < BUS_STREAMS; stream++) {
      const own = runs.filter(({ partition }) => streamOf(partition) === stream)
      if (own.length === 0) continue
      scriptKeys.push(keys.stream(stream))
      args.push(stream, Buffer.concat(own.flatMap(({ entries }) => entries)), own.length)
      for (const { partition, entries, bytes } of own) args.push(partition, entries.length, bytes)
    }
    try {
      const lasts = await PUBLISH.run(redis, scriptKeys, args)
      this.isOutOfMemory = false
      if (lasts === -1) throw new Error('a worker of a former version is running: replace workers before ingest')
      if (!Array.isArray(lasts)) return 'full'
      if (checks) this.checkAtMs = performance.now() + CHECK_POLL_MS
      await whenReplicated(redis, replicas)
      const atMs = performance.now()
      for (const [index, { partition, entries }] of runs.entries())
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
  const streams = Array.from({ length: BUS_STREAMS }, (_, stream) => keys.stream(stream))
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
  const since = Object.keys(state).filter(field => /^(?:stream-)?oldest:/.test(field))
  const oldestAtMs = since.length === 0 ? null : Math.min(...since.map(field => Number(state[field])))
  for (const partition of PARTITIONS) {
    const head = Number(state[`head:${partition}`] ?? 0)
    const passedTo = (consumer: string): number => Number(passed[`${consumer}:${partition}`] ?? 0)
    lagEntries += Math.max(0, head - Math.min(passedTo('evaluation'), passedTo('samples')))
  }
  const fill = { bytes: Number(state.held ?? 0), oldestAtMs }
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  return { lagEntries, ...fill, isFull: isBusFull(fill, bound, nowMs) }
}
