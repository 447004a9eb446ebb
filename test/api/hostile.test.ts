// Hostile and broken requests: every operation of the OpenAPI document with random paths, queries and bodies. Nothing is an unexpected
// error, nothing leaks. The seed is printed; SEED=n repeats a run, REQUESTS=n sends more for each operation.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const REQUESTS = Number(process.env.REQUESTS ?? 4)
let hub: TestHub
let tenant: Tenant
let collector: { readonly token: string; readonly call: Call }
beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

let state = SEED
function random(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 4_294_967_296) * below)
}
const pick = <T>(list: readonly T[]): T => list[random(list.length)]!

const texts = [
  '',
  'x',
  '0',
  '1',
  '-1',
  '999999999999999',
  '1e400',
  "' or 1=1 --",
  '\0',
  '%00',
  '../../etc/passwd',
  'null',
  '{}',
  '\ud800',
]
const ids = ['00000000-0000-4000-8000-000000000000', 'FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF', 'é'.repeat(300), ...texts]
const queries = [
  'page',
  'limit',
  'since',
  'search',
  'state',
  'status',
  'severity',
  'from',
  'to',
  'metric',
  'step',
  'agg',
  'opened_from',
  'server_id',
  'token_hash',
  'agent_id',
  'include',
]
const members = [
  'name',
  'hostname',
  'ip_address',
  'scope',
  'metric',
  'operator',
  'threshold',
  'severity',
  'max_uses',
  'expires_at',
  'server_id',
  'events',
  'agents',
  'items',
  'license',
  'token_hash',
  'collector_id',
  'type',
  'target',
  'starts_at',
  'ends_at',
  'reason',
  'tags',
  'ids',
  'email',
  'url',
  'kind',
  'matchers',
  'default_interval',
]

function value(depth: number): Json {
  const kinds = depth > 2 ? 5 : 7
  switch (random(kinds)) {
    case 0:
      return pick(texts)
    case 1:
      return pick(ids)
    case 2:
      return pick([0, 1, -1, 1.5, 1e308, 9_007_199_254_740_991, 60])
    case 3:
      return pick([true, false, null])
    case 4:
      return 'y'.repeat(random(400))
    case 5:
      return Array.from({ length: random(4) }, () => value(depth + 1))
    default:
      return object(depth + 1)
  }
}
const object = (depth: number): Json =>
  Object.fromEntries(Array.from({ length: random(8) }, () => [pick(members), value(depth)]))

/** Words of the inside that no answer may hold. */
const LEAKS = /\bselect\b .*\bfrom\b|insert into|node_modules|\.ts:\d+|at \w+ \(|postgres:\/\/|PostgresError|Drizzle/i

test(`[HUB-045, HUB-046, HUB-011, HUB-012, HUB-013, HUB-014, HUB-015] no request is an unexpected error, and no answer shows the inside`, async () => {
  console.log(`seed ${SEED}`)
  const document: Json = await (await fetch(`${hub.url}/openapi.json`)).json()
  const operations = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => [method.toUpperCase(), path] as const),
  )
  expect(operations.length).toBeGreaterThan(100)
  for (const word of ['token', 'sso', 'login', 'password', 'two-factor'])
    expect(operations.filter(([, path]) => path.split('/').some(part => part === word || part === `${word}s`))).toEqual(
      [],
    )
  const statuses = new Map<number, number>()
  for (const [method, path] of operations) {
    if (path.endsWith('/stream')) continue
    const token = path.includes('/monitoring/collector/') ? collector.token : tenant.token
    for (let request = 0; request < REQUESTS; request++) {
      const filled = path.replace(/\{[^}]+\}|:[a-z_]+/g, () => encodeURIComponent(pick(ids).toWellFormed()))
      const query = Array.from(
        { length: random(4) },
        () => `${pick(queries)}=${encodeURIComponent(pick(texts).toWellFormed())}`,
      )
      const body =
        method === 'GET' || method === 'DELETE'
          ? undefined
          : pick([() => JSON.stringify(object(0)), () => '{', () => '[]', () => 'null', () => ''])()
      const url = `${hub.url}${filled}?${query.join('&')}`
      const response = await fetch(url, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      })
      const text = await response.text()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      if (response.status >= 500 || LEAKS.test(text))
        throw new Error(`seed ${SEED}: ${method} ${url} ${body} answered ${response.status} ${text}`)
    }
  }
  console.log(Object.fromEntries(statuses))
}, 120_000)

test('[HUB-043] text that the database cannot hold is told by its field', async () => {
  const { status, body } = await tenant.call('POST', '/servers', '{"name":"a\\u0000b"}')
  expect([status, Object.keys(body.errors)]).toEqual([422, ['name']])
  const nested = await tenant.call('POST', '/monitoring/rules', '{"name":"x","scope":{"tags":["a\\u0000"]}}')
  expect([nested.status, Object.keys(nested.body.errors)]).toEqual([422, ['scope.tags.0']])
})

test('[COL-044] an event whose labels hold such text is taken: nothing of a collector is lost', async () => {
  const server = (await tenant.call('POST', '/servers', { name: 'nul', hostname: 'nul' })).body.data
  const event = {
    event_id: crypto.randomUUID(),
    type: 'alert.opened',
    seq: 1,
    occurred_at: '2026-06-01T12:00:00Z',
    company_id: tenant.companyId,
    server_id: server.id,
    rule_id: '11111111-1111-4111-8111-111111111111',
    rule_version: 1,
    series_key: 'http_up{target="a\0b"}',
    severity: 'warning',
    value: 1,
    threshold: 2,
    suppressed: false,
    suppress_reason: null,
    group_key: null,
    labels: { target: 'a\0b\ud800' },
  }
  const { status, body } = await collector.call('POST', '/events', { events: [event] })
  expect([status, body.data.accepted]).toEqual([200, [event.event_id]])
})
