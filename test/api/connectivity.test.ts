// Online, down and unknown: the same word for a server in the list, the counts, the agents and the live page.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { packValues } from '../../core/admin-api/values.ts'
import { logIn, newPerson, serversOf } from '../web/visitor.ts'
import { AdminListener } from './admin-listener.ts'
import { alertEvent } from './alert-event.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let admin: AdminListener
let collector: Awaited<ReturnType<TestHub['collector']>>
beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'collector.timeout': '2s' })
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
})
afterAll(async () => {
  await hub.stop()
  await admin.stop()
})

/** What the collector's summary says is online; null: its answers say nothing. */
const hears = (online: number | null) => {
  admin.answer = ({ path }) =>
    online !== null && path.endsWith('/summary')
      ? { status: 200, body: { data: { agents_total: online, online, offline: 0 } } }
      : { status: 200, body: { data: {} } }
}

type Server = { readonly serverId: string; readonly agentId: string }

/** A server with an agent that was seen so long ago, or never. */
async function server(by: Tenant, name: string, seenSecondsAgo: number | null): Promise<Server> {
  const serverId = (await by.call('POST', '/servers', { name })).body.data.id
  const { token } = (await by.call('POST', '/monitoring/licenses', { name, server_id: serverId })).body
  const body = { license: token, hostname: name, machine_id: serverId, collector_id: collector.id }
  const agentId = (await collector.call('POST', '/enroll', body)).body.data.agent_id
  if (seenSecondsAgo !== null) {
    const last_seen_at = new Date(Date.now() - seenSecondsAgo * 1000).toISOString()
    await collector.call('POST', '/agents/seen', { agents: [{ agent_id: agentId, last_seen_at }] })
  }
  return { serverId, agentId }
}

const overviewOf = async (by: Tenant): Promise<Json> => (await by.call('GET', '/monitoring/overview')).body.data

test('[HAG-004] [HSV-007] the records give one answer: in the list, the agents, the counts and the live page', async () => {
  hears(null)
  const own = await hub.tenant()
  await server(own, 'a-reports', 10)
  await server(own, 'b-silent', 400)
  const lost = await server(own, 'c-lost', 10)
  await server(own, 'd-new', null)
  const pending = await server(own, 'e-pending', 10)
  await own.call('POST', '/servers', { name: 'f-bare' })
  await hub.hub.database.client`update monitoring_agents set state = 'pending' where id = ${pending.agentId}`
  const down = alertEvent(own, lost.serverId, 'agent.down', {
    series_key: `agent:${lost.agentId}`,
    rule_id: 'agent_down',
    severity: 'critical',
    labels: { agent_id: lost.agentId },
  })
  expect((await collector.call('POST', '/events', { events: [down] })).body.data.rejected).toEqual([])

  const listed = (await own.call('GET', '/servers?include=health')).body.data
  expect(listed.map((row: Json) => [row.name, row.health.connectivity])).toEqual([
    ['a-reports', 'online'],
    ['b-silent', 'down'],
    ['c-lost', 'down'],
    ['d-new', 'unknown'],
    ['e-pending', 'unknown'],
    ['f-bare', 'unknown'],
  ])
  const namesOf = async (query: string) =>
    (await own.call('GET', `/monitoring/agents${query}`)).body.data.map((row: Json) => row.hostname).sort()
  expect(await namesOf('?online=1')).toEqual(['a-reports'])
  expect(await namesOf('?online=0')).toEqual(['b-silent', 'c-lost', 'd-new', 'e-pending'])
  const agents = (await own.call('GET', '/monitoring/agents')).body.data
  expect(agents.filter((row: Json) => row.online).map((row: Json) => row.hostname)).toEqual(['a-reports'])
  expect(await overviewOf(own)).toMatchObject({
    servers: { total: 6, online: 1, down: 2, unknown: 3 },
    agents: { total: 5, online: 1, offline: 3, pending: 1 },
  })
  const session = await logIn(hub.url, (await newPerson(hub, own.companyId)).email)
  const shown = await serversOf(hub.url, session)
  expect(shown.counts).toMatchObject({ all: 6, online: 1, down: 2, unknown: 3 })
  expect(shown.rows.map(server => server.connectivity)).toEqual(listed.map((row: Json) => row.health.connectivity))
}, 120_000)

test('[HST-005] what the collector hears moves servers and agents alike: the counts of one page agree', async () => {
  const f = async (by: Tenant, heard: number | null, servers: Json, agents: Json) => {
    hears(heard)
    expect([heard, await overviewOf(by)]).toMatchObject([heard, { servers, agents }])
  }
  // A fresh site: the agent sends, and the records follow within a minute.
  const fresh = await hub.tenant()
  await server(fresh, 'new', null)
  const one = { total: 1, online: 1, down: 0, unknown: 0 }
  await f(fresh, 1, one, { total: 1, online: 1, offline: 0, pending: 0 })
  await f(fresh, 9, one, { total: 1, online: 1, offline: 0, pending: 0 })
  await f(fresh, 0, { total: 1, online: 0, down: 0, unknown: 1 }, { total: 1, online: 0, offline: 1, pending: 0 })
  await f(fresh, null, { total: 1, online: 0, down: 0, unknown: 1 }, { total: 1, online: 0, offline: 1, pending: 0 })

  const own = await hub.tenant()
  await server(own, 'reports', 10)
  await server(own, 'silent', 400)
  await server(own, 'new', null)
  await own.call('POST', '/servers', { name: 'bare' })
  const agents = (online: number) => ({ total: 3, online, offline: 3 - online, pending: 0 })
  await f(own, 0, { total: 4, online: 0, down: 1, unknown: 3 }, agents(0))
  await f(own, 1, { total: 4, online: 1, down: 1, unknown: 2 }, agents(1))
  await f(own, 2, { total: 4, online: 2, down: 1, unknown: 1 }, agents(2))
  await f(own, 3, { total: 4, online: 3, down: 0, unknown: 1 }, agents(3))
  await f(own, null, { total: 4, online: 1, down: 1, unknown: 2 }, agents(1))
}, 120_000)

test('values of a company come from every collector that its agents report to; what cannot be read is missing, and said', async () => {
  const own = await hub.tenant()
  const one = await server(own, 'one', 10)
  const columns = (value: number) => ({ server_ids: [one.serverId], values: [value], ts_ms: [value], labels: [{}] })
  let second: Json = { data: columns(7) }
  const other = new AdminListener()
  other.answer = () => ({ status: 200, body: second })
  const { id } = await hub.collector(other.url)
  const two = await server(own, 'two', 10)
  await hub.hub.database.client`update monitoring_agents set collector_id = ${id} where id = ${two.agentId}`
  admin.answer = ({ path, query }) => {
    expect([path, query.get('metric')]).toEqual([`/companies/${own.companyId}/values`, 'cpu_load1'])
    return { status: 200, body: { data: columns(3) } }
  }
  const values = () => hub.hub.collectors.valuesOfCompany(own.companyId, 'cpu_load1')
  const packed = (value: number) => packValues(columns(value))
  expect(await values()).toEqual({ ...packed(7), isWhole: true })
  second = { data: { ...columns(7), truncated: true } }
  expect(await values()).toEqual({ ...packed(7), isWhole: false })
  second = { data: {} }
  expect(await values()).toMatchObject({ values: [3], isWhole: false })
  admin.answer = () => ({ status: 200, body: { data: {} } })
  expect(await values()).toBe(null)
  await other.stop()
})
