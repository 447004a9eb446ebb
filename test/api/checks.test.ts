import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { targetLabel } from '../../core/series/labels.ts'
import { AdminListener } from './admin-listener.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let admin: AdminListener
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
})
afterAll(async () => {
  await admin.stop()
  await hub.stop()
})

let numbers = 0
const draft = (more: Json = {}): Json => ({
  name: 'A check',
  scope: { all: true },
  type: 'service',
  target: { name: `service-${++numbers}` },
  ...more,
})
const post = (body: Json, by: Tenant = tenant) => by.call('POST', '/monitoring/checks', body)
const check = async (more: Json = {}, by: Tenant = tenant): Promise<Json> => {
  const { status, body } = await post(draft(more), by)
  expect([status, body.errors]).toEqual([201, undefined])
  return body.data
}
const inFeed = async (id: string): Promise<Json> =>
  (await collector.call('GET', '/checks?limit=500')).body.data.checks.find((item: Json) => item.id === id)
const ruleOf = async (made: Json, by: Tenant = tenant): Promise<Json> =>
  (await by.call('GET', `/monitoring/rules/${made.rule_ids[0]}`)).body.data

describe('records', () => {
  test('[HCK-001] [HCK-002] [HCK-014] [COL-034] [COL-035] a check is stored, listed and in the feed, without its interval', async () => {
    const made = await check({ target: { name: 'nginx.service', other: 'dropped' }, interval_seconds: 120 })
    expect(made).toMatchObject({
      company_id: tenant.companyId,
      type: 'service',
      target: { name: 'nginx.service' },
      interval_seconds: 120,
      timeout_seconds: 5,
      enabled: true,
    })
    const record = await inFeed(made.id)
    expect(record).toEqual({
      id: made.id,
      company_id: tenant.companyId,
      sync_version: record.sync_version,
      deleted: false,
      enabled: true,
      scope: { all: true, server_ids: [], resolved_server_ids: [] },
      type: 'service',
      name: 'A check',
      target: { name: 'nginx.service' },
      timeout_seconds: 5,
    })
    expect((await tenant.call('GET', `/monitoring/checks/${made.id}`)).body.data).toEqual(made)
    expect(
      (await tenant.call('GET', '/monitoring/checks?type=service')).body.data.map((item: Json) => item.id),
    ).toContain(made.id)
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await viewer.call('GET', '/monitoring/checks')).status).toBe(200)
    expect((await viewer.call('POST', '/monitoring/checks', draft())).status).toBe(403)
  })

  test.each([
    ['[HCK-003] an unknown type', { type: 'ping', target: {} }, 'type'],
    ['[HCK-004] a service name with a space', { target: { name: 'a b' } }, 'target.name'],
    ['[HCK-004] a service name of 129', { target: { name: 'x'.repeat(129) } }, 'target.name'],
    ['[HCK-005] port 0', { type: 'port', target: { port: 0, proto: 'tcp' } }, 'target.port'],
    ['[HCK-005] port 65536', { type: 'port', target: { port: 65_536, proto: 'tcp' } }, 'target.port'],
    ['[HCK-006] another proto', { type: 'port', target: { port: 80, proto: 'sctp' } }, 'target.proto'],
    ['[HCK-007] a tcp target without port', { type: 'tcp', target: { target: 'host' } }, 'target.target'],
    ['[HCK-009] ftp', { type: 'http', target: { url: 'ftp://x/' } }, 'target.url'],
    ['[HCK-010] credentials in the url', { type: 'http', target: { url: 'https://u:p@x/' } }, 'target.url'],
    [
      '[HCK-008] an odd status',
      { type: 'http', target: { url: 'https://x/', expect_status: 99 } },
      'target.expect_status',
    ],
    ['[HCK-011] a cert target without host', { type: 'cert', target: { target: ':443' } }, 'target.target'],
    ['[HCK-012] timeout 0', { timeout_seconds: 0 }, 'timeout_seconds'],
    ['[HCK-012] timeout 16', { timeout_seconds: 16 }, 'timeout_seconds'],
    ['[HCK-013] interval 29', { interval_seconds: 29 }, 'interval_seconds'],
    ['[HCK-013] interval 3601', { interval_seconds: 3601 }, 'interval_seconds'],
    ['a scope that names nothing', { scope: {} }, 'scope'],
  ])('%s is refused', async (_name, more, field) => {
    const { status, body } = await post(draft(more))
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
  })

  test('[HCK-005] [HCK-006] [HCK-007] [HCK-008] [HCK-009] [HCK-011] the edges of the domains are fine', async () => {
    await check({ type: 'port', target: { port: 1, proto: 'tcp' }, timeout_seconds: 1, interval_seconds: 30 })
    await check({ type: 'port', target: { port: 65_535, proto: 'udp' }, timeout_seconds: 15, interval_seconds: 3600 })
    await check({ type: 'tcp', target: { target: 'db.example:5432' } })
    await check({ type: 'tcp', target: { target: '[::1]:22' } })
    await check({ type: 'http', target: { url: 'http://plain.example/' } })
    expect((await check({ type: 'http', target: { url: 'https://x.example/health' } })).target).toEqual({
      url: 'https://x.example/health',
      expect_status: 200,
    })
    await check({ type: 'cert', target: { target: 'x.example:443' } })
    expect((await post(draft({ type: 'cert', target: { target: 'x.example:443' } }))).body.errors.target).toHaveLength(
      1,
    )
  })

  test('[HCK-019] [HCK-020] [HCK-021] [COL-036] switching, changing and deleting raise the number and are told to the collector', async () => {
    const { id } = await check()
    let last = (await inFeed(id)).sync_version
    const told = admin.count('POST', '/reload/checks')
    const steps: [string, string, Json, Json][] = [
      ['POST', '/disable', undefined, { enabled: false, deleted: false }],
      ['POST', '/enable', undefined, { enabled: true, deleted: false }],
      ['PATCH', '', { timeout_seconds: 9 }, { timeout_seconds: 9 }],
      ['DELETE', '', undefined, { deleted: true }],
    ]
    for (const [method, path, body, expected] of steps) {
      expect((await tenant.call(method, `/monitoring/checks/${id}${path}`, body)).status).toBeLessThan(300)
      const record = await inFeed(id)
      expect(record).toMatchObject(expected)
      expect(record.sync_version).toBeGreaterThan(last)
      last = record.sync_version
    }
    await until('the reload is called', async () => admin.count('POST', '/reload/checks') > told)
    const [row] = await hub.hub.database.client`select deleted_at from monitoring_checks where id = ${id}`
    expect(row?.deleted_at).not.toBeNull()
    expect((await tenant.call('GET', `/monitoring/checks/${id}`)).status).toBe(404)
    const { id: typed } = await check()
    expect((await tenant.call('PATCH', `/monitoring/checks/${typed}`, { type: 'http' })).body.errors.type).toHaveLength(
      1,
    )
  })
})

describe('copies', () => {
  test('[HCK-002] a copy is disabled; it can be enabled once its target is its own', async () => {
    const original = await check({ timeout_seconds: 9 })
    const { status, body } = await tenant.call('POST', `/monitoring/checks/${original.id}/duplicate`)
    expect(status).toBe(201)
    const { data: copy } = body
    expect(copy).toMatchObject({
      name: 'A check (copy)',
      target: original.target,
      timeout_seconds: 9,
      enabled: false,
    })
    expect((await ruleOf(copy)).enabled).toBe(false)
    const enable = () => tenant.call('POST', `/monitoring/checks/${copy.id}/enable`)
    expect((await enable()).body.errors).toEqual({ target: ['a check with this type and target exists'] })
    const target = { name: `service-${++numbers}` }
    await tenant.call('PATCH', `/monitoring/checks/${copy.id}`, { target })
    expect((await enable()).body.data).toMatchObject({ enabled: true, target })
    const back = await tenant.call('PATCH', `/monitoring/checks/${copy.id}`, { target: original.target })
    expect([back.status, Object.keys(back.body.errors)]).toEqual([422, ['target']])
    const named = await tenant.call('POST', `/monitoring/checks/${original.id}/duplicate`, { target: { name: 'own' } })
    expect([named.status, named.body.data.target]).toEqual([201, { name: 'own' }])
  })

  test('[HCK-001] a second check of one type and target is refused, enabled or not', async () => {
    const { target } = await check()
    for (const enabled of [true, false]) {
      const { status, body } = await post(draft({ target, enabled }))
      expect([status, Object.keys(body.errors)]).toEqual([422, ['target']])
    }
  })

  test.each([
    [
      'one url, another status',
      'http',
      { url: 'https://s/', expect_status: 200 },
      { url: 'https://s/', expect_status: 204 },
    ],
    ['a further member', 'tcp', { target: 'h:2' }, { target: 'h:2', proto: 'tcp' }],
  ])(
    '[HCK-001] [AGT-062] [AGT-063] [AGT-065] a second check of one series is refused: %s',
    async (_name, type, target, other) => {
      const own = await hub.tenant()
      const first = await check({ type, target }, own)
      const second = await post(draft({ type, target: other }), own)
      expect([second.status, Object.keys(second.body.errors)]).toEqual([422, ['target']])
      const moved = await check(
        { type, target: { ...target, ...(type === 'http' ? { url: 'http://o/' } : { target: 'o:1' }) } },
        own,
      )
      const back = await own.call('PATCH', `/monitoring/checks/${moved.id}`, { target: other })
      expect([back.status, Object.keys(back.body.errors)]).toEqual([422, ['target']])
      // Its own series is no other's, and no other company's.
      const same = await own.call('PATCH', `/monitoring/checks/${first.id}`, { target: other })
      expect([same.status, same.body.errors]).toEqual([200, undefined])
      await check({ type, target: other }, await hub.tenant())
    },
  )

  test('[HCK-001] [AGT-065] urls that agree in 128 bytes are two checks, each with a rule that matches its own series', async () => {
    const own = await hub.tenant()
    const long = (end: string): string => `https://x.example/${'a'.repeat(120)}${end}`
    const matchersOf = async (end: string) => {
      const { rule_ids } = await check({ type: 'http', target: { url: long(end) } }, own)
      return (await own.call('GET', `/monitoring/rules/${rule_ids[0]}`)).body.data.matchers
    }
    expect(await matchersOf('1')).toEqual({ target: `${long('1').slice(0, 115)}~14b81a430755` })
    expect(await matchersOf('2')).toEqual({ target: targetLabel(long('2')) })
    expect(targetLabel(long('2'))).not.toBe(targetLabel(long('1')))
  })

  test('[HCK-001] two checks that share a series since before that was refused may stay, and not become more alike', async () => {
    const own = await hub.tenant()
    const target = (expect_status: number) => ({ url: 'https://old/', expect_status })
    await check({ type: 'http', target: target(200) }, own)
    const other = await check({ type: 'http', target: { url: 'https://new/' } }, own)
    await hub.hub.database
      .client`update monitoring_checks set target = ${JSON.stringify(target(204))}::text::jsonb where id = ${other.id}`
    const change = (body: Json) => own.call('PATCH', `/monitoring/checks/${other.id}`, body)
    expect((await change({ name: 'renamed', target: target(204) })).status).toBe(200)
    const alike = await change({ target: target(200) })
    expect([alike.status, Object.keys(alike.body.errors)]).toEqual([422, ['target']])
  })

  test('[HCK-001] targets of one port and of two protocols, or of two types, are series of their own', async () => {
    const own = await hub.tenant()
    await check({ type: 'port', target: { port: 53, proto: 'tcp' } }, own)
    await check({ type: 'port', target: { port: 53, proto: 'udp' } }, own)
    await check({ type: 'tcp', target: { target: 'x:443' } }, own)
    await check({ type: 'cert', target: { target: 'x:443' } }, own)
  })
})

describe('rules that come with a check', () => {
  test.each([
    ['[HCK-016] service', 'service', { name: 'sshd' }, 'service_up', { name: 'sshd' }],
    ['[HCK-016] port', 'port', { port: 443, proto: 'tcp' }, 'port_up', { port: '443', proto: 'tcp' }],
    ['[HCK-016] tcp', 'tcp', { target: 'h:1' }, 'tcp_connect_up', { target: 'h:1' }],
    ['[HCK-017] http', 'http', { url: 'https://h/' }, 'http_up', { target: 'https://h/' }],
  ])('%s is down for two minutes: critical', async (_name, type, target, metric, matchers) => {
    const own = await hub.tenant()
    const made = await check({ type, target }, own)
    expect(made.rule_ids).toHaveLength(1)
    expect(await ruleOf(made, own)).toMatchObject({
      kind: 'check',
      metric,
      matchers,
      operator: '<',
      threshold: 1,
      for_seconds: 120,
      severity: 'critical',
      enabled: true,
      check_id: made.id,
    })
  })

  test('[HCK-018] a cert check has a rule below 14 days at warning, unless one of the company covers it', async () => {
    const own = await hub.tenant()
    const covered = await check({ type: 'cert', target: { target: 'a:443' } }, own)
    expect(covered.rule_ids).toEqual([])
    const [general] = (await own.call('GET', '/monitoring/rules?metric=cert_days_left&severity=warning')).body.data
    await own.call('POST', `/monitoring/rules/${general.id}/disable`)
    const made = await check({ type: 'cert', target: { target: 'b:443' } }, own)
    expect(await ruleOf(made, own)).toMatchObject({
      metric: 'cert_days_left',
      operator: '<',
      threshold: 14,
      severity: 'warning',
      for_seconds: 0,
      matchers: { target: 'b:443' },
    })
  })

  test('[HCK-019] they follow its target and scope, and are disabled and deleted with it', async () => {
    const own = await hub.tenant()
    const server = (await own.call('POST', '/servers', { name: 'm' })).body.data.id
    const made = await check({ target: { name: 'one' } }, own)
    const path = `/monitoring/checks/${made.id}`
    await own.call('PATCH', path, { target: { name: 'two' }, scope: { server_ids: [server] } })
    expect(await ruleOf(made, own)).toMatchObject({
      matchers: { name: 'two' },
      scope: { all: false, server_ids: [server] },
      resolved_server_count: 1,
      version: 2,
    })
    await own.call('POST', `${path}/disable`)
    expect((await ruleOf(made, own)).enabled).toBe(false)
    await own.call('POST', `${path}/enable`)
    expect((await ruleOf(made, own)).enabled).toBe(true)
    await own.call('DELETE', path)
    expect((await own.call('GET', `/monitoring/rules/${made.rule_ids[0]}`)).status).toBe(404)
  })
})

describe('limits', () => {
  test('[HCK-015] a save after which more than 50 checks apply to one server is refused', async () => {
    const own = await hub.tenant()
    const server = (await own.call('POST', '/servers', { name: 'crowded' })).body.data.id
    await hub.hub.database
      .client`insert into monitoring_checks (id, company_id, name, scope, resolved_server_ids, type, target)
      select gen_random_uuid(), ${own.companyId}, 'c', '{"all":true,"server_ids":[]}', '{}', 'service', jsonb_build_object('name', 's' || n)
      from generate_series(1, 49) n`
    const last = await check({ scope: { server_ids: [server] } }, own)
    const refused = await post(draft({ scope: { server_ids: [server] } }), own)
    expect([refused.status, refused.body.errors.scope[0]]).toEqual([422, expect.stringContaining('crowded')])
    const off = await check({ scope: { server_ids: [server] }, enabled: false }, own)
    expect((await own.call('POST', `/monitoring/checks/${off.id}/enable`)).status).toBe(422)
    await own.call('POST', `/monitoring/checks/${last.id}/disable`)
    expect((await own.call('POST', `/monitoring/checks/${off.id}/enable`)).status).toBe(200)
    const other = (await own.call('POST', '/servers', { name: 'empty' })).body.data.id
    await check({ scope: { server_ids: [other] } }, own)
  })
})
