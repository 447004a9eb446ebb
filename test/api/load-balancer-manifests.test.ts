// Load balancers in manifests: whole lists of pools, members and virtual servers.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let by: Acme

beforeAll(async () => {
  hub = await TestHub.start()
  by = await acme(hub)
})
afterAll(() => hub.stop())

const got = async (path: string): Promise<Json> => (await by.call('GET', path)).body.data
const lb = (spec: Json) => manifest(by.slug, 'load-balancer', 'edge', { vendor: 'haproxy', ...spec })

test('[RES-126] [RES-127] [RES-143] a device is made with all of its parts, and they become what the manifest says', async () => {
  const server = manifest(by.slug, 'server', 'web-1', { ip_address: '10.0.0.1' })
  const pools = [
    {
      name: 'web',
      protocol: 'http',
      members: [
        { server: 'web-1', port: 80 },
        { address: '10.0.0.2', port: 80 },
      ],
    },
    { name: 'api', min_up: 1 },
  ]
  const virtual_servers = [
    { name: 'www', address: '192.0.2.1', port: 80, pool: 'web', rules: [{ path_prefix: '/api', pool: 'api' }] },
  ]
  const first = await submit(hub, by, [lb({ pools, virtual_servers }), server])
  expect([first.status, first.errors]).toEqual(['planned', []])
  expect((await applied(by, first.id)).status).toBe('applied')
  const [device] = await got('/load-balancers')
  const tree = await got(`/load-balancers/${device.id}/status`)
  expect(tree.pools.map((pool: Json) => [pool.name, pool.members.map((each: Json) => each.name)])).toEqual([
    ['api', []],
    ['web', ['10.0.0.2:80', 'web-1:80']],
  ])
  expect([device.origin, tree.virtual_servers[0].name]).toEqual(['iac', 'www'])
  const again = await submit(hub, by, [lb({ pools, virtual_servers })])
  expect(again.items.map((item: Json) => [item.action, item.diff])).toEqual([['none', []]])
  const { data: exported } = (await by.call('GET', '/iac/export/load-balancer')).body
  const planned = await submit(hub, by, exported)
  expect(planned.items.map((item: Json) => [item.action, item.diff])).toEqual([['none', []]])

  const web = tree.pools[1]
  const members = `/load-balancers/${device.id}/pools/${web.id}/members`
  // What operators do with members is theirs.
  await by.call('PATCH', `${members}/${web.members[1].id}`, { admin_state: 'disabled' })
  const less = {
    pools: [
      {
        ...pools[0],
        members: [
          { server: 'web-1', port: 80 },
          { address: '10.0.0.3', port: 80 },
        ],
      },
    ],
  }
  const second = await submit(hub, by, [
    lb({ ...less, virtual_servers: [{ name: 'www', address: '192.0.2.1', port: 80, pool: 'web', rules: [] }] }),
  ])
  expect(second.errors).toEqual([])
  expect((await applied(by, second.id)).status).toBe('applied')
  expect((await got(members)).map((row: Json) => [row.name, row.admin_state])).toEqual([
    ['10.0.0.3:80', 'enabled'],
    ['web-1:80', 'disabled'],
  ])
  expect((await got(`/load-balancers/${device.id}/pools`)).map((row: Json) => row.name)).toEqual(['web'])

  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
  const [{ id: memberId }] = await got(members)
  const website = await got(`/load-balancers/${device.id}/virtual-servers`)
  for (const call of [
    by.call('PATCH', `${members}/${memberId}`, { weight: 7 }),
    by.call('DELETE', `${members}/${memberId}?force=1`),
    by.call('POST', members, { address: '10.0.0.9', port: 80 }),
    by.call('POST', `/load-balancers/${device.id}/pools`, { name: 'more' }),
    by.call('PATCH', `/load-balancers/${device.id}/virtual-servers/${website[0].id}`, { port: 81 }),
  ])
    expect(Object.keys((await call).body.errors)).toEqual(['origin'])
  const drained = await by.call('PATCH', `${members}/${memberId}`, { admin_state: 'disabled', force: true })
  expect([drained.status, drained.body.data.admin_state]).toEqual([200, 'disabled'])
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })
})

test('[RES-061] a fault of a part is named by its place', async () => {
  const run = await submit(hub, by, [
    manifest(by.slug, 'load-balancer', 'broken', {
      vendor: 'haproxy',
      pools: [{ name: 'web', members: [{ address: '10.0.0.1', port: 0 }] }],
    }),
  ])
  expect(run.status).toBe('invalid')
  expect(JSON.stringify(run.errors)).toContain('port')
})

test('[R-036] members are compared by name: the weight of one is one line, and what else stands in the pool is none', async () => {
  const member = (last: number, more: Json = {}) => ({ address: `192.0.33.${last}`, port: 80, ...more })
  const many = Array.from({ length: 20 }, (_, index) => member(index + 1))
  const device = (members: Json[]) =>
    manifest(by.slug, 'load-balancer', 'many', { vendor: 'haproxy', pools: [{ name: 'p1', members }] })
  const first = await submit(hub, by, [device([...many, member(60, { weight: 10 })])], { apply: true })
  expect([first.errors, first.status]).toEqual([[], 'applied'])
  const changed = await submit(hub, by, [device([member(60, { weight: 20 }), ...many.slice(1), member(61)])])
  const [item] = changed.items
  expect(item.diff).toEqual([
    { field: 'pools.p1.members.192.0.33.60:80.weight', old: 10, new: 20 },
    { field: 'pools.p1.members.192.0.33.61:80', old: null, new: expect.objectContaining({ port: 80 }) },
    { field: 'pools.p1.members.192.0.33.1:80', old: expect.objectContaining({ port: 80 }), new: null },
  ])
  expect((await applied(by, changed.id)).status).toBe('applied')
  const found = (await got('/load-balancers')).find((each: Json) => each.name === 'many')
  const [pool] = (await got(`/load-balancers/${found.id}/status`)).pools
  const names: string[] = pool.members.map(({ name }: Json) => name)
  expect([names.length, names.includes('192.0.33.1:80')]).toEqual([21, false])
  const [exported] = await got('/iac/export/load-balancer?name=many')
  expect(exported.contents.match(/weight: \d+/g).filter((each: string) => each !== 'weight: 1')).toEqual(['weight: 20'])
})

test('[IAC-011] a pool that the device does not have, or is to have no more, is a fault of the virtual servers that name it', async () => {
  const device = (spec: Json) => manifest(by.slug, 'load-balancer', 'pooled', { vendor: 'haproxy', ...spec })
  const pools = [{ name: 'one' }, { name: 'two' }]
  const virtual_servers = [
    { name: 'vs', address: '192.0.2.7', port: 80, pool: 'one', rules: [{ host: 'a', pool: 'two' }] },
  ]
  const made = await submit(hub, by, [device({ pools, virtual_servers })])
  expect((await applied(by, made.id)).status).toBe('applied')
  const faults = async (spec: Json) => (await submit(hub, by, [device(spec)])).errors.map((each: Json) => each.message)
  const missing = (place: string) => `spec.virtual_servers.0.${place}: does not exist in this company`
  expect(await faults({ pools: null, virtual_servers })).toEqual([missing('pool'), missing('rules.0.pool')])
  expect(await faults({ pools: [pools[0]], virtual_servers })).toEqual([missing('rules.0.pool')])
  expect(await faults({ pools: [pools[0]] })).toEqual([])
  expect(await faults({ pools: [], virtual_servers: [] })).toEqual([])
  expect(await faults({ pools, virtual_servers })).toEqual([])
})
