// The reading side of the Redis bus. One command asks for what is new on all streams, every few milliseconds, and what
// it brings is shared out to the partitions that are read here: a command or an item a partition costs ten times as
// much, since each brings one batch or two.

import type { Redis } from 'ioredis'
import { assert } from '../../../core/assert.ts'
import { limits } from '../../../core/limits.ts'
import { RedisScript, redisAway, redisCause } from '../store/redis/redis-client.ts'
import { BUS_STREAMS, type RedisKeys, streamOf } from '../store/redis/redis-keys.ts'
import { LUA_MOVE, LUA_PASS, LUA_TEXT, LUA_TRIM, MOVED_GROUPS } from '../store/redis/redis-scripts.ts'
import { type BusGroup, type BusReader, busConsumers } from './bus.ts'
import { PassedItems } from './passed-items.ts'

/** The most items of a stream that one command brings. */
const READ_ITEMS_MAX = 32
/** A partition that has so much ready is given no more, until it is taken. */
const READY_BYTES_MAX = 4 * 1024 * 1024
/** A partition whose entries nobody took for so long is not read here any more, or is behind: it is asked for then. */
const UNTAKEN_MAX_MS = 5_000
const FORMER_CHECK_MS = 5_000

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
redis.call('HDEL', KEYS[1], field, ARGV[1] .. '-item:' .. ARGV[2])
return {0, passed}
`)

/**
 * KEYS: passed, state, stream. ARGV: consumer, partition, position, item, number of the stream. What is ahead of the
 * bus was read before it lost something, and passes nothing.
 */
const PASS = new RedisScript(`${LUA_TEXT}${LUA_TRIM}${LUA_PASS}
local ends = redis.call('HMGET', KEYS[2], 'head:' .. ARGV[2], 'stream-last:' .. ARGV[5])
if tonumber(ARGV[3]) > tonumber(ends[1] or '0') then return 0 end
local item = tonumber(ARGV[4] ~= '' and ARGV[4] or '0')
if item > tonumber(ends[2] or '0') then item = 0 end
if pass(ARGV[1], ARGV[2], ARGV[3], item, KEYS[1]) then trim(tonumber(ARGV[5]), KEYS[3], KEYS[2], KEYS[1]) end
return 1
`)

/** KEYS: state, stream, former stream. ARGV: partition, number of the stream. Returns whether there may be more. */
const MOVE = new RedisScript(`${LUA_TEXT}${LUA_MOVE}
return moveFormer(ARGV[1], KEYS[3], ARGV[2], KEYS[2], KEYS[1], ${MOVED_GROUPS}) and 1 or 0
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

/**
 * What is known of a partition that is read here: all its entries in the items of its stream up to `item` are handed
 * out or ready, or were removed.
 */
type Followed = {
  /** What was handed out ends here. */
  position: number
  item: number
  /** The groups behind the position that have come, since when. */
  ready: BusGroup[]
  readyBytes: number
  readyAtMs: number
  readonly items: PassedItems
}

type Row = [id: Buffer, fields: Buffer[]]

const knownTo = ({ ready, position }: Followed): number => {
  const last = ready.at(-1)
  return last ? last.firstPosition + last.count - 1 : position
}

/** Readers of entries need memory that is aligned to eight bytes: one copy for all that is in an item. */
const aligned = (bytes: Buffer): Uint8Array => (bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes))

const hasRoom = (readyBytes: number): boolean => readyBytes < READY_BYTES_MAX

type Run = { readonly partition: number; readonly last: number; readonly count: number; readonly bytes: number }

/** The runs of an item, as PUBLISH writes them. */
function runsIn(field: Buffer): Run[] {
  const numbers = field.toString('latin1').split(' ')
  const runs: Run[] = []
  for (let at = 0; at < numbers.length; at += 4) {
    const [partition, last, count, bytes] = [numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]
    runs.push({ partition: Number(partition), last: Number(last), count: Number(count), bytes: Number(bytes) })
  }
  return runs
}

/** Makes a run of an item ready, unless it is known already. */
function add(followed: Followed, { partition, last, count }: Run, item: number, bytes: Uint8Array): void {
  followed.items.came(last, item)
  if (last <= knownTo(followed)) return
  if (followed.ready.length === 0) followed.readyAtMs = performance.now()
  followed.ready.push({ partition, firstPosition: last - count + 1, count, bytes })
  followed.readyBytes += bytes.length
}

/** Hands out the first groups, about so many bytes. */
function take(followed: Followed, bytesMax: number): BusGroup[] {
  let count = 0
  let bytes = 0
  while (count < followed.ready.length && bytes < bytesMax) bytes += followed.ready[count++]!.bytes.length
  const taken = followed.ready.splice(0, count)
  followed.readyBytes -= bytes
  const last = taken.at(-1)
  if (last) followed.position = last.firstPosition + last.count - 1
  return taken
}

/** What a command asked a stream for. */
type Asked = {
  /** Answers from before the stream was forgotten count for nothing. */
  readonly epoch: number
  readonly from: number
  /** The front of the stream when it was asked: newer answers may be taken before this one. */
  readonly front: number
}

/** A stream, for the partitions of it that are followed. */
class FollowedStream {
  readonly partitions = new Map<number, Followed>()
  /** Stays while a partition is followed anew: what it has passed may be older. */
  readonly items = new Map<number, PassedItems>()
  /** A range that is on its way, for all who want it. */
  fetching: { readonly from: number; readonly done: Promise<void> } | null = null
  /** Behind this item nothing was found, last time. */
  private wholeAt = -1
  private epoch = 0

  /** Another bus may have come in the place of the one that was read. */
  forgetAll(): void {
    this.partitions.clear()
    this.items.clear()
    this.wholeAt = -1
    this.epoch++
  }

  asked(from: number): Asked {
    return { epoch: this.epoch, from, front: this.front }
  }

  /** The last item up to which any partition is known. */
  get front(): number {
    return Math.max(-1, ...[...this.partitions.values()].map(({ item }) => item))
  }

  /** Everything that was found of it is handed out or ready. */
  isWhole({ item }: Followed): boolean {
    return item === this.wholeAt && item === this.front
  }

  /** Whether a partition is so far behind that the poll does not bring what comes next for it. */
  isFarBehind({ item }: Followed): boolean {
    return item < this.front - READ_ITEMS_MAX
  }

  /** From where the poll asks, for those that are not far behind. Null where none of them takes more. */
  get newsFrom(): number | null {
    return this.firstOf(followed => !this.isFarBehind(followed))
  }

  /** From where those that are far behind are read on, the last of them first. */
  get restFrom(): number | null {
    return this.firstOf(followed => this.isFarBehind(followed))
  }

  private firstOf(isMeant: (followed: Followed) => boolean): number | null {
    const items = [...this.partitions.values()].filter(one => hasRoom(one.readyBytes) && isMeant(one))
    return items.length === 0 ? null : Math.min(...items.map(({ item }) => item))
  }

  /** Gives each partition what the items hold that follow one another behind `from`; `onNews`: it had nothing ready. */
  distribute({ epoch, from, front }: Asked, rows: readonly Row[], onNews: (partition: number) => void): void {
    if (epoch !== this.epoch) return
    const takers = new Set<Followed>()
    for (const followed of this.partitions.values())
      if (followed.item >= from && hasRoom(followed.readyBytes)) takers.add(followed)
    let end = Math.max(from, front)
    for (const [id, fields] of rows) {
      const item = Number.parseInt(id.toString('latin1'), 10)
      const bytes = aligned(fields[7]!)
      let at = 0
      for (const run of runsIn(fields[5]!)) {
        const followed = this.partitions.get(run.partition)
        if (followed && followed.item < item && takers.has(followed)) {
          if (followed.ready.length === 0) onNews(run.partition)
          add(followed, run, item, bytes.subarray(at, at + run.bytes))
        }
        at += run.bytes
      }
      for (const followed of takers) {
        followed.item = Math.max(followed.item, item)
        if (!hasRoom(followed.readyBytes)) takers.delete(followed)
      }
      end = Math.max(end, item)
    }
    if (rows.length >= READ_ITEMS_MAX) {
      this.wholeAt = -1
      return
    }
    // There was nothing behind it then, and between it and the rows only what was removed.
    this.wholeAt = end
    for (const followed of takers) followed.item = Math.max(followed.item, end)
  }

  forgetUntaken(): void {
    const nowMs = performance.now()
    for (const [partition, { ready, readyAtMs }] of this.partitions)
      if (ready.length > 0 && nowMs - readyAtMs > UNTAKEN_MAX_MS) this.partitions.delete(partition)
  }
}

/**
 * A reader of the Redis bus, for one consumer. A partition is followed from the first read of it on: the poll asks for
 * what came behind what is known of it. Whoever reads from another position asks for it by itself.
 */
export class RedisBusReader implements BusReader {
  /** Those that this process has leases for. */
  partitions: readonly number[] = []
  private readonly streams = Array.from({ length: BUS_STREAMS }, () => new FollowedStream())
  /** The last position of each partition, as last asked for: less may be known of what came until then. */
  private readonly heads = new Float64Array(limits.stateShards)
  private timer: ReturnType<typeof setTimeout> | null = null
  private isClosed = false
  private formerCheckAtMs: number
  /** Redis may come back with other entries under the positions of those that are ready. */
  private readonly forgetAll = (): void => {
    for (const stream of this.streams) stream.forgetAll()
  }

  /**
   * `onNews` is called when some partition has new entries. `pollMs` is the poll interval. `onWentBack` is called when
   * a partition ends before a position that was passed on it. `formerCheckMs` is how often it is looked whether a
   * process of a former version has written.
   */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly pollMs: number,
    private readonly onNews: (partition: number) => void,
    private readonly onWentBack: (partition: number, passed: number) => void = () => {},
    private readonly formerCheckMs = FORMER_CHECK_MS,
  ) {
    this.formerCheckAtMs = performance.now() + formerCheckMs
    redis.on('close', this.forgetAll)
    this.poll()
  }

  private poll(): void {
    if (this.isClosed) return
    this.readAllNews()
      // The connection logs its own trouble; the next poll finds what came meanwhile. A server that refuses the poll
      // has lost nothing.
      .catch(error => {
        if (!(error instanceof Error && error.name === 'ReplyError')) this.forgetAll()
      })
      .finally(() => {
        if (!this.isClosed) this.timer = setTimeout(() => this.poll(), this.pollMs)
      })
  }

  private async readAllNews(): Promise<void> {
    while ((await this.readNews()) && !this.isClosed);
  }

  /** Returns whether there may be more. */
  private async readNews(): Promise<boolean> {
    if (performance.now() >= this.formerCheckAtMs) await this.moveFormer()
    const asked: { readonly key: string; readonly stream: FollowedStream; readonly asked: Asked }[] = []
    for (const [index, stream] of this.streams.entries()) {
      stream.forgetUntaken()
      const from = stream.newsFrom
      if (from !== null) asked.push({ key: this.keys.stream(index), stream, asked: stream.asked(from) })
    }
    if (asked.length === 0) return false
    const keys = asked.map(({ key }) => key)
    const after = asked.map(one => `${one.asked.from}-0`)
    const found = await this.redis.xreadBuffer('COUNT', READ_ITEMS_MAX, 'STREAMS', ...keys, ...after)
    const rowsOf = new Map(found?.map(([key, rows]) => [key.toString(), rows]))
    for (const one of asked) one.stream.distribute(one.asked, rowsOf.get(one.key) ?? [], this.onNews)
    return [...rowsOf.values()].some(rows => rows.length === READ_ITEMS_MAX)
  }

  async read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]> {
    const stream = this.streams[streamOf(partition)]!
    let isAnew = false
    for (let hasAsked = false; ; ) {
      let followed = stream.partitions.get(partition)
      if (followed?.position !== position) {
        followed = await this.follow(partition, position)
        isAnew = true
        hasAsked = false
      }
      if (followed.ready.length > 0) return take(followed, bytesMax)
      if (stream.isWhole(followed)) {
        if (this.heads[partition]! <= position) return []
        // There should be more. A bus that was emptied begins anew, and a former version writes elsewhere.
        if (hasAsked && !isAnew) {
          stream.partitions.delete(partition)
          continue
        }
        if (hasAsked) {
          // It was removed.
          this.heads[partition] = position
          return []
        }
      }
      await this.fetch(streamOf(partition), followed)
      hasAsked = true
    }
  }

  /** Asks for what comes next for a partition; once for all that ask for the same. */
  private async fetch(index: number, followed: Followed): Promise<void> {
    const stream = this.streams[index]!
    const from = stream.isFarBehind(followed) ? stream.restFrom : stream.newsFrom
    assert(from !== null, 'who has nothing ready takes more')
    if (stream.fetching?.from !== from) {
      const asked = stream.asked(from)
      const done = this.redis
        .xrangeBuffer(this.keys.stream(index), `(${from}-0`, '+', 'COUNT', READ_ITEMS_MAX)
        .then(rows => stream.distribute(asked, rows, this.onNews))
        .finally(() => {
          if (stream.fetching?.done === done) stream.fetching = null
        })
      stream.fetching = { from, done }
    }
    await stream.fetching.done.catch(redisAway)
  }

  /** Begins to read a partition behind a position. */
  private async follow(partition: number, position: number): Promise<Followed> {
    const { redis, keys } = this
    const index = streamOf(partition)
    const consumers = Object.values(busConsumers)
    const { front } = this.streams[index]!
    const [[last, former], passed] = await Promise.all([
      redis.hmget(keys.busState, `stream-last:${index}`, `bytes:${partition}`),
      redis.hmget(keys.busPassed, ...consumers.flatMap(name => [`${name}:${partition}`, `${name}-item:${partition}`])),
    ]).catch(redisAway)
    const stream = this.streams[index]!
    // The bus was emptied: what is known of any partition is of the one before.
    if (Number(last ?? 0) < front) stream.forgetAll()
    if (former != null) await this.moveAll(partition)
    const items = consumers
      .map((_, at) => ({ passedTo: Number(passed[at * 2] ?? 0), item: Number(passed[at * 2 + 1] ?? 0) }))
      // An item that is not there yet is of a bus that is lost.
      .filter(({ passedTo, item }) => passedTo <= position && item <= Number(last ?? 0))
      .map(({ item }) => item)
    const known = stream.items.get(partition) ?? new PassedItems()
    known.backTo(position)
    stream.items.set(partition, known)
    const cameTo = known.upTo(position) ?? 0
    const item = Math.max(0, cameTo <= Number(last ?? 0) ? cameTo : 0, ...items)
    const followed: Followed = { position, item, ready: [], readyBytes: 0, readyAtMs: 0, items: known }
    stream.partitions.set(partition, followed)
    return followed
  }

  /** Another worker has the partition now. */
  forget(partition: number): void {
    const stream = this.streams[streamOf(partition)]!
    stream.partitions.delete(partition)
    stream.items.delete(partition)
  }

  /** While processes of a former version write, what they wrote is moved as often as what is new is asked for. */
  private async moveFormer(): Promise<void> {
    const followed = this.streams.flatMap(({ partitions }) => [...partitions.keys()])
    if (followed.length === 0) return
    const found = await this.redis.hmget(this.keys.busState, ...followed.map(partition => `bytes:${partition}`))
    const written = followed.filter((_, index) => found[index] !== null)
    for (const partition of written) await this.moveAll(partition)
    if (written.length === 0) this.formerCheckAtMs = performance.now() + this.formerCheckMs
  }

  private async moveAll(partition: number): Promise<void> {
    const { busState, stream, formerStream } = this.keys
    const index = streamOf(partition)
    const keys = [busState, stream(index), formerStream(partition)]
    while ((await MOVE.run(this.redis, keys, [partition, index]).catch(redisAway)) === 1);
  }

  hasMore(partition: number): boolean {
    const stream = this.streams[streamOf(partition)]!
    const followed = stream.partitions.get(partition)
    return !followed || followed.ready.length > 0 || !stream.isWhole(followed)
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
    const index = streamOf(partition)
    const item = this.streams[index]!.items.get(partition)?.passedTo(position) ?? ''
    await PASS.run(this.redis, [busPassed, busState, stream(index)], [consumer, partition, position, item, index])
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.redis.off('close', this.forgetAll)
    if (this.timer !== null) clearTimeout(this.timer)
  }
}
