// Partitions that share a stream of the bus over Redis: what one of them does to the others.
import { afterAll, expect, test } from 'bun:test'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { readHeads, storedBeforeMs } from '../../apps/collector/bus/redis-bus.ts'
import { RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { type redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { entryOf } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'
import {
  COMPANY,
  entry,
  GIB,
  openBuses,
  passAll,
  SERVER,
  SHARD,
  serversBeside,
  valuesAfter,
  valuesOf,
} from './buses.ts'

const { redis, close, openBus, callsOf } = await openBuses()
afterAll(close)

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

  /** As a worker that loses a partition and gets it back: it begins where it has passed. */
  takeAgain(partition: number): void {
    this.reader.forget(partition)
    this.positions.delete(partition)
    this.ends.delete(partition)
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
      if (random.chance(0.1)) await consumer.reader.lastPosition(random.pick(partitions))
      if (random.chance(0.05)) consumer.takeAgain(random.pick(partitions))
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

/** Passed by both consumers up to its only entry, which a reader has read that is gone. */
async function passedByAnother({ keys, writer, reader }: ReturnType<typeof openBus>): Promise<RedisBusReader> {
  await writer.publish(SERVER, entry(1))
  expect(await valuesAfter(reader, SHARD, 0)).toEqual([1])
  await passAll(reader, 1)
  await reader.close()
  // It asks for nothing by itself.
  return new RedisBusReader(redis, keys, 3_600_000, () => {})
}

test('[BUS-005] a stream that was read to where more may follow is not taken for read to its end', async () => {
  const bus = openBus()
  const reader = await passedByAnother(bus)
  const [[other, otherServer]] = [...serversBeside(1)] as [[number, string]]
  // As many as one answer brings.
  const values = Array.from({ length: 32 }, (_, index) => index)
  for (const value of values) await bus.writer.publish(otherServer, entry(value, otherServer))
  expect(await valuesAfter(reader, other, 0)).toEqual(values)
  await bus.writer.publish(SERVER, entry(2))
  expect(await reader.lastPosition(SHARD)).toBe(2)
  expect((await reader.read(SHARD, 1, GIB)).flatMap(({ bytes }) => valuesOf(bytes))).toEqual([2])
  await reader.close()
})

test('who asks how much there is does not make the next read begin where the partition was passed', async () => {
  const bus = openBus()
  const reader = await passedByAnother(bus)
  for (let value = 2; value <= 500; value++) await bus.writer.publish(SERVER, entry(value))
  expect(await valuesAfter(reader, SHARD, 1)).toHaveLength(499)
  await bus.writer.publish(SERVER, entry(501))
  const before = await callsOf('xrange')
  expect(await reader.lastPosition(SHARD)).toBe(501)
  expect(await valuesAfter(reader, SHARD, 500)).toEqual([501])
  expect((await callsOf('xrange')) - before).toBe(1)
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
