// What processes of a version before 2026-12 left on the bus over Redis, or still write to it.
import { afterAll, expect, test } from 'bun:test'
import { RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { type redisKeys, STREAM_WORKER } from '../../apps/collector/store/redis/redis-keys.ts'
import { until } from '../support/until.ts'
import { entry, GIB, openBuses, passAll, SERVER, SHARD, valuesAfter, valuesOf } from './buses.ts'

const { redis, close, openBus } = await openBuses()
afterAll(close)

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

test('[BUS-005] a partition that is taken again is read from where a former version went on', async () => {
  const { keys, reader } = openBus()
  expect(await reader.read(SHARD, 0, GIB)).toEqual([])
  await publishAsFormer(keys, [[1]])
  expect(await reader.lastPosition(SHARD)).toBe(1)
  expect((await reader.read(SHARD, 0, GIB)).flatMap(({ bytes }) => valuesOf(bytes))).toEqual([1])
  await reader.close()
})
