import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { faultsHeader, faultsText } from '../../core/admin-api/envelope.ts'
import { AdminListener } from './admin-listener.ts'
import { alertEvent, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

type Collector = Awaited<ReturnType<TestHub['collector']>>
let hub: TestHub
let tenant: Tenant
let collector: Collector
let admin: AdminListener

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

let names = 0
const server = async (body: Json = {}, by: Tenant = tenant): Promise<Json> =>
  (await by.call('POST', '/servers', { name: `s${++names}`, ...body })).body.data
async function agentOn(serverId: string, hostname = serverId, by: Tenant = tenant): Promise<string> {
  const { token } = (await by.call('POST', '/monitoring/licenses', { name: 'x', server_id: serverId })).body
  const body = { license: token, hostname, machine_id: serverId, collector_id: collector.id }
  return (await collector.call('POST', '/enroll', body)).body.data.agent_id
}
const record = async (agentId: string): Promise<Json> =>
  (await collector.call('GET', `/agents/lookup?agent_id=${agentId}`)).body.data.agent

describe('records', () => {
  test('[HSV-001] [HSV-002] [HSV-003] [HSV-004] [HSV-005] [HSV-006] the list is sorted by name, searched and filtered', async () => {
    const own = await hub.tenant()
    await server({ name: 'beta', hostname: 'b.example', ip_address: '10.0.0.2', environment: 'prod', role: 'db' }, own)
    await server(
      { name: 'Alpha', hostname: 'a.example', ip_address: '10.0.0.1', environment: 'test', role: 'web' },
      own,
    )
    await server({ name: 'gamma', status: 'maintenance', environment: 'prod' }, own)
    const names = async (query: string) =>
      (await own.call('GET', `/servers?${query}`)).body.data.map((item: Json) => item.name)
    expect(await names('')).toEqual(['Alpha', 'beta', 'gamma'])
    expect(await names('search=b.EX')).toEqual(['beta'])
    expect(await names('search=10.0.0.1')).toEqual(['Alpha'])
    expect(await names('search=gam')).toEqual(['gamma'])
    expect(await names('environment=prod')).toEqual(['beta', 'gamma'])
    expect(await names('role=web')).toEqual(['Alpha'])
    expect(await names('status=maintenance')).toEqual(['gamma'])
    expect((await own.call('GET', '/servers?status=nope')).status).toBe(422)
    const blind = await hub.user(own.companyId, ['monitoring.view'])
    expect((await blind.call('GET', '/servers')).status).toBe(403)
  })

  test('a name is unique in its company; a deleted server can be restored', async () => {
    const { id, name } = await server()
    expect((await tenant.call('POST', '/servers', { name: name.toUpperCase() })).body.errors.name).toHaveLength(1)
    expect((await tenant.call('DELETE', `/servers/${id}`)).status).toBe(204)
    expect((await tenant.call('GET', `/servers/${id}`)).status).toBe(404)
    expect((await tenant.call('GET', '/servers/trashed')).body.data.map((item: Json) => item.id)).toContain(id)
    expect((await tenant.call('POST', `/servers/${id}/restore`)).body.data.deleted_at).toBeNull()
    expect((await tenant.call('GET', `/servers/${id}`)).status).toBe(200)
  })

  test('what is no address is told as that', async () => {
    const told = (language: string) =>
      tenant.call('POST', '/servers', { name: 'x', ip_address: '10.0.0' }, { 'accept-language': language })
    expect((await told('en')).body.errors).toEqual({ ip_address: ['must be an IPv4 or IPv6 address'] })
    expect((await told('vi')).body.errors).toEqual({ ip_address: ['phải là địa chỉ IPv4 hoặc IPv6'] })
    const csv = { csv: 'name,ip_address\nx,10.0.0\n' }
    expect((await tenant.call('POST', '/servers/import', csv)).body.errors).toEqual({
      'rows.2.ip_address': ['must be an IPv4 or IPv6 address'],
    })
  })

  test('letters of every script have capitals: names are found, and taken, whatever their case', async () => {
    const own = await hub.tenant()
    await server({ name: 'Máy chủ ĐÀ NẴNG' }, own)
    const { data } = (await own.call('GET', `/servers?search=${encodeURIComponent('đà nẵng')}`)).body
    expect(data.map((item: Json) => item.name)).toEqual(['Máy chủ ĐÀ NẴNG'])
    const refused = await own.call('POST', '/servers', { name: 'máy CHỦ đà nẵng' })
    expect([refused.status, refused.body.errors?.name?.length]).toEqual([422, 1])
  })

  test('[HSV-038] [HSV-039] [HAG-013] a change of status, subnet or datacenter raises version and number of its agents', async () => {
    const { id } = await server()
    const agentId = await agentOn(id)
    let before = await record(agentId)
    for (const [change, field, value] of [
      [{ status: 'maintenance' }, 'server_status', 'maintenance'],
      [{ subnet_id: 'net-7' }, 'subnet_id', 'net-7'],
      [{ datacenter: 'dc-7' }, 'datacenter', 'dc-7'],
    ] as const) {
      await tenant.call('PATCH', `/servers/${id}`, change)
      const after = await record(agentId)
      expect([after.version, after[field]]).toEqual([before.version + 1, value])
      expect(after.sync_version).toBeGreaterThan(before.sync_version)
      before = after
    }
    await tenant.call('PATCH', `/servers/${id}`, { notes: 'nothing that the record carries' })
    expect((await record(agentId)).version).toBe(before.version)
    await until('the collector has the pushed record', async () =>
      admin.asked.some(
        asked => asked.method === 'PUT' && asked.path === `/agents/${agentId}` && asked.body.version === before.version,
      ),
    )
  })

  test('[HSV-041] deleting for good purges at the collector, deleting softly does not; alerts and agent end with the server', async () => {
    const { id } = await server()
    const agentId = await agentOn(id)
    await collector.call('POST', '/events', {
      events: [
        {
          event_id: crypto.randomUUID(),
          type: 'alert.opened',
          seq: 1,
          occurred_at: new Date().toISOString(),
          company_id: tenant.companyId,
          server_id: id,
          rule_id: crypto.randomUUID(),
          rule_version: 1,
          series_key: 'cpu_load1',
          severity: 'info',
          value: 1,
          threshold: 0,
          suppressed: false,
          labels: {},
        },
      ],
    })
    await tenant.call('DELETE', `/servers/${id}`)
    expect((await tenant.call('GET', `/monitoring/agents/${agentId}`)).body.data.state).toBe('revoked')
    const [alert] = (await tenant.call('GET', `/monitoring/alerts?server_id=${id}`)).body.data
    expect(alert).toMatchObject({ state: 'resolved', resolved_reason: 'server_removed' })
    await until('the agent is revoked at the collector', async () => admin.count('DELETE', `/agents/${agentId}`) > 0)
    expect(admin.count('DELETE', `/servers/${id}/data`)).toBe(0)
    expect((await tenant.call('DELETE', `/servers/${id}/permanent`)).status).toBe(204)
    const purge = await until('the purge is called', async () =>
      admin.asked.find(asked => asked.path === `/servers/${id}/data`),
    )
    expect([purge.method, purge.query.get('company_id')]).toEqual(['DELETE', tenant.companyId])
    expect((await tenant.call('GET', `/monitoring/alerts/${alert.id}`)).status).toBe(404)
  })

  test('[HAL-048] [HSV-041] an incident that was reported on a deleted server gives its other servers back as open', async () => {
    const [one, two] = [(await server()).id as string, (await server()).id as string]
    const agentIds = [await agentOn(one), await agentOn(two)]
    const base = {
      occurred_at: new Date().toISOString(),
      company_id: tenant.companyId,
      rule_version: 0,
      severity: 'critical',
      value: 95,
      threshold: 90,
      suppressed: false,
      labels: {},
    }
    const down = [one, two].map((server_id, n) => ({
      ...base,
      event_id: crypto.randomUUID(),
      type: 'agent.down',
      seq: 1,
      server_id,
      rule_id: 'agent_down',
      series_key: `agent:${agentIds[n]}`,
    }))
    const group = { type: 'group_down', seq: 1, server_id: one, rule_id: 'group_down', series_key: 'subnet:gone' }
    const incident = { ...base, ...group, event_id: crypto.randomUUID(), group_key: 'subnet:gone', group_total: 2 }
    await collector.call('POST', '/events', { events: [...down, { ...incident, member_server_ids: [one, two] }] })
    const alertsOf = async (id: string) => (await tenant.call('GET', `/monitoring/alerts?server_id=${id}`)).body.data
    expect((await alertsOf(two))[0].state).toBe('grouped')
    await tenant.call('DELETE', `/servers/${one}`)
    const ended = (await alertsOf(one)).map((alert: Json) => [alert.type, alert.state, alert.resolved_reason]).sort()
    expect(ended).toEqual([
      ['agent_down', 'resolved', 'server_removed'],
      ['group_down', 'resolved', 'server_removed'],
    ])
    const [left] = await alertsOf(two)
    expect([left.state, left.group_id]).toEqual(['open', null])
  })
})

describe('agents', () => {
  test('[HAG-006] [HAG-007] [HAG-008] [HAG-009] [HAG-012] [HAG-014] revoking sets time and reason and is told to the collector', async () => {
    const { id } = await server()
    const agentId = await agentOn(id)
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await viewer.call('POST', `/monitoring/agents/${agentId}/revoke`)).status).toBe(403)
    const { token_hash } = await record(agentId)
    const first = (await tenant.call('POST', `/monitoring/agents/${agentId}/revoke`, { reason: 'stolen' })).body.data
    expect(first).toMatchObject({ state: 'revoked', revoked_reason: 'stolen', version: 2 })
    const second = (await tenant.call('POST', `/monitoring/agents/${agentId}/revoke`, { reason: 'again' })).body.data
    expect([second.revoked_at, second.revoked_reason]).toEqual([first.revoked_at, 'stolen'])
    await until('the collector is told', async () => admin.count('DELETE', `/agents/${agentId}`) > 0)
    expect((await record(agentId)).state).toBe('revoked')
    const shown = await viewer.call('GET', `/monitoring/agents/${agentId}`)
    const list = await viewer.call('GET', `/monitoring/agents?state=revoked&server_id=${id}`)
    expect([shown.status, list.body.data.length]).toEqual([200, 1])
    expect(JSON.stringify([shown.body, list.body])).not.toContain(token_hash)
  })

  test('[HAG-010] [HAG-011] [HAG-002] [HAG-015] reassigning and deleting', async () => {
    const [from, to, occupied] = [await server(), await server(), await server()]
    const agentId = await agentOn(from.id)
    await agentOn(occupied.id)
    const reassign = (server_id: string, by: Tenant | Omit<Tenant, 'companyId'> = tenant) =>
      by.call('POST', `/monitoring/agents/${agentId}/reassign`, { server_id })
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await reassign(to.id, viewer)).status).toBe(403)
    const other = await hub.tenant()
    expect((await reassign(to.id, other)).status).toBe(404)
    expect((await reassign((await server({}, other)).id)).body.errors.server_id).toHaveLength(1)
    expect((await reassign(occupied.id)).status).toBe(422)
    expect((await reassign(to.id)).body.data).toMatchObject({ server: { id: to.id }, version: 2 })
    const manager = await hub.user(tenant.companyId, ['monitoring.manage'])
    const remove = (by: Omit<Tenant, 'companyId'>) => by.call('DELETE', `/monitoring/agents/${agentId}`)
    const deleter = await hub.user(tenant.companyId, ['monitoring.delete'])
    expect((await remove(deleter)).body.errors.state).toHaveLength(1)
    await tenant.call('POST', `/monitoring/agents/${agentId}/revoke`)
    expect((await remove(manager)).status).toBe(403)
    expect((await remove(deleter)).status).toBe(204)
    expect((await tenant.call('GET', `/monitoring/agents/${agentId}`)).status).toBe(404)
  })

  test('[HAG-010] [HAL-039] the loss of a server whose agent moves away ends with the move, and people are told of no recovery', async () => {
    const own = await hub.tenant()
    const [from, to] = [await server({}, own), await server({}, own)]
    const agentId = await agentOn(from.id, from.id, own)
    const down = (id: string) =>
      alertEvent(own, id, 'agent.down', { rule_id: 'agent_down', series_key: `agent:${agentId}`, severity: 'critical' })
    await collector.call('POST', '/events', { events: [down(from.id), alertEvent(own, from.id, 'alert.opened')] })
    const alerts = async () => {
      const { data } = (await own.call('GET', `/monitoring/alerts?server_id=${from.id}`)).body
      return Object.fromEntries(data.map((alert: Json) => [alert.type, [alert.state, alert.resolved_reason]]))
    }
    const reassign = (server_id: string) => own.call('POST', `/monitoring/agents/${agentId}/reassign`, { server_id })
    // Where it is already, nothing has come back.
    expect((await reassign(from.id)).status).toBe(200)
    expect(await alerts()).toEqual({ agent_down: ['open', null], threshold: ['open', null] })
    expect((await reassign(to.id)).status).toBe(200)
    // Alerts of rules are ended by the collector.
    expect(await alerts()).toEqual({ agent_down: ['resolved', 'out_of_scope'], threshold: ['open', null] })
    // The loss of the new server is an alert of its own, which stays.
    await collector.call('POST', '/events', { events: [down(to.id)] })
    expect((await reassign(to.id)).status).toBe(200)
    const { data } = (await own.call('GET', `/monitoring/alerts?server_id=${to.id}`)).body
    expect(data.map((alert: Json) => [alert.type, alert.state])).toEqual([['agent_down', 'open']])
    await notificationsIdle(hub)
    const told = (await own.call('GET', '/notifications')).body.data.map((item: Json) => item.type)
    expect(told.toSorted()).toEqual(['agent.down', 'agent.down', 'alert.opened'])
  })
})

describe('health', () => {
  const sampleMs = Date.now() - 5000
  const status = (state: string) => ({
    status: 200,
    body: {
      data: {
        server_id: 'x',
        company_id: 'x',
        state,
        last_seen: new Date(sampleMs).toISOString(),
        metrics: {
          cpu_usage_percent: [{ labels: {}, value: 12.5, ts_ms: sampleMs }],
          mem_used_percent: [{ labels: {}, value: 40, ts_ms: sampleMs }],
          disk_used_percent: [
            { labels: { mount: '/data' }, value: 90, ts_ms: sampleMs },
            { labels: { mount: '/' }, value: 55, ts_ms: sampleMs },
          ],
          cpu_load1: [],
        },
      },
    },
  })

  test('[HSV-009] [HSV-010] [HSV-012] [HSV-013] [HSV-015] [HSV-016] [HUB-002] the latest values come from the collector, what is unknown is null', async () => {
    const { id } = await server()
    await agentOn(id)
    for (const state of ['online', 'down', 'unknown']) {
      admin.answer = () => status(state)
      const { status: code, body } = await tenant.call('GET', `/servers/${id}/health`)
      expect([code, body.data.status, body.collector]).toEqual([200, state, { available: true, reason: null }])
      expect(body.data.summary).toEqual({
        connectivity: state,
        cpu_percent: 12.5,
        memory_percent: 40,
        disk_percent: 55,
        load1: null,
        sampled_at: new Date(sampleMs).toISOString(),
      })
      expect(body.data.last_seen).toBe(new Date(sampleMs).toISOString())
      expect(body.data.metrics.disk_used_percent[0]).toEqual({
        labels: { mount: '/data' },
        value: 90,
        ts: new Date(sampleMs).toISOString(),
      })
    }
    const asked = admin.asked.findLast(item => item.path === `/servers/${id}/status`)
    expect([asked?.token, asked?.query.get('company_id')]).toEqual([collector.adminToken, tenant.companyId])
    for (const permissions of [['monitoring.view'], ['servers.view']])
      expect((await (await hub.user(tenant.companyId, permissions)).call('GET', `/servers/${id}/health`)).status).toBe(
        403,
      )
  })

  test('[HSV-011] [HSV-014] [HSV-017] [HSV-018] [HSV-019] [HUB-063] [HUB-065] a collector that cannot answer is 200 with status null; alerts are there; one retry', async () => {
    const own = await hub.tenant()
    const { id } = await server({}, own)
    await agentOn(id, id, own)
    await collector.call('POST', '/events', {
      events: [
        {
          event_id: crypto.randomUUID(),
          type: 'alert.opened',
          seq: 1,
          occurred_at: new Date().toISOString(),
          company_id: own.companyId,
          server_id: id,
          rule_id: crypto.randomUUID(),
          rule_version: 1,
          series_key: 'cpu_load1',
          severity: 'info',
          value: 1,
          threshold: 0,
          suppressed: false,
          labels: {},
        },
      ],
    })
    admin.answer = () => ({ status: 503, body: { error: { code: 'unavailable', message: 'x' } } })
    const before = admin.count('GET', `/servers/${id}/status`)
    const { status: code, body } = await own.call('GET', `/servers/${id}/health`)
    expect([code, body.data.status, body.collector]).toEqual([200, null, { available: false, reason: 'unavailable' }])
    expect(body.data.summary).toEqual({
      connectivity: null,
      cpu_percent: null,
      memory_percent: null,
      disk_percent: null,
      load1: null,
      sampled_at: null,
    })
    expect(body.data.open_alerts).toHaveLength(1)
    expect(admin.count('GET', `/servers/${id}/status`) - before).toBe(2)
    admin.answer = () => status('online')
    expect((await own.call('GET', `/servers/${id}/health`)).body.data.status).toBe('online')
    const lonely = await server({}, own)
    expect((await own.call('GET', `/servers/${lonely.id}/health`)).body).toMatchObject({
      data: { status: 'unknown' },
      collector: { available: true, reason: 'no_data' },
    })
  })

  test('[HUB-062] [HUB-064] a slow collector is given up after the timeout; after five failures it is not asked', async () => {
    const other = await TestHub.start({ 'collector.timeout': '150ms' })
    const slow = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
    let asked = 0
    const failing = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => {
        asked++
        return new Response('', { status: 500 })
      },
    })
    try {
      const own = await other.tenant()
      const unconfigured = (await own.call('POST', '/servers', { name: 'x' })).body.data
      expect((await own.call('GET', `/servers/${unconfigured.id}/health`)).body.collector).toEqual({
        available: false,
        reason: 'not_configured',
      })
      await other.collector()
      expect((await own.call('GET', `/servers/${unconfigured.id}/health`)).body).toMatchObject({
        data: { status: 'unknown' },
        collector: { available: true, reason: 'no_data' },
      })
      const made = await other.collector(`http://127.0.0.1:${slow.port}`)
      const { token } = (await own.call('POST', '/monitoring/licenses', { name: 'x', server_id: unconfigured.id })).body
      await made.call('POST', '/enroll', { license: token, hostname: 'x', machine_id: 'x', collector_id: made.id })
      const { status: code, body } = await own.call('GET', `/servers/${unconfigured.id}/health`)
      expect([code, body.collector.reason]).toEqual([200, 'unavailable'])
      await other.hub.database
        .client`update monitoring_collectors set admin_url = ${`http://127.0.0.1:${failing.port}`}`
      for (let n = 0; n < 5; n++) await own.call('GET', `/servers/${unconfigured.id}/health`)
      // Two failures of the slow one count as well: five in all, then the breaker is open.
      expect(asked).toBe(3)
    } finally {
      await Promise.all([slow.stop(true), failing.stop(true)])
      await other.running.stop()
    }
  })

  test('[HSV-020] series are passed through; a refusal of the collector becomes 422 on the field', async () => {
    const { id } = await server()
    await agentOn(id)
    const data = {
      server_id: id,
      metric: 'cpu_load1',
      agg: 'max',
      step_seconds: 60,
      series: [{ labels: {}, points: [[sampleMs, 1]] }],
    }
    admin.answer = () => ({ status: 200, body: { data } })
    const path = `/servers/${id}/health/series?metric=cpu_load1&agg=max&step=60&from=2026-01-01T00:00:00Z`
    const { body } = await tenant.call('GET', path)
    expect(body).toEqual({ data, collector: { available: true, reason: null } })
    const asked = admin.asked.findLast(item => item.path === `/servers/${id}/series`)
    expect(Object.fromEntries(asked?.query ?? [])).toEqual({
      company_id: tenant.companyId,
      metric: 'cpu_load1',
      agg: 'max',
      step: '60',
      from: '2026-01-01T00:00:00Z',
    })
    admin.answer = () => ({
      status: 400,
      body: { error: { code: 'bad_request', message: 'step must be at least 30 seconds' } },
    })
    expect(Object.keys((await tenant.call('GET', path)).body.errors)).toEqual(['step'])
    expect(Object.keys((await tenant.call('GET', `/servers/${id}/health/series`)).body.errors)).toEqual(['metric'])
    const fields = [
      { field: 'to', message: 'must be a time' },
      { field: 'step', message: 'must be a duration such as 5m, or a metric of time' },
    ]
    const headers = { [faultsHeader]: faultsText(fields) }
    admin.answer = () => ({ status: 400, body: { error: { code: 'bad_request', message: 'from here on' } }, headers })
    const { errors } = (await tenant.call('GET', path)).body
    expect(Object.keys(errors)).toEqual(['to', 'step'])
    expect(errors.to[0]).toContain('to must be a time')
    admin.answer = () => ({ status: 503, body: {} })
    expect((await tenant.call('GET', path)).body).toMatchObject({
      data: { series: [] },
      collector: { available: false, reason: 'unavailable' },
    })
    admin.answer = () => ({ status: 200, body: { data: {} } })
  })

  test('[HSV-007] [HSV-008] include=health adds a block from the records of the hub, and needs monitoring.view', async () => {
    const own = await hub.tenant()
    const { id } = await server({}, own)
    const agentId = await agentOn(id, id, own)
    const seen = new Date().toISOString()
    await collector.call('POST', '/agents/seen', { agents: [{ agent_id: agentId, last_seen_at: seen }] })
    const asked = admin.asked.length
    const [row] = (await own.call('GET', '/servers?include=health,other')).body.data
    expect(row.health).toMatchObject({ connectivity: 'online', open_alerts: 0 })
    expect(Date.parse(row.health.last_seen_at)).toBeCloseTo(Date.parse(seen), -3)
    expect(admin.asked.length).toBe(asked)
    const narrow = await hub.user(own.companyId, ['servers.view'])
    expect((await narrow.call('GET', '/servers?include=health')).status).toBe(403)
    expect((await narrow.call('GET', '/servers?include=other')).body.data[0].health).toBeUndefined()
  })
})

describe('inventory', () => {
  const GIB = 1024 ** 3
  const facts = {
    os: { name: 'Debian' },
    cpu: { cores: 4, threads: 8 },
    memory_total_bytes: String(16 * GIB),
    disks: [
      { mount: '/', total_bytes: String(60 * GIB) },
      { mount: '/data', total_bytes: 40 * GIB },
    ],
    nics: [
      { name: 'eth0', ips: ['10.1.1.1', 'fe80::1'] },
      { name: 'eth1', ips: ['10.2.2.2'] },
    ],
  }
  async function reported(body: Json, by: Tenant = tenant): Promise<string> {
    const { id } = await server(body, by)
    const agent_id = await agentOn(id, 'enrolled-name', by)
    await collector.call('POST', '/inventory', {
      items: [{ agent_id, company_id: by.companyId, server_id: id, reported_at: '2026-05-01T00:00:00Z', facts }],
    })
    return id
  }
  const inventory = async (id: string) => (await tenant.call('GET', `/servers/${id}/inventory`)).body.data

  test('[HSV-021] [HSV-027] [HSV-028] [HSV-029] [HSV-030] [HSV-031] [HSV-032] [HSV-033] [HSV-034] differences are shown field by field, and nothing is rewritten', async () => {
    const id = await reported({
      operating_system: 'Ubuntu',
      cpu_cores: 8,
      memory_mb: 8192,
      disk_gb: 50,
      ip_address: '10.9.9.9',
      hostname: 'old',
    })
    const found = new Map(
      (await inventory(id)).differences.map((item: Json) => [item.field, [item.server_value, item.inventory_value]]),
    )
    expect(Object.fromEntries(found)).toEqual({
      operating_system: ['Ubuntu', 'Debian'],
      cpu_cores: [8, 4],
      memory_mb: [8192, 16_384],
      disk_gb: [50, 100],
      ip_address: ['10.9.9.9', ['10.1.1.1', 'fe80::1', '10.2.2.2']],
      hostname: ['old', 'enrolled-name'],
    })
    expect((await tenant.call('GET', `/servers/${id}`)).body.data).toMatchObject({
      operating_system: 'Ubuntu',
      cpu_cores: 8,
    })
    const blind = await hub.user(tenant.companyId, ['servers.view'])
    expect((await blind.call('GET', `/servers/${id}/inventory`)).status).toBe(403)
  })

  test('[HSV-031] [HSV-032] [HSV-033] sizes within 5% and any of its addresses count as equal', async () => {
    const id = await reported({
      operating_system: 'Debian',
      cpu_cores: 4,
      memory_mb: 15_600,
      disk_gb: 105,
      ip_address: '10.2.2.2',
      hostname: 'enrolled-name',
    })
    expect((await inventory(id)).differences).toEqual([])
    await tenant.call('PATCH', `/servers/${id}`, { memory_mb: 15_500 })
    expect((await inventory(id)).differences.map((item: Json) => item.field)).toEqual(['memory_mb'])
  })

  test('[HSV-022] [HSV-035] [HSV-036] [AUD-006] selected fields are applied and audited, others stay', async () => {
    const id = await reported({ operating_system: 'Ubuntu', cpu_cores: 8, ip_address: '10.9.9.9' })
    const apply = (body: Json, by: Omit<Tenant, 'companyId'> = tenant) =>
      by.call('POST', `/servers/${id}/inventory/apply`, body)
    const viewer = await hub.user(tenant.companyId, ['monitoring.view', 'servers.view'])
    expect((await apply({ fields: ['cpu_cores'] }, viewer)).status).toBe(403)
    const { body } = await apply({ fields: ['cpu_cores', 'ip_address'], values: { ip_address: '10.2.2.2' } })
    expect(body.applied).toEqual(['cpu_cores', 'ip_address'])
    expect(body.data).toMatchObject({ cpu_cores: 4, ip_address: '10.2.2.2', operating_system: 'Ubuntu' })
    const [entry] = (await tenant.call('GET', `/audit-log/subjects/server/${id}`)).body.data
    expect(entry).toMatchObject({ action: 'inventory.apply', changes: { cpu_cores: { old: 8, new: 4 } } })
    expect((await apply({ fields: ['nope'] })).status).toBe(422)
    expect((await apply({ fields: ['ip_address'], values: { ip_address: '1.2.3.4' } })).status).toBe(422)
    expect((await apply({ fields: ['ip_address'] })).body.data.ip_address).toBe('10.1.1.1')
  })

  test('[HSV-037] for a server of IaC origin differences are shown and applying is refused', async () => {
    const id = await reported({ cpu_cores: 8 })
    await hub.hub.database.client`update servers set origin = 'iac' where id = ${id}`
    expect((await inventory(id)).origin).toBe('iac')
    expect((await inventory(id)).differences.length).toBeGreaterThan(0)
    expect((await tenant.call('POST', `/servers/${id}/inventory/apply`, { fields: ['cpu_cores'] })).status).toBe(422)
    expect((await tenant.call('GET', `/servers/${id}`)).body.data.cpu_cores).toBe(8)
  })
})

describe('overview', () => {
  test('[HST-005] counts come from the records of the hub, online counts from the collector', async () => {
    const own = await hub.tenant()
    const { id } = await server({}, own)
    await agentOn(id, id, own)
    admin.answer = asked =>
      asked.path === `/companies/${own.companyId}/summary`
        ? { status: 200, body: { data: { agents_total: 3, online: 1, offline: 2 } } }
        : { status: 200, body: { data: {} } }
    const { body } = await own.call('GET', '/monitoring/overview')
    expect(body).toMatchObject({
      data: {
        servers: { total: 1 },
        agents: { total: 1, online: 1, offline: 0, pending: 0 },
        alerts: { active: 0 },
        groups_open: 0,
      },
      collector: { available: true, reason: null },
    })
    const blind = await hub.user(own.companyId, ['servers.view'])
    expect((await blind.call('GET', '/monitoring/overview')).status).toBe(403)
  })
})
