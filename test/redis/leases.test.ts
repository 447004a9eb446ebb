// Leases of shards between workers, on a real server.
import { afterAll, expect, test } from 'bun:test'
import { LEADER, redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { LEASE_MS, RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { LeaseFollower } from '../../apps/collector/worker/storage/lease-follower.ts'
import { openTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const { redis, close } = await openTestRedis()
let prefixes = 0
afterAll(close)

/** Soon over, for those that wait for it. Whoever must lose nothing has the product's, which no busy host outlasts. */
const SHORT_MS = 300

function openWorker(prefix: string, owner: string, ttlMs = SHORT_MS, periodMs = 20) {
  const store = new RedisLeases(redis, redisKeys(prefix), owner, ttlMs)
  const told: string[] = []
  const running = new Map<number, string>()
  let isCut = false
  const leases = new LeaseFollower({
    store: {
      renew: async takes => {
        if (isCut) throw new Error('cut off')
        return store.renew(takes)
      },
      release: held => store.release(held),
    },
    periodMs,
    shardCount: LEADER,
    onAcquired: ({ lease, token }) => running.set(lease, token),
    onRevoked: lease => {
      running.delete(lease)
      told.push(`lost ${lease}`)
    },
    handOver: async lease => {
      running.delete(lease)
      told.push(`handed over ${lease}`)
    },
    onError: what => told.push(what),
    onBesideFormer: () => told.push('beside a former version'),
  })
  return {
    leases,
    running,
    told,
    /** As a server that stands still: nothing is renewed any more. */
    cut: (on: boolean) => {
      isCut = on
    },
    shards: () => [...running.keys()].filter(lease => lease < LEADER),
  }
}

test('the first worker takes every shard and the duties; a second one gets half, handed over in order', async () => {
  const prefix = `t${++prefixes}:`
  const first = openWorker(prefix, 'first', LEASE_MS)
  const second = openWorker(prefix, 'second', LEASE_MS)
  first.leases.start()
  await until('the first to have all', () => first.running.size === 65)
  second.leases.start()
  await until('halves', () => first.shards().length === 32 && second.shards().length === 32)
  expect(first.told.filter(line => line.startsWith('lost'))).toEqual([])
  expect(first.told.filter(line => line.startsWith('handed over'))).toHaveLength(32)
  expect(new Set([...first.shards(), ...second.shards()]).size).toBe(64)
  expect([...first.running.keys(), ...second.running.keys()].filter(lease => lease === LEADER)).toEqual([LEADER])
  await second.leases.stop()
  await until('all to be back', () => first.shards().length === 64)
  await first.leases.stop()
  expect(await redis.keys(`${prefix}lease:shard:*`)).toEqual([])
})

test('who joins takes what is given back at once, and not when it would look next', async () => {
  const prefix = `t${++prefixes}:`
  const first = openWorker(prefix, 'first', LEASE_MS)
  const second = openWorker(prefix, 'second', LEASE_MS, 3_600_000)
  first.leases.start()
  await until('the first to have all', () => first.running.size === 65)
  second.leases.start()
  await until('halves', () => first.shards().length === 32 && second.shards().length === 32)
  await Promise.all([first.leases.stop(), second.leases.stop()])
})

test('beside a worker of a former version another takes nothing and does not count, until the last of them has ended', async () => {
  const prefix = `t${++prefixes}:`
  const { workers } = redisKeys(prefix)
  await redis.zadd(workers, Date.now() + 60_000, 'former')
  const one = openWorker(prefix, 'one', LEASE_MS)
  one.leases.start()
  await until('it to look', () => one.told.includes('beside a former version'))
  expect(await redis.zrangebyscore(workers, '-inf', '+inf')).toEqual(['former'])
  expect(one.running.size).toBe(0)
  await redis.zrem(workers, 'former')
  await until('it to have all', () => one.running.size === 65)
  // One that is started by mistake gets nothing by that.
  await redis.zadd(workers, Date.now() + 60_000, 'former')
  await until('it to look again', () => one.told.filter(line => line === 'beside a former version').length === 2)
  expect(one.running.size).toBe(65)
  await one.leases.stop()
})

test('what a silent worker had goes to another one under a greater number, and the silent one lets go', async () => {
  const prefix = `t${++prefixes}:`
  const first = openWorker(prefix, 'first')
  const second = openWorker(prefix, 'second')
  first.leases.start()
  await until('the first to have all', () => first.running.size === 65)
  const tokens = new Map(first.running)
  second.leases.start()
  first.cut(true)
  await until('the second to have all', () => second.running.size === 65)
  for (const [lease, token] of second.running) {
    const before = tokens.get(lease)
    if (before) expect(Number(token.split(' ')[1])).toBeGreaterThan(Number(before.split(' ')[1]))
  }
  first.cut(false)
  await until('the first to have half again', () => first.shards().length === 32)
  expect(first.told.some(line => line.startsWith('lost'))).toBe(true)
  await Promise.all([first.leases.stop(), second.leases.stop()])
})

test('a lease whose work ended by itself is taken again under another token', async () => {
  const worker = openWorker(`t${++prefixes}:`, 'only')
  worker.leases.start()
  const before = await until('shard 5', () => worker.running.get(5))
  worker.leases.drop(5, before)
  expect(worker.running.has(5)).toBe(false)
  const after = await until('shard 5 again', () => worker.running.get(5))
  expect(after).not.toBe(before)
  await worker.leases.stop()
})

test('a lease that is being given back is not taken up again by a look in between', async () => {
  const held = { lease: 1, token: 'owner 1' }
  let share = 64
  const acquired: number[] = []
  const releasing = Promise.withResolvers<void>()
  let looksSince = 0
  const leases = new LeaseFollower({
    store: {
      // Redis says that it is held until it is released.
      renew: async () => {
        looksSince++
        return { share, held: [held], isBesideFormer: false }
      },
      release: () => releasing.promise,
    },
    periodMs: 1,
    shardCount: LEADER,
    onAcquired: ({ lease }) => acquired.push(lease),
    onRevoked: () => {},
    handOver: async () => {},
    onError: what => expect.unreachable(what),
  })
  leases.start()
  await until('it to be held', () => acquired.length === 1)
  share = 0
  looksSince = 0
  await until('some looks', () => looksSince > 5)
  expect(acquired).toEqual([1])
  releasing.resolve()
  await leases.stop()
})
