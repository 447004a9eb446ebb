// Load balancers over HTTP: pools, members, what may be drained, and states that follow from the hub's own records.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { watchLoadBalancers } from '../../apps/hub/load-balancers/load-balancer-watch.ts'
import { alertEvent } from './alert-event.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
let count = 0

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

async function made(path: string, body: Json): Promise<Json> {
  const answer = await tenant.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const got = async (path: string): Promise<Json> => (await tenant.call('GET', path)).body.data
const faults = async (method: string, path: string, body?: Json): Promise<string[]> => {
  const answer = await tenant.call(method, path, body)
  expect(answer.status).toBe(422)
  return Object.keys(answer.body.errors)
}
const device = (more: Json = {}): Promise<Json> =>
  made('/load-balancers', { name: `lb ${count++}`, vendor: 'haproxy', ...more })
const server = (more: Json = {}): Promise<Json> => made('/servers', { name: `server-${count++}`, ...more })
const at = (of: Json, ...rest: string[]): string => ['/load-balancers', of.id, ...rest].join('/').replace('//', '/')

/** A device with a pool of members `a`, `b`, … and a virtual server that leads to it. */
async function served(members: readonly Json[], more: Json = {}) {
  const of = await device()
  const pool = await made(at(of, 'pools'), { name: 'web', members, ...more })
  const vs = await made(at(of, 'virtual-servers'), { name: 'www', address: '192.0.2.1', port: 80, pool_id: pool.id })
  const path = at(of, 'pools', pool.id)
  const one = (index: number): string => `${path}/members/${pool.members[index].id}`
  return { of, pool, vs, path, one }
}
const address = (last: number, more: Json = {}): Json => ({ address: `10.0.0.${last}`, port: 80, ...more })
const states = async (path: string): Promise<Json> => {
  const { members } = await got(path)
  return Object.fromEntries(members.map((each: Json) => [each.name, [each.effective_state, each.because]]))
}
const auditOf = async (id: string): Promise<Json[]> => (await tenant.call('GET', `/audit-log?subject=${id}`)).body.data

/** An agent of a server that was seen just now. */
async function agentOf(serverId: string): Promise<string> {
  const { token } = (await tenant.call('POST', '/monitoring/licenses', { name: serverId, server_id: serverId })).body
  const body = { license: token, hostname: serverId, machine_id: serverId, collector_id: collector.id }
  const agentId = (await collector.call('POST', '/enroll', body)).body.data.agent_id
  const agents = [{ agent_id: agentId, last_seen_at: new Date().toISOString() }]
  await collector.call('POST', '/agents/seen', { agents })
  return agentId
}
/** Opens or ends the alert that a server's agent is lost. */
async function lost(serverId: string, agentId: string, isDown: boolean): Promise<void> {
  const event = alertEvent(tenant, serverId, isDown ? 'agent.down' : 'agent.up', {
    series_key: `agent:${agentId}`,
    rule_id: 'agent_down',
    severity: 'critical',
    labels: { agent_id: agentId },
    ...(isDown ? {} : { duration_seconds: 60 }),
  })
  const answer = await collector.call('POST', '/events', { events: [event] })
  expect(answer.body.data.rejected).toEqual([])
}

describe('devices', () => {
  test('[RES-058] a device that the hub reads needs the address of its management', async () => {
    expect((await device()).management_url).toBeNull()
    const body = { name: 'read', vendor: 'haproxy', integration: 'haproxy_dataplane' }
    expect(await faults('POST', '/load-balancers', body)).toEqual(['management_url'])
    const url = 'https://user:secret@192.0.2.1/'
    expect(await faults('POST', '/load-balancers', { ...body, management_url: url })).toEqual(['management_url'])
  })

  test('[RES-059] its address must be one that the hub may connect to, its password is never answered', async () => {
    const body = { name: 'private', vendor: 'nginx_plus', integration: 'nginx_plus', password: 'hidden-word' }
    for (const management_url of ['https://10.0.0.1:5555', 'http://169.254.169.254/', 'http://localhost/'])
      expect(await faults('POST', '/load-balancers', { ...body, management_url })).toEqual(['management_url'])
    const of = await made('/load-balancers', { ...body, management_url: 'https://8.8.8.8:5555' })
    expect(of.password_set).toBe(true)
    expect(JSON.stringify([of, await got(at(of)), await auditOf(of.id)])).not.toContain('hidden-word')
  })

  test('[RES-080] a device comes back with its pools, members and virtual servers', async () => {
    const { of, path, pool } = await served([address(1), address(2)])
    await tenant.call('DELETE', `${path}/members/${pool.members[1].id}`)
    const before = await got(at(of, 'status'))
    expect((await tenant.call('DELETE', at(of))).status).toBe(204)
    for (const part of ['', 'pools', 'virtual-servers', `pools/${pool.id}`, `pools/${pool.id}/members`])
      expect((await tenant.call('GET', at(of, part).replace(/\/$/, ''))).status).toBe(404)
    expect((await tenant.call('PATCH', at(of), { deleted_at: null })).status).toBe(200)
    // The member that was removed before stays away.
    expect(await got(at(of, 'status'))).toEqual(before)
    expect(before.pools[0].members).toHaveLength(1)
  })

  test('lists are filtered by vendor, server and data center, and searched by address', async () => {
    const { id } = await server()
    const of = await device({
      vendor: 'f5',
      server_ids: [id],
      datacenter: 'dc-7',
      management_url: 'https://8.8.4.4/mgmt',
    })
    for (const query of ['vendor=f5', `server_id=${id}`, 'datacenter=dc-7', 'search=8.4.4/MG'])
      expect((await got(`/load-balancers?${query}`)).map((row: Json) => row.id)).toEqual([of.id])
    expect(await got(`/load-balancers?vendor=f5&datacenter=dc-8`)).toEqual([])
  })
})

describe('pools and members', () => {
  test('[RES-060] a member is a server or an address', async () => {
    const of = await device()
    const pool = await made(at(of, 'pools'), { name: 'web' })
    const members = at(of, 'pools', pool.id, 'members')
    const { id, name } = await server({ ip_address: '10.1.1.1' })
    expect(await faults('POST', members, { port: 80 })).toEqual(['server_id'])
    expect(await faults('POST', members, { port: 80, server_id: id, address: '10.1.1.1' })).toEqual(['server_id'])
    const member = await made(members, { port: 80, server_id: id })
    expect(member).toMatchObject({ name: `${name}:80`, address: '10.1.1.1', server: { id, name } })
    // An answer can be sent back; another address cannot stand beside the server.
    expect((await tenant.call('PATCH', `${members}/${member.id}`, member)).body.data.version).toBe(1)
    expect(await faults('PATCH', `${members}/${member.id}`, { address: '10.1.1.2' })).toEqual(['server_id'])
    await tenant.call('PATCH', `/servers/${id}`, { ip_address: '10.1.1.9' })
    expect((await got(members))[0].address).toBe('10.1.1.9')
    const other = await made(members, { port: 81, address: 'Backend.Example.NET' })
    expect([other.name, other.address]).toEqual(['backend.example.net:81', 'backend.example.net'])
  })

  test('[RES-061] [RES-062] a pool and its members are made all or nothing; an endpoint is in a pool once', async () => {
    const of = await device()
    const broken = { name: 'web', members: [address(1), address(2), { address: '10.0.0.3', port: 0 }] }
    expect(await faults('POST', at(of, 'pools'), broken)).toEqual(['members.2.port'])
    const twice = { name: 'web', members: [address(1), address(2), address(1, { name: 'again' })] }
    expect(await faults('POST', at(of, 'pools'), twice)).toEqual(['members.2.port'])
    expect(await got(at(of, 'pools'))).toEqual([])
    const pool = await made(at(of, 'pools'), { name: 'web', members: [address(1), address(2)] })
    expect(pool.members.map((each: Json) => each.address)).toEqual(['10.0.0.1', '10.0.0.2'])
    const { id } = await server({ ip_address: '10.0.0.1' })
    const members = at(of, 'pools', pool.id, 'members')
    for (const body of [address(1, { name: 'other' }), { server_id: id, port: 80 }])
      expect(await faults('POST', members, body)).toEqual(['port'])
    await made(at(of, 'pools'), { name: 'second', members: [address(1)] })
  })

  test('what is in another pool or device is not found there', async () => {
    const { of, pool, path } = await served([address(1)])
    const other = await device()
    const member = pool.members[0].id
    for (const wrong of [at(other, 'pools', pool.id), at(other, 'pools', pool.id, 'members', member)])
      expect((await tenant.call('PATCH', wrong, { description: 'x' })).status).toBe(404)
    const second = await made(at(of, 'pools'), { name: 'second' })
    const foreign = at(of, 'pools', second.id, 'members', member)
    expect((await tenant.call('DELETE', foreign)).status).toBe(404)
    expect((await got(`${path}/members`)).map((row: Json) => row.id)).toEqual([member])
  })

  test('[RES-071] a pool that virtual servers lead to is not deleted', async () => {
    const { of, vs, path, pool } = await served([address(1)])
    const second = await made(at(of, 'pools'), { name: 'second' })
    const rules = [{ host: 'a.example.net', path_prefix: '/api', pool_id: second.id }]
    await tenant.call('PATCH', at(of, 'virtual-servers', vs.id), { rules })
    for (const [one, field] of [
      [path, 'pool_id'],
      [at(of, 'pools', second.id), 'rules'],
    ] as const) {
      const answer = await tenant.call('DELETE', one)
      expect([answer.status, answer.body.reason]).toEqual([409, 'in_use'])
      expect(answer.body.referrers).toEqual([{ kind: 'virtual_server', id: vs.id, name: 'www', field }])
    }
    expect((await got(path)).used_by).toEqual([{ id: vs.id, name: 'www' }])
    expect((await got(`${at(of, 'virtual-servers')}?pool_id=${second.id}`)).map((row: Json) => row.id)).toEqual([vs.id])
    expect((await tenant.call('DELETE', at(of, 'virtual-servers', vs.id))).status).toBe(204)
    expect((await tenant.call('DELETE', at(of, 'pools', pool.id))).status).toBe(204)
  })

  test('[RES-072] [RES-073] [RES-074] virtual servers of a device', async () => {
    const { of, vs } = await served([address(1)])
    const list = at(of, 'virtual-servers')
    const body = { name: 'other', address: '192.0.2.1', port: 80 }
    expect(await faults('POST', list, { ...body, protocol: 'tcp' })).toEqual(['port'])
    await made(list, { ...body, protocol: 'udp' })
    expect(await faults('POST', list, { ...body, name: 'third', protocol: 'udp' })).toEqual(['port'])
    await made(at(await device(), 'virtual-servers'), body)
    const foreign = await made(at(await device(), 'pools'), { name: 'foreign' })
    const one = at(of, 'virtual-servers', vs.id)
    expect(await faults('PATCH', one, { pool_id: foreign.id })).toEqual(['pool_id'])
    const rules = [{ pool_id: vs.pool_id }, { path_prefix: '/x', pool_id: foreign.id }]
    expect(await faults('PATCH', one, { rules })).toEqual(['rules.1.pool_id'])
    expect(await faults('PATCH', one, { rules: [null, 'x', 1] })).toEqual(['rules.0', 'rules.1', 'rules.2'])
    const wrong = [{ pool_id: vs.pool_id }, { host: 'a b', path_prefix: 'x', pool_id: vs.pool_id }]
    expect(await faults('PATCH', one, { rules: wrong })).toEqual(['rules.1.host', 'rules.1.path_prefix'])
    const pool = at(of, 'pools', vs.pool_id)
    expect(await faults('PATCH', pool, { health_check: { path: 'a b' } })).toEqual(['health_check.path'])
    expect(await faults('PATCH', one, { certificate_ids: [crypto.randomUUID()] })).toEqual(['certificate_ids'])
    const registered = await made('/ips', { address: '192.0.2.1' })
    const [row] = await got(`${list}?name=WWW`)
    expect(row).toMatchObject({ id: vs.id, ip_address_id: registered.id, state: 'up', rules: [] })
  })
})

describe('states', () => {
  test('[RES-063] [RES-064] [RES-065] a member follows its server and its agent, a pool its members', async () => {
    const [one, two] = [await server(), await server()]
    const agent = await agentOf(one.id)
    const { of, path } = await served(
      [
        { server_id: one.id, port: 80, name: 'a' },
        { server_id: two.id, port: 80, name: 'b' },
      ],
      { min_up: 2 },
    )
    expect(await states(path)).toEqual({ a: ['up', 'agent'], b: ['unknown', 'none'] })
    await tenant.call('PATCH', `/servers/${two.id}`, { status: 'maintenance' })
    expect(await states(path)).toEqual({ a: ['up', 'agent'], b: ['maintenance', 'server_status'] })
    await tenant.call('PATCH', `/servers/${two.id}`, { status: 'active' })
    await lost(one.id, agent, true)
    expect(await states(path)).toEqual({ a: ['down', 'agent'], b: ['unknown', 'none'] })
    const seen = async () => {
      await watchLoadBalancers(hub.hub)
      const { state, counts, conditions, health } = await got(path)
      return { state, counts, codes: conditions.map((each: Json) => each.code), health }
    }
    const counts = { total: 2, up: 0, draining: 0, disabled: 0, down: 1, unknown: 1 }
    expect(await seen()).toEqual({ state: 'down', counts, codes: ['pool_down'], health: 'critical' })
    expect((await got(`${at(of, 'pools')}?state=down`)).map((row: Json) => row.name)).toEqual(['web'])
    expect(await got(`${at(of, 'pools')}?state=up`)).toEqual([])
    expect((await got(`${path}/members?effective_state=down`)).map((row: Json) => row.name)).toEqual(['a'])
    expect((await got(`${at(of, 'virtual-servers')}?state=down`)).map((row: Json) => row.name)).toEqual(['www'])
    await lost(one.id, agent, false)
    expect(await seen()).toMatchObject({ state: 'up', codes: [], health: 'ok' })
  })

  test('[RES-066] one of four enabled members down degrades a pool', async () => {
    const down = await server()
    const agent = await agentOf(down.id)
    const { path } = await served([address(1), address(2), address(3), { server_id: down.id, port: 80 }])
    expect((await got(path)).state).toBe('up')
    await lost(down.id, agent, true)
    await watchLoadBalancers(hub.hub)
    const { state, conditions } = await got(path)
    expect([state, conditions.map((each: Json) => [each.code, each.severity])]).toEqual([
      'degraded',
      [['pool_degraded', 'warning']],
    ])
  })

  test('backups count only when no other member is up; a pool without members is empty', async () => {
    const { path, one, of, vs } = await served([address(1), address(2, { backup: true })], { min_up: 2 })
    expect((await got(path)).state).toBe('down')
    await tenant.call('PATCH', path, { min_up: 1 })
    expect((await got(path)).state).toBe('up')
    await tenant.call('PATCH', one(0), { admin_state: 'disabled' })
    expect(await got(path)).toMatchObject({ state: 'up', counts: { up: 0, unknown: 1, disabled: 1 } })
    const empty = await made(at(of, 'pools'), { name: 'empty' })
    expect(empty.state).toBe('empty')
    await tenant.call('PATCH', at(of, 'virtual-servers', vs.id), { pool_id: empty.id })
    expect((await got(at(of, 'virtual-servers')))[0].state).toBe('empty')
    await tenant.call('PATCH', at(of, 'virtual-servers', vs.id), { enabled: false })
    expect((await got(at(of, 'virtual-servers')))[0].state).toBe('unknown')
  })
})

describe('taking members out', () => {
  test('[RES-067] [RES-022] the last member that is up is taken out by force only', async () => {
    const { path, one, pool } = await served([address(1), address(2)])
    await tenant.call('PATCH', one(0), { admin_state: 'disabled' })
    for (const admin_state of ['disabled', 'draining'])
      expect(await faults('PATCH', one(1), { admin_state })).toEqual(['admin_state'])
    expect(await faults('DELETE', one(1))).toEqual(['admin_state'])
    expect((await got(path)).members[1]).toMatchObject({ admin_state: 'enabled', version: 1 })
    const forced = await tenant.call('PATCH', one(1), { admin_state: 'disabled', force: true })
    expect([forced.status, forced.body.data.admin_state]).toEqual([200, 'disabled'])
    const [entry] = await auditOf(pool.members[1].id)
    expect([entry.action, entry.changes.force]).toEqual(['lb_member.update', { old: null, new: true }])
    await tenant.call('PATCH', one(1), { admin_state: 'enabled' })
    expect((await tenant.call('DELETE', `${one(1)}?force=1`)).status).toBe(204)
    expect((await auditOf(pool.members[1].id))[0].changes.force).toEqual({ old: null, new: true })
  })

  test('[check 16.24] the agent of one of three stops: its member is down, and of the others one may go without force', async () => {
    const stopping = await server()
    const agent = await agentOf(stopping.id)
    const { path, one } = await served([
      { server_id: stopping.id, port: 80, name: 'a' },
      address(2, { name: 'b' }),
      address(3, { name: 'c' }),
    ])
    await lost(stopping.id, agent, true)
    expect((await states(path)).a).toEqual(['down', 'agent'])
    expect((await tenant.call('PATCH', one(1), { admin_state: 'disabled' })).status).toBe(200)
    expect(await faults('PATCH', one(2), { admin_state: 'disabled' })).toEqual(['admin_state'])
    expect((await tenant.call('PATCH', one(2), { admin_state: 'disabled', force: true })).status).toBe(200)
    expect((await got(path)).counts).toMatchObject({ up: 0, down: 1, disabled: 2 })
  })

  test('[RES-068] of two requests side by side that disable the last two, one succeeds', async () => {
    const { path, one } = await served([address(1), address(2)])
    const answers = await Promise.all(
      [0, 1].map(async index => (await tenant.call('PATCH', one(index), { admin_state: 'disabled' })).status),
    )
    expect(answers.sort()).toEqual([200, 422])
    expect((await got(path)).counts).toMatchObject({ unknown: 1, disabled: 1 })
  })

  test('[check 16.25] [RES-069] [RES-070] a drained member is disabled when its time is over, unless it was enabled again', async () => {
    const { path, one } = await served([address(1), address(2), address(3)])
    const before = Date.now()
    const drained = (await tenant.call('PATCH', one(0), { admin_state: 'draining', drain_seconds: 600 })).body.data
    expect(drained).toMatchObject({ effective_state: 'draining', because: 'admin' })
    expect(Date.parse(drained.drain_until) - before).toBeGreaterThanOrEqual(600_000)
    await tenant.call('PATCH', one(1), { admin_state: 'draining', drain_seconds: 20 })
    await tenant.call('PATCH', one(1), { admin_state: 'enabled' })
    await tenant.call('PATCH', one(0), { admin_state: 'draining', drain_seconds: 20 })
    await watchLoadBalancers(hub.hub)
    expect((await got(path)).members[0].admin_state).toBe('draining')
    // The twenty seconds are over, for the one that was enabled again too.
    await hub.hub.database.client`
      update lb_members set drain_until = drain_until - interval '20 seconds' where drain_until is not null`
    await until('the member is disabled', async () => {
      await watchLoadBalancers(hub.hub)
      return (await got(path)).members[0].admin_state === 'disabled'
    })
    const { members } = await got(path)
    expect(members.map((each: Json) => [each.admin_state, each.drain_until])).toEqual([
      ['disabled', null],
      ['enabled', null],
      ['enabled', null],
    ])
    expect((await auditOf(members[0].id))[0]).toMatchObject({ action: 'lb_member.update', actor: { type: 'system' } })
  })
})

describe('configuration', () => {
  const config = async (of: Json, format: string): Promise<Json> =>
    (await got(`${at(of)}?include=config&format=${format}`)).config
  const members = [
    address(1, { weight: 300 }),
    address(2, { backup: true, max_connections: 50 }),
    { name: 'v 6 "quoted"', address: '2001:db8::1', port: 81 },
  ]
  const health_check = { type: 'http', path: '/health', expect_status: 204 }

  test('[RES-079] [RES-025] the text holds what is enabled, and HAProxy takes it', async () => {
    const { of, pool } = await served(members, { health_check, persistence: 'cookie', algorithm: 'least_connections' })
    await tenant.call('PATCH', at(of), { password: 'hidden-word', username: 'admin' })
    const api = await made(at(of, 'pools'), { name: 'api pool\n}', persistence: 'source_ip', members: [address(9)] })
    const list = at(of, 'virtual-servers')
    const rules = [
      { host: '*.example.net', path_prefix: '/api', pool_id: api.id },
      { host: 'a.example.net', pool_id: pool.id },
    ]
    await made(list, { name: 'ruled', address: '2001:db8::2', port: 8080, rules, pool_id: pool.id })
    await made(list, { name: 'off', address: '192.0.2.1', port: 99, enabled: false, pool_id: pool.id })
    const { text, sha256, warnings } = await config(of, 'haproxy')
    for (const part of ['frontend www', 'frontend ruled', 'backend web', 'backend api_pool__', 'server v_6__quoted_ '])
      expect(text).toContain(part)
    expect(text).not.toMatch(/off|hidden-word/)
    expect(warnings).toEqual(['web: 10.0.0.1:80 has a weight over 256'])
    const folder = mkdtempSync(join(tmpdir(), 'lb-config-'))
    writeFileSync(join(folder, 'haproxy.cfg'), text.replace('bind [2001:db8::2]', 'bind [::1]'))
    const checked = Bun.spawnSync(['/usr/sbin/haproxy', '-c', '-f', join(folder, 'haproxy.cfg')])
    rmSync(folder, { recursive: true, force: true })
    expect([checked.exitCode, checked.stderr.toString()]).toEqual([0, expect.not.stringContaining('ALERT')])
    const again = await tenant.call('GET', `${at(of)}?include=config`, undefined, { 'If-None-Match': `"${sha256}"` })
    expect([again.status, again.headers.get('etag')]).toEqual([304, `"${sha256}"`])
    await tenant.call('PATCH', at(of, 'pools', pool.id), { algorithm: 'random' })
    expect((await config(of, 'haproxy')).sha256).not.toBe(sha256)
  })

  test('[RES-025] a path of a rule or of a health check has no sign of a configuration', async () => {
    const { of, vs, path } = await served([address(1)])
    const one = at(of, 'virtual-servers', vs.id)
    for (const path_prefix of ['/a;b', '/{x}', '/a#b', '/$x', '/status/{stub_status;}#']) {
      const rules = [{ path_prefix, pool_id: vs.pool_id }]
      expect(await faults('PATCH', one, { rules })).toEqual(['rules.0.path_prefix'])
    }
    expect(await faults('PATCH', path, { health_check: { path: '/a#b' } })).toEqual(['health_check.path'])
  })

  test('[RES-025] the host of a rule is kept as requests have it', async () => {
    const { of, vs } = await served([address(1)])
    const hosts = ['Bücher.Example.com.', '*.Example.net.', 'a.example.com']
    const rules = hosts.map(host => ({ host, pool_id: vs.pool_id }))
    const answer = await tenant.call('PATCH', at(of, 'virtual-servers', vs.id), { rules })
    expect(answer.body.data.rules.map((rule: Json) => rule.host)).toEqual([
      'xn--bcher-kva.example.com',
      '*.example.net',
      'a.example.com',
    ])
  })

  test('[RES-025] what NGINX cannot say stands in warnings', async () => {
    const { of, pool } = await served(members, { health_check, persistence: 'cookie' })
    const udp = await made(at(of, 'pools'), { name: 'dns', protocol: 'udp', members: [address(3, { port: 53 })] })
    const list = at(of, 'virtual-servers')
    await made(list, { name: 'dns', address: '192.0.2.1', port: 53, protocol: 'udp', pool_id: udp.id })
    await made(list, { name: 'raw', address: '192.0.2.1', port: 81, protocol: 'tcp', pool_id: pool.id })
    const { text, warnings } = await config(of, 'nginx')
    for (const part of [
      'upstream web {',
      'listen 192.0.2.1:80 default_server;',
      'proxy_pass http://web;',
      'listen 192.0.2.1:53 udp;',
    ])
      expect(text).toContain(part)
    expect(warnings).toEqual([
      'raw: another virtual server needs its pool as http; left out',
      'web: persistence by cookie needs NGINX Plus',
      'web: health checks need NGINX Plus',
    ])
  })
})

test('[RES-076] the state of 2,000 members in 200 pools is read at once', async () => {
  const of = await device()
  const { db } = hub.hub.database
  await db.execute(sql`
    with pools as (insert into lb_pools (id, company_id, device_id, name, health_check)
      select gen_random_uuid(), ${tenant.companyId}, ${of.id}, 'pool ' || n, '{}' from generate_series(1, 200) n returning id)
    insert into lb_members (id, company_id, pool_id, name, address, port)
    select gen_random_uuid(), ${tenant.companyId}, id, 'm' || n, '10.0.0.' || n, 80 from pools, generate_series(1, 10) n`)
  const { pools } = await got(at(of, 'status'))
  expect([pools.length, pools.flatMap((pool: Json) => pool.members).length]).toEqual([200, 2000])
  expect(new Set(pools.map((pool: Json) => pool.state))).toEqual(new Set(['up']))
})
