// What the processes of a collector share in Redis, on a real server: the state of shards, the outbox, the registry, reload calls,
// tombstones.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Redis } from 'ioredis'
import { durabilityFaults, openRedis, redisCause, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { RedisFeedStore } from '../../apps/collector/store/redis/redis-feed-store.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-leases.ts'
import { RedisOutboxStore } from '../../apps/collector/store/redis/redis-outbox.ts'
import { RedisRegistryStore } from '../../apps/collector/store/redis/redis-registry-store.ts'
import { RedisShardStore, RuleRecords, ShardLost } from '../../apps/collector/store/redis/redis-shard-store.ts'
import { RedisShared } from '../../apps/collector/store/redis/redis-shared.ts'
import type { AgentRecord } from '../../apps/collector/store/registry/agent-record.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import type { JournalRecord } from '../../core/alerting/durability/journal-record.ts'
import { type AlertEvent, eventId } from '../../core/alerting/evaluate/event.ts'
import { shardOfServer } from '../../core/bus/entry.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = '22222222-2222-4222-8222-222222222222'
const AGENT = '33333333-3333-4333-8333-333333333333'
const SHARD = shardOfServer(SERVER)

let server: TestRedis
let redis: Redis
let prefixes = 0
beforeAll(async () => {
  server = await startTestRedis()
  redis = openRedis({ url: server.url, name: 'test', onTrouble: () => {}, onRecovered: () => {} })
  await whenReady(redis)
})
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
const freshKeys = () => redisKeys(`t${++prefixes}:`)

const event = (seq: number, type: AlertEvent['type'] = 'alert.opened', serverId = SERVER): AlertEvent => ({
  event_id: eventId(serverId, 'rule', 'cpu_usage_percent', seq, type),
  type,
  seq,
  occurred_at: new Date(seq * 1000).toISOString(),
  company_id: COMPANY,
  server_id: serverId,
  rule_id: 'rule',
  rule_version: 1,
  series_key: type.startsWith('agent.') ? `agent:${AGENT}` : 'cpu_usage_percent',
  severity: 'critical',
  value: 1,
  threshold: 1,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
})

const left = (leftAtMs: number): JournalRecord => ({
  kind: 'left',
  key: 'k',
  companyId: COMPANY,
  serverId: SERVER,
  shard: SHARD,
  agentIds: [AGENT],
  leftAtMs,
})

const rule = ruleRecord({ id: 'rule', sync_version: 7, company_id: COMPANY })
const changed = { position: 5, since: 7, ruleId: 'rule', before: null, after: rule }

const openStore = (keys: ReturnType<typeof freshKeys>, token: string): Promise<RedisShardStore> =>
  RedisShardStore.open({ redis, keys, shard: SHARD, token, records: new RuleRecords(redis, keys) })

/** A worker's lease of the shard, and another's that takes it over. */
async function lease(keys: ReturnType<typeof freshKeys>, owner: string): Promise<string> {
  const { held } = await new RedisLeases(redis, keys, owner, 10_000).tend(true)
  return held.find(one => one.lease === SHARD)!.token
}

test('[SNAP-004, SNAP-005] snapshot, journal, keys and rules of a shard are there for its next owner', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'first')
  const store = await openStore(keys, token)
  expect(store.loadSnapshot(SHARD)).toBeNull()
  store.commit([event(1)], [left(1)], 4, 1000)
  // What is committed between the taking of a snapshot and its saving is not in it.
  const mark = store.journalMark
  store.commit([], [left(2)], 5, 1000)
  store.saveSnapshot(SHARD, new Uint8Array([1, 2, 255]), 5, mark)
  store.commit([], [left(3)], 5, 1000)
  store.keepKeys(SHARD, ['cpu_usage_percent', 'disk_used_percent{mount="/"}', 'no_longer'])
  store.dropKeys(SHARD, ['no_longer'])
  store.keepRules(0, [changed])
  await store.settled()
  const next = await openStore(keys, token)
  expect(next.journalMark).toBe(3)
  expect([...next.loadSnapshot(SHARD)!]).toEqual([1, 2, 255])
  expect([...next.journalAfter(SHARD, 5, 1)].map(({ record }) => record)).toEqual([left(2), left(3)])
  expect([...next.journalAfter(SHARD, 5, 2)].map(({ record }) => record)).toEqual([left(3)])
  expect(next.keys(SHARD).sort()).toEqual(['cpu_usage_percent', 'disk_used_percent{mount="/"}'])
  expect(next.ruleNotes(SHARD)).toEqual([{ ...changed, position: 0 }, changed])
  // With the next snapshot no replay needs it; what was noted last stays, for a worker that has an older set.
  next.saveSnapshot(SHARD, new Uint8Array([1]), 6, next.journalMark)
  await next.settled()
  const after = await openStore(keys, token)
  expect(after.ruleNotes(SHARD)).toEqual([{ ...changed, position: 0 }])
  // A purge of the company takes its rules along.
  const shared = new RedisShared(redis, keys, () => 1000)
  await shared.write({ companyId: COMPANY, serverId: null, untilMs: 2000 })
  const purged = await openStore(keys, token)
  expect(purged.ruleNotes(SHARD)).toEqual([])
  expect(await redis.keys(`${keys.ruleText('')}*`)).toEqual([])
})

test('[PRES-016] [PRES-004] an owner whose lease went to another worker can write nothing more, so that a machine is declared lost once', async () => {
  const keys = freshKeys()
  const oldToken = await lease(keys, 'first')
  const old = await openStore(keys, oldToken)
  await redis.del(keys.lease(SHARD))
  const token = await lease(keys, 'second')
  const current = await openStore(keys, token)
  const down = { ...event(5, 'agent.down'), rule_id: 'agent_down' }
  current.commit([down], [left(1)], 1, 1000)
  await current.settled()
  old.commit([{ ...down, seq: 6, event_id: eventId(SERVER, 'agent_down', 'x', 6, 'agent.down') }], [left(9)], 2, 1000)
  old.saveSnapshot(SHARD, new Uint8Array([9]), 2, 9)
  old.keepKeys(SHARD, ['x'])
  await expect(old.settled()).rejects.toThrow(ShardLost)
  const outbox = new RedisOutboxStore(redis, keys, () => [SHARD])
  expect((await outbox.nextEvents(10)).map(row => row.event.seq)).toEqual([5])
  expect(await redis.get(keys.snapshot(SHARD))).toBeNull()
  expect(await redis.scard(keys.seriesKeys(SHARD))).toBe(0)
  expect(await redis.get(`t${prefixes}:agent:${AGENT}:st`)).toBe('down 5000')
  expect(await outbox.downMachines()).toEqual([[SERVER, 5000]])
  current.commit([{ ...event(8, 'agent.up'), rule_id: 'agent_down' }], [], 2, 1000)
  await current.settled()
  expect(await redis.get(`t${prefixes}:agent:${AGENT}:st`)).toBe('up 8000')
  expect(await outbox.downMachines()).toEqual([])
})

test('[PRES-004] presence that no event tells is written too: the first batch of an agent, and its end', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'first')
  const store = await openStore(keys, token)
  store.keepPresence([
    { agentId: AGENT, state: 'up', atMs: 5000.4 },
    { agentId: 'another', state: 'up', atMs: 6000 },
  ])
  await store.settled()
  expect(await redis.mget(keys.agentState(AGENT), keys.agentState('another'))).toEqual(['up 5000', 'up 6000'])
  store.keepPresence([{ agentId: AGENT, state: 'unknown', atMs: 0 }])
  await store.settled()
  expect(await redis.mget(keys.agentState(AGENT), keys.agentState('another'))).toEqual([null, 'up 6000'])
})

test('[EVT-026] the outbox gives events of a machine in order, keeps what is not removed, and takes an event once', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'only')
  const store = await openStore(keys, token)
  for (let seq = 1; seq <= 5; seq++) store.commit([event(seq)], [], seq, seq)
  store.commit([event(3)], [], 6, 6)
  await store.settled()
  const outbox = new RedisOutboxStore(redis, keys, () => [SHARD])
  const rows = await outbox.nextEvents(3)
  expect(rows.map(row => row.event.seq)).toEqual([1, 2, 3])
  await outbox.removeEvents(rows.slice(0, 2).map(row => row.id))
  expect((await outbox.nextEvents(10)).map(row => row.event.seq)).toEqual([3, 4, 5])
  expect(outbox.outboxDepth()).toBe(3)
  expect(outbox.oldestEventMs()).toBe(3)
  expect(await new RedisOutboxStore(redis, keys, () => []).nextEvents(10)).toEqual([])
})

test('[EVT-030] at its bound the outbox gives up the oldest reminders first, then the oldest', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'only')
  const store = await openStore(keys, token)
  const types: AlertEvent['type'][] = ['alert.opened', 'alert.reminder', 'alert.resolved', 'alert.reminder']
  for (const [index, type] of types.entries()) store.commit([event(index + 1, type)], [], index, index)
  await store.settled()
  const outbox = new RedisOutboxStore(redis, keys, () => [SHARD])
  await outbox.nextEvents(1)
  // The part of one shard of 64.
  expect(await outbox.trimOutbox(64)).toBe(3)
  expect((await outbox.nextEvents(10)).map(row => row.event.seq)).toEqual([3])
})

test('an open alert stays in the journal when its shard is saved, until it ends or its tenant is purged', async () => {
  const keys = freshKeys()
  const token = await lease(keys, 'only')
  const presence = (state: 'down' | 'up'): JournalRecord => ({
    kind: 'presence',
    key: 'k',
    companyId: COMPANY,
    serverId: SERVER,
    shard: SHARD,
    presence: { agentId: AGENT, agentWord: 1, state, lastSeenMs: 1, intervalSeconds: 30, downSinceMs: 1, seq: 1 },
  })
  const store = await openStore(keys, token)
  const kept = async () => [...(await openStore(keys, token)).journalAfter(SHARD, 0, 0)].map(({ record }) => record)
  store.commit([], [left(1), presence('down')], 1, 1)
  await store.settled()
  expect(await kept()).toEqual([left(1), presence('down')])
  store.saveSnapshot(SHARD, new Uint8Array([1]), 1, store.journalMark)
  await store.settled()
  expect(await kept()).toEqual([presence('down')])
  store.commit([], [presence('up')], 2, 2)
  store.saveSnapshot(SHARD, new Uint8Array([1]), 2, store.journalMark)
  store.commit([], [presence('down')], 3, 3)
  store.saveSnapshot(SHARD, new Uint8Array([1]), 3, store.journalMark)
  await store.settled()
  expect(await kept()).toEqual([presence('down')])
  const outbox = new RedisOutboxStore(redis, keys, () => [SHARD])
  await outbox.removeEventsOf('other', null)
  expect(await kept()).toHaveLength(1)
  await outbox.removeEventsOf(COMPANY, SERVER)
  expect(await kept()).toEqual([])
})

const record = (changes: Partial<AgentRecord> = {}): AgentRecord => ({
  agentId: AGENT,
  companyId: COMPANY,
  serverId: SERVER,
  state: 'active',
  tokenHash: 'a'.repeat(64),
  prevTokenHash: '',
  prevTokenExpiresAtMs: 0,
  version: 2,
  syncVersion: 2,
  serverStatus: '',
  subnetId: '',
  datacenter: '',
  hostname: '',
  intervalSeconds: 0,
  enrolledAtMs: 1_700_000_000_000,
  ...changes,
})

/** The registry as one process has it. */
async function openNode(keys: ReturnType<typeof freshKeys>) {
  const store = new RedisRegistryStore(redis, keys)
  await store.poll()
  const registry = new AgentRegistry(store)
  return {
    registry,
    look: async () => {
      await store.poll()
      registry.refresh()
    },
  }
}

test('[REG-018, REG-012] a push or a revocation at one process holds in the others after their next look, and an older record never comes back', async () => {
  const keys = freshKeys()
  const [worker, ingest] = await Promise.all([openNode(keys), openNode(keys)])
  expect(worker.registry.push(record())).toBe(true)
  await worker.registry.settled()
  await ingest.look()
  expect(ingest.registry.byTokenHash('a'.repeat(64), 0)?.record).toEqual(record())
  worker.registry.revoke(AGENT)
  await worker.registry.settled()
  // A process that has not looked yet still writes what it knows.
  ingest.registry.apply([record({ version: 3, syncVersion: 3, datacenter: 'x' })])
  await ingest.registry.settled()
  await Promise.all([ingest.look(), worker.look()])
  for (const node of [worker, ingest, await openNode(keys)])
    expect(node.registry.byAgent(AGENT)).toMatchObject({ state: 'revoked', version: 3, datacenter: 'x' })
})

test('a revocation by one process holds against a newer record that another has just written', async () => {
  const keys = freshKeys()
  const [worker, ingest] = await Promise.all([openNode(keys), openNode(keys)])
  worker.registry.push(record())
  await worker.registry.settled()
  await ingest.look()
  ingest.registry.apply([record({ version: 5, syncVersion: 5 })])
  await ingest.registry.settled()
  worker.registry.revoke(AGENT)
  await worker.registry.settled()
  await Promise.all([ingest.look(), worker.look()])
  for (const node of [worker, ingest, await openNode(keys)])
    expect(node.registry.byAgent(AGENT)).toMatchObject({ state: 'revoked', version: 5 })
})

test('the cursor of the agents feed is seen with the records it stands for, and a removed company is gone everywhere', async () => {
  const keys = freshKeys()
  const [first, second] = await Promise.all([openNode(keys), openNode(keys)])
  const many = Array.from({ length: 1200 }, (_, index) =>
    record({ agentId: `33333333-3333-4333-8333-${String(index).padStart(12, '0')}`, tokenHash: `${index}` }),
  )
  first.registry.apply(many, { since: 9, syncedAtMs: 5 })
  await first.registry.settled()
  await second.look()
  expect(second.registry.size).toBe(1200)
  expect(second.registry.cursor).toEqual({ since: 9, syncedAtMs: 5 })
  expect(second.registry.removeCompany(COMPANY)).toBe(1200)
  await second.registry.settled()
  await first.look()
  expect(first.registry.size).toBe(0)
  expect((await openNode(keys)).registry.size).toBe(0)
})

test('[SYNC-032, OPS-018] a reload call raises the shared counter, and every process hears of it once', async () => {
  const keys = redisKeys('myprefix:')
  const [one, other] = [new RedisShared(redis, keys, Date.now), new RedisShared(redis, keys, Date.now)]
  expect((await one.look()).reloads).toEqual([])
  await other.look()
  for (const feed of ['rules', 'silences', 'checks', 'settings'] as const) await one.raiseReload(feed)
  expect(await redis.mget('myprefix:rules:reload', 'myprefix:silences:reload')).toEqual(['1', '1'])
  expect(await redis.mget('myprefix:checks:reload', 'myprefix:settings:reload')).toEqual(['1', '1'])
  for (const process of [one, other]) {
    expect((await process.look()).reloads).toEqual(['rules', 'silences', 'checks', 'settings'])
    expect((await process.look()).reloads).toEqual([])
  }
})

test('[PUR-004] a tombstone stands under purge:tombstones for every process, for as long as it lives', async () => {
  const keys = redisKeys('purge-test:')
  let nowMs = 1000
  const writer = new RedisShared(redis, keys, () => nowMs)
  const reader = new RedisShared(redis, keys, () => nowMs)
  expect((await reader.look()).tombstones).toEqual([])
  const tombstone = { companyId: COMPANY, serverId: null, untilMs: 2000 }
  await writer.write(tombstone)
  expect(await redis.hlen('purge-test:purge:tombstones')).toBe(1)
  expect((await reader.look()).tombstones).toEqual([tombstone])
  expect((await reader.look()).tombstones).toEqual([])
  expect(reader.living()).toEqual([tombstone])
  const again = { ...tombstone, untilMs: 3000 }
  await writer.write(again)
  expect((await reader.look()).tombstones).toEqual([again])
  nowMs = 3000
  expect(reader.living()).toEqual([])
  await writer.write({ companyId: COMPANY, serverId: SERVER, untilMs: 9000 })
  expect(await redis.hlen('purge-test:purge:tombstones')).toBe(1)
})

test('a feed that one process kept is there for another, and an older set does not replace it', async () => {
  const keys = freshKeys()
  const store = await RedisFeedStore.open(redis, keys, 'rules')
  expect(store.load().since).toBe(0)
  const rule = { id: 'r', sync_version: 4, name: 'x' }
  await store.save({ since: 4, syncedAtMs: 100, records: new Map([['r', rule]]) })
  await store.save({ since: 3, syncedAtMs: 200, records: new Map() })
  const next = (await RedisFeedStore.open(redis, keys, 'rules')).load()
  expect(next).toEqual({ since: 4, syncedAtMs: 100, records: new Map([['r', rule]]) })
})

test('an operator is told of a Redis that does not keep what it acknowledges, or throws it away', async () => {
  expect(await durabilityFaults(redis)).toEqual([])
  const settings = { appendfsync: 'everysec', 'maxmemory-policy': 'allkeys-lru' }
  const before = { appendfsync: 'always', 'maxmemory-policy': 'noeviction' }
  for (const [name, value] of Object.entries(settings)) await redis.config('SET', name, value)
  const told = await durabilityFaults(redis)
  for (const [name, value] of Object.entries(before)) await redis.config('SET', name, value)
  expect(told.map(fault => fault.split(':')[0])).toEqual(['appendfsync is everysec', 'maxmemory-policy is allkeys-lru'])
  await redis.config('SET', 'appendonly', 'no')
  expect((await durabilityFaults(redis)).map(fault => fault.split(':')[0])).toEqual(['appendonly is off'])
  await redis.config('SET', 'appendonly', 'yes')
})

test('a command that is under way when the connection breaks fails then, not when its deadline comes', async () => {
  const own = openRedis({ url: server.url, name: 'broken-off', onTrouble: () => {}, onRecovered: () => {} })
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
