import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { type Call, caller, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

/** Numbers in [0, 1) that a seed repeats (mulberry32). */
function randomOf(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
const random = randomOf(seed)
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T

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

/** A body for a schema: some members right, most of them odd. */
function bodyFor(properties: Record<string, Json>): Json {
  const body: Record<string, Json> = {}
  for (const name of Object.keys(properties)) if (random() < 0.8) body[name] = pick(ODD)
  if (random() < 0.2) body.__proto__odd = pick(ODD)
  return random() < 0.1 ? pick(ODD) : body
}

const PARAMETERS = [
  crypto.randomUUID(),
  'x',
  '%00',
  '%F0%9F%98%80',
  "'",
  '..%2f',
  '00000000-0000-4000-8000-000000000001',
]

describe(`whatever comes in (SEED=${seed})`, () => {
  test('[HUB-045] [HUB-046] [HUB-043] no request makes the hub fail: every answer is below 500 and in the form of the contract', async () => {
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    const byCollector: Call = caller(hub.url, collector.token)
    for (const route of apiRoutes) {
      if (route.path === '/notifications/stream') continue
      const isCollector = route.path.startsWith('/monitoring/collector/')
      for (let round = 0; round < 12; round++) {
        const path = route.path.replace(/:[a-z_]+/g, () => pick(PARAMETERS))
        const query = new URLSearchParams()
        for (const name of Object.keys(route.querySchema?.properties ?? {})) {
          const value = pick(ODD)
          if (random() < 0.5) query.set(name, typeof value === 'string' ? value : JSON.stringify(value))
        }
        const body = route.bodySchema ? bodyFor(route.bodySchema.properties) : undefined
        const call = isCollector ? byCollector : root.call
        const { status, body: answer } = await call(route.method, `${path}?${query}`, body)
        const what = `${route.method} ${path}?${query} ${JSON.stringify(body)?.slice(0, 300)} -> ${status} ${JSON.stringify(answer)?.slice(0, 200)}`
        expect(status, what).toBeLessThan(500)
        if (status < 400) continue
        if (isCollector) expect(typeof answer.error?.code, what).toBe('string')
        else expect(typeof answer.message, what).toBe('string')
        expect(JSON.stringify(answer), what).not.toMatch(/select |insert |update .* set |\/work\/|\.ts:/i)
      }
    }
  })

  test('[COL-043] [COL-044] odd events and inventory items are rejected one by one, never with a fault', async () => {
    const server = (await tenant.call('POST', '/servers', { name: 'x' })).body.data.id
    const good = (): Json => ({
      event_id: crypto.randomUUID(),
      type: 'alert.opened',
      seq: Math.floor(random() * 1e9),
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
    const TYPES = [
      'alert.opened',
      'alert.resolved',
      'alert.reminder',
      'alert.flapping',
      'agent.down',
      'agent.up',
      'group_down',
      'group_update',
      'group_resolved',
    ]
    for (let round = 0; round < 60; round++) {
      const events = Array.from({ length: 20 }, () => {
        const event = { ...good(), type: pick(TYPES) }
        const field = pick(Object.keys(event))
        if (field !== 'event_id' && random() < 0.7) event[field] = pick(ODD)
        return event
      })
      const { status, body } = await collector.call('POST', '/events', { events })
      expect(status, JSON.stringify([body, events]).slice(0, 2000)).toBe(200)
      expect(body.data.accepted.length + body.data.rejected.length).toBe(20)
      const items = Array.from({ length: 5 }, () => ({
        agent_id: pick(ODD),
        company_id: tenant.companyId,
        server_id: server,
        reported_at: pick(ODD),
        facts: { os: pick(ODD), disks: pick(ODD) },
      }))
      expect((await collector.call('POST', '/inventory', { items })).status).toBe(200)
    }
  })
})
