// A Redis that comes back without the newest of what it acknowledged, as one with `appendfsync everysec` may after it
// was killed on a busy disk: positions and numbers are given out a second time. What is lost is lost; nothing that
// comes after it may be lost with it.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { RedisOutboxStore } from '../../apps/collector/store/redis/redis-outbox.ts'
import { RedisRegistryStore } from '../../apps/collector/store/redis/redis-registry-store.ts'
import { RedisShardStore, RuleRecords, ShardLost } from '../../apps/collector/store/redis/redis-shard-store.ts'
import type { AgentRecord } from '../../apps/collector/store/registry/agent-record.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import { openSamplesBus } from '../../apps/collector/worker/samples/samples-bus.ts'
import { alertEvent, eventCompany, eventServer, eventShard } from '../support/alert-event.ts'
import { engineUrl, entryOf, freshDatabase, openTestStore } from '../support/clickhouse.ts'
import { openTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const START = Date.now() - 60_000

const { server, redis, close } = await openTestRedis()
let prefixes = 0
afterAll(close)

/** What the keys hold now. The result ends the server and starts it again with no more than that in them. */
async function remembered(...keys: string[]): Promise<() => Promise<void>> {
  const dumps = await Promise.all(keys.map(key => server.client.dumpBuffer(key)))
  return async () => {
    for (const [index, key] of keys.entries()) await server.client.restore(key, 0, dumps[index]!, 'REPLACE')
    await server.kill()
    await until('the end to be known', () => redis.status !== 'ready')
    await server.start()
    await whenReady(redis)
  }
}

test('[BUS-005] samples that get positions which Redis had given out before are stored, though a block of before was just on its way', async () => {
  const keys = redisKeys(`t${++prefixes}:`)
  const publisher = new RedisBusWriter({ redis, keys, bytesMax: 1024 ** 3, ageMaxMs: 3_600_000, onError: () => {} })
  const publish = async (from: number, to: number): Promise<void> => {
    for (let index = from; index <= to; index++) {
      const series = [{ metric: 'cpu_usage_percent', points: [[START + index, index]] as const }]
      expect(await publisher.publish(eventServer, entryOf(eventCompany, eventServer, series))).toBeNull()
    }
  }
  const store = await openTestStore()
  let insertCount = 0
  const gate = Promise.withResolvers<void>()
  let recoveries = 0
  const bus = openSamplesBus(
    {
      bus: {
        kind: 'redis',
        address: plainAddress(server.url),
        prefix: keys.prefix,
        hold: { ms: 1_000, bytes: 1024 ** 3 },
      },
      consumers: Object.values(busConsumers),
      clickhouse: engineUrl,
      database: freshDatabase(),
    },
    {
      onNews: () => writer.wake(),
      onTrouble: () => {},
      onRecovered: () => {
        writer.readAnew()
        recoveries++
      },
    },
  )
  const writer = new SampleWriter({
    store: {
      ...store,
      insertBlock: async (table, block, token) => {
        if (table === 'samples_raw' && insertCount++ === 0) await gate.promise
        await store.insertBlock(table, block, token)
      },
    },
    bus: bus.reader,
    tokenPrefix: bus.tokenPrefix,
    nowMs: Date.now,
    onInserted: () => {},
    onDefinitions: () => {},
    onTrouble: () => {},
  })
  bus.setPartitions([eventShard])
  const running = writer.run()
  await publish(1, 5)
  const comeBack = await remembered(keys.stream(streamOf(eventShard)), keys.busState)
  await publish(6, 10)
  await until('all ten to be on their way to the store', () => insertCount === 1)
  await comeBack()
  await until('the writer to know', () => recoveries === 1)
  await publish(11, 13)
  gate.resolve()
  const stored = async () =>
    (await store.rows(`SELECT value FROM ${store.database}.samples ORDER BY value`)).map(([value]) => Number(value))
  // The first ten were read before Redis lost half of them.
  await until('what came after', async () => (await stored()).length >= 13)
  expect(await stored()).toEqual(Array.from({ length: 13 }, (_, index) => index + 1))
  await bus.reader.pass(busConsumers.evaluation, eventShard, 8)
  await until('an empty bus', async () => (await publisher.stats()).lagEntries === 0)
  writer.abort()
  await running
  await bus.close()
  await store.close()
})

const agentOf = (index: number): AgentRecord => ({
  agentId: `33333333-3333-4333-8333-00000000000${index}`,
  companyId: eventCompany,
  serverId: eventServer,
  state: 'active',
  tokenHash: String(index).repeat(64),
  prevTokenHash: '',
  prevTokenExpiresAtMs: 0,
  version: 1,
  syncVersion: 1,
  serverStatus: '',
  subnetId: '',
  datacenter: '',
  hostname: '',
  intervalSeconds: 0,
  enrolledAtMs: 0,
})

async function leasedStore(keys: ReturnType<typeof redisKeys>) {
  const { held } = await new RedisLeases(redis, keys, 'owner', 60_000).renew(true)
  const { token } = held.find(({ lease }) => lease === eventShard)!
  const storage = { redis, keys, shard: eventShard, token, records: new RuleRecords(redis, keys) }
  return { token, open: () => RedisShardStore.open(storage) }
}

test('[EVT-026] an event that got the number of one that Redis lost is not removed with it', async () => {
  const keys = redisKeys(`t${++prefixes}:`)
  const { open } = await leasedStore(keys)
  const store = await open()
  const outbox = new RedisOutboxStore(redis, keys, () => [eventShard])
  for (const seq of [1, 2]) store.commit([alertEvent(seq)], [], seq, seq)
  await store.flushed()
  const comeBack = await remembered(keys.outbox(eventShard), keys.outboxIds(eventShard))
  store.commit([alertEvent(3)], [], 3, 3)
  await store.flushed()
  const sent = await outbox.nextEvents(10)
  expect(sent.map(row => row.event.seq)).toEqual([1, 2, 3])
  await comeBack()
  const next = await open()
  next.commit([alertEvent(4)], [], 4, 4)
  await next.flushed()
  await outbox.removeEvents(sent.map(row => row.id))
  expect((await outbox.nextEvents(10)).map(row => row.event.seq)).toEqual([4])
})

test('[SNAP-005] a shard that was given up when Redis went is written no more from there, though its lease still holds when Redis is back', async () => {
  const keys = redisKeys(`t${++prefixes}:`)
  const { open } = await leasedStore(keys)
  const store = await open()
  store.saveSnapshot(eventShard, new Uint8Array([1]), 1, 0)
  await store.flushed()
  store.abandon()
  store.saveSnapshot(eventShard, new Uint8Array([2]), 2, 0)
  store.commit([alertEvent(1)], [], 2, 2)
  await expect(store.flushed()).rejects.toThrow(ShardLost)
  const next = await open()
  expect([...next.loadSnapshot(eventShard)!]).toEqual([1])
  expect(await new RedisOutboxStore(redis, keys, () => [eventShard]).nextEvents(10)).toEqual([])
})

test('[REG-018] a change of the registry that got the number of one that Redis lost reaches every process', async () => {
  const keys = redisKeys(`t${++prefixes}:`)
  const openNode = async () => {
    const store = new RedisRegistryStore(redis, keys)
    await store.poll()
    const registry = new AgentRegistry(store)
    return {
      registry,
      poll: async () => {
        await store.poll()
        registry.refresh()
      },
    }
  }
  const push = async (registry: AgentRegistry, index: number): Promise<void> => {
    registry.push(agentOf(index))
    await registry.flushed()
  }
  const [worker, ingest] = await Promise.all([openNode(), openNode()])
  await push(worker.registry, 1)
  const comeBack = await remembered(keys.agents, keys.agentChanges, keys.registryState)
  await push(worker.registry, 2)
  await ingest.poll()
  await comeBack()
  for (const index of [3, 4]) await push(worker.registry, index)
  await ingest.poll()
  expect([1, 2, 3, 4].map(index => ingest.registry.byAgent(agentOf(index).agentId)?.state)).toEqual(
    Array.from({ length: 4 }, () => 'active'),
  )
})
