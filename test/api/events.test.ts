import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { migrateDatabase, migrations } from '../../apps/hub/platform/db/migrate.ts'
import { installQueues } from '../../apps/hub/platform/jobs/job-store.ts'
import { newDatabase } from '../support/postgres.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

type Collector = Awaited<ReturnType<TestHub['collector']>>
let hub: TestHub
let tenant: Tenant
let collector: Collector

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

let names = 0
const newServer = async (by: Tenant = tenant): Promise<string> =>
  (await by.call('POST', '/servers', { name: `s${++names}`, hostname: `s${names}` })).body.data.id
async function newAgent(serverId: string, by: Tenant = tenant): Promise<string> {
  const { token } = (await by.call('POST', '/monitoring/licenses', { name: 'x', server_id: serverId })).body
  const body = { license: token, hostname: serverId, machine_id: serverId }
  return (await collector.call('POST', '/enroll', body)).body.data.agent_id
}
const ruleOf = async (metric: string, by: Tenant = tenant): Promise<Json> =>
  (await by.call('GET', `/monitoring/rules?metric=${metric}`)).body.data[0]

let seqs = 1000
const event = (type: string, server_id: string, more: Json = {}): Json => ({
  event_id: crypto.randomUUID(),
  type,
  seq: ++seqs,
  occurred_at: '2026-06-01T12:00:00Z',
  company_id: tenant.companyId,
  server_id,
  rule_id: more.rule_id ?? '11111111-1111-4111-8111-111111111111',
  rule_version: 1,
  series_key: 'cpu_usage_percent',
  severity: 'warning',
  value: 95,
  threshold: 90,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
  ...more,
})
const agentEvent = (type: 'agent.down' | 'agent.up', serverId: string, agentId: string, more: Json = {}) =>
  event(type, serverId, {
    rule_id: 'agent_down',
    series_key: `agent:${agentId}`,
    severity: 'critical',
    labels: { agent_id: agentId, hostname: 'x' },
    value: 120,
    ...more,
  })
const groupEvent = (type: string, anchor: string, members: string[], more: Json = {}) =>
  event(type, anchor, {
    rule_id: 'group_down',
    series_key: 'subnet:n1',
    group_key: 'subnet:n1',
    severity: 'critical',
    value: members.length,
    threshold: 5,
    member_server_ids: members,
    group_total: 10,
    ...more,
  })
const send = async (...events: Json[]) => (await collector.call('POST', '/events', { events })).body.data
const alertsOf = async (serverId: string, query = '', by: Tenant = tenant): Promise<Json[]> =>
  (await by.call('GET', `/monitoring/alerts?server_id=${serverId}${query}`)).body.data
const only = async (serverId: string): Promise<Json> => {
  const list = await alertsOf(serverId)
  expect(list).toHaveLength(1)
  return list[0]
}
const show = async (id: string): Promise<Json> => (await tenant.call('GET', `/monitoring/alerts/${id}`)).body.data

describe('intake', () => {
  test('[COL-038] [COL-040] [COL-041] [COL-044] [HAL-035] good events are accepted beside bad ones, which are rejected with reasons', async () => {
    const server = await newServer()
    const good = event('alert.opened', server)
    const unknown = event('alert.opened', crypto.randomUUID())
    const foreign = event('alert.opened', await newServer(await hub.tenant()))
    const odd = event('agent.seen_snapshot', server)
    const broken = event('alert.opened', server, { seq: 'x' })
    const { accepted, rejected } = await send(good, unknown, foreign, odd, broken)
    expect(accepted).toEqual([good.event_id])
    expect(rejected.map((item: Json) => [item.event_id, item.reason])).toEqual([
      [unknown.event_id, 'unknown_server'],
      [foreign.event_id, 'unknown_server'],
      [odd.event_id, 'unsupported_type'],
      [broken.event_id, 'invalid_payload'],
    ])
    expect(await alertsOf(server)).toHaveLength(1)
  })

  test('[COL-039] a batch of 201, an empty one, none, and one with an event without id are refused as a whole', async () => {
    const server = await newServer()
    const batches = [
      { events: Array.from({ length: 201 }, () => event('alert.opened', server)) },
      { events: [] },
      {},
      { events: [{ ...event('alert.opened', server), event_id: undefined }] },
    ]
    for (const body of batches) expect((await collector.call('POST', '/events', body)).status).toBe(422)
    expect(await alertsOf(server)).toEqual([])
    const full = Array.from({ length: 200 }, (_, n) =>
      event('alert.opened', server, { series_key: `disk_used_percent{mount="/${n}"}` }),
    )
    expect((await send(...full)).accepted).toHaveLength(200)
  })

  test('[HAL-032] [HAL-034] [HAL-053] the same batch twice leaves one set of alerts and events, and is accepted twice', async () => {
    const server = await newServer()
    const batch = [event('alert.opened', server), event('alert.reminder', server)]
    const [first, second] = [await send(...batch), await send(...batch)]
    expect(second).toEqual(first)
    const alert = await only(server)
    expect(alert.event_count).toBe(2)
    expect((await tenant.call('GET', `/monitoring/alerts/${alert.id}/events`)).body.meta.total).toBe(2)
  })

  test('[HAL-032] an event_id that was seen is dropped although its seq and its key are new; the others of its batch are applied once', async () => {
    const server = await newServer()
    const first = event('alert.opened', server)
    await send(first)
    const again = event('alert.opened', server, { event_id: first.event_id, series_key: 'cpu_load1' })
    const fresh = event('alert.opened', server, { series_key: 'cpu_load5' })
    const { accepted, rejected } = await send(again, fresh)
    expect([accepted, rejected]).toEqual([[first.event_id, fresh.event_id], []])
    const alerts = await alertsOf(server)
    expect(alerts.map(alert => [alert.series_key, alert.event_count]).sort()).toEqual([
      ['cpu_load5', 1],
      ['cpu_usage_percent', 1],
    ])
    // Its key is not processed up to a seq that was dropped.
    await send(event('alert.opened', server, { series_key: 'cpu_load1', seq: again.seq }))
    expect(await alertsOf(server)).toHaveLength(3)
  })

  test('[HAL-033] [HAL-006] an event whose seq is not greater than the processed one is dropped and accepted', async () => {
    const server = await newServer()
    await send(event('alert.opened', server, { seq: 500 }))
    const stale = [
      event('alert.resolved', server, { seq: 500, reason: 'recovered' }),
      event('alert.resolved', server, { seq: 499 }),
    ]
    expect((await send(...stale)).accepted).toHaveLength(2)
    expect((await only(server)).state).toBe('open')
    await send(event('alert.resolved', server, { seq: 501, reason: 'recovered' }))
    expect((await only(server)).state).toBe('resolved')
  })

  test('[COL-042] [COL-043] events of a deleted server or a purged company are unknown_server, never an error', async () => {
    const server = await newServer()
    await tenant.call('DELETE', `/servers/${server}`)
    expect((await send(event('alert.opened', server))).rejected[0].reason).toBe('unknown_server')
    const gone = event('alert.opened', crypto.randomUUID(), { company_id: crypto.randomUUID() })
    const { status, body } = await collector.call('POST', '/events', { events: [gone] })
    expect([status, body.data.rejected[0].reason]).toEqual([200, 'unknown_server'])
  })
})

describe('rule alerts', () => {
  test('[HAL-001] [HAL-002] [HAL-037] [HAL-051] [HAL-052] alert.opened creates an open alert with the values of the event', async () => {
    const server = await newServer()
    const rule = await ruleOf('cpu_usage_percent')
    const opened = event('alert.opened', server, { rule_id: rule.id, labels: { a: 'b' } })
    await send(opened)
    expect(await only(server)).toMatchObject({
      company_id: tenant.companyId,
      type: 'threshold',
      state: 'open',
      rule: { id: rule.id, name: 'High CPU', kind: 'threshold' },
      agent_id: null,
      group_id: null,
      series_key: 'cpu_usage_percent',
      labels: { a: 'b' },
      severity: 'warning',
      opened_at: '2026-06-01T12:00:00.000Z',
      resolved_at: null,
      last_value: 95,
      threshold: 90,
      suppressed: false,
      event_count: 1,
      last_event_seq: opened.seq,
    })
  })

  test('[HAL-037] a second opening merges into the active alert', async () => {
    const server = await newServer()
    await send(event('alert.opened', server))
    await send(event('alert.opened', server, { value: 99, severity: 'critical' }))
    expect(await only(server)).toMatchObject({ state: 'open', last_value: 99, severity: 'critical', event_count: 2 })
  })

  test('[HAL-038] [HAL-041] [HAL-005] alert.resolved ends open and acknowledged alerts; the log keeps every event', async () => {
    const server = await newServer()
    await send(event('alert.opened', server))
    const { id } = await only(server)
    await tenant.call('POST', `/monitoring/alerts/${id}/acknowledge`)
    const end = event('alert.resolved', server, {
      occurred_at: '2026-06-01T12:30:00Z',
      reason: 'recovered',
      peak_value: 99,
      duration_seconds: 1800,
    })
    await send(end)
    expect(await show(id)).toMatchObject({
      state: 'resolved',
      resolved_at: '2026-06-01T12:30:00.000Z',
      resolved_reason: 'recovered',
      peak_value: 99,
    })
    const log = (await tenant.call('GET', `/monitoring/alerts/${id}/events`)).body.data
    expect(log.map((item: Json) => item.type)).toEqual(['alert.resolved', 'alert.opened'])
    expect(log[0]).toMatchObject({
      alert_id: id,
      event_id: end.event_id,
      seq: end.seq,
      payload: { duration_seconds: 1800 },
    })
  })

  test('[HAL-049] a reminder for a lost alert opens it again, or makes one', async () => {
    const [known, unknown] = [await newServer(), await newServer()]
    await send(event('alert.opened', known), event('alert.resolved', known, { reason: 'recovered' }))
    const before = await only(known)
    await send(
      event('alert.reminder', known),
      event('alert.reminder', unknown, { occurred_at: '2026-06-02T00:00:00Z' }),
    )
    expect(await only(known)).toMatchObject({ id: before.id, state: 'open', resolved_at: null, resolved_reason: null })
    expect(await only(unknown)).toMatchObject({ state: 'open', opened_at: '2026-06-02T00:00:00.000Z' })
  })

  test('[HAL-049] an alert that opens again waits for somebody to acknowledge it anew', async () => {
    const server = await newServer()
    await send(event('alert.opened', server))
    const { id } = await only(server)
    await tenant.call('POST', `/monitoring/alerts/${id}/acknowledge`)
    await send(event('alert.resolved', server, { reason: 'recovered' }))
    expect((await show(id)).acknowledged_by).not.toBeNull()
    await send(event('alert.reminder', server))
    expect(await show(id)).toMatchObject({ state: 'open', acknowledged_by: null, acknowledged_at: null })
  })

  test('[HAL-030] after a manual close reminders and the recovery are only logged; the next opening makes a new alert', async () => {
    const server = await newServer()
    await send(event('alert.opened', server))
    const { id } = await only(server)
    await tenant.call('POST', `/monitoring/alerts/${id}/close`)
    await send(event('alert.reminder', server), event('alert.resolved', server, { reason: 'recovered' }))
    expect(await show(id)).toMatchObject({ state: 'closed', resolved_at: null })
    expect((await tenant.call('GET', `/monitoring/alerts/${id}/events`)).body.meta.total).toBe(3)
    await send(event('alert.opened', server, { occurred_at: '2026-06-03T00:00:00Z' }))
    expect((await alertsOf(server)).map(alert => alert.state)).toEqual(['open', 'closed'])
  })

  test('[HAL-042] [HAL-043] flapping keeps the alert open until a resolved accompanies the exit', async () => {
    const server = await newServer()
    await send(event('alert.opened', server), event('alert.flapping', server, { reason: 'entered', transitions: 4 }))
    expect(await only(server)).toMatchObject({ state: 'open', flapping: true })
    await send(event('alert.flapping', server, { reason: 'exited', transitions: 9 }))
    expect(await only(server)).toMatchObject({ state: 'open', flapping: false })
    await send(event('alert.flapping', server, { reason: 'entered', transitions: 4 }))
    await send(
      event('alert.flapping', server, { reason: 'exited', transitions: 2 }),
      event('alert.resolved', server, { reason: 'recovered' }),
    )
    expect(await only(server)).toMatchObject({ state: 'resolved', flapping: false })
    const late = await newServer()
    await send(event('alert.flapping', late, { reason: 'entered', transitions: 4 }))
    expect(await only(late)).toMatchObject({ state: 'open', flapping: true })
  })

  test('[HAL-050] a suppressed event is stored; the flag follows the latest event', async () => {
    const server = await newServer()
    await send(event('alert.opened', server, { suppressed: true, suppress_reason: 'silence' }))
    expect(await only(server)).toMatchObject({ state: 'open', suppressed: true, suppress_reason: 'silence' })
    await send(event('alert.reminder', server))
    expect(await only(server)).toMatchObject({ suppressed: false, suppress_reason: null })
  })
})

describe('agents and groups', () => {
  test('[HAL-039] [HAL-040] [HAG-004] agent.down opens an alert for the agent, agent.up ends it', async () => {
    const server = await newServer()
    const agentId = await newAgent(server)
    await collector.call('POST', '/agents/seen', {
      agents: [{ agent_id: agentId, last_seen_at: new Date().toISOString() }],
    })
    const online = async () => (await tenant.call('GET', `/monitoring/agents/${agentId}`)).body.data.online
    expect(await online()).toBe(true)
    await send(agentEvent('agent.down', server, agentId))
    expect(await only(server)).toMatchObject({
      type: 'agent_down',
      state: 'open',
      severity: 'critical',
      agent_id: agentId,
      series_key: `agent:${agentId}`,
    })
    expect(await online()).toBe(false)
    await send(agentEvent('agent.up', server, agentId, { duration_seconds: 60, value: 0 }))
    expect(await only(server)).toMatchObject({ state: 'resolved' })
    expect(await online()).toBe(true)
  })

  test("[HRL-019] agent.down takes its severity from the company's rule; a disabled rule opens nothing", async () => {
    const own = await hub.tenant()
    const rule = (await own.call('GET', '/monitoring/rules?kind=agent_down')).body.data[0]
    const [first, second] = [await newServer(own), await newServer(own)]
    const down = (serverId: string) =>
      agentEvent('agent.down', serverId, crypto.randomUUID(), { company_id: own.companyId })
    await own.call('PATCH', `/monitoring/rules/${rule.id}`, { severity: 'info' })
    await send(down(first))
    expect((await alertsOf(first, '', own))[0]).toMatchObject({
      severity: 'info',
      rule: { id: rule.id, kind: 'agent_down' },
    })
    await own.call('POST', `/monitoring/rules/${rule.id}/disable`)
    expect((await send(down(second))).accepted).toHaveLength(1)
    expect(await alertsOf(second, '', own)).toEqual([])
  })

  test('[HAL-004] [HAL-044] [HAL-045] [HAL-046] [HAL-047] [HAL-048] a wide-area incident groups its members, before and after', async () => {
    const servers = await Promise.all([newServer(), newServer(), newServer(), newServer()])
    const [a, b, c, d] = servers as [string, string, string, string]
    const agentIds = new Map(servers.map(id => [id, crypto.randomUUID()]))
    const down = (id: string) => agentEvent('agent.down', id, agentIds.get(id)!)
    const up = (id: string) => agentEvent('agent.up', id, agentIds.get(id)!, { value: 0 })
    await send(down(a), down(b))
    await send(groupEvent('group_down', a, [a, b, c]))
    const group = (await alertsOf(a)).find(alert => alert.type === 'group_down')
    expect(group).toMatchObject({
      state: 'open',
      series_key: 'subnet:n1',
      rule: null,
      group: { key: 'subnet:n1', total: 10, member_server_ids: [a, b, c] },
    })
    await send(down(c))
    const child = async (id: string) => (await alertsOf(id)).find(alert => alert.type === 'agent_down')
    for (const id of [a, b, c]) expect(await child(id)).toMatchObject({ state: 'grouped', group_id: group.id })
    expect((await tenant.call('GET', `/monitoring/alerts/${group.id}/children`)).body.meta.total).toBe(3)
    await send(down(d))
    expect(await child(d)).toMatchObject({ state: 'open' })
    await send(groupEvent('group_update', a, [a, b, c, d]))
    expect(await child(d)).toMatchObject({ state: 'grouped' })
    expect((await show(group.id)).group.member_server_ids).toEqual([a, b, c, d])
    await send(up(b))
    expect(await child(b)).toMatchObject({ state: 'resolved', resolved_reason: 'recovered' })
    await send(groupEvent('group_resolved', a, [], { reason: 'recovered', duration_seconds: 60, value: 0 }))
    expect(await show(group.id)).toMatchObject({ state: 'resolved', resolved_reason: 'recovered' })
    expect(await child(c)).toMatchObject({ state: 'resolved', resolved_reason: 'group_resolved' })
  })

  test('[HAL-023] [HAL-031] a grouped alert can be neither acknowledged nor closed; a closed group gives its children back', async () => {
    const [a, b] = [await newServer(), await newServer()]
    const down = (id: string) => agentEvent('agent.down', id, crypto.randomUUID())
    await send(
      groupEvent('group_down', a, [a, b], { series_key: 'subnet:n2', group_key: 'subnet:n2' }),
      down(a),
      down(b),
    )
    const list = await alertsOf(a)
    const group = list.find(alert => alert.type === 'group_down')
    const child = list.find(alert => alert.type === 'agent_down')
    for (const action of ['acknowledge', 'close']) {
      const { status, body } = await tenant.call('POST', `/monitoring/alerts/${child.id}/${action}`)
      expect([status, Object.keys(body.errors)]).toEqual([422, ['state']])
    }
    expect((await show(child.id)).state).toBe('grouped')
    expect((await tenant.call('POST', `/monitoring/alerts/${group.id}/close`)).status).toBe(200)
    expect(await show(child.id)).toMatchObject({ state: 'open', group_id: null })
  })
})

describe('what users do', () => {
  const opened = async (): Promise<string> => {
    const server = await newServer()
    await send(event('alert.opened', server))
    return (await only(server)).id
  }
  const act = (id: string, action: string, body?: Json, by: Tenant = tenant) =>
    by.call('POST', `/monitoring/alerts/${id}/${action}`, body)

  test('[HAL-018] [HAL-019] [HAL-020] [HAL-024] [HAL-025] [AUD-001] [AUD-003] the first acknowledgement is kept and neither closes nor silences', async () => {
    const id = await opened()
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await viewer.call('POST', `/monitoring/alerts/${id}/acknowledge`)).status).toBe(403)
    const first = await act(id, 'acknowledge', { comment: 'looking' })
    expect([first.status, first.body.data.state, first.body.data.acknowledged_by.id]).toEqual([
      200,
      'acknowledged',
      tenant.userId,
    ])
    const other = await hub.user(tenant.companyId, ['*'])
    const second = await other.call('POST', `/monitoring/alerts/${id}/acknowledge`)
    expect(second.body.data.acknowledged_by.id).toBe(tenant.userId)
    expect(second.body.data.acknowledged_at).toBe(first.body.data.acknowledged_at)
    const { server } = await show(id)
    await send(event('alert.reminder', server.id))
    expect(await show(id)).toMatchObject({ state: 'acknowledged', event_count: 2 })
    const audit = (await tenant.call('GET', `/audit-log/subjects/alert/${id}`)).body.data
    expect(audit.map((entry: Json) => entry.action)).toEqual(['alert.acknowledge'])
  })

  test('[HAL-021] [HAL-022] [HAL-026] [HAL-027] [HAL-028] [HAL-029] [AUD-002] closing ends open and acknowledged alerts and is refused afterwards', async () => {
    const [open, acknowledged, resolved] = [await opened(), await opened(), await opened()]
    await act(acknowledged, 'acknowledge')
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await viewer.call('POST', `/monitoring/alerts/${open}/close`)).status).toBe(403)
    const jobs = async () =>
      (await hub.hub.database.client`select count(*)::int as n from pgboss.job where name like 'collector.%'`)[0]?.n
    const before = await jobs()
    for (const id of [open, acknowledged]) {
      const { status, body } = await act(id, 'close')
      expect([status, body.data.state, body.data.closed_by.id]).toEqual([200, 'closed', tenant.userId])
      for (const action of ['close', 'acknowledge']) expect((await act(id, action)).status).toBe(422)
    }
    expect(await jobs()).toBe(before)
    await send(event('alert.resolved', (await show(resolved)).server.id, { reason: 'recovered' }))
    for (const action of ['close', 'acknowledge'])
      expect((await act(resolved, action)).body.errors.state).toHaveLength(1)
    expect((await show(resolved)).state).toBe('resolved')
    expect((await tenant.call('GET', `/audit-log/subjects/alert/${open}`)).body.data[0].action).toBe('alert.close')
  })

  test("[HAL-054] [HAL-008] [HAL-017] another company's alert is 404, listing needs monitoring.view, nobody creates alerts", async () => {
    const id = await opened()
    const other = await hub.tenant()
    for (const action of ['acknowledge', 'close']) expect((await act(id, action, undefined, other)).status).toBe(404)
    expect((await other.call('GET', `/monitoring/alerts/${id}`)).status).toBe(404)
    const manager = await hub.user(tenant.companyId, ['monitoring.manage'])
    expect((await manager.call('GET', '/monitoring/alerts')).status).toBe(403)
    expect((await tenant.call('POST', '/monitoring/alerts', {})).status).toBe(405)
  })

  test('[HAL-009] [HAL-010] [HAL-011] [HAL-012] [HAL-013] [HAL-014] [HAL-015] [HAL-016] the list is filtered and newest first', async () => {
    const own = await hub.tenant()
    const [a, b] = [await newServer(own), await newServer(own)]
    const agentId = await newAgent(b, own)
    const at = (minute: number) => `2026-07-01T10:${String(minute).padStart(2, '0')}:00Z`
    const batch = Array.from({ length: 18 }, (_, n) =>
      event('alert.opened', n % 2 ? a : b, {
        company_id: own.companyId,
        series_key: `disk_used_percent{mount="/${n}"}`,
        occurred_at: at(n),
        severity: n < 4 ? 'critical' : 'info',
      }),
    )
    await send(...batch)
    const list = async (query = '') => (await own.call('GET', `/monitoring/alerts?${query}`)).body
    const first = await list()
    expect(first.data.map((alert: Json) => alert.opened_at)).toEqual(
      Array.from({ length: 15 }, (_, n) => new Date(at(17 - n)).toISOString()),
    )
    expect((await list('page=2')).data).toHaveLength(3)
    const [x, y, z] = first.data
    await own.call('POST', `/monitoring/alerts/${x.id}/acknowledge`)
    await own.call('POST', `/monitoring/alerts/${y.id}/close`)
    const resolved = batch.find(item => item.series_key === z.series_key)
    await send({ ...resolved, event_id: crypto.randomUUID(), type: 'alert.resolved', seq: ++seqs, reason: 'recovered' })
    const total = async (query: string) => (await list(query)).meta.total
    expect(await total('state=open')).toBe(15)
    expect(await total('state=acknowledged')).toBe(1)
    expect(await total('state=closed')).toBe(1)
    expect(await total('state=resolved')).toBe(1)
    expect(await total('state=active')).toBe(16)
    expect(await total('state=grouped')).toBe(0)
    expect(await total('severity=critical')).toBe(4)
    expect(await total(`server_id=${a}`)).toBe(9)
    expect(await total(`agent_id=${agentId}`)).toBe(9)
    expect(await total(`opened_from=${at(3)}&opened_to=${at(5)}`)).toBe(3)
    expect(await total('opened_from=2026-07-01T17:05:00%2B07:00&opened_to=2026-07-01T10:05:00Z')).toBe(1)
    for (const bad of ['state=nope', 'severity=nope', 'server_id=x', 'opened_from=yesterday'])
      expect((await own.call('GET', `/monitoring/alerts?${bad}`)).status).toBe(422)
    const columns = await hub.hub.database
      .client`select column_name from information_schema.columns where table_name = 'monitoring_alerts'`
    expect(columns.some(row => /sample|points/.test(row.column_name))).toBe(false)
  })
})

test('an upgrade knows of every key its active alert, else its newest', async () => {
  const database = openDatabase(await newDatabase(), 2)
  try {
    const { client } = database
    await migrateDatabase(client, () => installQueues(database), migrations.slice(0, 12))
    const [company, server] = [crypto.randomUUID(), crypto.randomUUID()]
    await client`insert into companies (id, name, slug) values (${company}, 'x', 'x')`
    await client`insert into servers (id, company_id, name) values (${server}, ${company}, 'x')`
    const alert = async (series: string, state: string, openedAt: string): Promise<string> => {
      const id = crypto.randomUUID()
      await client`
        insert into monitoring_alerts (id, company_id, type, server_id, rule_key, series_key, severity, state, opened_at, last_event_seq)
        values (${id}, ${company}, 'threshold', ${server}, 'r', ${series}, 'info', ${state}, ${openedAt}, 7)`
      return id
    }
    await alert('over', 'resolved', '2026-01-01T00:00:00Z')
    const newest = await alert('over', 'closed', '2026-01-02T00:00:00Z')
    const active = await alert('active', 'acknowledged', '2026-01-01T00:00:00Z')
    await alert('active', 'resolved', '2026-01-02T00:00:00Z')
    await client`insert into monitoring_event_seqs values (${server}, 'r', 'active', 9), (${server}, 'r', 'never', 3)`
    await bringUpToDate(database)
    const rows = await client`select series_key, seq::int, alert_id from monitoring_event_seqs order by series_key`
    expect(rows.map(row => [row.series_key, row.seq, row.alert_id])).toEqual([
      ['active', 9, active],
      ['never', 3, null],
      ['over', 7, newest],
    ])
  } finally {
    await database.close()
  }
})
