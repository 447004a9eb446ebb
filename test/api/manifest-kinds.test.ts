// Manifests of proxies with their sites, option lists and schedules of exports: made, planned again, drifted, deleted.
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { watchDrift } from '../../apps/hub/iac/drift.ts'
import { manifestKind } from '../../apps/hub/iac/kinds/all-manifest-kinds.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, absent, acme, applied, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let by: Acme

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  by = await acme(hub)
})
afterAll(() => hub.stop())

const got = async (path: string): Promise<Json> => (await by.call('GET', path)).body.data
const of = (kind: string, name: string, spec: Json) => manifest(by.slug, kind, name, spec)
const actions = (run: Json) => [run.errors, run.items.map((item: Json) => [item.action, item.diff])]

async function made(files: readonly { path: string; contents: string }[]): Promise<Json> {
  const run = await submit(hub, by, files)
  expect([run.status, run.errors]).toEqual(['planned', []])
  const done = await applied(by, run.id)
  expect([done.status, done.items.map((item: Json) => item.error)]).toEqual(['applied', done.items.map(() => null)])
  return done
}

async function exportPlansToNothing(kind: string): Promise<void> {
  const { data: exported } = (await by.call('GET', `/iac/export/${kind}`)).body
  expect(exported.length).toBeGreaterThan(0)
  expect(actions(await submit(hub, by, exported))).toEqual([[], exported.map(() => ['none', []])])
}

test('[RES-126] [RES-127] [RES-143] a proxy is made with its sites, which lead to parts that the same run makes', async () => {
  const sites = [
    { hostnames: ['WWW.Shop.example', '*.shop.example'], upstream: { kind: 'virtual_server', name: 'edge/www' } },
    { hostnames: ['api.shop.example'], path: '/v1', upstream: { kind: 'server', name: 'app', port: 8080 } },
    { name: 'old', hostnames: ['old.example'], upstream: { url: 'http://192.0.2.7:81' }, check: { contains: 'ok' } },
  ]
  const files = [
    of('proxy', 'front', { software: 'nginx', sites }),
    // A display name that is not the slug: references by the slug mean it all the same.
    of('server', 'app', { name: 'The app', ip_address: '10.0.0.9' }),
    of('load-balancer', 'edge', {
      name: 'Edge 1',
      vendor: 'haproxy',
      pools: [{ name: 'web' }],
      virtual_servers: [{ name: 'www', address: '192.0.2.1', port: 80, pool: 'web' }],
    }),
    of('connection', 'app-needs-site', {
      source: { kind: 'server', name: 'app' },
      target: { kind: 'proxy_site', name: 'front/old' },
    }),
  ]
  const done = await made(files)
  expect(done.items.map((item: Json) => item.kind)).toEqual(['server', 'load-balancer', 'proxy', 'connection'])
  const [proxy] = await got('/proxies')
  const rows = await got(`/proxies/${proxy.id}/sites`)
  expect(rows.map((row: Json) => [row.name, row.hostnames, row.origin])).toEqual([
    ['api.shop.example/v1', ['api.shop.example'], 'iac'],
    ['old', ['old.example'], 'iac'],
    ['www.shop.example', ['www.shop.example', '*.shop.example'], 'iac'],
  ])
  const [server] = await got('/servers')
  expect(rows[0].upstream).toEqual({ kind: 'server', id: server.id, port: 8080, url: null })
  expect(rows[2].upstream.kind).toBe('virtual_server')
  expect(actions(await submit(hub, by, files))).toEqual([[], files.map(() => ['none', []])])
  await exportPlansToNothing('proxy')
  await exportPlansToNothing('connection')

  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
  const locked = await by.call('PATCH', `/proxies/${proxy.id}/sites/${rows[0].id}`, { path: '/v2' })
  expect(Object.keys(locked.body.errors)).toEqual(['origin'])
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })

  const [, , old] = sites
  const less = of('proxy', 'front', { software: 'nginx', sites: [{ ...old, check: { contains: 'yes' } }] })
  const planned = await submit(hub, by, [less])
  expect(planned.items[0].diff.map((each: Json) => [each.field, each.new])).toEqual([
    ['sites.old.check.contains', 'yes'],
    ['sites.api.shop.example/v1', null],
    ['sites.www.shop.example', null],
  ])
  await made([less])
  expect((await got(`/proxies/${proxy.id}/sites`)).map((row: Json) => [row.name, row.check.contains])).toEqual([
    ['old', 'yes'],
  ])
})

test('[IAC-010] [RES-058] [RES-081] what the fields of a manifest lack together is a fault of the plan', async () => {
  const lacking = [
    ['certificate', {}, 'pem'],
    ['load-balancer', { vendor: 'haproxy', integration: 'haproxy_dataplane' }, 'management_url'],
    ['proxy', { mode: 'forward' }, 'url'],
  ] as const
  const run = await submit(
    hub,
    by,
    lacking.map(([kind, spec]) => of(kind, 'lacking', spec)),
  )
  expect(run.status).toBe('invalid')
  const messages = run.errors.map((each: Json) => each.message)
  for (const [index, [, , field]] of lacking.entries())
    expect(messages[index]).toStartWith(`spec.${field}: is required`)
})

test('[RES-082] [RES-088] what a site cannot be is named by its place; a name that two load balancers have is none', async () => {
  const vs = { vendor: 'nginx', pools: [], virtual_servers: [{ name: 'same', address: '192.0.2.2', port: 80 }] }
  await made([of('load-balancer', 'one', vs), of('load-balancer', 'two', vs), of('server', 'portless', {})])
  const run = await submit(hub, by, [
    of('proxy', 'broken', {
      sites: [
        { hostnames: ['ok.example'], path: 'no', upstream: { kind: 'virtual_server', name: 'one/same' } },
        { hostnames: ['ok.example'], upstream: { kind: 'server', name: 'portless' } },
      ],
    }),
    of('proxy', 'nameless', { sites: [{ hostnames: [] }] }),
    of('proxy', 'way-out', { mode: 'forward', url: 'http://192.0.2.3:3128', sites: [{ hostnames: ['a.example'] }] }),
    of('proxy', 'unclear', {
      sites: [{ hostnames: ['a.example'], upstream: { kind: 'virtual_server', name: 'same' } }],
    }),
  ])
  expect(run.status).toBe('invalid')
  const said = run.errors.map((each: Json) => each.message).join('\n')
  for (const place of [
    'sites.0.path',
    'sites.1.upstream',
    'sites.0.hostnames',
    'spec.sites: ',
    'no virtual_server same',
  ])
    expect(said).toContain(place)
})

test('[RES-126] [RES-143] [RES-248] [RES-250] an option list has the items of its manifest, and loses none that is used', async () => {
  const items = [
    { value: 'prod', label: 'Production', color: '#ff0000', is_default: true },
    { value: 'test', label_vi: 'Kiểm thử' },
  ]
  const file = of('option-list', 'environments', { strict: true, items })
  await made([file])
  const shown = await got('/options/environments')
  expect(shown.map((item: Json) => [item.value, item.label, item.label_vi, item.color, item.is_default])).toEqual([
    ['prod', 'Production', null, '#ff0000', true],
    ['test', 'test', 'Kiểm thử', null, false],
  ])
  expect((await by.call('POST', '/servers', { name: 'x', environment: 'lab' })).status).toBe(422)
  expect(actions(await submit(hub, by, [file]))).toEqual([[], [['none', []]]])
  await exportPlansToNothing('option-list')

  await by.call('POST', '/servers', { name: 'used', environment: 'test' })
  const other = of('option-list', 'environments', {
    strict: true,
    items: [{ value: 'prod', label: 'P' }, { value: 'lab' }],
  })
  const run = await submit(hub, by, [other])
  expect([run.status, run.errors[0].message]).toEqual(['invalid', expect.stringContaining('item: is used 1 times')])
  expect((await got('/options/environments')).map((item: Json) => item.value)).toEqual(['prod', 'test'])

  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
  for (const call of [
    by.call('POST', '/options/environments/items', { value: 'more' }),
    by.call('PATCH', `/options/environments/items/${shown[0].id}`, { label: 'X' }),
    by.call('DELETE', `/options/environments/items/${shown[0].id}`),
    by.call('PUT', '/options/environments/order', { order: shown.map((item: Json) => item.id) }),
  ])
    expect(Object.keys((await call).body.errors)).toEqual(['origin'])
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })

  // Hyphens as in other names; what has no items any more is gone.
  const roles = of('option-list', 'ip-purposes', { items: [{ value: 'printer' }] })
  await made([roles])
  expect((await got('/options/ip_purposes')).map((item: Json) => item.value)).toEqual(['printer'])
  await made([absent(by.slug, 'option-list', 'ip-purposes')])
  expect(await got('/options/ip_purposes')).toEqual([])

  const wrong = await submit(hub, by, [
    of('option-list', 'planets', { items: [] }),
    of('option-list', 'roles', {
      items: [
        { value: 'a', is_default: true },
        { value: 'A', is_default: true },
      ],
    }),
  ])
  const said = wrong.errors.map((each: Json) => each.message).join('\n')
  for (const text of ['metadata.name: must be one of', 'items.1.value', 'items.1.is_default'])
    expect(said).toContain(text)
})

test('[RES-126] [RES-135] [RES-143] a schedule of exports is known by its name, its recipients by their addresses', async () => {
  const { email } = await hub.user(by.companyId, ['servers.view'])
  const spec = {
    resource: 'server',
    filters: { environment: 'prod' },
    every: 'week',
    weekday: 1,
    at: '06:30',
    time_zone: 'Asia/Ho_Chi_Minh',
    recipients: [email.toUpperCase()],
  }
  const resources = await got('/exports/resources')
  spec.resource = resources.find((each: Json) => /^servers?$/.test(each.resource)).resource
  const file = of('export-schedule', 'weekly', spec)
  await made([file])
  const [schedule] = await got('/exports/schedules')
  expect([schedule.name, schedule.at, schedule.weekday, schedule.recipients.length, schedule.owner.id]).toEqual([
    'weekly',
    '06:30',
    1,
    1,
    by.userId,
  ])
  expect(actions(await submit(hub, by, [file]))).toEqual([[], [['none', []]]])
  await exportPlansToNothing('export-schedule')
  await made([of('export-schedule', 'weekly', { ...spec, at: '07:00' })])
  expect((await got('/exports/schedules')).map((each: Json) => [each.id, each.at])).toEqual([[schedule.id, '07:00']])

  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
  const locked = await by.call('PATCH', `/exports/schedules/${schedule.id}`, { at: '08:00' })
  expect(Object.keys(locked.body.errors)).toEqual(['origin'])
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })

  const wrong = await submit(hub, by, [
    of('export-schedule', 'a', { ...spec, recipients: ['nobody@example.test'], weekday: undefined }),
    of('export-schedule', 'b', { ...spec, resource: 'planets' }),
    of('export-schedule', 'c', { ...spec, filters: { colour: 'red' } }),
  ])
  const said = wrong.errors.map((each: Json) => each.message).join('\n')
  for (const place of ['recipients.0', 'weekday', 'resource', 'filters.colour']) expect(said).toContain(place)
  await made([absent(by.slug, 'export-schedule', 'weekly')])
  expect(await got('/exports/schedules')).toEqual([])
})

test('[RES-143] what a manifest made is neither enabled nor disabled by hand while it is locked', async () => {
  await made([
    of('check', 'ssh', { type: 'port', target: { port: 22, proto: 'tcp' }, scope: { all: true } }),
    of('webhook', 'hook', { url: 'https://127.0.0.1/hook' }),
    of('proxy', 'locked', { software: 'caddy' }),
  ])
  const idOf = async (path: string, name: string) =>
    (await got(`${path}?per_page=100`)).find((row: Json) => row.name === name).id
  const paths = [
    `/monitoring/checks/${await idOf('/monitoring/checks', 'ssh')}`,
    `/webhooks/${await idOf('/webhooks', 'hook')}`,
    `/proxies/${await idOf('/proxies', 'locked')}`,
  ]
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
  for (const path of paths)
    for (const act of ['disable', 'enable']) {
      const { status, body } = await by.call('POST', `${path}/${act}`)
      expect([path, act, status, Object.keys(body.errors ?? {})]).toEqual([path, act, 422, ['origin']])
    }
  await by.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })
  for (const path of paths) expect((await by.call('POST', `${path}/disable`)).status).toBe(200)
})

test('[R-036] members of a field that were applied and are absent now go back to their defaults too', async () => {
  const files = (soa: Json, target: Json, probe: Json) => [
    of('dns-zone', 'parts', { zone: 'parts.example', verify_interval_minutes: 0, ...soa }),
    of('check', 'parts', { type: 'http', target: { url: 'https://example.com', ...target }, scope: { all: true } }),
    of('connection', 'parts', {
      source: { kind: 'service', name: 'a' },
      target: { kind: 'external', host: 'parts.example.net' },
      probe: { by: 'none', ...probe },
    }),
  ]
  const contact = { contact: 'x@parts.example' }
  // Of a check only what its type has is kept.
  const first = files({ soa: { ...contact, refresh: 100 } }, { expect_status: 204, port: 80 }, { timeout_seconds: 9 })
  await made(first)
  expect(actions(await submit(hub, by, first))).toEqual([[], first.map(() => ['none', []])])
  const less = await made(files({ soa: contact }, {}, {}))
  expect(less.items.map(({ kind, diff }: Json) => [kind, diff])).toEqual([
    ['check', [{ field: 'target.expect_status', old: 204, new: 200 }]],
    ['dns-zone', [{ field: 'soa.refresh', old: 100, new: 3600 }]],
    ['connection', [{ field: 'probe.timeout_seconds', old: 9, new: 5 }]],
  ])
  const none = await made(files({}, {}, {}))
  const [{ diff }] = none.items.filter((item: Json) => item.kind === 'dns-zone')
  expect(diff).toEqual([{ field: 'soa.contact', old: 'x@parts.example', new: 'hostmaster@parts.example' }])
})

test('[R-036] references by name may be called as the API calls their fields', async () => {
  const member = (name: string) => ({ name, port: 80 })
  const spoken = (server: string, servers: string, pool: string) => ({
    [servers]: ['called'],
    vendor: 'nginx',
    pools: [{ name: 'p', members: [{ ...member('m'), [server]: 'called' }] }],
    virtual_servers: [
      { name: 'v', address: '192.0.2.1', port: 80, [pool]: 'p', rules: [{ host: 'x.example', [pool]: 'p' }] },
    ],
  })
  const files = [
    of('server', 'called', { subnet_id: 'called' }),
    of('subnet', 'called', { cidr: '10.99.0.0/24' }),
    of('ip-address', 'called', { address: '10.99.0.4', server_id: 'called' }),
    of('load-balancer', 'called', spoken('server_id', 'server_ids', 'pool_id')),
    of('proxy', 'called', { server_ids: ['called'], sites: [{ hostnames: ['called.example'] }] }),
  ]
  await made(files)
  const same = [of('load-balancer', 'called', spoken('server', 'servers', 'pool')), ...files]
  expect(actions(await submit(hub, by, same.toSpliced(4, 1)))).toEqual([[], files.map(() => ['none', []])])
  const wrong = await submit(hub, by, [
    of('load-balancer', 'called', { vendor: 'nginx', server_ids: ['called'], servers: ['called'] }),
    of('proxy', 'called', { server_ids: ['nobody'] }),
  ])
  expect(wrong.errors.map((each: Json) => [each.line, each.message.split(':')[0]])).toEqual([
    [8, 'spec.server_ids'],
    [8, 'spec.servers.0'],
  ])
})

test('[RES-142] [R-041] a change by hand of a part is seen as drift with the next look, and its way back too', async () => {
  const own = await acme(hub)
  const first = async (path: string): Promise<Json> => (await own.call('GET', path)).body.data[0]
  const run = await submit(
    hub,
    own,
    [
      manifest(own.slug, 'load-balancer', 'lb', {
        vendor: 'haproxy',
        pools: [{ name: 'web', min_up: 1, members: [{ address: '192.0.2.1', port: 80 }] }],
        virtual_servers: [{ name: 'www', address: '192.0.2.80', port: 80, pool: 'web' }],
      }),
      manifest(own.slug, 'dns-zone', 'zone', { zone: 'parts.example', records: [{ type: 'A', value: '192.0.2.1' }] }),
      manifest(own.slug, 'proxy', 'front', {
        sites: [{ name: 'shop', hostnames: ['shop.example'], path: '/', upstream: { url: 'http://127.0.0.1:8080' } }],
      }),
      manifest(own.slug, 'option-list', 'roles', { items: [{ value: 'web', label: 'Web' }] }),
    ],
    { apply: true },
  )
  expect([run.status, run.errors]).toEqual(['applied', []])
  await watchDrift(hub.hub)
  const [device, zone, proxy] = [await first('/load-balancers'), await first('/dns/zones'), await first('/proxies')]
  const pool = `/load-balancers/${device.id}/pools/${(await first(`/load-balancers/${device.id}/pools`)).id}`
  const records = (await own.call('GET', `/dns/zones/${zone.id}/records?type=A`)).body.data
  const at = {
    member: `${pool}/members/${(await first(`${pool}/members`)).id}`,
    virtual: `/load-balancers/${device.id}/virtual-servers/${(await first(`/load-balancers/${device.id}/virtual-servers`)).id}`,
    record: `/dns/zones/${zone.id}/records/${records[0].id}`,
    site: `/proxies/${proxy.id}/sites/${(await first(`/proxies/${proxy.id}/sites`)).id}`,
    item: `/options/roles/items/${(await first('/options/roles')).id}`,
  }
  const whole = { lb: `/load-balancers/${device.id}`, zone: `/dns/zones/${zone.id}`, proxy: `/proxies/${proxy.id}` }
  const isDrifted = async (path: string): Promise<boolean> => (await own.call('GET', path)).body.data.drifted
  const lists = async (): Promise<number> =>
    (await own.call('GET', '/iac/kinds')).body.data.find((each: Json) => each.kind === 'option-list').drifted
  const looked = async (path: string, change: Json, read: () => Promise<unknown>): Promise<unknown> => {
    expect((await own.call('PATCH', path, change)).status, path).toBe(200)
    await watchDrift(hub.hub)
    return read()
  }
  for (const [path, there, back, of] of [
    [at.member, { weight: 9 }, { weight: 1 }, whole.lb],
    [pool, { min_up: 2 }, { min_up: 1 }, whole.lb],
    [at.virtual, { port: 81 }, { port: 80 }, whole.lb],
    [at.record, { value: '192.0.2.9' }, { value: '192.0.2.1' }, whole.zone],
    [at.site, { path: '/x' }, { path: '/' }, whole.proxy],
  ] as const) {
    expect([path, await looked(path, there, () => isDrifted(of))]).toEqual([path, true])
    expect([path, await looked(path, back, () => isDrifted(of))]).toEqual([path, false])
  }
  const made = await own.call('POST', `${whole.zone}/records`, { type: 'A', name: 'more', value: '192.0.2.2' })
  expect(made.status).toBe(201)
  await watchDrift(hub.hub)
  expect(await isDrifted(whole.zone)).toBe(true)
  expect((await own.call('DELETE', `${whole.zone}/records/${made.body.data.id}`)).status).toBe(204)
  await watchDrift(hub.hub)
  expect(await isDrifted(whole.zone)).toBe(false)
  // One that comes while this look compares what it read before.
  const zones = manifestKind('dns-zone')!
  const { byIds } = zones
  expect((await own.call('PATCH', at.record, { comment: 'x' })).status).toBe(200)
  const reading = spyOn(zones, 'byIds').mockImplementationOnce(async (...asked) => {
    const found = await byIds(...asked)
    expect((await own.call('PATCH', at.record, { value: '192.0.2.9' })).status).toBe(200)
    return found
  })
  await watchDrift(hub.hub)
  reading.mockRestore()
  await watchDrift(hub.hub)
  expect(await isDrifted(whole.zone)).toBe(true)
  expect(await looked(at.item, { label: 'Other' }, lists)).toBe(1)
  expect(await looked(at.item, { label: 'Web' }, lists)).toBe(0)
})
