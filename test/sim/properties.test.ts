// What holds in every world, whatever happens in it. SIM_SEED = the first seed, SIM_WORLDS = how many.
import { expect, test } from 'bun:test'
import { ShardLoop } from '../../apps/collector/worker/evaluation/shard-loop.ts'
import type { FromShardThread } from '../../apps/collector/worker/evaluation/shard-messages.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import type { EvaluationState } from '../../core/alerting/state/evaluation-state.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { limits } from '../../core/limits.ts'
import { sampleBatchOf } from './batch.ts'
import { Fuse, MemoryBus, MemoryStore } from './durable.ts'
import { FullStore } from './full-store.ts'
import { type Plan, planOf, type SimAction, type SimBatch, START_MS } from './plan.ts'
import { randomOf } from './random.ts'
import { World } from './world.ts'

const WORLDS = Math.ceil(Number(process.env.SIM_WORLDS ?? 300) / 15)
const FIRST_SEED = Number(process.env.SIM_SEED ?? 1) + 5_000_000
const seeds = Array.from({ length: WORLDS }, (_, index) => FIRST_SEED + index)
const COMPANY = 'c0000000-0000-4000-8000-000000000001'
/** Something that changes nothing: the worker still gets to run at that instant. */
const nothing: SimAction = { kind: 'hub', isUp: true }

async function eventsOf(plan: Plan): Promise<AlertEvent[]> {
  const world = new World(plan)
  expect({ seed: plan.seed, faults: await world.run() }).toEqual({ seed: plan.seed, faults: [] })
  return world.events
}

/** The plan with every action replaced as `change` says. */
const changed = (plan: Plan, change: (action: SimAction) => SimAction): Plan => ({
  ...plan,
  actions: plan.actions.map(timed => ({ ...timed, action: change(timed.action) })),
})

const keyOf = (event: AlertEvent): string => `${event.server_id} ${event.rule_id} ${event.series_key}`

test('[FLAP-009] [FLAP-010] from entering flapping to leaving it nothing is told of a series, except its end by a change', async () => {
  let entered = 0
  for (const seed of seeds) {
    const flapping = new Set<string>()
    for (const event of await eventsOf(planOf(seed))) {
      const key = keyOf(event)
      if (event.reason === 'entered') {
        entered++
        flapping.add(key)
      } else if (flapping.delete(key)) {
        const isExit = event.type === 'alert.flapping' && event.reason === 'exited'
        const isChange = event.type === 'alert.resolved' && /^(rule_|out_of)/.test(String(event.reason))
        expect({ seed, event: isExit || isChange ? 'its end' : event }).toEqual({ seed, event: 'its end' })
      }
    }
  }
  expect(entered).toBeGreaterThan(WORLDS / 10)
})

test('[SUP-001] suppressed or not, the same events are told at the same time under the same numbers', async () => {
  const bare = ({ suppressed: _, suppress_reason: __, ...event }: AlertEvent) => event
  let suppressed = 0
  for (const seed of seeds) {
    const plan = planOf(seed)
    const open = changed(plan, action => {
      if (action.kind === 'silences') return { ...action, silences: [] }
      if (action.kind !== 'attributes' || !action.attributes) return action
      return { ...action, attributes: { ...action.attributes, status: '' } }
    })
    const [told, toldOpen] = [await eventsOf(plan), await eventsOf(open)]
    suppressed += told.filter(event => event.suppressed).length
    expect(toldOpen.some(event => event.suppressed)).toBe(false)
    expect({ seed, events: toldOpen.map(bare) }).toEqual({ seed, events: told.map(bare) })
  }
  expect(suppressed).toBeGreaterThan(WORLDS)
})

test("[SUP-009] another company's rules, silences and servers never matter", async () => {
  let foreign = 0
  for (const seed of seeds) {
    // A kill counts what is written, and would strike elsewhere; how long a stop lasts must not be left to chance. Work
    // that piles up is swept as of the newest batch of it, whosever that is.
    const live = changed(planOf(seed), action => {
      if (action.kind === 'stop') return { ...action, downMs: Math.max(1000, action.downMs) }
      return action.kind === 'kill' ? nothing : action
    })
    const plan = { ...live, actions: live.actions.map(timed => ({ ...timed, isQuiet: false })) }
    const companyOf = new Map(
      plan.actions.flatMap(({ action }) =>
        action.kind === 'batch' ? [[action.batch.serverId, action.batch.companyId] as const] : [],
      ),
    )
    const alone = changed(plan, action => {
      if (action.kind === 'batch') return action.batch.companyId === COMPANY ? action : nothing
      if (action.kind === 'attributes') return companyOf.get(action.serverId) === COMPANY ? action : nothing
      if (action.kind === 'rules') return { ...action, rules: action.rules.filter(rule => rule.company_id === COMPANY) }
      if (action.kind !== 'silences') return action
      return { ...action, silences: action.silences.filter(silence => silence.company_id === COMPANY) }
    })
    const told = await eventsOf(plan)
    const own = told.filter(event => event.company_id === COMPANY)
    foreign += told.length - own.length
    expect({ seed, events: await eventsOf(alone) }).toEqual({ seed, events: own })
  }
  expect(foreign).toBeGreaterThan(0)
})

/** All that evaluation knows, in an order of its own. */
function dump({ servers, states, slots, dictionary, flapping }: EvaluationState): string[] {
  const lines: string[] = []
  for (const server of servers) {
    if (!server) continue
    const { agentWord: _, ...presence } = server.presence
    lines.push(JSON.stringify([server.serverId, presence, server.lastBatchMs]))
    for (let index = 0; index < server.count; index++)
      for (let row = server.head[index]!; row >= 0; row = states.next[row]!)
        lines.push(
          JSON.stringify([
            server.serverId,
            slots[states.rule[row]!]!.id,
            dictionary.get(server.lo(index), server.hi(index))?.fullKey,
            states.phase[row],
            states.flags[row],
            states.seq[row],
            states.lastTsMs[row],
            states.lastValue[row],
            states.lastReceivedMs[row],
            states.sinceTsMs(row),
            states.openedTsMs(row),
            states.peak(row),
            states.notifiedAtMs(row),
            flapping.get(row) ?? null,
          ]),
        )
  }
  return lines.sort()
}

const entryOf = (batch: SimBatch, seq: number): Uint8Array =>
  encodeEntry(
    { ...batch, seq },
    sampleBatchOf(batch.series, () => true),
  ).slice()

/** The batches of a world, and loops that evaluate them at the time of `at`, told what they say. */
function batchesOf(plan: Plan, store: MemoryStore) {
  const rules = plan.actions.flatMap(({ action }) => (action.kind === 'rules' ? [action.rules] : []))[0] ?? []
  const batches = plan.actions.flatMap(({ action }) => (action.kind === 'batch' ? [action.batch] : []))
  const bus = new MemoryBus()
  const at = { nowMs: START_MS }
  const told: FromShardThread[] = []
  const newLoop = (snapshotIntervalMs = Number.POSITIVE_INFINITY, sweepIntervalMs = limits.presenceSweepMs) => {
    const config = {
      shards: [...new Set(batches.map(({ serverId }) => shardOfServer(serverId))), 63],
      threadIndex: 0,
      partition: 0,
      pollMs: 50,
      settings: plan.settings,
      snapshotIntervalMs,
      sweepIntervalMs,
      presenceGraceMinMs: 0,
      seriesSweepIntervalMs: limits.seriesSweepMs,
    }
    const loop = new ShardLoop(
      config,
      bus,
      store,
      () => at.nowMs,
      message => void told.push(message),
    )
    loop.startRules(rules, 1)
    loop.restore()
    return loop
  }
  return { batches, bus, at, told, newLoop }
}

test('[SNAP-006] [SNAP-008] replaying any part of the bus a second time tells nothing and changes nothing', async () => {
  for (const seed of seeds) {
    const random = randomOf(seed)
    const store = new MemoryStore(new Fuse())
    const { batches, bus, at, newLoop } = batchesOf(planOf(seed), store)
    const loop = newLoop()
    for (const [index, batch] of batches.entries()) {
      at.nowMs = batch.receivedAtMs
      bus.publish([entryOf(batch, index + 1)])
      while ((await loop.turn()) > 0);
      if (random.chance(0.01)) loop.snapshot()
    }
    const events = store.nextEvents(1_000_000)
    const again = newLoop()
    while ((await again.consume()) > 0);
    expect({ seed, told: store.nextEvents(1_000_000).length }).toEqual({ seed, told: events.length })
    expect({ seed, state: dump(again.evaluation) }).toEqual({ seed, state: dump(loop.evaluation) })
  }
})

test('[SNAP-006] [SNAP-008] whenever the disk is full, and whatever dies meanwhile: the same events are told, and the same is known, as with room', async () => {
  const counts = { events: 0, full: 0, deaths: 0, waits: 0, passed: 0 }
  for (const seed of seeds) {
    const random = randomOf(seed)
    const [roomy, store] = [new MemoryStore(new Fuse()), new FullStore(new Fuse())]
    const plain = batchesOf(planOf(seed), roomy)
    const world = batchesOf(planOf(seed), store)
    const first = plain.newLoop(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
    const newLoop = () => world.newLoop(20_000, Number.POSITIVE_INFINITY)
    let loop = newLoop()
    for (const [index, batch] of world.batches.entries()) {
      plain.at.nowMs = batch.receivedAtMs
      world.at.nowMs = batch.receivedAtMs
      if (random.chance(0.1)) {
        const what = random.chance(0.5) ? null : random.pick(['commit', 'keys', 'snapshot', 'journal'] as const)
        store.isFull = one => (what === null || what === one) && ++counts.full > 0
      } else if (random.chance(0.2)) store.isFull = () => false
      for (const { bus } of [plain, world]) bus.publish([entryOf(batch, index + 1)])
      while ((await first.turn()) > 0);
      while ((await loop.turn()) > 0);
      // What is passed is gone: whoever dies now has the snapshots alone.
      for (const message of world.told.splice(0)) {
        if (message.kind === 'snapshot') {
          world.bus.trim(message.position)
          counts.passed += message.position
        } else if (message.kind === 'log' && message.level === 'error') counts.waits++
      }
      if (random.chance(0.03)) {
        counts.deaths++
        loop = newLoop()
      }
    }
    store.isFull = () => false
    world.at.nowMs += 60_000
    while ((await loop.turn()) > 0);
    const [events, wanted] = [store, roomy].map(one => one.nextEvents(1_000_000).toSorted())
    counts.events += wanted!.length
    expect({ seed, events }).toEqual({ seed, events: wanted! })
    expect({ seed, state: dump(loop.evaluation) }).toEqual({ seed, state: dump(first.evaluation) })
  }
  expect(Object.entries(counts).filter(([, count]) => count === 0)).toEqual([])
})
