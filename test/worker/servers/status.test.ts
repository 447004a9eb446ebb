// What a running worker makes of a server: whose word counts for its status, what is stored of late samples, where its
// state lives.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { ruleRecord, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)
const company = id('status company')
const rig = new WorkerRig({ keys: { 'alerting.rules_state_interval': '1h' } })
const server = serverOf(company, 'of two agents')
const other = serverOf(company, 'other')
const pushed = serverOf(company, 'pushed')
const fleet = Array.from({ length: 24 }, (_, index) => serverOf(company, `fleet ${index}`))

beforeAll(async () => {
  for (const each of [server, other, pushed, ...fleet]) rig.addServer(each)
  rig.hub.feeds.rules!.push(ruleRecord(company))
  await rig.start()
})
afterAll(() => rig.close())

let seconds = 0
/** A sample above or below the threshold; resolves to the event that it made. */
async function told(of: typeof server, value: number): Promise<Record<string, unknown>> {
  const before = rig.eventsOf(of).length
  await rig.swap(of, value, Date.now() - 600_000 + ++seconds * 1000)
  await until('the event', () => rig.eventsOf(of).length > before)
  return rig.eventsOf(of).at(-1)
}

/**
 * The first event that is suppressed, of one whose alert is open, within the 5 seconds in which a status counts: a
 * sample that is judged in the very moment of the push may still be told as before.
 */
function suppressedEventOf(of: typeof server): Promise<Record<string, unknown>> {
  let value = 90
  const suppressed = async (): Promise<Record<string, unknown> | null> => {
    value = 100 - value
    const event = await told(of, value)
    return event.suppressed === true ? event : null
  }
  return until('an event that is suppressed', suppressed, 5_000)
}

test('[SUP-007] [SUP-006] the latest agent of a server that is not revoked says its status, whatever an older one says', async () => {
  const older = { ...server, agentId: id('older agent') }
  rig.addServer(older, { server_status: 'maintenance', enrolled_at: '2025-01-01T00:00:00Z' })
  rig.addServer(server, { enrolled_at: '2025-06-01T00:00:00Z' })
  expect(await told(server, 90)).toMatchObject({ type: 'alert.opened', suppressed: false, suppress_reason: null })
  // The latest one goes: the older one is the latest then.
  rig.addServer(server, { enrolled_at: '2025-06-01T00:00:00Z', state: 'revoked' })
  expect((await suppressedEventOf(older)).suppress_reason).toBe('maintenance')
})

test('[SUP-008] a status that the hub pushed counts for the events of the next 5 seconds', async () => {
  expect(await told(pushed, 90)).toMatchObject({ suppressed: false })
  rig.addServer(pushed, { server_status: 'decommissioned' })
  const event = await suppressedEventOf(pushed)
  expect(event.suppress_reason).toBe('decommissioned')
})

test('[EVAL-023] stale samples open no alert, and are stored as all others', async () => {
  const nowMs = Date.now()
  const late = [900, 800, 700].map(age => [nowMs - age * 1000, 95] as [number, number])
  await rig.publish(other, [{ metric: 'swap_used_percent', points: [...late, [nowMs, 10]] }])
  const points = async (): Promise<unknown[]> => {
    const window = `from=${Math.floor(nowMs / 1000) - 1800}&to=${Math.floor(nowMs / 1000) + 60}`
    const path = `/servers/${other.serverId}/series?company_id=${company}&metric=swap_used_percent&${window}`
    const { body } = await rig.admin('GET', path)
    return body.data.series.flatMap((series: { points: unknown[] }) => series.points)
  }
  await until('all four to be stored', async () => (await points()).length === 4)
  expect(rig.typesOf(other)).toEqual([])
})

test('[EVAL-028] the state of every server is in its one shard of 64, and every shard in one thread', async () => {
  // Those of the tests before may be open still, as the last sample there was judged.
  const openBefore = (await rig.status()).rules.firing
  for (const each of fleet) await rig.swap(each, 90)
  await until('an alert of each', () => fleet.every(each => rig.typesOf(each).length === 1))
  const shards = new Set(fleet.map(each => shardOfServer(each.serverId)))
  expect(shards.size).toBeGreaterThan(8)
  for (const shard of shards) expect(shard >= 0 && shard < 64).toBe(true)
  // Two threads: were a server in both, it would count, fire and be told twice.
  const { rules } = await rig.status()
  expect(rules.firing - openBefore).toBe(fleet.length)
  expect(fleet.map(each => rig.typesOf(each))).toEqual(fleet.map(() => ['alert.opened']))
})

test('[SNAP-001] state is in memory: while nothing is saved yet alerts end as they should', async () => {
  expect(readdirSync(join(rig.directory, 'alerting', 'snapshots'))).toEqual([])
  for (const each of fleet) await rig.swap(each, 10)
  await until('the end of each', () => fleet.every(each => rig.typesOf(each).length === 2))
  expect(fleet.every(each => rig.typesOf(each)[1] === 'alert.resolved')).toBe(true)
})
