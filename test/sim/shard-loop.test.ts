// The shard loop by itself, where the worlds do not look: a bus that is never empty, a disk that is slow.
import { expect, spyOn, test } from 'bun:test'
import type { WrittenSnapshot } from '../../apps/collector/store/shard-store.ts'
import { ShardLoop } from '../../apps/collector/worker/evaluation/shard-loop.ts'
import type { FromShardThread, ShardLoopConfig } from '../../apps/collector/worker/evaluation/shard-messages.ts'
import { encodeSnapshot } from '../../core/alerting/durability/snapshot.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { limits } from '../../core/limits.ts'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { seriesId } from '../../core/series/series-key.ts'
import { company, ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'
import { Fuse, MemoryBus, MemoryStore } from './durable.ts'
import { FullStore } from './full-store.ts'
import { START_MS } from './plan.ts'

const SILENT = '50000000-0000-4000-8000-000000000001'
const BUSY = '50000000-0000-4000-8000-000000000002'

const heartbeat = (serverId: string, receivedAtMs: number): Uint8Array =>
  encodeEntry(
    { companyId: SILENT, serverId, agentId: serverId, receivedAtMs, seq: 1, intervalSeconds: 30 },
    new SampleBatch(),
  )

const NEVER_MS = 3_600_000

const CPU = 'cpu_usage_percent'

/** A batch of one sample of the processor; the first of a server announces the series. */
function sampleOf(receivedAtMs: number, value: number, isFirst = false, serverId = BUSY): Uint8Array {
  const batch = new SampleBatch()
  const { lo, hi } = seriesId(CPU)
  batch.idLo[0] = lo
  batch.idHi[0] = hi
  batch.pointStart[1] = 1
  batch.tsMs[0] = receivedAtMs
  batch.value[0] = value
  batch.seriesCount = 1
  batch.pointCount = 1
  if (isFirst) batch.definitions.push({ seriesIndex: 0, key: CPU })
  return encodeEntry(
    { companyId: company, serverId, agentId: serverId, receivedAtMs, seq: 1, intervalSeconds: 30 },
    batch,
  )
}

/** A loop over both servers; `nowMs` is its clock; `rules` what it is given at its start. */
function loopOf(
  bus: MemoryBus,
  store: MemoryStore,
  nowMs: () => number,
  rules: readonly RawRule[] = [],
  since = 0,
  intervals: Partial<ShardLoopConfig> = {},
  tell: (message: FromShardThread) => void = () => {},
): ShardLoop {
  const config = {
    shards: [...new Set([SILENT, BUSY].map(shardOfServer))],
    threadIndex: 0,
    partition: 0,
    pollMs: 50,
    busPath: '',
    dataDir: '',
    snapshotDir: '',
    settings: { noDataAfterMs: 300_000, flapping: { windowMs: 1, transitions: 0, stableMs: 1 } },
    snapshotIntervalMs: 30_000,
    sweepIntervalMs: 10_000,
    presenceGraceMinMs: 0,
    seriesSweepIntervalMs: limits.seriesSweepMs,
    ...intervals,
  }
  const loop = new ShardLoop(config, bus, store, nowMs, tell)
  loop.startRules(rules, since)
  loop.restore()
  return loop
}

const typesOf = (store: MemoryStore): string[] =>
  store.nextEvents(1000).map(text => {
    const event = JSON.parse(text) as AlertEvent
    return `${event.type} ${event.server_id.slice(-1)} ${(Date.parse(event.occurred_at) - START_MS) / 1000}`
  })

test('[PRES-001, PRES-003] a bus that is never empty does not put the sweep off', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs)
  bus.publish([heartbeat(SILENT, nowMs)])
  await loop.turn()
  for (let second = 1; second <= 120; second++) {
    nowMs = START_MS + second * 1000
    bus.publish([heartbeat(BUSY, nowMs)])
    expect(await loop.turn()).toBe(1)
  }
  expect(typesOf(store)).toEqual(['agent.down 1 100'])
})

test('[PRES-002] batches that wait on the bus are no silence, however far evaluation is behind', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs)
  bus.publish([heartbeat(SILENT, nowMs), heartbeat(BUSY, nowMs)])
  await loop.turn()
  for (let second = 30; second <= 600; second += 30)
    bus.publish([heartbeat(SILENT, START_MS + second * 1000), heartbeat(BUSY, START_MS + second * 1000)])
  nowMs = START_MS + 600_000
  while ((await loop.turn()) > 0) nowMs += 10
  expect(typesOf(store)).toEqual([])
})

test('[PRES-002] [SNAP-002] a clock that is set back puts neither sweeps nor snapshots off', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  const HOURS_MS = 7_200_000
  let nowMs = START_MS + HOURS_MS
  const loop = loopOf(bus, store, () => nowMs)
  bus.publish([heartbeat(SILENT, nowMs), heartbeat(BUSY, nowMs)])
  await loop.turn()
  const saves = spyOn(store, 'saveSnapshot')
  for (let second = 10; second <= 120; second += 10) {
    nowMs = START_MS + second * 1000
    bus.publish([heartbeat(BUSY, nowMs)])
    await loop.turn()
  }
  expect(typesOf(store)).toHaveLength(1)
  expect(typesOf(store)[0]).toStartWith('agent.down 1 ')
  expect(saves.mock.calls.length).toBeGreaterThan(4)
})

test('[PRES-002] whoever was deaf for long, as over a pause of its host, declares nobody lost for that', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs, [], 0, { pauseMs: 30_000 })
  bus.publish([heartbeat(SILENT, nowMs), heartbeat(BUSY, nowMs)])
  await loop.turn()
  nowMs += 600_000
  await loop.turn()
  expect(typesOf(store)).toEqual([])
  // Who stays silent is lost after as long as ever.
  const resumedMs = nowMs
  for (let second = 10; second <= 120; second += 10) {
    nowMs = resumedMs + second * 1000
    bus.publish([heartbeat(BUSY, nowMs)])
    await loop.turn()
  }
  expect(typesOf(store)).toHaveLength(1)
  expect(typesOf(store)[0]).toStartWith('agent.down 1 ')
})

test('[PRES-002] turns that are all long, as on a very slow disk, keep nobody from being lost', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs, [], 0, { pauseMs: 30_000 })
  bus.publish([heartbeat(SILENT, nowMs), heartbeat(BUSY, nowMs)])
  await loop.turn()
  for (let turn = 1; turn <= 8; turn++) {
    nowMs += 40_000
    bus.publish([heartbeat(BUSY, nowMs)])
    await loop.turn()
  }
  expect(typesOf(store)).toHaveLength(1)
  expect(typesOf(store)[0]).toStartWith('agent.down 1 ')
})

/** A bus that says whether there is more than was read, as that over Redis does. */
class TellingBus extends MemoryBus {
  reads = 0
  private readUpTo = 0

  override async read(partition: number, position: number) {
    this.reads++
    const groups = await super.read(partition, position)
    for (const { firstPosition, count } of groups) this.readUpTo = firstPosition + count - 1
    return groups
  }

  hasMore(): boolean {
    return this.groups.some(({ firstPosition }) => firstPosition > this.readUpTo)
  }
}

test('a loop that is told of what comes reads once a wake-up, and on for as long as there is more', async () => {
  const bus = new TellingBus()
  const loop = loopOf(bus, new MemoryStore(new Fuse()), () => START_MS, [], 0, { pollMs: 60_000 })
  const running = loop.run()
  await until('the loop to be caught up', () => bus.reads === 1)
  for (const [count, reads] of [
    [1, 2],
    [3, 5],
    [1, 6],
  ] as const) {
    for (let group = 0; group < count; group++) bus.publish([heartbeat(BUSY, START_MS)])
    const to = loop.position + count
    loop.wake()
    await until('all to be read', () => loop.position === to)
    await new Promise(resolve => setImmediate(resolve))
    expect(bus.reads).toBe(reads)
  }
  loop.stop(false)
  await running
})

const strict = ruleRecord({ sync_version: 1, threshold: 90 })
const loose = ruleRecord({ sync_version: 2, threshold: 50 })

/** A loop that evaluated 60 under `> 90`, took `> 50` over and died; its bus and its store are left. */
async function editedAndDied(): Promise<{ bus: MemoryBus; store: MemoryStore }> {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  const loop = loopOf(bus, store, () => START_MS, [strict], 1)
  bus.publish([sampleOf(START_MS, 60, true)])
  await loop.turn()
  await loop.turn()
  await loop.setRules([loose], 2)
  return { bus, store }
}

test('[CHG-001] after a crash samples are replayed under the rules of their time, and what comes then under the newest', async () => {
  const { bus, store } = await editedAndDied()
  const loop = loopOf(bus, store, () => START_MS, [strict], 1)
  while ((await loop.turn()) > 0);
  expect(typesOf(store)).toEqual([])
  bus.publish([sampleOf(START_MS + 30_000, 60)])
  while ((await loop.turn()) > 0);
  expect(typesOf(store)).toEqual(['alert.opened 2 30'])
})

test('[CHG-001] whoever takes a shard over with newer rules replays it under those of its owner, and goes on under its own', async () => {
  const { bus, store } = await editedAndDied()
  const newest = ruleRecord({ sync_version: 3, threshold: 70 })
  const loop = loopOf(bus, store, () => START_MS, [newest], 3)
  while ((await loop.turn()) > 0);
  bus.publish([sampleOf(START_MS + 30_000, 60)])
  while ((await loop.turn()) > 0);
  expect(typesOf(store)).toEqual([])
  bus.publish([sampleOf(START_MS + 60_000, 75)])
  while ((await loop.turn()) > 0);
  expect(typesOf(store)).toEqual(['alert.opened 2 60'])
})

/** A batch without samples, of the server that sends the processor. */
const emptyOf = (receivedAtMs: number, serverId = BUSY): Uint8Array =>
  encodeEntry(
    { companyId: company, serverId, agentId: serverId, receivedAtMs, seq: 1, intervalSeconds: 30 },
    new SampleBatch(),
  )

/** A loop that has a sample at position 1 and a snapshot of that, on a clock that the test sets. */
async function savedOnce(value: number, rule: RawRule) {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  const at = { nowMs: START_MS }
  const loop = loopOf(bus, store, () => at.nowMs, [rule], 1)
  bus.publish([sampleOf(START_MS, value, true)])
  await loop.turn()
  loop.snapshot()
  const turnAt = async (loop: ShardLoop, seconds: number) => {
    at.nowMs = START_MS + seconds * 1000
    while ((await loop.turn()) > 0);
  }
  /** What follows the death of the loop, under `rules`. */
  const restarted = (rules: readonly RawRule[], since: number) => loopOf(bus, store, () => at.nowMs, rules, since)
  return { bus, store, loop, turnAt, restarted }
}

const alerting = { no_data: 'alert' } as const

test('[NOD-004, CHG-010, SNAP-005] a rule that was gone at a sweep begins anew when it is back, over a crash too', async () => {
  const [v1, v2] = [ruleRecord({ sync_version: 1, ...alerting }), ruleRecord({ sync_version: 2, ...alerting })]
  // What comes on the bus after the snapshot, when a sweep is due, and when a shard is saved that is not the server's.
  const cases = [
    { after: [], sweepS: 31, saveS: 37, told: [] },
    { after: [heartbeat(SILENT, START_MS)], sweepS: 31, saveS: 37, told: ['agent.down 1 390'] },
    { after: [], sweepS: 31, saveS: null, told: [] },
    { after: [], sweepS: 31, diesWithout: true, saveS: null, told: [] },
    // No sweep came in between: the state goes on, and so it does after the crash.
    { after: [], sweepS: null, saveS: null, told: ['alert.opened 2 390'] },
    { after: [], sweepS: null, diesWithout: true, saveS: null, told: ['alert.opened 2 390'] },
  ]
  for (const { after, sweepS, diesWithout, saveS, told } of cases) {
    const { bus, store, loop, turnAt, restarted } = await savedOnce(20, v1)
    if (after.length > 0) bus.publish(after)
    // Both shards are saved in turn, and the first one is next.
    for (const second of [0, 5, 21]) await turnAt(loop, second)
    await loop.setRules([], 2)
    if (sweepS !== null) await turnAt(loop, sweepS)
    const last = diesWithout ? restarted([], 2) : loop
    const taken = last.setRules([v2], 3)
    await last.turn()
    await taken
    if (saveS !== null) await turnAt(loop, saveS)
    bus.publish([emptyOf(START_MS + 390_000)])
    const next = restarted([v2], 3)
    await turnAt(next, 400)
    await turnAt(next, 410)
    expect(typesOf(store)).toEqual(told)
  }
})

test('[NOD-004, CHG-010, SNAP-005] rules that come while thousands of servers are swept wait until all are', async () => {
  const shards = new Set([SILENT, BUSY].map(shardOfServer))
  const servers: string[] = []
  for (let at = 100; servers.length < 2100; at++) {
    const serverId = `50000000-0000-4000-8000-${String(at).padStart(12, '0')}`
    if (shards.has(shardOfServer(serverId))) servers.push(serverId)
  }
  /** Rules come at the second read of a turn: the sweep has done a part of the servers. */
  class RulesInBetween extends MemoryBus {
    come: (() => void) | null = null
    private reads = 0

    override async read(partition: number, position: number) {
      if (this.come && ++this.reads === 2) this.come()
      return super.read(partition, position)
    }
  }
  const [v1, v2] = [ruleRecord({ sync_version: 1, ...alerting }), ruleRecord({ sync_version: 2, ...alerting })]
  const [bus, store] = [new RulesInBetween(), new MemoryStore(new Fuse())]
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs, [v1], 1)
  bus.publish(servers.map(serverId => sampleOf(nowMs, 20, true, serverId)))
  while ((await loop.turn()) > 0);
  loop.snapshot()
  await loop.setRules([], 2)
  let taken: Promise<void> | null = null
  bus.come = () => {
    taken = loop.setRules([v2], 3)
  }
  nowMs = START_MS + 11_000
  await loop.turn()
  expect(taken).not.toBeNull()
  await taken!
  bus.publish(servers.map(serverId => emptyOf(START_MS + 390_000, serverId)))
  const next = loopOf(bus, store, () => nowMs, [v2], 3)
  for (nowMs = START_MS + 400_000; nowMs < START_MS + 420_000; nowMs += 10_000) while ((await next.turn()) > 0);
  expect(typesOf(store).length).toBe(0)
})

test('[CHG-002, SNAP-005] what a snapshot has of the rule changes at its position is not done to it again', async () => {
  const moved = ruleRecord({ sync_version: 2, metric: 'mem_used_percent' })
  for (const isOfEarlierVersion of [false, true]) {
    const { store, loop, turnAt, restarted } = await savedOnce(95, strict)
    await turnAt(loop, 10)
    await loop.setRules([moved], 2)
    loop.snapshot()
    const shard = shardOfServer(BUSY)
    if (isOfEarlierVersion)
      store.saveSnapshot(shard, encodeSnapshot(loop.evaluation, shard, 1, store.journalMark, START_MS), 1, 0)
    const next = restarted([moved], 2)
    await turnAt(next, 20)
    await turnAt(next, 40)
    const events = store.nextEvents(10).map(text => JSON.parse(text) as AlertEvent)
    expect(events.map(({ type, reason, rule_version: version }) => [type, reason, version])).toEqual([
      ['alert.opened', undefined, 1],
      ['alert.resolved', 'rule_changed', 2],
    ])
  }
})

/** A store whose medium takes as long for a snapshot as the test wants. */
class SlowStore extends MemoryStore {
  readonly written = Promise.withResolvers<void>()
  isWriting = false
  readonly ends: string[] = []

  async writeSnapshot(): Promise<WrittenSnapshot> {
    this.isWriting = true
    await this.written.promise
    return { publish: () => this.ends.push('placed'), discard: () => this.ends.push('discarded') }
  }
}

/** A loop that is about to save the shard of one server on a slow medium, and the turn in which it does. */
async function savingSlowly() {
  const bus = new MemoryBus()
  const store = new SlowStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs, [strict], 1)
  bus.publish([heartbeat(SILENT, nowMs), sampleOf(nowMs, 20, true)])
  await loop.turn()
  nowMs = START_MS + 31_000
  const turn = loop.turn()
  await until('the snapshot to be written', () => store.isWriting)
  return { bus, store, loop, turn }
}

test('while a slow disk takes a snapshot, what comes is evaluated', async () => {
  const { bus, store, turn } = await savingSlowly()
  bus.publish([sampleOf(START_MS + 31_000, 95)])
  await until('the alert', () => typesOf(store).length > 0)
  expect(typesOf(store)).toEqual(['alert.opened 2 31'])
  expect(store.ends).toEqual([])
  store.written.resolve()
  await turn
  expect(store.ends).toEqual(['placed'])
})

test('a purge while a snapshot is written discards it: nothing of the tenant comes back', async () => {
  const { store, loop, turn } = await savingSlowly()
  loop.forget(SILENT, null)
  store.written.resolve()
  await turn
  expect(store.ends).toEqual(['discarded'])
})

/** A loop over a disk that is full while the test says so, and what it tells. */
function onFullDisk(intervals: Partial<ShardLoopConfig> = {}) {
  const bus = new MemoryBus()
  const store = new FullStore(new Fuse())
  const at = { nowMs: START_MS }
  const told: FromShardThread[] = []
  const loop = loopOf(
    bus,
    store,
    () => at.nowMs,
    [strict],
    1,
    intervals,
    message => void told.push(message),
  )
  const logged = () => told.splice(0).flatMap(message => (message.kind === 'log' ? [message.message] : []))
  return { bus, store, at, loop, told, logged }
}

test('[SNAP-002] a snapshot that finds no room is tried again: evaluation goes on, nothing is passed meanwhile, and the operator is told once', async () => {
  const { bus, store, at, loop, told, logged } = onFullDisk()
  bus.publish([heartbeat(SILENT, at.nowMs), sampleOf(at.nowMs, 20, true)])
  store.isFull = what => what === 'snapshot'
  const everySecond = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      at.nowMs += 1000
      bus.publish([heartbeat(SILENT, at.nowMs), heartbeat(BUSY, at.nowMs)])
      await loop.turn()
    }
  }
  await everySecond(90)
  bus.publish([sampleOf(at.nowMs, 95)])
  await everySecond(1)
  expect(typesOf(store)).toEqual(['alert.opened 2 90'])
  expect(Math.max(0, ...told.map(message => (message.kind === 'snapshot' ? message.position : 0)))).toBe(0)
  expect(logged()).toEqual([expect.stringContaining('a snapshot finds no room on the disk')])
  const again = loopOf(bus, store, () => at.nowMs, [strict], 1)
  while ((await again.turn()) > 0);
  expect(typesOf(store)).toEqual(['alert.opened 2 90'])
  store.isFull = () => false
  await everySecond(60)
  expect(told.some(message => message.kind === 'snapshot' && message.position > 0)).toBe(true)
  expect(logged()).toEqual(['there is room for snapshots again'])
})

test('[SNAP-002] events that find no room wait, and nothing more is read, until they are committed; each is told once', async () => {
  const { bus, store, at, loop, logged } = onFullDisk({ snapshotIntervalMs: NEVER_MS })
  bus.publish([sampleOf(at.nowMs, 95, true)])
  store.isFull = () => true
  await loop.turn()
  bus.publish([sampleOf(at.nowMs + 1000, 20)])
  const loose = loop.setRules([ruleRecord({ sync_version: 2, threshold: 50 })], 2)
  for (let second = 1; second <= 300; second++) {
    at.nowMs += 1000
    expect(await loop.turn()).toBe(0)
  }
  loop.setAttributes([])
  expect([loop.position, typesOf(store)]).toEqual([1, []])
  expect(logged()).toEqual([expect.stringContaining('there is no room left on the disk')])
  store.isFull = what => what === 'rules'
  at.nowMs += 1000
  await loop.turn()
  // New rules wait by themselves: until they are in force the ones before are.
  expect([loop.position, typesOf(store)]).toEqual([2, ['alert.opened 2 0', 'alert.resolved 2 1']])
  bus.publish([sampleOf(START_MS + 2000, 60)])
  await loop.turn()
  expect(typesOf(store)).toHaveLength(2)
  store.isFull = () => false
  at.nowMs += 1000
  while ((await loop.turn()) > 0);
  await loose
  bus.publish([sampleOf(START_MS + 3000, 60)])
  await loop.turn()
  expect(typesOf(store)).toEqual(['alert.opened 2 0', 'alert.resolved 2 1', 'alert.opened 2 3'])
  expect(logged().at(-1)).toStartWith('there is room on the disk again')
})

test('[PRES-001] no agent is declared lost of what a full disk refused', async () => {
  const { bus, store, at, loop } = onFullDisk({ presenceGraceMinMs: 60_000 })
  bus.publish([heartbeat(SILENT, at.nowMs)])
  await loop.turn()
  store.isFull = () => true
  for (let second = 0; second < 600; second++) {
    at.nowMs += 1000
    await loop.turn()
  }
  store.isFull = () => false
  bus.publish([heartbeat(SILENT, at.nowMs)])
  for (let second = 0; second < 30; second++) {
    at.nowMs += 1000
    await loop.turn()
  }
  expect(typesOf(store)).toEqual([])
})

test('[SNAP-006] a purge that finds no room is saved later, before a stop too', async () => {
  const { bus, store, at, loop } = onFullDisk()
  bus.publish([heartbeat(SILENT, at.nowMs)])
  await loop.turn()
  loop.snapshot()
  const serversKept = () => {
    const again = loopOf(bus, store, () => at.nowMs)
    return again.evaluation.servers.filter(Boolean).length
  }
  store.isFull = what => what === 'snapshot'
  loop.forget(SILENT, null)
  loop.snapshot()
  expect(serversKept()).toBe(1)
  store.isFull = () => false
  at.nowMs += 1000
  await loop.turn()
  expect(serversKept()).toBe(0)
})

test('a group that does not hold the entries that it says ends evaluation, instead of giving them wrong positions', async () => {
  for (const count of [1, 3]) {
    const bus = new MemoryBus()
    const store = new MemoryStore(new Fuse())
    const loop = loopOf(bus, store, () => START_MS)
    bus.publish([heartbeat(SILENT, START_MS), heartbeat(BUSY, START_MS)])
    bus.groups[0] = { ...bus.groups[0]!, count }
    await expect(loop.turn()).rejects.toThrow('assertion failed: a group of the bus holds the entries that it says')
    expect(loop.position).toBe(0)
  }
})

test('a wake-up while the loop is at work is not lost: what it told of is read without a poll', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let isAtWork = false
  const intervals = { pollMs: NEVER_MS, sweepIntervalMs: NEVER_MS, snapshotIntervalMs: NEVER_MS }
  const nowMs = () => {
    // The turn has read an empty bus, and asks what is due before it sleeps: now a batch comes.
    if (isAtWork) {
      isAtWork = false
      bus.publish([heartbeat(BUSY, START_MS)])
      loop.wake()
    }
    return START_MS
  }
  const loop: ShardLoop = loopOf(bus, store, nowMs, [], 0, intervals)
  isAtWork = true
  const running = loop.run()
  await until('the batch to be read', () => loop.position === 1)
  loop.stop()
  await running
})

test('[PRES-001] a loop that is woken by batches alone sweeps when it is due', async () => {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const loop = loopOf(bus, store, () => nowMs, [], 0, { pollMs: NEVER_MS, sweepIntervalMs: 100 })
  bus.publish([heartbeat(SILENT, nowMs)])
  const running = loop.run()
  await until('the batch to be read', () => loop.position === 1)
  nowMs = START_MS + 100_000
  await until('agent.down', () => typesOf(store).length > 0)
  expect(typesOf(store)).toEqual(['agent.down 1 100'])
  loop.stop()
  await running
})
