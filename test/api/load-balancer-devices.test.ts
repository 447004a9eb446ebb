// A load balancer that is read and told: a real HAProxy, whose pools and states become the hub's, and the other way.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { watchLoadBalancers } from '../../apps/hub/load-balancers/watch.ts'
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
