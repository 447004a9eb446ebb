// What the API does not have, and text that the database cannot hold: a user is told, of a collector nothing is lost.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: { readonly token: string; readonly call: Call }
beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

test('[HUB-011, HUB-012, HUB-013, HUB-014, HUB-015] tokens, single sign-on, login, passwords and two-factor are no part of the API', async () => {
  const document: Json = await (await fetch(`${hub.url}/openapi.json`)).json()
  const paths = Object.keys(document.paths)
  expect(paths.length).toBeGreaterThan(80)
  for (const word of ['token', 'sso', 'login', 'password', 'two-factor'])
    expect(paths.filter(path => path.split('/').some(part => part === word || part === `${word}s`))).toEqual([])
})

test('[HUB-043] text that the database cannot hold is told by its field', async () => {
  const { status, body } = await tenant.call('POST', '/servers', '{"name":"a\\u0000b"}')
  expect([status, Object.keys(body.errors)]).toEqual([422, ['name']])
  const nested = await tenant.call('POST', '/monitoring/rules', '{"name":"x","scope":{"tags":["a\\u0000"]}}')
  expect([nested.status, Object.keys(nested.body.errors)]).toEqual([422, ['scope.tags.0']])
})

test('[HUB-042] [COL-005] a path whose percent-encoding is malformed names nothing: 404 in the form of its family', async () => {
  for (const path of ['/monitoring/licenses/%FF', '/servers/%ff/health', '/monitoring/agents/%', '/api/servers/%c3']) {
    const { status, body } = await tenant.call('GET', path)
    expect([path, status, typeof body.message]).toEqual([path, 404, 'string'])
  }
  const { status, body } = await collector.call('GET', '/settings/%FF')
  expect([status, Object.keys(body), body.error.code]).toEqual([404, ['error', 'server_time'], 'not_found'])
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
