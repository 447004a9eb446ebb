// Search over everything, and option lists (resources.md 11, 14).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { alertEvent } from './alert-event.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.stop())

const make = async (path: string, body: Json): Promise<Json> => {
  const answer = await tenant.call('POST', path, body)
  expect([path, answer.status, answer.body.errors]).toEqual([path, 201, undefined])
  return answer.body.data
}
const found = async (q: string, more = '', by = tenant.call): Promise<Json[]> =>
  (await by('GET', `/search?q=${encodeURIComponent(q)}${more}`)).body.data

describe('search', () => {
  test('[RES-280] [RES-281] [RES-279] [RES-282] what is written is found at once, by whoever may view it', async () => {
    tenant = await hub.tenant()
    const web = await make('/servers', { name: 'web-01', hostname: 'web-01.example.net', ip_address: '10.1.2.3' })
    await make('/servers', { name: 'web-011' })
    const subnet = await make('/subnets', { cidr: '10.1.0.0/16', description: '100%_\\ "quoted"' })
    const address = await make('/ips', { address: '10.1.2.3' })
    expect((await found('web-01'))[0]).toMatchObject({ kind: 'server', id: web.id, link: `/servers/${web.id}` })
    expect((await found('wbe-01')).map(hit => hit.name)).toContain('web-01')
    expect((await found('10.1.2.3')).map(hit => hit.id).sort()).toEqual([web.id, subnet.id, address.id].sort())
    for (const q of ['100%_\\', '"quoted"']) expect((await found(q))[0]?.id).toBe(subnet.id)
    expect(await found('%_%')).toEqual([])
    await tenant.call('PATCH', `/subnets/${subnet.id}`, { name: 'harbour' })
    expect((await found('harbour')).map(hit => hit.id)).toEqual([subnet.id])
    await tenant.call('DELETE', `/servers/${web.id}`)
    expect((await found('web-01')).map(hit => hit.id)).not.toContain(web.id)
    const blind = (await hub.user(tenant.companyId, ['servers.view'])).call
    expect(await found('harbour', '', blind)).toEqual([])
    const device = await make('/load-balancers', { name: 'edge', vendor: 'haproxy' })
    const pool = await make(`/load-balancers/${device.id}/pools`, { name: 'jetty pool', members: [] })
    const members = `/load-balancers/${device.id}/pools/${pool.id}/members`
    const member = await make(members, { name: 'pier seven', address: '10.1.9.9', port: 80 })
    // What is part of something is found where it stands.
    expect((await found('pier seven'))[0]?.link).toBe(`${members}/${member.id}`)
    const foreign = await hub.tenant()
    expect(await found(subnet.id, '', foreign.call)).toEqual([])
    expect((await found(subnet.id)).map(hit => hit.id)).toEqual([subnet.id])
    expect((await tenant.call('GET', '/search?q=x')).body.errors).toHaveProperty('q')
    expect((await tenant.call('GET', '/search?q=web&kinds=spoon')).body.errors).toHaveProperty('kinds')
    expect((await found('10.1', '&kinds=subnet')).map(hit => hit.kind)).toEqual(['subnet'])
  })

  test('[RES-279] [HUB-055] rules and silences are found by those who may list them, and by nobody else', async () => {
    tenant = await hub.tenant()
    const scope = { all: true }
    const threshold = { metric: 'cpu_usage_percent', operator: '>', threshold: 1, severity: 'info' }
    await make('/monitoring/rules', { name: 'lighthouse', scope, ...threshold })
    await make('/monitoring/silences', { reason: 'lighthouse', scope, ends_at: new Date(Date.now() + 3_600_000) })
    for (const [key, status, kinds] of [
      ['monitoring.view', 403, []],
      ['monitoring.manage', 200, ['rule', 'silence']],
    ] as const) {
      const { call } = await hub.user(tenant.companyId, [key])
      for (const path of ['/monitoring/rules', '/monitoring/silences'])
        expect([key, path, (await call('GET', path)).status]).toEqual([key, path, status])
      expect([key, (await found('lighthouse', '', call)).map(hit => hit.kind).sort()]).toEqual([key, [...kinds]])
    }
  })

  test('[RES-281] words find tags, beside words of the text, and tags narrow down', async () => {
    tenant = await hub.tenant()
    const [a, b, c] = [
      await make('/servers', { name: 'alpha', tags: ['zone-Harbour', 'rack-7'] }),
      await make('/servers', { name: 'bravo', tags: ['rack-7'] }),
      await make('/subnets', { cidr: '10.9.0.0/16', name: 'harbour net', tags: ['rack-7'] }),
    ].map(each => each.id)
    const ids = async (q: string, more = '') => (await found(q, more)).map(hit => hit.id).sort()
    const all = (...each: string[]) => each.sort()
    expect(await ids('harbour')).toEqual(all(a, c))
    expect(await ids('rack-7')).toEqual(all(a, b, c))
    expect(await ids('harbour rack')).toEqual(all(a, c))
    expect(await ids('alpha rack')).toEqual([a])
    expect(await ids('rack alpha harbour', '&kinds=server')).toEqual([a])
    expect(await ids('rack', '&tag=zone-Harbour')).toEqual([a])
    expect(await ids('rack', '&tag=zone-Harbour&tag=rack-8')).toEqual([])
    expect((await found('alpha rack', '&kinds=server'))[0]).toMatchObject({ matched_field: 'tags', highlight: 'alpha' })
    const bulk = { server_ids: [a, b], add: ['pier-1'], remove: ['rack-7'] }
    expect((await tenant.call('POST', '/servers/bulk/tags', bulk)).status).toBe(200)
    expect([await ids('pier-1'), await ids('rack-7'), await ids('alpha pier')]).toEqual([all(a, b), [c], [a]])
    await tenant.call('PATCH', `/subnets/${c}`, { tags: ['pier-1'] })
    expect([await ids('pier-1'), await ids('rack-7')]).toEqual([all(a, b, c), []])
    for (const path of [`/servers/${a}`, `/subnets/${c}`]) await tenant.call('DELETE', path)
    expect(await ids('pier-1')).toEqual([b])
    expect((await tenant.call('PATCH', `/subnets/${c}`, { deleted_at: null })).status).toBe(200)
    expect(await ids('pier-1')).toEqual(all(b, c))
    const foreign = await hub.tenant()
    expect(await found('pier-1', '', foreign.call)).toEqual([])
  })

  test('[RES-035] the overview counts resources by kind and health, of kinds that the caller may view', async () => {
    const { data } = (await tenant.call('GET', '/monitoring/overview')).body
    const subnets = data.resources.kinds.find((each: Json) => each.kind === 'subnet')
    expect(subnets).toMatchObject({ total: 1, ok: 1 })
    const blind = (await hub.user(tenant.companyId, ['monitoring.view'])).call
    expect((await blind('GET', '/monitoring/overview')).body.data.resources).toEqual({ kinds: [], problems: [] })
  })

  test('[RES-283] after many rows were written at once little waits beside the indexes of search, which each search reads', async () => {
    const { companyId } = await hub.tenant()
    const { client } = hub.hub.database
    await client`
      insert into search_documents (company_id, kind, resource_id, name, text, exact)
      select ${companyId}, 'server', gen_random_uuid(), 'crane ' || i, 'crane ' || i || ' ' || md5(i::text), array['crane ' || i]
      from generate_series(1, 2000) i`
    for (const index of ['search_documents_text', 'search_documents_name', 'search_documents_exact']) {
      const [waiting] = await client`select gin_clean_pending_list(${index}::regclass)::int as blocks`
      // Of 8 kB; usually there may be 512 of them.
      expect([index, waiting?.blocks > 16]).toEqual([index, false])
    }
    await client`delete from search_documents where company_id = ${companyId}`
  })

  test('[RES-279] [RES-281] items of lists, active alerts and collectors are found by whoever may view them', async () => {
    tenant = await hub.tenant()
    const foreign = await hub.tenant()
    const item = await make('/options/environments/items', { value: 'quayside', label: 'Along the water' })
    const link = '/options/environments'
    for (const q of ['quayside', 'along water', 'quaysied'])
      expect((await found(q))[0]).toMatchObject({ kind: 'option_item', id: item.id, name: 'quayside', link })
    expect((await tenant.call('PATCH', `${link}/items/${item.id}`, { value: 'drydock' })).status).toBe(200)
    expect([await found('quayside', '&kinds=option_item'), (await found('drydock'))[0]?.id]).toEqual([[], item.id])
    expect((await tenant.call('DELETE', `${link}/items/${item.id}`)).status).toBe(204)
    expect(await found('drydock')).toEqual([])

    const server = await make('/servers', { name: 'lighthouse' })
    const rule = await make('/monitoring/rules', {
      name: 'Lamp is dim',
      metric: 'cpu_usage_percent',
      operator: '>',
      scope: { all: true },
      threshold: 90,
      severity: 'warning',
    })
    const collector = await hub.collector()
    const send = async (type: string) => {
      const events = [alertEvent(tenant, server.id, type, { rule_id: rule.id })]
      expect((await collector.call('POST', '/events', { events })).body.data.rejected).toEqual([])
    }
    await send('alert.opened')
    const alert = { kind: 'alert', name: 'Lamp is dim: lighthouse', health: 'warning', status: 'open' }
    const alertsOf = async (q: string, more = '', by = tenant.call) =>
      (await found(q, more, by)).filter(hit => hit.kind === 'alert')
    for (const [q, more] of [
      ['lamp dim', ''],
      ['lighthouse', ''],
      ['lighthouse', '&kinds=alert'],
      ['lamp', '&health=warning'],
    ] as const)
      expect([q, more, await alertsOf(q, more)]).toMatchObject([q, more, [alert]])
    const [{ id, link: path } = { id: '', link: '' }] = await alertsOf('lamp')
    expect((await tenant.call('GET', path)).body.data).toMatchObject({ id, state: 'open' })
    expect((await found(id))[0]).toMatchObject({ kind: 'alert', id })
    for (const more of ['&health=critical', '&tag=x']) expect([more, await alertsOf('lamp', more)]).toEqual([more, []])
    const blind = (await hub.user(tenant.companyId, ['servers.view'])).call
    for (const [q, by] of [
      ['lighthouse', blind],
      ['lamp', foreign.call],
      [id, foreign.call],
    ] as const)
      expect([q, await alertsOf(q, '', by)]).toEqual([q, []])
    await send('alert.resolved')
    expect(await alertsOf('lamp')).toEqual([])

    const named = '&kinds=collector'
    expect(await found('test collector', named)).toEqual([])
    const root = (await hub.user(tenant.companyId, ['*'], { superAdmin: true })).call
    const hit = (await found('test collector', named, root)).find(each => each.id === collector.id)
    expect(hit).toMatchObject({ name: 'Test collector', link: `/monitoring/collectors/${collector.id}` })
    expect((await root('GET', hit?.link ?? '')).body.data.id).toBe(collector.id)
    expect(await found(collector.id, '', tenant.call)).toEqual([])
  })
})

describe('option lists', () => {
  test('[RES-248] [RES-249] a strict list refuses other values, and leaves what stands', async () => {
    tenant = await hub.tenant()
    const standing = await make('/servers', { name: 'a', environment: 'prod' })
    const item = await make('/options/environments/items', { value: 'production' })
    const strict = { order: [item.id], strict: true }
    expect((await tenant.call('PUT', '/options/environments/order', strict)).status).toBe(200)
    for (const [path, body] of [
      ['/servers', { name: 'b', environment: 'prod' }],
      ['/subnets', { cidr: '10.0.0.0/24', environment: 'prod' }],
    ] as const) {
      const refused = await tenant.call('POST', path, body)
      expect([path, refused.status, Object.keys(refused.body.errors ?? {})]).toEqual([path, 422, ['environment']])
    }
    const same = await tenant.call('PATCH', `/servers/${standing.id}`, { notes: 'x', environment: 'prod' })
    expect(same.status).toBe(200)
    await make('/subnets', { cidr: '10.0.0.0/24', environment: 'production' })
  })

  test('[RES-250] [RES-251] [RES-252] a used value is renamed with its uses and scopes, or stays', async () => {
    tenant = await hub.tenant()
    const server = await make('/servers', { name: 'a', environment: 'prod' })
    const item = await make('/options/environments/items', { value: 'prod' })
    const scope = { environments: ['prod'] }
    const ends_at = new Date(Date.now() + 3_600_000).toISOString()
    const silence = await make('/monitoring/silences', { reason: 'x', ends_at, scope })
    const path = `/options/environments/items/${item.id}`
    expect((await tenant.call('DELETE', path)).body.errors.item).toEqual(['is used 1 times'])
    expect((await tenant.call('PATCH', path, { value: 'live' })).status).toBe(422)
    const renamed = (await tenant.call('PATCH', path, { value: 'live', rename_uses: true })).body.data
    expect(renamed).toMatchObject({ value: 'live', renamed: 1, uses: 1 })
    expect((await tenant.call('GET', `/servers/${server.id}`)).body.data.environment).toBe('live')
    const { data } = (await tenant.call('GET', `/monitoring/silences/${silence.id}`)).body
    expect([data.scope.environments, data.resolved_server_ids ?? [server.id]]).toEqual([['live'], [server.id]])
    await make('/servers', { name: 'b', environment: 'test' })
    const unlisted = (await tenant.call('GET', '/options/environments?include=unlisted')).body.data
    expect(unlisted.map((each: Json) => [each.value, each.uses])).toEqual([
      ['live', 1],
      ['test', 1],
    ])
    const other = await make('/options/environments/items', { value: 'other' })
    expect((await tenant.call('DELETE', `${path}?replace_with=${other.id}`)).status).toBe(204)
    expect((await tenant.call('GET', `/servers/${server.id}`)).body.data.environment).toBe('other')
  })

  test('[HSV-038] [HSV-039] [RES-251] a data center that is renamed or replaced reaches the agents of its servers', async () => {
    tenant = await hub.tenant()
    const server = await make('/servers', { name: 'a', datacenter: 'dc1' })
    const elsewhere = await make('/servers', { name: 'b', datacenter: 'dc2' })
    const item = await make('/options/datacenters/items', { value: 'dc1' })
    const other = await make('/options/datacenters/items', { value: 'dc3' })
    const collector = await hub.collector()
    for (const { id } of [server, elsewhere]) {
      const { token } = (await tenant.call('POST', '/monitoring/licenses', { name: 'x', server_id: id })).body
      await collector.call('POST', '/enroll', { license: token, hostname: id, machine_id: id })
    }
    const feed = async (since: number) => {
      const { data } = (await collector.call('GET', `/agents?since=${since}&limit=1000`)).body
      const own = data.agents.filter((each: Json) => each.company_id === tenant.companyId)
      return { since: data.next_since, agents: own.map((each: Json) => [each.server_id, each.datacenter]) }
    }
    const before = await feed(0)
    const path = `/options/datacenters/items/${item.id}`
    await tenant.call('PATCH', path, { value: 'dc9', rename_uses: true })
    const renamed = await feed(before.since)
    expect(renamed.agents).toEqual([[server.id, 'dc9']])
    await tenant.call('DELETE', `${path}?replace_with=${other.id}`)
    expect((await feed(renamed.since)).agents).toEqual([[server.id, 'dc3']])
  })

  test('[RES-248] a strict list refuses other values in files of servers, in tags and in reasons of silences', async () => {
    tenant = await hub.tenant()
    const { call } = tenant
    const strict = async (list: string, value: string) => {
      const item = await make(`/options/${list}/items`, { value })
      await call('PUT', `/options/${list}/order`, { order: [item.id], strict: true })
    }
    const standing = await make('/servers', { name: 'a', environment: 'test', tags: ['old'] })
    await strict('environments', 'production')
    await strict('resource_tags', 'web')
    await strict('silence_reasons', 'Works')
    const csv = (text: string) => call('POST', '/servers/import', text, { 'Content-Type': 'text/csv' })
    const refused = await csv('name,environment,tags\nb,production,web\nc,wild,web;wild\n')
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['rows.3.environment', 'rows.3.tags']])
    expect((await call('GET', '/servers')).body.meta.total).toBe(1)
    // What stands already may be sent again.
    expect((await csv('name,environment,tags\na,test,old;web\nb,production,web\n')).body.data).toMatchObject({
      created: 1,
      updated: 1,
    })
    const scope = { server_ids: [standing.id] }
    const ends_at = new Date(Date.now() + 3_600_000).toISOString()
    for (const [method, path, body, field] of [
      ['POST', '/servers', { name: 'd', tags: ['wild'] }, 'tags'],
      ['PUT', `/servers/${standing.id}/tags`, { tags: ['wild'] }, 'tags'],
      ['POST', '/proxies', { name: 'p', tags: ['web', 'wild'] }, 'tags'],
      ['POST', '/monitoring/silences', { scope, ends_at, reason: 'wild' }, 'reason'],
    ] as const) {
      const answer = await call(method, path, body)
      expect([path, answer.status, Object.keys(answer.body.errors ?? {})]).toEqual([path, 422, [field]])
    }
    const bulk = await call('POST', '/servers/bulk/tags', { server_ids: [standing.id], add: ['wild'] })
    expect([bulk.status, bulk.body.data]).toEqual([200, []])
    expect(Object.keys(bulk.body.refused[0].errors)).toEqual(['tags'])
    await make('/proxies', { name: 'p', tags: ['web'] })
    const silence = await make('/monitoring/silences', { scope, ends_at, reason: 'Works' })
    const other = await call('PATCH', `/monitoring/silences/${silence.id}`, { reason: 'wild' })
    expect(Object.keys(other.body.errors)).toEqual(['reason'])
    // A tag is renamed wherever it is used, of whatever kind.
    const [item] = (await call('GET', '/options/resource_tags')).body.data
    expect(item.uses).toBe(3)
    const renamed = await call('PATCH', `/options/resource_tags/items/${item.id}`, { value: 'www', rename_uses: true })
    expect(renamed.body.data.renamed).toBe(3)
    expect((await call('GET', '/proxies')).body.data[0]).toMatchObject({ tags: ['www'], version: 2 })
  })

  test('[RES-008] [RES-009] [RES-017] an item has a version, and what a rename changes has one more', async () => {
    tenant = await hub.tenant()
    const { call } = tenant
    const made = await call('POST', '/options/environments/items', { value: 'prod' })
    const { id } = made.body.data
    const path = `/options/environments/items/${id}`
    expect([made.headers.get('etag'), made.headers.get('location')]).toEqual(['"1"', `/api/v1${path}`])
    const subnet = await make('/subnets', { cidr: '10.0.0.0/24', environment: 'prod' })
    expect((await call('PATCH', path, { label: 'prod', enabled: true })).headers.get('etag')).toBe('"1"')
    const renamed = await call('PATCH', path, { value: 'live', rename_uses: true }, { 'If-Match': '"1"' })
    expect([renamed.status, renamed.headers.get('etag')]).toEqual([200, '"2"'])
    for (const [body, headers, status] of [
      [{ label: 'x' }, { 'If-Match': '"1"' }, 412],
      [{ label: 'x', version: 1 }, {}, 409],
    ] as const) {
      const refused = await call('PATCH', path, body, headers)
      expect([refused.status, refused.body.reason, refused.body.current_version]).toEqual([
        status,
        'version_conflict',
        2,
      ])
    }
    expect((await call('DELETE', path, undefined, { 'If-Match': '"1"' })).status).toBe(412)
    const entries = async (type: string, of: string) =>
      (await call('GET', `/audit-log/subjects/${type}/${of}`)).body.data.map((each: Json) => [
        each.action,
        each.changes,
      ])
    expect((await entries('option_item', id))[0]).toEqual([
      'option_item.update',
      { value: { old: 'prod', new: 'live' } },
    ])
    expect(await entries('option_item', id)).toHaveLength(2)
    // What was kept by its version is read again.
    const read = await call('GET', `/subnets/${subnet.id}`, undefined, { 'If-None-Match': '"1"' })
    expect([read.status, read.body.data.version, read.body.data.environment]).toEqual([200, 2, 'live'])
    expect((await entries('subnet', subnet.id))[0]).toEqual([
      'subnet.update',
      { environment: { old: 'prod', new: 'live' } },
    ])
  })

  test('[RES-253] an order has every item once', async () => {
    tenant = await hub.tenant()
    const [a, b] = [
      await make('/options/vrfs/items', { value: 'a' }),
      await make('/options/vrfs/items', { value: 'b' }),
    ]
    const taken = await tenant.call('POST', '/options/vrfs/items', { value: 'A' })
    expect(taken.body.errors).toHaveProperty('value')
    for (const order of [[a.id], [a.id, a.id], [a.id, crypto.randomUUID()]])
      expect((await tenant.call('PUT', '/options/vrfs/order', { order })).body.errors).toHaveProperty('order')
    const ordered = (await tenant.call('PUT', '/options/vrfs/order', { order: [b.id, a.id] })).body.data
    expect(ordered.map((item: Json) => item.value)).toEqual(['b', 'a'])
    expect((await tenant.call('GET', '/options/spoons')).status).toBe(404)
  })
})
