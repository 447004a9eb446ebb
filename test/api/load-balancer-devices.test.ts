// A load balancer that is read and told: a real HAProxy, whose pools and states become the hub's, and the other way.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { watchLoadBalancers } from '../../apps/hub/load-balancers/load-balancer-watch.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import { startHaproxy } from '../support/haproxy.ts'
import { until } from '../support/until.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let folder = ''
let web: ReturnType<typeof Bun.serve>
let count = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lb-'))
  web = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('here') })
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
})
afterAll(async () => {
  await web.stop(true)
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function made(path: string, body: Json): Promise<Json> {
  const answer = await tenant.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const got = async (path: string): Promise<Json> => (await tenant.call('GET', path)).body.data
const device = (management_url: string, more: Json = {}): Promise<Json> =>
  made('/load-balancers', {
    name: `lb ${count++}`,
    vendor: 'haproxy',
    integration: 'haproxy_dataplane',
    management_url,
    username: 'admin',
    password: 'pass',
    ...more,
  })
async function synced(of: Json, body: Json = {}): Promise<Json> {
  const answer = await tenant.call('POST', `/load-balancers/${of.id}/sync`, body)
  expect(answer.status).toBe(202)
  return until('the run ends', async () => {
    const { last_runs } = await got(`/load-balancers/${of.id}`)
    return last_runs.find((run: Json) => run.id === answer.body.data.id && run.finished_at !== null)
  })
}

/** Two pools, of which one has a member that nobody answers for. */
async function realHaproxy(version: 2 | 3 = 3) {
  const [closed, listening] = [await freePort(), await freePort()]
  const setup = {
    pools: {
      web: [
        { name: 'a', port: web.port ?? 0 },
        { name: 'b', port: closed, weight: 7 },
        { name: 'c', port: listening, backup: true },
      ],
      api: [{ name: 'only', port: web.port ?? 0 }],
    },
    frontends: [{ name: 'www', port: listening, pool: 'web' }],
  }
  const haproxy = await startHaproxy(join(folder, `h${count++}`), setup, { version })
  await until('HAProxy knows who answers', async () => /\nweb,b,.*,DOWN,/.test(await haproxy.ask('show stat')))
  return { haproxy, listening }
}

test('[RES-077] without an integration there is nothing to read; a device that does not answer is told of at the second failure', async () => {
  const none = await made('/load-balancers', { name: 'none', vendor: 'f5' })
  const refused = await tenant.call('POST', `/load-balancers/${none.id}/sync`, {})
  expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['integration']])
  const of = await device(`http://127.0.0.1:${await freePort()}`)
  const codes = async () => (await got(`/load-balancers/${of.id}`)).conditions.map((each: Json) => each.code)
  expect(await synced(of)).toMatchObject({ state: 'failed', error: 'the device does not answer' })
  expect(await codes()).toEqual([])
  await synced(of)
  expect(await codes()).toEqual(['device_unreachable'])
})

test('[RES-059] a path that begins with two slashes is a path of the device, and no name of another host', async () => {
  const asked: string[] = []
  const front = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => {
      // The server of the test makes one slash of them.
      asked.push(`${request.headers.get('Host')} ${new URL(request.url).pathname}`)
      return new Response('nothing', { status: 404 })
    },
  })
  try {
    const own = `127.0.0.1:${front.port}`
    const of = await device(`http://${own}//other.example:${web.port}/x/`)
    expect((await synced(of)).error).toBe('the device has no Data Plane API of version 2 or 3')
    expect(asked).toEqual([3, 2].map(version => `${own} /other.example:${web.port}/x/v${version}/info`))
  } finally {
    await front.stop(true)
  }
})

test('[RES-078] a device is read, and what it has is drift until it is taken over', async () => {
  const { haproxy, listening } = await realHaproxy()
  try {
    const of = await device(haproxy.url)
    const own = await made('/servers', { name: 'web of lb', ip_address: '127.0.0.1' })
    const pool = await made(`/load-balancers/${of.id}/pools`, {
      name: 'web',
      protocol: 'http',
      members: [
        { name: 'a', address: '127.0.0.1', port: web.port, weight: 3 },
        { name: 'gone', address: '127.0.0.1', port: 9 },
      ],
    })
    const before = await got(`/load-balancers/${of.id}/pools/${pool.id}`)
    const { state, result } = await synced(of)
    expect([state, result]).toMatchObject(['done', { created: 0, updated: 0, removed: 0 }])
    const after = await got(`/load-balancers/${of.id}/pools/${pool.id}`)
    expect([after.version, after.members.length, after.algorithm]).toEqual([1, 2, before.algorithm])
    expect(after.drift).toEqual([
      { field: 'algorithm', intended: 'round_robin', actual: 'least_connections', source: 'device' },
    ])
    const shown = await got(`/load-balancers/${of.id}`)
    expect([shown.drifted, shown.drift.map((each: Json) => each.field).sort()]).toEqual([
      true,
      [
        'pools.api',
        'pools.api.members.only',
        'pools.web.algorithm',
        'pools.web.members.a.weight',
        'pools.web.members.b',
        'pools.web.members.c',
        'pools.web.members.gone',
        'virtual_servers.www',
      ],
    ])
    expect((await got('/load-balancers?drifted=1')).map((row: Json) => row.id)).toContain(of.id)
    expect((await synced(of, { apply: true })).result).toMatchObject({ created: 5, updated: 2, removed: 1 })
    const taken = await got(`/load-balancers/${of.id}/status`)
    expect(
      taken.pools.map((each: Json) => [each.name, each.members.map((one: Json) => [one.name, one.effective_state])]),
    ).toEqual([
      ['api', [['only', 'up']]],
      [
        'web',
        [
          ['a', 'up'],
          ['b', 'down'],
          ['c', 'up'],
        ],
      ],
    ])
    const whole = await got(`/load-balancers/${of.id}/pools/${pool.id}`)
    expect([whole.origin, whole.drifted, whole.members[1]]).toMatchObject([
      'import',
      false,
      { server: { id: own.id }, weight: 7, because: 'observed' },
    ])
    const [vs] = await got(`/load-balancers/${of.id}/virtual-servers`)
    expect(vs).toMatchObject({
      name: 'www',
      address: '127.0.0.1',
      port: listening,
      pool_id: pool.id,
      state: 'degraded',
    })
    expect((await synced(of, { apply: true })).result).toMatchObject({
      created: 0,
      updated: 0,
      removed: 0,
      unchanged: 7,
    })
    expect((await got(`/load-balancers/${of.id}`)).drift).toEqual([])
  } finally {
    await haproxy.stop()
  }
})

test('[R-023] what people want of a member is told to the device, again until it takes it, and after three failures to people', async () => {
  const { haproxy } = await realHaproxy(2)
  try {
    const of = await device(haproxy.url, { writes: true })
    await synced(of, { apply: true })
    const [, pool] = await got(`/load-balancers/${of.id}/pools`)
    const path = `/load-balancers/${of.id}/pools/${pool.id}`
    const { members } = await got(path)
    const one = `${path}/members/${members[0].id}`
    const memberNow = async () => (await got(path)).members[0]
    const adminState = async () =>
      /^\d+ web \d+ a \S+ \d+ (\d+) /m.exec(await haproxy.ask('show servers state web'))?.[1]
    const changed = await tenant.call('PATCH', one, { admin_state: 'draining', drain_seconds: 3600 })
    expect(changed.body.data.pending_state).toBe('draining')
    await until('the device drains it', async () => (await memberNow()).pending_state === null)
    expect([await adminState(), haproxy.writes()]).toEqual(['8', 1])
    haproxy.fails(true)
    await tenant.call('PATCH', one, { admin_state: 'enabled' })
    const codes = async () => (await got(`/load-balancers/${of.id}`)).conditions.map((each: Json) => each.code)
    await until('people are told', async () => {
      // Instead of waiting for the next time it is due.
      await hub.hub.database.client`update lb_members set written_at = null where id = ${members[0].id}`
      await watchLoadBalancers(hub.hub)
      return (await codes()).includes('device_write_failed')
    })
    expect((await memberNow()).pending_state).toBe('enabled')
    haproxy.fails(false)
    await until('the device takes it', async () => {
      await hub.hub.database.client`update lb_members set written_at = null where id = ${members[0].id}`
      await watchLoadBalancers(hub.hub)
      return (await memberNow()).pending_state === null
    })
    await until('nobody is told any more', async () => (await codes()).length === 0)
    expect([await adminState(), haproxy.writes()]).toEqual(['0', 2])
    // A drained member that no connection is left of is disabled before its time is over.
    await tenant.call('PATCH', one, { admin_state: 'draining', drain_seconds: 3600 })
    await synced(of)
    await until('it is disabled', async () => {
      await watchLoadBalancers(hub.hub)
      return (await memberNow()).admin_state === 'disabled'
    })
    await until('the device has it too', async () => (await adminState()) === '1')
  } finally {
    await haproxy.stop()
  }
})

/** The API of NGINX Plus as its reference has it, version 9, with two upstreams of http and one of stream. */
function startNginxPlus() {
  const peer = (id: number, name: string, more: Json = {}) => ({
    id,
    server: name,
    name,
    backup: false,
    weight: 1,
    state: 'up',
    active: 3,
    max_conns: 20,
    ...more,
  })
  const http: Record<string, { peers: Json[] }> = {
    web: { peers: [peer(0, '10.0.0.1:80', { weight: 5 }), peer(1, '10.0.0.2:80', { state: 'unavail' })] },
    api: {
      peers: [peer(0, '[2001:db8::1]:8080', { backup: true, state: 'draining', max_conns: 0 }), peer(1, 'unix:/x')],
    },
  }
  const stream = { database: { peers: [peer(7, '10.0.0.9:5432', { state: 'down' })] } }
  const written: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (request.headers.get('authorization') !== `Basic ${btoa('admin:pass')}`)
        return new Response('', { status: 401 })
      if (pathname === '/api/9/nginx') return Response.json({ version: '1.29.0', build: 'nginx-plus-r35' })
      if (pathname === '/api/9/http/upstreams') return Response.json(http)
      if (pathname === '/api/9/stream/upstreams') return Response.json(stream)
      const [, pool = '', id] = /^\/api\/9\/http\/upstreams\/([^/]+)\/servers\/(\d+)$/.exec(pathname) ?? []
      const found = http[pool]?.peers.find(each => each.id === Number(id))
      if (!found || request.method !== 'PATCH') return new Response('', { status: 404 })
      const body: Json = await request.json()
      written.push(`${pool}/${id} ${JSON.stringify(body)}`)
      found.state = body.drain ? 'draining' : body.down ? 'down' : 'up'
      return Response.json(found)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, written, stop: () => server.stop(true) }
}

test('[R-023] [R-024] NGINX Plus is read by its API, and told whom it is to drain', async () => {
  const nginx = startNginxPlus()
  try {
    const of = await device(nginx.url, { vendor: 'nginx_plus', integration: 'nginx_plus', writes: true })
    expect((await synced(of, { apply: true })).result).toMatchObject({ created: 7, removed: 0 })
    const pools: Json[] = await got(`/load-balancers/${of.id}/pools`)
    const members = new Map<string, Json>()
    for (const pool of pools)
      for (const member of (await got(`/load-balancers/${of.id}/pools/${pool.id}`)).members)
        members.set(`${pool.name} ${member.address} ${member.port}`, { ...member, pool: pool.id })
    const shown = [...members].map(([key, { weight, backup, max_connections, admin_state, observed_state }]) => [
      key,
      weight,
      backup,
      max_connections,
      admin_state,
      observed_state,
    ])
    expect(shown).toEqual([
      ['api 2001:db8::1 8080', 1, true, null, 'draining', 'draining'],
      ['database 10.0.0.9 5432', 1, false, 20, 'disabled', 'disabled'],
      ['web 10.0.0.1 80', 5, false, 20, 'enabled', 'up'],
      ['web 10.0.0.2 80', 1, false, 20, 'enabled', 'down'],
    ])
    const { id, pool } = members.get('web 10.0.0.1 80')
    const one = `/load-balancers/${of.id}/pools/${pool}/members/${id}`
    await tenant.call('PATCH', one, { admin_state: 'draining', drain_seconds: 3600, force: true })
    await until(
      'it is drained',
      async () => (await got(one.replace(/\/members.*/, ''))).members[0].pending_state === null,
    )
    await tenant.call('PATCH', one, { admin_state: 'enabled' })
    await until('it serves again', async () => nginx.written.length === 2)
    expect(nginx.written).toEqual(['web/0 {"drain":true}', 'web/0 {"down":false}'])
  } finally {
    await nginx.stop()
  }
})

test('[R-024] a device counts as tried from the start of its run, so that one whose runs break does not come before others', async () => {
  const { client } = hub.hub.database
  const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
  await hub.holdTask('load_balancers')
  expect((await root.call('POST', '/queues/resources.probe/pause', {})).status).toBe(200)
  try {
    const { id } = await device(`http://127.0.0.1:${await freePort()}`, { sync_interval_seconds: 60 })
    const triedAt = async () => {
      const [row] = await client`select sync_tried_at from load_balancers where id = ${id}`
      return row?.sync_tried_at
    }
    expect(await triedAt()).toBeNull()
    await watchLoadBalancers(hub.hub)
    expect(await triedAt()).not.toBeNull()
    expect((await got(`/load-balancers/${id}`)).last_run.state).toBe('queued')
  } finally {
    await root.call('POST', '/queues/resources.probe/resume')
  }
})
