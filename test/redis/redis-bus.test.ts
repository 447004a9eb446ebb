// The bus over Redis, on a real server.
import { afterAll, expect, test } from 'bun:test'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { pollFaults, RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { startTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { entry, GIB, openBuses, passAll, SERVER, SHARD, valuesAfter, valuesOf } from './buses.ts'

const { server, redis, close, openBus, callsOf } = await openBuses()
afterAll(close)

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

/** How often the server refused a poll. */
async function refusedPolls(): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(/^cmdstat_xread:.*rejected_calls=(\d+)/m.exec(stats)?.[1] ?? 0)
}

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
  // A refused poll forgets nothing of what was read: what is passed is removed.
  for (const value of [3, 4]) await writer.publish(SERVER, entry(value))
  expect(await valuesAfter(reader, SHARD, 2)).toEqual([3, 4])
  const polls = await refusedPolls()
  await until('the poll to be refused again', async () => (await refusedPolls()) > polls + 1)
  await passAll(reader, 3)
  expect(await redis.xlen(keys.stream(streamOf(SHARD)))).toBe(1)
  await reader.close()
  refused.disconnect()
})
