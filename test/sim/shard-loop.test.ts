// The shard loop by itself, where the worlds do not look: a bus that is never empty.
import { expect, test } from 'bun:test'
import { ShardLoop } from '../../apps/collector/worker/shard-loop.ts'
import type { AlertEvent } from '../../core/alerting/event.ts'
import { encodeEntry, shardOfServer } from '../../core/bus/entry.ts'
import { limits } from '../../core/limits.ts'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { Fuse, MemoryBus, MemoryStore } from './durable.ts'
import { START_MS } from './plan.ts'

const SILENT = '50000000-0000-4000-8000-000000000001'
const BUSY = '50000000-0000-4000-8000-000000000002'

const heartbeat = (serverId: string, receivedAtMs: number): Uint8Array =>
  encodeEntry(
    { companyId: SILENT, serverId, agentId: serverId, receivedAtMs, seq: 1, intervalSeconds: 30 },
    new SampleBatch(),
  )

/** A loop over both machines; `nowMs` is its clock. */
function loopOf(bus: MemoryBus, store: MemoryStore, nowMs: () => number): ShardLoop {
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
    seriesLookIntervalMs: limits.seriesLookMs,
  }
  const loop = new ShardLoop(config, bus, store, nowMs, () => {})
  loop.startRules([], 0)
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
