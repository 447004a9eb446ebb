// The hub is what is asked for the truth: a collector that has lost everything gets it back from here, and what the
// tables hold is the life of things, never their samples.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { purgeCompany } from '../../apps/hub/companies/companies.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { alertEvent, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

const make = async (path: string, body: Json): Promise<Json> => {
  const answer = await tenant.call('POST', path, body)
  expect(answer.status).toBe(201)
  return answer.body
}
const feed = async (name: string, path = name): Promise<Json[]> =>
  (await collector.call('GET', `/${path}?since=0&limit=500`)).body.data[name]

test('[HUB-001] servers, licences, agents, rules, silences and checks are in the hub, and a collector that starts from nothing gets them', async () => {
  const server = (await make('/servers', { name: 'web-1', hostname: 'web-1', tags: ['web'], datacenter: 'fra' })).data
  const { token } = await make('/monitoring/licenses', { name: 'web' })
  const enrolled = (
    await collector.call('POST', '/enroll', { license: token, hostname: 'web-1', machine_id: randomUUID() })
  ).body.data
  const scope = { tags: ['web'] }
  const rule = (
    await make('/monitoring/rules', {
      name: 'cpu',
      scope,
      severity: 'warning',
      metric: 'cpu_load1',
      operator: '>',
      threshold: 4,
    })
  ).data
  const silence = (
    await make('/monitoring/silences', {
      scope,
      reason: 'work',
      ends_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
  ).data
  const check = (
    await make('/monitoring/checks', { name: 'ssh', scope, type: 'port', target: { port: 22, proto: 'tcp' } })
  ).data
  const find = (list: Json[], id: string) => list.find(record => record.id === id)
  expect((await feed('agents')).find(record => record.agent_id === enrolled.agent_id)).toMatchObject({
    server_id: server.id,
    company_id: tenant.companyId,
    state: 'active',
    datacenter: 'fra',
  })
  expect(find(await feed('rules'), rule.id)).toMatchObject({ threshold: 4, resolved_server_ids: [server.id] })
  expect(find(await feed('silences'), silence.id)).toMatchObject({ scope: { resolved_server_ids: [server.id] } })
  expect(find(await feed('checks'), check.id)).toMatchObject({ target: { port: 22, proto: 'tcp' } })
  expect((await feed('servers', 'servers/attributes')).find(record => record.server_id === server.id)).toMatchObject({
    tags: ['web'],
  })
  // And what an alert went through stays, though no collector remembers it.
  const event = (seq: number, type: string) => ({
    event_id: randomUUID(),
    type,
    seq,
    occurred_at: new Date().toISOString(),
    company_id: tenant.companyId,
    server_id: server.id,
    rule_id: rule.id,
    rule_version: 1,
    series_key: 'cpu_load1',
    severity: 'warning',
    value: seq,
    threshold: 4,
    suppressed: false,
    labels: {},
  })
  await collector.call('POST', '/events', { events: [event(5, 'alert.opened'), event(6, 'alert.resolved')] })
  const [alert] = (await tenant.call('GET', `/monitoring/alerts?server_id=${server.id}`)).body.data
  expect([alert.state, alert.rule.id, alert.event_count]).toEqual(['resolved', rule.id, 2])
})

test('[HAL-003] however much is told of an alert, its row stays one, with the last value and the worst, and no samples', async () => {
  const server = (await make('/servers', { name: 'db-1' })).data
  const ruleId = randomUUID()
  const events = Array.from({ length: 150 }, (_, n) => ({
    event_id: randomUUID(),
    type: n === 0 ? 'alert.opened' : 'alert.reminder',
    seq: n + 1,
    occurred_at: new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString(),
    company_id: tenant.companyId,
    server_id: server.id,
    rule_id: ruleId,
    rule_version: 1,
    series_key: 'mem_used_percent',
    severity: 'critical',
    value: 90 + (n % 7),
    threshold: 90,
    suppressed: false,
    labels: {},
  }))
  await collector.call('POST', '/events', { events })
  const { client } = hub.hub.database
  const rows =
    await client`select *, pg_column_size(a.*) as bytes from monitoring_alerts a where server_id = ${server.id}`
  expect([rows.length, rows[0]?.event_count, rows[0]?.last_value]).toEqual([1, 150, 90 + (149 % 7)])
  expect(rows[0]?.bytes).toBeLessThan(600)
  const tables = await client`
    select table_name from information_schema.columns
    where table_schema = 'public' and (column_name like '%sample%' or table_name like '%sample%' or table_name like '%metric%')`
  expect([...tables]).toEqual([])
})

test('[HST-006] the two fields of the second revision came on top: without them the answer is that of the first', async () => {
  const { body } = await collector.call('GET', `/settings/${tenant.companyId}`)
  const { metrics_retention_previous_days, metrics_retention_grace_until, ...first } = body.data
  expect([metrics_retention_previous_days, metrics_retention_grace_until]).toEqual([null, null])
  expect(first).toEqual({
    company_id: tenant.companyId,
    group_down_min: null,
    group_down_ratio: null,
    group_down_window_seconds: null,
    metrics_retention_days: null,
  })
})

test('alerts and events go with their server, also events that no alert has, and with their company', async () => {
  const own = await hub.tenant()
  const { client, db } = hub.hub.database
  const serverIds = await Promise.all(
    ['a', 'b', 'c'].map(async name => (await own.call('POST', '/servers', { name })).body.data.id as string),
  )
  const rowsOf = async () => {
    const [row] = await client`
      select (select count(*)::int from monitoring_alerts where company_id = ${own.companyId}) as alerts,
        (select count(*)::int from monitoring_alert_events where company_id = ${own.companyId}) as events,
        (select count(*)::int from monitoring_event_seqs where server_id = any(${serverIds}::uuid[])) as seqs`
    return [row?.alerts, row?.events, row?.seqs]
  }
  const events = serverIds.flatMap(id => [
    alertEvent(own, id, 'alert.opened'),
    alertEvent(own, id, 'alert.reminder'),
    // Flapping that ends without an alert is only logged.
    alertEvent(own, id, 'alert.flapping', { series_key: 'mem_used_percent', reason: 'exited' }),
  ])
  expect((await collector.call('POST', '/events', { events })).body.data.rejected).toEqual([])
  await notificationsIdle(hub)
  expect(
    await client`select 1 from monitoring_alert_events where company_id = ${own.companyId} and alert_id is null`,
  ).toHaveLength(3)
  expect(await rowsOf()).toEqual([3, 9, 6])
  expect((await own.call('DELETE', `/servers/${serverIds[0]}`)).status).toBe(204)
  expect(await rowsOf()).toEqual([3, 9, 6])
  expect((await own.call('DELETE', `/servers/${serverIds[0]}/permanent`)).status).toBe(204)
  expect(await rowsOf()).toEqual([2, 6, 4])
  await inTransaction(db, tx => purgeCompany(hub.hub, tx, own.companyId))
  expect(await rowsOf()).toEqual([0, 0, 0])
})
