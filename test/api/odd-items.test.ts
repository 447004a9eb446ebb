// Batches of collectors with odd members: what is wrong with one item never hurts the others.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventTypes } from '../../core/alerting/evaluate/event.ts'
import { Random, runsOf, seedOf } from '../fuzz/seeded.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
const seed = seedOf('odd items')
const random = new Random(seed)

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

const ODD = [
  null,
  '',
  'x',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '😀'.repeat(40),
  "'; drop table servers; --",
  '%',
  '../../etc/passwd',
  'x'.repeat(3000),
  0,
  -1,
  1.5,
  1e308,
  9_007_199_254_740_992,
  2_147_483_648,
  true,
  [],
  {},
  [null],
  [[]],
  ['x'],
  { a: 1 },
  { all: true },
  { server_ids: ['x'] },
  '2026-01-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '0001-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '2026-01-01 00:00+24:00',
  '9999-12-31T23:59:59-23:00',
  '0001-01-01T00:00:00+23:00',
  '2026-13-45T99:99:99Z',
  '275760-09-13T00:00:00Z',
  '11111111-1111-4111-8111-111111111111',
  crypto.randomUUID(),
] as const

test('[COL-043] [COL-044] odd events and inventory items are rejected one by one, never with a fault', async () => {
  const server = (await tenant.call('POST', '/servers', { name: 'x' })).body.data.id
  const good = (): Json => ({
    event_id: crypto.randomUUID(),
    type: 'alert.opened',
    seq: random.below(1e9),
    occurred_at: '2026-01-01T00:00:00Z',
    company_id: tenant.companyId,
    server_id: server,
    rule_id: crypto.randomUUID(),
    rule_version: 1,
    series_key: 'cpu_load1',
    severity: 'info',
    value: 1,
    threshold: 1,
    suppressed: false,
    suppress_reason: null,
    group_key: null,
    labels: {},
    reason: 'recovered',
    member_server_ids: [server],
  })
  for (let round = 0; round < runsOf(60); round++) {
    const events = Array.from({ length: 20 }, () => {
      const event = { ...good(), type: random.pick(eventTypes) }
      const field = random.pick(Object.keys(event))
      if (field !== 'event_id' && random.chance(0.7)) event[field] = random.pick(ODD)
      return event
    })
    const { status, body } = await collector.call('POST', '/events', { events })
    expect(status, JSON.stringify([body, events]).slice(0, 2000)).toBe(200)
    expect(body.data.accepted.length + body.data.rejected.length).toBe(20)
    const items = Array.from({ length: 5 }, () => ({
      agent_id: random.pick(ODD),
      company_id: tenant.companyId,
      server_id: server,
      reported_at: random.pick(ODD),
      facts: { os: random.pick(ODD), disks: random.pick(ODD) },
    }))
    expect((await collector.call('POST', '/inventory', { items })).status).toBe(200)
  }
})
