import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
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

const HOUR_MS = 3_600_000
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString()
const draft = (more: Json = {}): Json => ({ scope: { all: true }, ends_at: inHours(2), reason: 'maintenance', ...more })
const post = (body: Json, by: Tenant = tenant) => by.call('POST', '/monitoring/silences', body)
const silence = async (more: Json = {}, by: Tenant = tenant): Promise<Json> => (await post(draft(more), by)).body.data
const server = async (body: Json = {}, by: Tenant = tenant): Promise<string> =>
  (await by.call('POST', '/servers', { name: crypto.randomUUID(), ...body })).body.data.id
const feed = async (): Promise<Json[]> => (await collector.call('GET', '/silences?limit=500')).body.data.silences
const inFeed = async (id: string): Promise<Json> => (await feed()).find(item => item.id === id)

describe('silences', () => {
  test('[HSI-001] [HSI-002] [HSI-004] [COL-030] [COL-031] [COL-032] a silence is created, starts now by default, and is in the feed', async () => {
    const made = await silence()
    expect(made).toMatchObject({
      company_id: tenant.companyId,
      status: 'active',
      reason: 'maintenance',
      created_by: { id: tenant.userId },
    })
    expect(Math.abs(Date.parse(made.starts_at) - Date.now())).toBeLessThan(60_000)
    const record = await inFeed(made.id)
    expect(record).toEqual({
      id: made.id,
      company_id: tenant.companyId,
      sync_version: record.sync_version,
      scope: { all: true, server_ids: [], resolved_server_ids: [] },
      starts_at: made.starts_at,
      ends_at: made.ends_at,
      reason: 'maintenance',
      deleted: false,
    })
    expect(made.ends_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect((await tenant.call('GET', `/monitoring/silences/${made.id}`)).body.data).toEqual(made)
    expect((await tenant.call('GET', '/monitoring/silences?status=active')).body.data[0].id).toBe(made.id)
  })

  test.each([
    ['[HSI-015] an end before the start', { starts_at: inHours(3), ends_at: inHours(2) }, 'ends_at'],
    ['[HSI-015] an end that equals the start', { starts_at: inHours(2), ends_at: inHours(2) }, 'ends_at'],
    ['an end in the past', { starts_at: inHours(-3), ends_at: inHours(-2) }, 'ends_at'],
    ['more than 366 days', { ends_at: inHours(24 * 367) }, 'ends_at'],
    ['no reason', { reason: '' }, 'reason'],
    ['a scope that names nothing', { scope: { tags: [] } }, 'scope'],
    ['an unknown server', { scope: { server_ids: [crypto.randomUUID()] } }, 'scope.server_ids'],
  ])('%s is refused', async (_name, more, field) => {
    const { status, body } = await post(draft(more))
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
  })

  test('[HSI-005] [HSI-011] an edit and a creation raise the number, and the collector is told to reload', async () => {
    const told = admin.count('POST', '/reload/silences')
    const { id } = await silence()
    await until('the reload is called', async () => admin.count('POST', '/reload/silences') > told)
    const before = await inFeed(id)
    const { data } = (
      await tenant.call('PATCH', `/monitoring/silences/${id}`, { ends_at: inHours(5), reason: 'longer' })
    ).body
    expect(data).toMatchObject({ reason: 'longer', starts_at: before.starts_at })
    expect((await inFeed(id)).sync_version).toBeGreaterThan(before.sync_version)
  })

  test('[HSI-003] [HSI-006] [HSI-008] [HSI-012] ending now leaves a tombstone; what is over can be neither ended nor changed', async () => {
    const { id } = await silence()
    const before = await inFeed(id)
    const told = admin.count('POST', '/reload/silences')
    const { data } = (await tenant.call('POST', `/monitoring/silences/${id}/end`)).body
    expect(data.status).toBe('cancelled')
    expect(Date.parse(data.ends_at)).toBeLessThanOrEqual(Date.now())
    const after = await inFeed(id)
    expect([after.deleted, after.sync_version > before.sync_version]).toEqual([true, true])
    await until('the reload is called', async () => admin.count('POST', '/reload/silences') > told)
    expect((await tenant.call('POST', `/monitoring/silences/${id}/end`)).body.errors.status).toHaveLength(1)
    expect((await tenant.call('PATCH', `/monitoring/silences/${id}`, { reason: 'x' })).status).toBe(422)
    const { id: scheduled } = await silence({ starts_at: inHours(1), ends_at: inHours(2) })
    expect((await tenant.call('POST', `/monitoring/silences/${scheduled}/end`)).body.data.status).toBe('cancelled')
  })

  test('[HSI-009] a deleted silence leaves a tombstone and the list', async () => {
    const { id } = await silence()
    expect((await tenant.call('DELETE', `/monitoring/silences/${id}`)).status).toBe(204)
    expect((await inFeed(id)).deleted).toBe(true)
    expect((await tenant.call('GET', `/monitoring/silences/${id}`)).status).toBe(404)
  })

  test('[HSI-010] a silence that simply expires leaves no tombstone', async () => {
    const { id } = await silence()
    const before = await inFeed(id)
    await hub.hub.database
      .client`update monitoring_silences set starts_at = now() - interval '2 hours', ends_at = now() - interval '1 hour' where id = ${id}`
    expect((await tenant.call('GET', `/monitoring/silences/${id}`)).body.data.status).toBe('expired')
    expect(await inFeed(id)).toMatchObject({ deleted: false, sync_version: before.sync_version })
    expect((await tenant.call('POST', `/monitoring/silences/${id}/end`)).status).toBe(422)
  })

  test('[HSI-007] [HSI-014] tags are resolved to servers of the own company, and followed', async () => {
    const own = await hub.tenant()
    const other = await hub.tenant()
    const [first, foreign] = [await server({ tags: ['quiet'] }, own), await server({ tags: ['quiet'] }, other)]
    const { id } = await silence({ scope: { tags: ['quiet'] } }, own)
    const before = await inFeed(id)
    expect(before.scope).toEqual({ all: false, server_ids: [], resolved_server_ids: [first] })
    const second = await server({ tags: ['quiet'] }, own)
    const after = await inFeed(id)
    expect(after.scope.resolved_server_ids).toEqual([first, second].sort())
    expect(after.sync_version).toBeGreaterThan(before.sync_version)
    expect((await post(draft({ scope: { server_ids: [foreign] } }), own)).status).toBe(422)
    const preview = (await own.call('POST', '/monitoring/silences/preview', { scope: { tags: ['quiet'] } })).body.data
    expect(preview.matched_servers).toBe(2)
  })

  test('[HSI-003] before it is saved, a silence says which open alerts it would cover', async () => {
    const own = await hub.tenant()
    const made = async (name: string, tags: string[]) =>
      (await own.call('POST', '/servers', { name, tags })).body.data.id as string
    const [quiet, loud] = [await made('q', ['quiet']), await made('l', [])]
    const opened = (server_id: string, severity: string, series_key: string) => ({
      event_id: crypto.randomUUID(),
      type: 'alert.opened',
      seq: 1,
      occurred_at: new Date().toISOString(),
      company_id: own.companyId,
      server_id,
      rule_id: crypto.randomUUID(),
      rule_version: 1,
      series_key,
      severity,
      value: 1,
      threshold: 0,
      suppressed: false,
      labels: {},
    })
    const events = [
      ...Array.from({ length: 18 }, (_, index) => opened(quiet, 'warning', `cpu_load1{n="${index}"}`)),
      opened(quiet, 'critical', 'cpu_load5'),
      opened(loud, 'critical', 'cpu_load1'),
    ]
    expect((await collector.call('POST', '/events', { events })).body.data.accepted).toHaveLength(20)
    const preview = async (scope: Json) => (await own.call('POST', '/monitoring/silences/preview', { scope })).body.data
    const some = await preview({ tags: ['quiet'] })
    expect(some.open_alerts).toEqual({ total: 19, by_severity: { info: 0, warning: 18, critical: 1 } })
    expect(some.alerts).toHaveLength(15)
    expect(some.alerts.every((alert: Json) => alert.server.id === quiet)).toBe(true)
    expect((await preview({ all: true })).open_alerts.total).toBe(20)
    expect(await preview({ tags: ['none'] })).toMatchObject({
      matched_servers: 0,
      open_alerts: { total: 0 },
      alerts: [],
    })
  })

  test('[HSI-013] a collector that cannot be called does not fail the request', async () => {
    admin.answer = () => ({ status: 503, body: {} })
    expect((await post(draft())).status).toBe(201)
    admin.answer = () => ({ status: 200, body: {} })
  })

  test('[COL-033] pages of the feed have 100 records unless asked otherwise', async () => {
    const own = await hub.tenant()
    await hub.hub.database
      .client`insert into monitoring_silences (id, company_id, scope, starts_at, ends_at, reason, sync_version)
      select gen_random_uuid(), ${own.companyId}, '{"all":true,"server_ids":[]}', now(), now() + interval '1 hour', 'x', 1000000 + n
      from generate_series(1, 600) n`
    const page = async (query: string) => (await collector.call('GET', `/silences?since=1000000&${query}`)).body.data
    expect((await page('')).silences).toHaveLength(100)
    expect(await page('limit=900')).toMatchObject({ next_since: 1_000_500, more: true })
    expect((await page('limit=2')).silences.map((item: Json) => item.sync_version)).toEqual([1_000_001, 1_000_002])
    await hub.hub.database.client`delete from monitoring_silences where company_id = ${own.companyId}`
  })

  test('[HSI-002] [HSI-003] silences need monitoring.manage', async () => {
    const { id } = await silence()
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['GET', `/${id}`],
      ['PATCH', `/${id}`],
      ['DELETE', `/${id}`],
      ['POST', `/${id}/end`],
    ])
      expect(
        (await viewer.call(method!, `/monitoring/silences${path}`, method === 'GET' ? undefined : {})).status,
      ).toBe(403)
  })
})
