// The bus over Redis, on a real server.
import { afterAll, expect, test } from 'bun:test'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { RedisBusWriter, readHeads, storedBeforeMs } from '../../apps/collector/bus/redis-bus.ts'
import { pollFaults, RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys, STREAM_WORKER, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { entryOf } from '../support/clickhouse.ts'
import { openTestRedis, startTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = '22222222-2222-4222-8222-222222222222'
const SHARD = shardOfServer(SERVER)
const GIB = 1024 ** 3

const { server, redis, close } = await openTestRedis()
let prefixes = 0
afterAll(close)

const entry = (value: number, serverId = SERVER) =>
  entryOf(COMPANY, serverId, [{ metric: 'cpu_usage_percent', points: [[value, value]] }])

function openBus(bounds: { bytesMax?: number; ageMaxMs?: number } = {}) {
  const keys = redisKeys(`t${++prefixes}:`)
  const causes: string[] = []
  const writer = new RedisBusWriter({
    redis,
    keys,
    bytesMax: bounds.bytesMax ?? GIB,
    ageMaxMs: bounds.ageMaxMs ?? 3_600_000,
    onError: cause => causes.push(cause),
  })
  const reader = new RedisBusReader(redis, keys, 5, () => {})
  return { keys, writer, reader, causes }
}

/** The values of the batches of a group. */
function valuesOf(bytes: Uint8Array): number[] {
  const entries = new EntryReader()
  const values: number[] = []
  for (entries.open(bytes); entries.next(); ) values.push(entries.f64[entries.valuesAt]!)
  return values
}

/** The values of all batches of a partition after a position. */
async function valuesAfter(reader: RedisBusReader, partition: number, from: number): Promise<number[]> {
  const values: number[] = []
  let position = from
  for (;;) {
    const groups = await reader.read(partition, position, 1024)
    if (groups.length === 0 && (await reader.lastPosition(partition)) === position) return values
    for (const group of groups) {
      expect(group.firstPosition).toBe(position + 1)
      values.push(...valuesOf(group.bytes))
      position = group.firstPosition + group.count - 1
    }
  }
}

test('a batch goes to the partition of its host', async () => {
  const { writer, reader } = openBus()
  const servers = Array.from({ length: 20 }, (_, index) => `22222222-2222-4222-8222-2222222222${10 + index}`)
  await Promise.all(servers.map((serverId, index) => writer.publish(serverId, entry(index, serverId))))
  const entries = new EntryReader()
  let found = 0
  for (let partition = 0; partition < 64; partition++) {
    await reader.lastPosition(partition)
    for (const group of await reader.read(partition, 0, GIB)) {
      entries.open(group.bytes)
      while (entries.next()) {
        expect(shardOfServer(entries.serverId())).toBe(partition)
        found++
      }
    }
  }
  expect(found).toBe(20)
  await reader.close()
})

test('who asks for the last position does not take the news from the reader that is told of it', async () => {
  const { keys, writer } = openBus()
  const told: number[] = []
  const reader = new RedisBusReader(redis, keys, 3_600_000, partition => void told.push(partition))
  // Sent behind the first poll, on one connection: that one has found an empty bus.
  await redis.ping()
  await writer.publish(SERVER, entry(1))
  expect(await reader.lastPosition(SHARD)).toBe(1)
  expect(told).toEqual([SHARD])
  await reader.close()
})

test('[BUS-005] what was passed on a bus that is lost counts no more, is told of, and hides nothing that comes after it', async () => {
  const { keys, writer } = openBus()
  const told: number[][] = []
  const reader = new RedisBusReader(
    redis,
    keys,
    5,
    () => {},
    (...lost) => void told.push(lost),
  )
  for (const value of [1, 2, 3]) await writer.publish(SERVER, entry(value))
  await reader.pass('samples', SHARD, 3)
  expect(await reader.passed('samples', SHARD)).toBe(3)
  await redis.del(keys.busState, keys.stream(streamOf(SHARD)))
  await writer.publish(SERVER, entry(4))
  expect(await reader.passed('samples', SHARD)).toBe(0)
  expect(told).toEqual([[SHARD, 3]])
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([4])
  await reader.close()
})

/** How often the server ran a command. */
async function callsOf(command: string): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
}

test('[BUS-005] what comes on many partitions is brought by one command, each entry once and in order', async () => {
  const { keys, writer } = openBus()
  const news = new Set<number>()
  const reader = new RedisBusReader(redis, keys, 5, partition => void news.add(partition))
  const serverOf = new Map<number, string>()
  for (let index = 0; serverOf.size < 64; index++) {
    const serverId = `22222222-2222-4222-8222-${String(index).padStart(12, '0')}`
    if (!serverOf.has(shardOfServer(serverId))) serverOf.set(shardOfServer(serverId), serverId)
  }
  for (const partition of serverOf.keys()) expect(await reader.read(partition, 0, GIB)).toEqual([])
  const before = await callsOf('xrange')
  for (const value of [1, 2])
    await Promise.all([...serverOf.values()].map(serverId => writer.publish(serverId, entry(value, serverId))))
  await until('the news of all partitions', () => news.size === 64)
  for (const partition of serverOf.keys()) {
    const values: number[] = []
    const read = async (): Promise<boolean> => {
      for (const group of await reader.read(partition, values.length, GIB)) values.push(...valuesOf(group.bytes))
      return values.length === 2
    }
    await until('both entries of a partition', read)
    expect(values).toEqual([1, 2])
  }
  expect(await callsOf('xrange')).toBe(before)
  await reader.close()
})

test('[BUS-005] more than a look at all partitions brings is read on, in order', async () => {
  const { keys, writer } = openBus()
  const news: number[] = []
  const reader = new RedisBusReader(redis, keys, 5, partition => void news.push(partition))
  expect(await reader.read(SHARD, 0, GIB)).toEqual([])
  // Each a group of its own.
  const values = Array.from({ length: 200 }, (_, index) => index + 1)
  for (const value of values) await writer.publish(SERVER, entry(value))
  await until('the first of them', () => news.length > 0)
  expect(reader.hasMore(SHARD)).toBe(true)
  expect(await valuesAfter(reader, SHARD, 0)).toEqual(values)
  expect(reader.hasMore(SHARD)).toBe(false)
  await reader.close()
})

test('[BUS-005] entries that were fetched before the connection broke are not taken for those that have their positions then', async () => {
  const { keys, writer } = openBus()
  const ownRedis = openRedis({
    address: plainAddress(server.url),
    name: 'reader',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(ownRedis)
  const news: number[] = []
  const reader = new RedisBusReader(ownRedis, keys, 5, partition => void news.push(partition))
  await writer.publish(SERVER, entry(1))
  expect(await reader.read(SHARD, 0, GIB)).toHaveLength(1)
  await writer.publish(SERVER, entry(2))
  await until('the second entry', () => news.length > 0)
  await redis.del(keys.busState, keys.busPassed, keys.stream(streamOf(SHARD)))
  for (const value of [7, 8]) await writer.publish(SERVER, entry(value))
  const broken = new Promise(resolve => ownRedis.once('close', resolve))
  await redis.client('KILL', 'ID', await ownRedis.client('ID'))
  await broken
  await whenReady(ownRedis)
  expect((await reader.read(SHARD, 1, GIB)).flatMap(({ bytes }) => valuesOf(bytes))).toEqual([8])
  await reader.close()
  ownRedis.disconnect()
})

test('[BUS-005] a state in which Redis looked for its fields one behind another is found by hash from the first commit on', async () => {
  const { keys, writer, reader } = openBus()
  const fields = ['head', 'bytes', 'held'].flatMap(name =>
    Array.from({ length: 64 }, (_, partition) => [`${name}:${partition}`, '0']),
  )
  await redis.hset(keys.busState, ...fields.flat(), 'held', '0', `head:${SHARD}`, '41')
  expect(await redis.object('ENCODING', keys.busState)).toBe('listpack')
  expect(await writer.publish(SERVER, entry(1))).toBeNull()
  expect(await redis.object('ENCODING', keys.busState)).toBe('hashtable')
  expect(await valuesAfter(reader, SHARD, 41)).toEqual([1])
  expect((await writer.stats()).lagEntries).toBe(42)
  await reader.close()
})

/** Groups of entries as a version before 2026-12 published them, in a stream of the partition. */
async function publishAsFormer(keys: ReturnType<typeof redisKeys>, groups: readonly (readonly number[])[]) {
  const { busState } = keys
  for (const values of groups) {
    const bytes = Buffer.concat(values.map(value => entry(value)))
    const before = Number((await redis.hget(busState, `bytes:${SHARD}`)) ?? 0)
    const position = await redis.hincrby(busState, `head:${SHARD}`, values.length)
    const atMs = Date.now() - 1000
    const former = keys.formerStream(SHARD)
    await redis.xadd(former, `${position}-0`, 't', atMs, 'c', before, 'n', values.length, 'b', bytes)
    await redis.hset(busState, `bytes:${SHARD}`, before + bytes.length)
    await redis.hsetnx(busState, `oldest:${SHARD}`, atMs)
    for (const field of ['held', `held:${SHARD}`]) await redis.hincrby(busState, field, bytes.length)
  }
}

const passAll = async (reader: RedisBusReader, position: number): Promise<void> => {
  for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, SHARD, position)
}

test('[BUS-004] [BUS-005] what a former version left on the bus is read on in order, counts as waiting, and is removed once passed', async () => {
  const { keys, writer, reader } = openBus()
  await publishAsFormer(keys, [[1, 2], [3], [4]])
  await redis.hset(keys.busPassed, `evaluation:${SHARD}`, 2)
  const before = await writer.stats()
  expect(before).toMatchObject({ lagEntries: 4, bytes: 4 * entry(1).length })
  // The first to come may be a reader or a writer.
  expect(await valuesAfter(reader, SHARD, 2)).toEqual([3, 4])
  await writer.publish(SERVER, entry(5))
  expect(await valuesAfter(reader, SHARD, 4)).toEqual([5])
  expect(await writer.stats()).toMatchObject({ lagEntries: 5, bytes: 5 * entry(1).length })
  expect((await writer.stats()).oldestAtMs).toBe(before.oldestAtMs)
  // A process of that version that still runs.
  await publishAsFormer(keys, [[6], [7]])
  await writer.publish(SERVER, entry(8))
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  await passAll(reader, 8)
  expect(await writer.stats()).toEqual({ lagEntries: 0, bytes: 0, oldestAtMs: null, isFull: false })
  expect(await redis.xlen(keys.formerStream(SHARD))).toBe(0)
  await reader.close()
})

test('[BUS-005] what a process of a former version writes beside us is found, also where nothing else comes', async () => {
  const { keys } = openBus()
  const news: number[] = []
  const reader = new RedisBusReader(
    redis,
    keys,
    5,
    partition => void news.push(partition),
    () => {},
    10,
  )
  expect(await reader.read(SHARD, 0, GIB)).toEqual([])
  await publishAsFormer(keys, [[1], [2, 3]])
  await until('the news of it', () => news.length > 0)
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([1, 2, 3])
  await reader.close()
})

test('[BUS-004] while much of a former version is moved, batches are refused as at the bound, and none overtakes it', async () => {
  const { keys, writer, reader } = openBus()
  const values = Array.from({ length: 200 }, (_, index) => index + 1)
  await publishAsFormer(
    keys,
    values.map(value => [value]),
  )
  const refusals: unknown[] = []
  await until('a batch to be taken', async () => {
    const refusal = await writer.publish(SERVER, entry(201))
    refusals.push(refusal)
    return refusal === null
  })
  expect(refusals).toEqual(['full', 'full', 'full', null])
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([...values, 201])
  await reader.close()
})

test('[BUS-004] while a worker of a former version runs nothing is acknowledged that it would pass unseen', async () => {
  const { keys, writer, causes } = openBus()
  await redis.zadd(keys.workers, Date.now() - 1, 'gone', Date.now() + 60_000, `new${STREAM_WORKER}`)
  expect(await writer.publish(SERVER, entry(1))).toBeNull()
  await redis.zadd(keys.workers, Date.now() + 60_000, 'former')
  await until('a batch to be refused', async () => (await writer.publish(SERVER, entry(2))) === 'failed')
  expect(await writer.publish(SERVER, entry(3))).toBe('failed')
  expect(causes).toEqual(['a worker of a former version is running: replace workers before ingest'])
  await redis.zrem(keys.workers, 'former')
  expect(await writer.publish(SERVER, entry(4))).toBeNull()
})

/** Servers of so many partitions that share a stream with that of SERVER. */
function serversBeside(count: number): Map<number, string> {
  const found = new Map<number, string>()
  for (let index = 0; found.size < count; index++) {
    const serverId = `22222222-2222-4222-8222-${String(index).padStart(12, '0')}`
    const partition = shardOfServer(serverId)
    if (partition !== SHARD && streamOf(partition) === streamOf(SHARD)) found.set(partition, serverId)
  }
  return found
}

/** Reads what is new, and passes some of what it has read, as a consumer does that owns these partitions. */
class TestConsumer {
  reader: RedisBusReader
  private readonly seen = new Map<number, number[]>()
  private readonly positions = new Map<number, number>()
  /** Where groups ended that were read and not passed. */
  private readonly ends = new Map<number, number[]>()

  constructor(
    private readonly name: string,
    private readonly keys: ReturnType<typeof redisKeys>,
    readonly partitions: readonly number[],
    private readonly random: Random,
  ) {
    this.reader = new RedisBusReader(redis, keys, 2, () => {})
    for (const partition of partitions) this.seen.set(partition, [])
  }

  valuesOf(partition: number): readonly number[] {
    return this.seen.get(partition)!
  }

  /** Another process has the partitions from now on, and begins where this one has passed. */
  async startAnew(): Promise<void> {
    await this.reader.close()
    this.reader = new RedisBusReader(redis, this.keys, 2, () => {})
    this.positions.clear()
    this.ends.clear()
  }

  async readSome(partitions: readonly number[]): Promise<void> {
    await Promise.all(
      partitions.map(async partition => {
        const from = this.positions.get(partition) ?? (await this.reader.passed(this.name, partition))
        const groups = await this.reader.read(partition, from, 1 + this.random.below(2_000))
        this.positions.set(partition, from)
        for (const { firstPosition, count, bytes } of groups) {
          const values = this.seen.get(partition)!
          expect(firstPosition).toBe(this.positions.get(partition)! + 1)
          // What was read before and not passed is read again.
          values.splice(firstPosition - 1, values.length, ...valuesOf(bytes))
          const last = firstPosition + count - 1
          this.positions.set(partition, last)
          this.ends.set(partition, [...(this.ends.get(partition) ?? []), last])
        }
      }),
    )
  }

  async passSome(partition: number): Promise<void> {
    const ends = this.ends.get(partition) ?? []
    const count = this.random.below(ends.length + 1)
    const last = ends[count - 1]
    if (last === undefined) return
    await this.reader.pass(this.name, partition, last)
    this.ends.set(partition, ends.slice(count))
  }

  async finish(): Promise<void> {
    for (const partition of this.partitions) {
      await this.reader.lastPosition(partition)
      for (;;) {
        const before = this.positions.get(partition)
        await this.readSome([partition])
        if (this.positions.get(partition) === before && !this.reader.hasMore(partition)) break
      }
      await this.reader.pass(this.name, partition, this.positions.get(partition)!)
    }
  }
}

test('[BUS-004] [BUS-005] whatever is read, passed and handed over in between, both consumers see every entry once and in order, and nothing stays', async () => {
  const { keys, writer, reader } = openBus()
  const random = new Random(seedOf('the bus over Redis'))
  const servers = new Map([...serversBeside(5), [SHARD, SERVER]])
  const partitions = [...servers.keys()]
  const sent = new Map(partitions.map(partition => [partition, [] as number[]]))
  const consumers = Object.values(busConsumers).map(name => new TestConsumer(name, keys, partitions, random))
  let value = 0
  for (let round = 0; round < 400; round++) {
    // The first partition is quiet most of the time; at times much comes at once.
    const most = random.chance(0.03) ? 60 : 3
    for (const [index, [partition, serverId]] of [...servers].entries())
      if (index > 0 || random.chance(0.02))
        for (let count = random.below(most); count > 0; count--) {
          sent.get(partition)!.push(++value)
          const publishing = writer.publish(serverId, entry(value, serverId))
          if (random.chance(0.5)) expect(await publishing).toBeNull()
        }
    for (const consumer of consumers) {
      if (random.chance(0.6)) await consumer.readSome(random.shuffle(partitions).slice(random.below(6)))
      if (random.chance(0.4)) await consumer.passSome(random.pick(partitions))
      if (random.chance(0.02)) await consumer.startAnew()
    }
  }
  await until('all to be published', async () => {
    const heads = await readHeads(redis, keys)
    return partitions.every(partition => heads[partition] === sent.get(partition)!.length)
  })
  for (const consumer of consumers) {
    await consumer.finish()
    for (const partition of partitions) expect(consumer.valuesOf(partition)).toEqual(sent.get(partition)!)
    await consumer.reader.close()
  }
  expect(await redis.xlen(keys.stream(streamOf(SHARD)))).toBe(0)
  expect(await writer.stats()).toEqual({ lagEntries: 0, bytes: 0, oldestAtMs: null, isFull: false })
  await reader.close()
})

test('[BUS-004] what is passed far behind what was read is removed too', async () => {
  const { keys, writer, reader } = openBus()
  for (let value = 1; value <= 1_000; value++) await writer.publish(SERVER, entry(value))
  expect(await valuesAfter(reader, SHARD, 0)).toHaveLength(1_000)
  await passAll(reader, 500)
  const left = await redis.xlen(keys.stream(streamOf(SHARD)))
  expect(left).toBeGreaterThanOrEqual(500)
  expect(left).toBeLessThanOrEqual(564)
  await reader.close()
})

test('[BUS-005] a bus that was emptied while the connection stood is read from its beginning', async () => {
  const { keys, writer, reader } = openBus()
  const [[quiet, quietServer]] = [...serversBeside(1)] as [[number, string]]
  expect(await reader.read(quiet, 0, GIB)).toEqual([])
  for (let value = 1; value <= 40; value++) await writer.publish(SERVER, entry(value))
  expect(await valuesAfter(reader, SHARD, 0)).toHaveLength(40)
  await until('the quiet one to be taken along', async () => (await reader.read(quiet, 0, GIB)).length === 0)
  await redis.del(keys.busState, keys.busPassed, keys.stream(streamOf(SHARD)))
  for (const value of [101, 102, 103]) await writer.publish(SERVER, entry(value))
  await writer.publish(quietServer, entry(104, quietServer))
  expect(await reader.lastPosition(quiet)).toBe(1)
  expect(await valuesAfter(reader, quiet, 0)).toEqual([104])
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([101, 102, 103])
  await reader.close()
})

test('[BUS-005] a partition that is taken again is read from where a former version went on', async () => {
  const { keys, reader } = openBus()
  expect(await reader.read(SHARD, 0, GIB)).toEqual([])
  await publishAsFormer(keys, [[1]])
  expect(await reader.lastPosition(SHARD)).toBe(1)
  expect((await reader.read(SHARD, 0, GIB)).flatMap(({ bytes }) => valuesOf(bytes))).toEqual([1])
  await reader.close()
})

test('who reads a partition tells the others of the stream what came for them, and asks once for all', async () => {
  const { keys, writer } = openBus()
  const others = serversBeside(3)
  const told = new Set<number>()
  const reader = new RedisBusReader(redis, keys, 3_600_000, partition => void told.add(partition))
  await redis.ping()
  for (const partition of [SHARD, ...others.keys()]) expect(await reader.read(partition, 0, GIB)).toEqual([])
  for (const [partition, serverId] of [...others, [SHARD, SERVER] as const]) {
    await writer.publish(serverId, entry(1, serverId))
    await reader.lastPosition(partition)
  }
  told.clear()
  const before = await callsOf('xrange')
  const read = await Promise.all([SHARD, ...others.keys()].map(partition => reader.read(partition, 0, GIB)))
  expect(read.map(groups => groups.length)).toEqual([1, 1, 1, 1])
  expect((await callsOf('xrange')) - before).toBe(1)
  expect(told).toEqual(new Set([SHARD, ...others.keys()]))
  await reader.close()
})

test('[BUS-004] an item is removed once all partitions that it has entries of have passed it; one without news keeps none', async () => {
  const { keys, writer, reader } = openBus()
  const [[quiet, quietServer], [busy, busyServer]] = [...serversBeside(2)] as [[number, string], [number, string]]
  const bytes = entry(1).length
  const passedTo = async (partition: number, position: number): Promise<void> => {
    await valuesAfter(reader, partition, 0)
    for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, partition, position)
  }
  await writer.publish(quietServer, entry(1, quietServer))
  for (const value of [1, 2, 3]) await writer.publish(busyServer, entry(value, busyServer))
  await passedTo(busy, 3)
  expect((await writer.stats()).bytes).toBe(4 * bytes)
  await passedTo(quiet, 1)
  expect((await writer.stats()).bytes).toBe(0)
  for (const value of [4, 5, 6]) await writer.publish(busyServer, entry(value, busyServer))
  expect(await valuesAfter(reader, busy, 3)).toEqual([4, 5, 6])
  for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, busy, 5)
  expect(await redis.xlen(keys.stream(streamOf(busy)))).toBe(1)
  expect((await writer.stats()).bytes).toBe(bytes)
  // What comes for the quiet one now is behind what it was taken past.
  await writer.publish(quietServer, entry(2, quietServer))
  expect(await valuesAfter(reader, quiet, 1)).toEqual([2])
  await reader.close()
})

test('[BUS-004] samples count as stored up to the oldest that a partition waits with, whichever it is', async () => {
  const { keys, writer, reader } = openBus()
  const [[one, oneServer], [other, otherServer]] = [...serversBeside(2)] as [[number, string], [number, string]]
  const startedMs = await storedBeforeMs(redis, keys)
  await writer.publish(oneServer, entry(0, oneServer))
  await valuesAfter(reader, one, 0)
  for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, one, 1)
  await writer.publish(oneServer, entry(1, oneServer))
  const waitsSinceMs = Number((await redis.xrange(keys.stream(streamOf(one)), '-', '+'))[0]![1][1])
  expect(waitsSinceMs).toBeGreaterThanOrEqual(startedMs)
  // Whoever passes something takes those along that have nothing to pass.
  expect(await valuesAfter(reader, one, 1)).toEqual([1])
  await reader.pass(busConsumers.evaluation, one, 2)
  await until('the clock to go on', async () => Number((await redis.time())[0]) * 1000 > waitsSinceMs)
  await writer.publish(otherServer, entry(1, otherServer))
  expect(await valuesAfter(reader, other, 0)).toEqual([1])
  expect(await storedBeforeMs(redis, keys)).toBe(waitsSinceMs)
  await reader.pass(busConsumers.samples, one, 2)
  const afterFirstMs = await storedBeforeMs(redis, keys)
  expect(afterFirstMs).toBeGreaterThan(waitsSinceMs)
  await reader.pass(busConsumers.samples, other, 1)
  expect(await storedBeforeMs(redis, keys)).toBeGreaterThanOrEqual(afterFirstMs)
  await reader.close()
})

test('[BUS-005] who does not take what came for it keeps nothing from the others, and is given the rest later', async () => {
  const { keys, writer } = openBus()
  const [[slow, slowServer], [quick, quickServer]] = [...serversBeside(2)] as [[number, string], [number, string]]
  const reader = new RedisBusReader(redis, keys, 2, () => {})
  for (const partition of [slow, quick]) expect(await reader.read(partition, 0, GIB)).toEqual([])
  const large = entryOf(COMPANY, slowServer, [
    { metric: 'cpu_usage_percent', points: Array.from({ length: 40_000 }, (_, index) => [index, index] as const) },
  ])
  for (let count = 0; count < 20; count++) await writer.publish(slowServer, large)
  await writer.publish(quickServer, entry(7, quickServer))
  expect(await valuesAfter(reader, quick, 0)).toEqual([7])
  let position = 0
  const sizes: number[] = []
  while (position < 20)
    for (const group of await reader.read(slow, position, GIB)) {
      expect(group.firstPosition).toBe(position + 1)
      sizes.push(group.bytes.length)
      position += group.count
    }
  expect(sizes).toEqual(Array.from({ length: 20 }, () => large.length))
  await reader.close()
})

test('a server that has no memory left is a full bus, until it has some', async () => {
  const small = await startTestRedis({ maxMemory: 1 })
  const narrow = openRedis({
    address: plainAddress(small.url),
    name: 'test',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(narrow)
  const writer = new RedisBusWriter({
    redis: narrow,
    keys: redisKeys('t:'),
    bytesMax: GIB,
    ageMaxMs: 1000,
    onError: () => {},
  })
  expect(await writer.publish(SERVER, entry(1))).toBe('full')
  expect((await writer.stats()).isFull).toBe(true)
  await small.client.config('SET', 'maxmemory', '0')
  expect((await writer.stats()).isFull).toBe(false)
  expect(await writer.publish(SERVER, entry(1))).toBeNull()
  narrow.disconnect()
  await small.close()
})

test('while Redis is away a batch is refused; what was acknowledged is there when it is back', async () => {
  const { writer, reader, causes } = openBus()
  expect(await writer.publish(SERVER, entry(1))).toBeNull()
  expect(await writer.publish(SERVER, entry(2))).toBeNull()
  await server.kill()
  expect(await writer.publish(SERVER, entry(3))).toBe('failed')
  expect(await writer.publish(SERVER, entry(4))).toBe('failed')
  expect(causes).toHaveLength(1)
  await server.start()
  await whenReady(redis)
  expect(await writer.publish(SERVER, entry(5))).toBeNull()
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([1, 2, 5])
  await reader.close()
})

test('a user whose rights are older than the poll is told which one is missing, and loses nothing', async () => {
  const { keys, writer } = openBus()
  expect(await pollFaults(redis, keys)).toEqual([])
  await redis.call('ACL', 'SETUSER', 'old', 'on', '>secret', '~*', '&*', '+@all', '-xread')
  const refused = openRedis({
    address: plainAddress(server.url.replace('redis://', 'redis://old:secret@')),
    name: 'old-rights',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(refused)
  expect(await pollFaults(refused, keys)).toEqual([expect.stringContaining('add +xread')])
  const reader = new RedisBusReader(refused, keys, 5, () => {})
  await writer.publish(SERVER, entry(1))
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([1])
  await writer.publish(SERVER, entry(2))
  expect(await valuesAfter(reader, SHARD, 1)).toEqual([2])
  await reader.close()
  refused.disconnect()
})
