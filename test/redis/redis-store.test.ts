// What the processes of a collector share in Redis, on a real server: the state of shards, the outbox, the registry,
// reload calls, tombstones.
import { afterAll, expect, spyOn, test } from 'bun:test'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { RedisShared } from '../../apps/collector/store/redis/redis-announcements.ts'
import {
  openRedis,
  RedisScript,
  readWhenReady,
  redisCause,
  whenReady,
} from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { RedisOutboxStore } from '../../apps/collector/store/redis/redis-outbox.ts'
import { durabilityFaults } from '../../apps/collector/store/redis/redis-setup-faults.ts'
import { RedisShardStore, RuleRecords, ShardLost } from '../../apps/collector/store/redis/redis-shard-store.ts'
import { eventId } from '../../core/alerting/evaluate/event-id.ts'
import { limits } from '../../core/limits.ts'
import { alertEvent, closedRecord, eventAgent, eventCompany, eventServer, eventShard } from '../support/alert-event.ts'
import { openTestRedis } from '../support/redis.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'

const { server, redis, close } = await openTestRedis()
let prefixes = 0
afterAll(close)
const freshKeys = () => redisKeys(`t${++prefixes}:`)

const rule = ruleRecord({ id: 'rule', sync_version: 7, company_id: eventCompany })
const changed = { position: 5, since: 7, ruleId: 'rule', before: null, after: rule }

const openStore = (keys: ReturnType<typeof freshKeys>, token: string): Promise<RedisShardStore> =>
  RedisShardStore.open({ redis, keys, shard: eventShard, token, records: new RuleRecords(redis, keys) })

/** A worker's lease of the shard, and another's that takes it over. */
async function lease(keys: ReturnType<typeof freshKeys>, owner: string): Promise<string> {
  const { held } = await new RedisLeases(redis, keys, owner, 10_000).renew(true)
  return held.find(one => one.lease === eventShard)!.token
}

test('[SNAP-004, SNAP-005] snapshot, journal, keys and rules of a shard are there for its next owner', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'first')
  const store = await openStore(keys, token)
  expect(store.loadSnapshot(eventShard)).toBeNull()
  store.commit([alertEvent(1)], [closedRecord(1)], 4, 1000)
  // What is committed between the taking of a snapshot and its saving is not in it.
  const mark = store.journalMark
  store.commit([], [closedRecord(2)], 5, 1000)
  store.saveSnapshot(eventShard, new Uint8Array([1, 2, 255]), 5, mark)
  store.commit([], [closedRecord(3)], 5, 1000)
  store.keepKeys(eventShard, ['cpu_usage_percent', 'disk_used_percent{mount="/"}', 'no_longer'])
  store.dropKeys(eventShard, ['no_longer'])
  store.keepRules(0, [changed])
  await store.flushed()
  const next = await openStore(keys, token)
  expect(next.journalMark).toBe(3)
  expect([...next.loadSnapshot(eventShard)!]).toEqual([1, 2, 255])
  expect([...next.journalAfter(eventShard, 5, 1)].map(({ record }) => record)).toEqual([
    closedRecord(2),
    closedRecord(3),
  ])
  expect([...next.journalAfter(eventShard, 5, 2)].map(({ record }) => record)).toEqual([closedRecord(3)])
  expect(next.keys(eventShard).sort()).toEqual(['cpu_usage_percent', 'disk_used_percent{mount="/"}'])
  expect(next.ruleChanges(eventShard)).toEqual([{ ...changed, position: 0 }, changed])
  // With the next snapshot no replay needs it; what was noted last stays, for a worker that has an older set.
  next.saveSnapshot(eventShard, new Uint8Array([1]), 6, next.journalMark)
  await next.flushed()
  const after = await openStore(keys, token)
  expect(after.ruleChanges(eventShard)).toEqual([{ ...changed, position: 0 }])
  // A purge of the company takes its rules along.
  const shared = new RedisShared(redis, keys, () => 1000)
  await shared.write({ companyId: eventCompany, serverId: null, untilMs: 2000 })
  const purged = await openStore(keys, token)
  expect(purged.ruleChanges(eventShard)).toEqual([])
  expect(await redis.keys(`${keys.ruleText('')}*`)).toEqual([])
})

test('[PRES-016] [PRES-004] an owner whose lease went to another worker can write nothing more, so that a server is declared lost once', async () => {
  const keys = freshKeys()
  const oldToken = await lease(keys, 'first')
  const old = await openStore(keys, oldToken)
  await redis.del(keys.lease(eventShard))
  const token = await lease(keys, 'second')
  const current = await openStore(keys, token)
  const down = { ...alertEvent(5, 'agent.down'), rule_id: 'agent_down' }
  current.commit([down], [closedRecord(1)], 1, 1000)
  await current.flushed()
  old.commit(
    [{ ...down, seq: 6, event_id: eventId(eventServer, 'agent_down', 'x', 6, 'agent.down') }],
    [closedRecord(9)],
    2,
    1000,
  )
  old.saveSnapshot(eventShard, new Uint8Array([9]), 2, 9)
  old.keepKeys(eventShard, ['x'])
  await expect(old.flushed()).rejects.toThrow(ShardLost)
  const outbox = new RedisOutboxStore(redis, keys, () => [eventShard])
  expect((await outbox.nextEvents(10)).map(row => row.event.seq)).toEqual([5])
  expect(await redis.get(keys.snapshot(eventShard))).toBeNull()
  expect(await redis.scard(keys.seriesKeys(eventShard))).toBe(0)
  expect(await redis.get(`t${prefixes}:agent:${eventAgent}:st`)).toBe('down 5000')
  expect(await outbox.downServers()).toEqual([[eventServer, 5000]])
  current.commit([{ ...alertEvent(8, 'agent.up'), rule_id: 'agent_down' }], [], 2, 1000)
  await current.flushed()
  expect(await redis.get(`t${prefixes}:agent:${eventAgent}:st`)).toBe('up 8000')
  expect(await outbox.downServers()).toEqual([])
})

test('[PRES-004] presence that no event tells is written too: the first batch of an agent, and its end', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'first')
  const store = await openStore(keys, token)
  store.keepPresence([
    { agentId: eventAgent, state: 'up', atMs: 5000.4 },
    { agentId: 'another', state: 'up', atMs: 6000 },
  ])
  await store.flushed()
  expect(await redis.mget(keys.agentState(eventAgent), keys.agentState('another'))).toEqual(['up 5000', 'up 6000'])
  store.keepPresence([{ agentId: eventAgent, state: 'unknown', atMs: 0 }])
  await store.flushed()
  expect(await redis.mget(keys.agentState(eventAgent), keys.agentState('another'))).toEqual([null, 'up 6000'])
})

test('[SYNC-032, OPS-018] a reload call raises the shared counter, and every process hears of it once', async () => {
  const keys = redisKeys('myprefix:')
  const [one, other] = [new RedisShared(redis, keys, Date.now), new RedisShared(redis, keys, Date.now)]
  expect((await one.poll()).reloads).toEqual([])
  await other.poll()
  for (const feed of ['rules', 'silences', 'checks', 'settings'] as const) await one.raiseReload(feed)
  expect(await redis.mget('myprefix:rules:reload', 'myprefix:silences:reload')).toEqual(['1', '1'])
  expect(await redis.mget('myprefix:checks:reload', 'myprefix:settings:reload')).toEqual(['1', '1'])
  for (const process of [one, other]) {
    expect((await process.poll()).reloads).toEqual(['rules', 'silences', 'checks', 'settings'])
    expect((await process.poll()).reloads).toEqual([])
  }
})

test('[PUR-004] a tombstone stands under purge:tombstones for every process, for as long as it lives', async () => {
  const keys = redisKeys('purge-test:')
  let nowMs = 1000
  const writer = new RedisShared(redis, keys, () => nowMs)
  const reader = new RedisShared(redis, keys, () => nowMs)
  expect((await reader.poll()).tombstones).toEqual([])
  const tombstone = { companyId: eventCompany, serverId: null, untilMs: 2000 }
  await writer.write(tombstone)
  expect(await redis.hlen('purge-test:purge:tombstones')).toBe(1)
  expect((await reader.poll()).tombstones).toEqual([tombstone])
  expect((await reader.poll()).tombstones).toEqual([])
  expect(reader.living()).toEqual([tombstone])
  const again = { ...tombstone, untilMs: 3000 }
  await writer.write(again)
  expect((await reader.poll()).tombstones).toEqual([again])
  nowMs = 3000
  expect(reader.living()).toEqual([])
  expect(reader.kept()).toEqual([again])
  nowMs += limits.purgeTombstoneKeptMs
  await writer.write({ companyId: eventCompany, serverId: eventServer, untilMs: nowMs + 6000 })
  expect(await redis.hlen('purge-test:purge:tombstones')).toBe(1)
})

test('an operator is told of a Redis that does not keep what it acknowledges, or throws it away', async () => {
  expect(await durabilityFaults(redis, freshKeys(), false)).toEqual([])
  const settings = { appendfsync: 'everysec', 'maxmemory-policy': 'allkeys-lru' }
  const before = { appendfsync: 'always', 'maxmemory-policy': 'noeviction' }
  for (const [name, value] of Object.entries(settings)) await redis.config('SET', name, value)
  const told = await durabilityFaults(redis, freshKeys(), false)
  for (const [name, value] of Object.entries(before)) await redis.config('SET', name, value)
  expect(told.map(fault => fault.split(':')[0])).toEqual(['appendfsync is everysec', 'maxmemory-policy is allkeys-lru'])
  await redis.config('SET', 'appendonly', 'no')
  expect((await durabilityFaults(redis, freshKeys(), false)).map(fault => fault.split(':')[0])).toEqual([
    'appendonly is off',
  ])
  await redis.config('SET', 'appendonly', 'yes')
  await redis.call('ACL', 'SETUSER', 'default', '-xadd', '-zadd')
  expect((await durabilityFaults(redis, freshKeys(), false)).map(fault => fault.split(':')[0])).toEqual([
    'the user default may not ZADD, XADD keys of the collector',
  ])
  await redis.call('ACL', 'SETUSER', 'default', '+@all')
})

test('[BUS-005] an operator is told when more replicas follow than a batch waits for, since each of them may take over', async () => {
  const [primary, ...followers] = [await openTestRedis(), await openTestRedis(), await openTestRedis()]
  try {
    const { hostname, port } = new URL(primary.server.url)
    for (const { redis: follower } of followers) await follower.call('REPLICAOF', hostname, port)
    await until('two replicas', async () => (await primary.redis.info('replication')).includes('connected_slaves:2'))
    const told = (replicas: number) => durabilityFaults(primary.redis, freshKeys(), false, replicas)
    expect((await told(1)).map(fault => fault.split(':')[0])).toEqual([
      'redis.wait_replicas is 1 and 2 replicas follow',
    ])
    expect([await told(0), await told(2)]).toEqual([[], []])
    const ofReplica = await durabilityFaults(followers[0]!.redis, freshKeys(), false)
    expect(ofReplica.map(fault => fault.split(':')[0])).toContain('redis.url is a replica')
  } finally {
    for (const each of [primary, ...followers]) await each.close()
  }
})

test('what a start needs is read again when the connection breaks meanwhile; what the server refuses ends it, in words', async () => {
  const { server, redis, close } = await openTestRedis()
  await redis.set('key', 'value')
  let tries = 0
  const read = async (): Promise<string | null> => {
    if (++tries === 1) await server.kill()
    const found = redis.get('key')
    if (tries === 1) await found.catch(() => server.start())
    return found
  }
  expect(await readWhenReady(redis, read)).toBe('value')
  expect(tries).toBe(2)
  await redis.call('ACL', 'SETUSER', 'default', '-get')
  await expect(readWhenReady(redis, read)).rejects.toThrow('Redis refuses what a start needs: NOPERM')
  await close()
})

test('what waits in the outboxes of all shards is counted with one command', async () => {
  const keys = freshKeys()
  const store = await openStore(keys, await lease(keys, 'first'))
  store.commit([alertEvent(1), alertEvent(2)], [closedRecord(1)], 4, 1000)
  await store.flushed()
  const outbox = new RedisOutboxStore(redis, keys, () => Array.from({ length: 64 }, (_, shard) => shard))
  expect(await outbox.measure()).toEqual([eventShard])
  expect([outbox.outboxDepth(), outbox.oldestEventMs()]).toEqual([2, 1000])
  const sent = spyOn(redis, 'sendCommand')
  await outbox.measure()
  const commands = sent.mock.calls.length
  sent.mockRestore()
  expect(commands).toBe(1)
  expect(await new RedisOutboxStore(redis, keys, () => []).measure()).toEqual([])
})

test('no text is made of the arguments of a command: nobody traces it', async () => {
  const own = openRedis({
    address: plainAddress(server.url),
    name: 'untraced',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(own)
  let texts = 0
  const bytes = Object.assign(Buffer.from([0, 255, 128]), { toString: () => `text ${++texts}` })
  const script = new RedisScript('return #ARGV[1]')
  expect(await script.run(own, [], [bytes])).toBe(3)
  expect(await script.run(own, [], [bytes])).toBe(3)
  expect(texts).toBe(0)
  own.disconnect()
})

test('a command that is under way when the connection breaks fails then, not when its deadline comes', async () => {
  const own = openRedis({
    address: plainAddress(server.url),
    name: 'broken-off',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(own)
  const id = await own.client('ID')
  const waiting = own.blpop('nothing-ever', 4).then(
    () => 'an answer',
    error => redisCause(error),
  )
  await until('it to wait', async () => /broken-off.* cmd=blpop/.test(String(await redis.client('LIST'))))
  const startedMs = performance.now()
  await redis.client('KILL', 'ID', id)
  expect(await waiting).toBe('the connection broke before the answer came')
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  await whenReady(own)
  expect(await own.ping()).toBe('PONG')
  own.disconnect()
})

test('a shard takes neither events nor records of another shard', async () => {
  const keys = freshKeys()
  const store = await openStore(keys, await lease(keys, 'only'))
  const other = alertEvent(1, 'alert.opened', { server_id: '22222222-2222-4222-8222-222222222223' })
  expect(() => store.commit([other], [], 1, 1)).toThrow('an event goes into the outbox of its own shard')
  const record = { ...closedRecord(1), shard: eventShard + 1 }
  expect(() => store.commit([], [record], 1, 1)).toThrow('a shard keeps what it knows of its own servers')
  await store.flushed()
  expect(await new RedisOutboxStore(redis, keys, () => [eventShard]).nextEvents(10)).toEqual([])
})
