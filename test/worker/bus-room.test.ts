// What a worker leaves on the bus while it goes on: within `bus.max_age`, whatever the other intervals are.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { loadCollectorConfig, workerKeys } from '../../apps/collector/config.ts'
import { sampleHold, snapshotIntervalMs } from '../../apps/collector/worker/storage/bus-room.ts'
import { id } from '../ingest/scripted-hub.ts'
import { until } from '../support/until.ts'
import { serverOf, WorkerRig } from './rig.ts'

const configOf = (keys: Record<string, unknown>) => loadCollectorConfig(workerKeys, undefined, keys).config

test('[SNAP-002] [OPS-010] state is snapshotted every 30 s, or as told, and four times while a batch may lie on the bus', () => {
  expect(snapshotIntervalMs(configOf({}))).toBe(30_000)
  expect(snapshotIntervalMs(configOf({ 'alerting.rules_state_interval': '1m' }))).toBe(60_000)
  const short = configOf({ 'bus.max_age': '8s' })
  expect([snapshotIntervalMs(short), sampleHold(short).ms]).toEqual([2000, 1000])
})

const rig = new WorkerRig({ keys: { 'bus.max_age': '4s', 'alerting.rules_state_interval': '10m' } })
beforeAll(() => rig.start())
afterAll(() => rig.close())

test('[SNAP-002] a bus that may be short is emptied in time, though snapshots are asked for seldom', async () => {
  const server = serverOf(id('short bus'), 'short bus')
  await rig.swap(server, 10)
  expect((await rig.bus.stats()).oldestAtMs).not.toBeNull()
  await until('the bus to be empty', async () => (await rig.bus.stats()).oldestAtMs === null)
})
