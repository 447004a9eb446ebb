// Connections over HTTP: what may stand, tests against real listeners, the checks that they own, and the graph.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { watchConnections } from '../../apps/hub/connections/connection-schedule.ts'
import { forgetNodes } from '../../apps/hub/connections/gone-nodes.ts'
import { AdminListener } from './admin-listener.ts'
import { alertEvent } from './alert-event.ts'
import { type Answer, type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { acme, applied, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let admin: AdminListener
let collector: Awaited<ReturnType<TestHub['collector']>>
let listener: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
  listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: request => new Response('', { status: new URL(request.url).pathname === '/gone' ? 410 : 200 }),
  })
})
afterAll(async () => {
  await listener.stop(true)
  await admin.stop()
  await hub.stop()
})

let numbers = 0
const unique = (name: string): string => `${name}-${++numbers}`
const service = (name: string): Json => ({ kind: 'service', name })
const external = (host: string): Json => ({ kind: 'external', host })
const post = (body: Json, by: Tenant = tenant): Promise<Answer> => by.call('POST', '/connections', body)
async function made(body: Json, by: Tenant = tenant): Promise<Json> {
  const answer = await post(body, by)
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
async function refused(body: Json, by: Tenant = tenant): Promise<string[]> {
  const answer = await post(body, by)
  expect(answer.status).toBe(422)
  return Object.keys(answer.body.errors)
}
const shown = async (id: string, by: Tenant = tenant): Promise<Json> =>
  (await by.call('GET', `/connections/${id}`)).body.data
async function server(by: Tenant = tenant, more: Json = {}): Promise<Json> {
  const { data } = (await by.call('POST', '/servers', { name: unique('server'), ...more })).body
  return { id: data.id, name: data.name, end: { kind: 'server', id: data.id }, key: `server:${data.id}` }
}
/** Of a service to a host, new each time. */
const draft = (more: Json = {}): Json => ({ source: service(unique('app')), target: external('127.0.0.1'), ...more })
const totals = async (by: Tenant): Promise<number[]> => [
  (await by.call('GET', '/connections')).body.meta.total,
  (await by.call('GET', '/monitoring/checks')).body.meta.total,
]

async function tested(of: Json, body: Json = {}): Promise<Json> {
  const answer = await tenant.call('POST', `/connections/${of.id}/test`, body)
  expect(answer.status).toBe(202)
  return until('the run', async () => {
    const { last_run } = await shown(of.id)
    return last_run?.id === answer.body.data.id && last_run.finished_at !== null && last_run
  })
}

describe('records', () => {
  test('[RES-039] [RES-004] both ends are the company’s, and not one', async () => {
    const [own, foreign] = [await server(), await server(await hub.tenant())]
    expect(await refused({ target: own.end })).toEqual(['source'])
    expect(await refused({ source: own.end })).toEqual(['target'])
    expect(await refused({ source: foreign.end, target: own.end })).toEqual(['source.id'])
    expect(await refused({ source: own.end, target: { kind: 'server', id: crypto.randomUUID() } })).toEqual([
      'target.id',
    ])
    expect(await refused({ source: own.end, target: own.end })).toEqual(['target'])
    expect(await refused({ source: service('Self'), target: service('self') })).toEqual(['target'])
    expect(await refused({ source: external('a.example.net'), target: own.end })).toEqual(['source.kind'])
    expect(await refused({ source: { kind: 'service' }, target: external('a b') })).toEqual([
      'source.name',
      'target.host',
    ])
  })

  test('[RES-040] the same ends, protocol, port and path stand once', async () => {
    const ends = { source: service(unique('app')), target: external('db.example.net') }
    const first = await made({ ...ends, port: 5432 })
    expect(await refused({ ...ends, port: 5432 })).toEqual(['target'])
    await made({ ...ends, port: 5433 })
    await made({ ...ends, port: 5432, protocol: 'udp' })
    const web = await made({ ...ends, port: 443, protocol: 'https' })
    expect(web.path).toBe('/')
    expect(await refused({ ...ends, port: 443, protocol: 'https', path: '/' })).toEqual(['target'])
    await made({ ...ends, port: 443, protocol: 'https', path: '/health' })
    const moved = await tenant.call('PATCH', `/connections/${web.id}`, { path: '/health' })
    expect([moved.status, Object.keys(moved.body.errors)]).toEqual([422, ['target']])
    await tenant.call('DELETE', `/connections/${first.id}`)
    await made({ ...ends, port: 5432 })
  })

  test('[RES-001] a name follows from the ends, ends do not change, and an answer can be sent back', async () => {
    const from = await server()
    const first = await made({ source: from.end, target: external('db.example.net'), port: 5432 })
    expect(first.name).toBe(`${from.name} to db.example.net:5432`)
    const second = await made({ source: from.end, target: external('db.example.net'), port: 5432, protocol: 'udp' })
    expect(second.name).toBe(`${from.name} to db.example.net:5432 (2)`)
    expect(first.source).toEqual({ kind: 'server', id: from.id, name: from.name, host: null, state: 'unknown' })
    expect(first).toMatchObject({ type: 'custom', protocol: 'tcp', criticality: 'hard', state: 'unknown', path: null })
    expect(first.probe).toEqual({ by: 'none', interval_seconds: 300, timeout_seconds: 5, expect_status: 200 })
    const back = await tenant.call('PATCH', `/connections/${first.id}`, first)
    expect([back.status, back.body.data.version]).toEqual([200, 1])
    const moved = await tenant.call('PATCH', `/connections/${first.id}`, { target: external('other.example.net') })
    expect([moved.status, Object.keys(moved.body.errors)]).toEqual([422, ['target']])
    const probe = (await tenant.call('PATCH', `/connections/${first.id}`, { probe: { timeout_seconds: 2 } })).body.data
    expect(probe.probe).toEqual({ by: 'none', interval_seconds: 300, timeout_seconds: 2, expect_status: 200 })
  })

  test('what a probe needs is asked for at its field', async () => {
    const probe = { by: 'hub' }
    expect(await refused(draft({ probe }))).toEqual(['port'])
    expect(await refused(draft({ probe, protocol: 'udp', port: 53 }))).toEqual(['probe.by'])
    expect(await refused(draft({ probe, port: 80, target: service('nowhere') }))).toEqual(['target'])
    expect(await refused(draft({ probe: { by: 'none', interval_seconds: 59 } }))).toEqual(['probe.interval_seconds'])
    expect(await refused(draft({ port: 80, path: '/x' }))).toEqual(['path'])
    expect(await refused(draft({ port: 80, protocol: 'http', path: 'x' }))).toEqual(['path'])
  })

  test('[RES-248] types are suggestions until their list is strict, and a company begins with the usual ones', async () => {
    const own = await hub.tenant()
    const { data } = (await own.call('GET', '/options/connection_types')).body
    expect(data.map((item: Json) => item.value)).toContain('database')
    await made(draft({ type: 'ours' }), own)
    const order = data.map((item: Json) => item.id)
    expect((await own.call('PUT', '/options/connection_types/order', { order, strict: true })).status).toBe(200)
    expect(await refused(draft({ type: 'theirs' }), own)).toEqual(['type'])
    await made(draft({ type: 'database' }), own)
  })

  test('a list is filtered by node, end and state, and searched for hosts, services and ports', async () => {
    const own = await hub.tenant()
    const [a, b] = [await server(own), await server(own)]
    const ab = await made({ source: a.end, target: b.end, port: 7001, criticality: 'soft' }, own)
    const toHost = await made({ source: b.end, target: external('Mail.Example.net'), type: 'mail', port: 25 }, own)
    const of = async (query: string): Promise<string[]> =>
      (await own.call('GET', `/connections?${query}`)).body.data.map((row: Json) => row.id)
    expect((await of(`node=${b.key}`)).sort()).toEqual([ab.id, toHost.id].sort())
    expect(await of(`source=${b.key}`)).toEqual([toHost.id])
    expect(await of('target=external:mail.example.net')).toEqual([toHost.id])
    expect(await of('criticality=soft')).toEqual([ab.id])
    expect(await of('type=mail&protocol=tcp&state=unknown')).toEqual([toHost.id])
    for (const text of ['mail.example', '7001']) expect(await of(`search=${text}`)).toHaveLength(1)
    expect((await of('sort=-state_since')).length).toBe(2)
    expect((await own.call('GET', '/connections?node=elsewhere')).body.errors).toHaveProperty('node')
    const found = (await own.call('GET', '/search?q=mail.example.net&kinds=connection')).body.data
    expect(found.map((hit: Json) => hit.id)).toEqual([toHost.id])
  })

  test('[RES-057] many are deleted where it can be, and none where an id is unknown', async () => {
    const rows = [await made(draft()), await made(draft()), await made(draft())]
    const [free, , locked] = rows
    const remove = (ids: string[]) => tenant.call('POST', '/connections/bulk/delete', { ids })
    expect((await remove([free.id, crypto.randomUUID()])).status).toBe(404)
    expect((await shown(free.id)).id).toBe(free.id)
    await hub.hub.database.db.execute(sql`
      insert into iac_bindings (company_id, kind, slug, resource_kind, resource_id, applied_spec)
      values (${tenant.companyId}, 'connection', 'locked', 'connection', ${locked.id}, '{}')`)
    await tenant.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
    const answer = await remove([...rows.map(row => row.id), free.id])
    await tenant.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: false })
    expect(answer.body.data.map((row: Json) => row.id)).toEqual(rows.slice(0, 2).map(row => row.id))
    expect(answer.body.refused).toMatchObject([{ id: locked.id, errors: { origin: expect.any(String) } }])
    expect((await tenant.call('GET', `/connections/${free.id}`)).status).toBe(404)
    expect((await shown(locked.id)).id).toBe(locked.id)
  })
})

describe('tests by the hub', () => {
  const closedPort = (): number => {
    const other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('') })
    const { port = 0 } = other
    void other.stop(true)
    return port
  }

  test('[check 16.18] [RES-045] a listening port is up, a closed one refused, another status is told', async () => {
    const up = await tested(await made(draft({ port: listener.port })))
    expect(up).toMatchObject({ state: 'done', result: { up: true, error: null, resolved_address: '127.0.0.1' } })
    expect(up.result.seconds).toBeGreaterThanOrEqual(0)
    const closed = await tested(await made(draft({ port: closedPort() })))
    expect(closed).toMatchObject({ state: 'done', result: { up: false, error: 'refused' } })
    const web = await made(draft({ port: listener.port, protocol: 'http' }))
    expect((await tested(web)).result).toMatchObject({ up: true, status_code: 200 })
    await tenant.call('PATCH', `/connections/${web.id}`, { path: '/gone' })
    expect((await tested(web)).result).toMatchObject({ up: false, status_code: 410, error: 'status' })
    await tenant.call('PATCH', `/connections/${web.id}`, { protocol: 'https' })
    expect((await tested(web)).result).toMatchObject({ up: false })
  })

  test('[check 16.18] [RES-046] [RES-031] [RES-033] what the hub may not connect to is refused, and a name that is none is a result', async () => {
    for (const host of ['10.0.0.1', '169.254.169.254']) {
      const of = await made(draft({ target: external(host), port: 80 }))
      const answer = await tenant.call('POST', `/connections/${of.id}/test`, {})
      expect([host, answer.status, Object.keys(answer.body.errors)]).toEqual([host, 422, ['target']])
      expect(await refused(draft({ target: external(host), port: 80, probe: { by: 'hub' } }))).toEqual(['target'])
    }
    const unknown = await tested(await made(draft({ target: external('nowhere.invalid'), port: 80 })))
    expect(unknown).toMatchObject({ state: 'done', result: { up: false, error: 'dns' } })
    const of = await made(draft({ port: 80 }))
    expect((await tenant.call('POST', `/connections/${of.id}/test`, { by: 'agent' })).body.errors).toHaveProperty('by')
  })

  test('[RES-047] [RES-048] a connection that goes down opens its condition, and its history says all of it', async () => {
    const other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('') })
    const of = await made(draft({ port: other.port }))
    await tested(of)
    expect(await shown(of.id)).toMatchObject({ state: 'up', health: 'ok' })
    await other.stop(true)
    await tested(of)
    expect(await shown(of.id)).toMatchObject({ state: 'unknown', health: 'ok' })
    await tested(of)
    const down = await shown(of.id)
    expect(down).toMatchObject({ state: 'down', health: 'critical' })
    expect(down.conditions).toMatchObject([{ code: 'connection_down', severity: 'critical' }])
    await tenant.call('PATCH', `/connections/${of.id}`, { criticality: 'soft' })
    expect((await shown(of.id)).conditions).toMatchObject([{ code: 'connection_down', severity: 'warning' }])
    const history = async (query = ''): Promise<Json[]> =>
      (await tenant.call('GET', `/connections/${of.id}/history${query}`)).body.data
    const all = await history()
    expect(all.map(entry => entry.type).sort()).toEqual([
      ...Array(2).fill('change'),
      ...Array(3).fill('state'),
      ...Array(3).fill('test'),
    ])
    expect(all.map(entry => entry.at)).toEqual(
      all
        .map(entry => entry.at)
        .sort()
        .reverse(),
    )
    const [change, creation] = await history('?type=change')
    expect([creation.action, change.action]).toEqual(['create', 'update'])
    expect(change.changes.criticality).toEqual({ old: 'hard', new: 'soft' })
    expect((await history('?type=state')).map(entry => entry.state)).toEqual(['down', 'unknown', 'up'])
    expect((await history('?type=test')).map(entry => entry.result.up)).toEqual([false, false, true])
    const seen = (await tenant.call('GET', `/connections?state=down&search=${of.source.name}`)).body.data
    expect(seen).toMatchObject([{ id: of.id, source: { name: of.source.name }, target: { state: expect.any(String) } }])
  })

  test('[RES-048] a long history has every entry once and in order, on its last pages as on its first', async () => {
    const of = await made(draft({ port: 81 }))
    const stored = 2_400
    await hub.hub.database.db.execute(sql`
      insert into connection_states (connection_id, at, state)
      select ${of.id}::uuid, now() - make_interval(mins => i), 'state ' || i from generate_series(1, ${stored}::int) i`)
    const page = (number: number) => tenant.call('GET', `/connections/${of.id}/history?page=${number}`)
    const entries: Json[] = []
    const { total, per_page, last_page } = (await page(1)).body.meta
    for (let number = 1; number <= last_page; number++) {
      const { data } = (await page(number)).body
      expect([number, data.length]).toEqual([number, Math.min(per_page, total - entries.length)])
      entries.push(...data)
    }
    expect(entries.length).toBe(total)
    expect(entries.filter(({ type }) => type === 'state').map(({ state }) => state)).toEqual(
      Array.from({ length: stored }, (_, index) => `state ${index + 1}`),
    )
    const beyond = await page(last_page + 1)
    expect([beyond.body.data, beyond.body.meta.total]).toEqual([[], total])
  })

  test('one that is due is tested by the clock, and a success that is too old says nothing any more', async () => {
    const of = await made(draft({ port: listener.port, probe: { by: 'hub' } }))
    expect(of.health).toBe('unknown')
    const resting = await made(draft({ port: listener.port, probe: { by: 'hub' }, status: 'planned' }))
    await watchConnections(hub.hub)
    await until('it is up', async () => (await shown(of.id)).state === 'up')
    expect((await shown(of.id)).health).toBe('ok')
    expect((await shown(resting.id)).last_run).toBeNull()
    await hub.hub.database.db.execute(sql`
      update connections set up_until = now(), tested_at = now() where company_id = ${tenant.companyId}`)
    await watchConnections(hub.hub)
    expect((await shown(of.id)).state).toBe('unknown')
  })
})

describe('probes by an agent', () => {
  const byAgent = { by: 'agent', interval_seconds: 120 }
  const checkOf = async (of: Json, by: Tenant = tenant): Promise<Json> =>
    (await by.call('GET', `/monitoring/checks/${of.check_id}`)).body.data

  test('[RES-041] only a server has an agent', async () => {
    expect(await refused(draft({ port: 80, probe: byAgent }))).toEqual(['probe.by'])
  })

  test('[RES-042] [RES-043] a connection owns one check: it comes, changes and goes with it, with its rule', async () => {
    const own = await hub.tenant()
    const from = await server(own)
    const of = await made({ source: from.end, target: external('db.example.net'), port: 5432, probe: byAgent }, own)
    const check = await checkOf(of, own)
    expect(check).toMatchObject({
      type: 'tcp',
      target: { target: 'db.example.net:5432' },
      scope: { all: false, server_ids: [from.id] },
      interval_seconds: 120,
      managed_by: { kind: 'connection', id: of.id },
      rule_ids: [expect.any(String)],
    })
    const path = `/monitoring/checks/${check.id}`
    for (const [method, at, body] of [
      ['PATCH', path, { name: 'mine' }],
      ['DELETE', path, undefined],
      ['POST', `${path}/disable`, {}],
      // It is enabled already: asked for or not, what it does is not for this path to say.
      ['POST', `${path}/enable`, {}],
    ] as const) {
      const answer = await own.call(method, at, body)
      expect([method, answer.status, Object.keys(answer.body.errors)]).toEqual([method, 422, ['managed_by']])
    }
    const one = `/connections/${of.id}`
    await own.call('PATCH', one, { port: 5433, status: 'retired' })
    expect(await checkOf(of, own)).toMatchObject({ target: { target: 'db.example.net:5433' }, enabled: false })
    const web = (await own.call('PATCH', one, { protocol: 'http', path: '/up', status: 'active' })).body.data
    expect(web.check_id).not.toBe(of.check_id)
    expect(await checkOf(web, own)).toMatchObject({
      type: 'http',
      target: { url: 'http://db.example.net:5433/up', expect_status: 200 },
      enabled: true,
    })
    expect(await totals(own)).toEqual([1, 1])
    expect((await own.call('PATCH', one, { probe: { by: 'none' } })).body.data.check_id).toBeNull()
    expect(await totals(own)).toEqual([1, 0])
    const again = (await own.call('PATCH', one, { probe: { by: 'agent' } })).body.data
    const [ruleId] = (await checkOf(again, own)).rule_ids
    await own.call('DELETE', one)
    expect(await totals(own)).toEqual([0, 0])
    expect((await own.call('GET', `/monitoring/rules/${ruleId}`)).status).toBe(404)
    const restored = (await own.call('PATCH', one, { deleted_at: null })).body.data
    expect((await checkOf(restored, own)).managed_by).toEqual({ kind: 'connection', id: of.id })
  })

  test('many servers may look at one target, and each only once', async () => {
    const own = await hub.tenant()
    const [a, b] = [await server(own), await server(own)]
    const probed = { target: external('db.example.net'), port: 5432, probe: byAgent }
    await made({ ...probed, source: a.end }, own)
    await made({ ...probed, source: b.end }, own)
    expect(await totals(own)).toEqual([2, 2])
    const check = { name: 'mine', type: 'tcp', target: { target: 'db.example.net:5432' }, scope: { all: true } }
    expect((await own.call('POST', '/monitoring/checks', check)).body.errors).toHaveProperty('target')
    const third = await server(own)
    const elsewhere = { ...check, scope: { server_ids: [third.id] } }
    expect((await own.call('POST', '/monitoring/checks', elsewhere)).status).toBe(201)
    expect(await refused({ ...probed, source: third.end }, own)).toEqual(['probe.by'])
  })

  test('[RES-044] a server that has its 50 checks gets no more, and nothing is made', async () => {
    const own = await hub.tenant()
    const from = await server(own)
    const scope = { all: false, server_ids: [from.id], tags: [], environments: [], roles: [], datacenters: [] }
    await hub.hub.database.db.execute(sql`
      insert into monitoring_checks (id, company_id, name, scope, resolved_server_ids, type, target)
      select gen_random_uuid(), ${own.companyId}, 'c' || n, ${JSON.stringify(scope)}::jsonb, array[${from.id}::uuid],
        'service', jsonb_build_object('name', 's' || n)
      from generate_series(1, 50) n`)
    const body = { source: from.end, target: external('db.example.net'), port: 1, probe: byAgent }
    expect(await refused(body, own)).toEqual(['probe.by'])
    expect(await totals(own)).toEqual([0, 50])
  })

  test('[RES-048] what the agent saw last decides, and an alert of the check is down', async () => {
    const from = await server()
    const of = await made({ source: from.end, target: external('db.example.net'), port: 5432, probe: byAgent })
    const series = (value: number) => ({
      status: 200,
      body: {
        data: {
          server_id: from.id,
          company_id: tenant.companyId,
          metric: 'tcp_connect_up',
          agg: 'last',
          from: new Date(Date.now() - 60_000).toISOString(),
          to: new Date().toISOString(),
          step_seconds: 30,
          series: [{ labels: { target: 'db.example.net:5432' }, points: [[Date.now(), value]] }],
        },
      },
    })
    admin.answer = () => series(1)
    expect(await tested(of)).toMatchObject({ state: 'done', result: { by: 'agent', up: true } })
    expect((await shown(of.id)).state).toBe('up')
    const ruleId = (await checkOf(of)).rule_ids[0]
    const event = (type: string) =>
      alertEvent(tenant, from.id, type, {
        rule_id: ruleId,
        series_key: 'tcp_connect_up{target="db.example.net:5432"}',
        severity: 'critical',
        value: type === 'alert.opened' ? 0 : 1,
        threshold: 1,
      })
    const send = async (type: string) =>
      expect((await collector.call('POST', '/events', { events: [event(type)] })).body.data.rejected).toEqual([])
    await send('alert.opened')
    await watchConnections(hub.hub)
    expect(await shown(of.id)).toMatchObject({ state: 'down', health: 'critical' })
    await send('alert.resolved')
    await watchConnections(hub.hub)
    expect(await shown(of.id)).toMatchObject({ state: 'up', conditions: [] })
    admin.answer = () => ({ status: 500, body: {} })
    expect(await tested(of)).toMatchObject({ state: 'failed' })
  })
})

describe('graph', () => {
  const graph = async (query: string, by: Tenant): Promise<Json> => {
    const answer = await by.call('GET', `/connections/graph?${query}`)
    expect([query, answer.status]).toEqual([query, 200])
    return answer.body.data
  }

  test('[RES-049] [RES-050] [RES-051] [RES-052] [RES-053] nodes, every edge between them, cycles and impact', async () => {
    const own = await hub.tenant()
    const [web, app, db, job] = [await server(own), await server(own), await server(own), await server(own)]
    const pay = { end: service('Payments'), key: 'service:payments' }
    const link = (source: Json, target: Json, criticality = 'hard') =>
      made({ source: source.end, target: target.end, criticality }, own)
    await link(web, app)
    const closing = await link(app, db)
    await link(db, app)
    await link(job, db, 'soft')
    await link(web, pay)
    const around = await graph(`root=${db.key}&direction=dependents`, own)
    expect(Object.fromEntries(around.nodes.map((node: Json) => [node.key, node.depth]))).toEqual({
      [db.key]: 0,
      [app.key]: 1,
      [job.key]: 1,
      [web.key]: 2,
    })
    expect(around.nodes.find((node: Json) => node.key === app.key)).toMatchObject({
      kind: 'server',
      id: app.id,
      name: app.name,
      open_alerts: 0,
      state: 'unknown',
    })
    expect(around.edges).toHaveLength(4)
    expect(around.edges.map((edge: Json) => edge.id)).toContain(closing.id)
    expect(around.cycles).toEqual([[app.key, db.key].sort()])
    expect(around.impact.total).toBe(3)
    expect(around.impact.affected.map((each: Json) => [each.key, each.hard, each.path])).toEqual([
      [app.key, true, [app.key, db.key]],
      [web.key, true, [web.key, app.key, db.key]],
      [job.key, false, [job.key, db.key]],
    ])
    const near = await graph(`root=${db.key}&depth=1&max_nodes=2`, own)
    expect([near.nodes.length, near.truncated, near.nodes[0].key]).toEqual([2, true, db.key])
    const whole = await graph('', own)
    expect([whole.nodes.length, whole.impact, whole.truncated]).toEqual([5, null, false])
    expect(whole.nodes.find((node: Json) => node.key === pay.key)).toMatchObject({ name: 'Payments', id: null })
    const hard = await graph(`root=${db.key}&criticality=hard`, own)
    expect(hard.nodes.map((node: Json) => node.key)).not.toContain(job.key)
  })

  test('[check 16.20] [RES-049] a root whose agent stops is down, and those who reach it are named as before', async () => {
    const own = await hub.tenant()
    const [web, db] = [await server(own), await server(own)]
    await made({ source: web.end, target: db.end }, own)
    const { token } = (await own.call('POST', '/monitoring/licenses', { name: db.name, server_id: db.id })).body
    const asked = { license: token, hostname: db.name, machine_id: db.id, collector_id: collector.id }
    const { agent_id } = (await collector.call('POST', '/enroll', asked)).body.data
    const seen = { agents: [{ agent_id, last_seen_at: new Date().toISOString() }] }
    expect((await collector.call('POST', '/agents/seen', seen)).status).toBe(200)
    const around = async () => {
      const { nodes, impact } = await graph(`root=${db.key}&direction=dependents`, own)
      const { state, open_alerts } = nodes.find((node: Json) => node.key === db.key)
      return [state, open_alerts, impact.affected.map((each: Json) => each.key)]
    }
    expect(await around()).toEqual(['online', 0, [web.key]])
    const agent = { rule_id: 'agent_down', series_key: `agent:${agent_id}`, severity: 'critical', labels: { agent_id } }
    const down = alertEvent(own, db.id, 'agent.down', agent)
    expect((await collector.call('POST', '/events', { events: [down] })).body.data.rejected).toEqual([])
    expect(await around()).toEqual(['down', expect.any(Number), [web.key]])
  })

  test('[RES-055] what is another company’s is in no graph, and its root is unknown', async () => {
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const foreign = await server(other)
    await made({ source: foreign.end, target: service('shared') }, other)
    await made({ source: service('mine'), target: service('shared') }, own)
    expect((await graph('', own)).nodes.map((node: Json) => node.key).sort()).toEqual([
      'service:mine',
      'service:shared',
    ])
    for (const root of [foreign.key, `server:${crypto.randomUUID()}`, 'service:unheard', `proxy:${foreign.id}`])
      expect([root, (await own.call('GET', `/connections/graph?root=${root}`)).status]).toEqual([root, 404])
    expect((await own.call('GET', '/connections/graph?root=nothing')).body.errors).toHaveProperty('root')
  })

  test('[RES-056] connections of a deleted server stay and say so, and go with its permanent deletion', async () => {
    const own = await hub.tenant()
    const [a, b] = [await server(own), await server(own)]
    const probe = { by: 'agent' }
    const of = await made({ source: a.end, target: external('db.example.net'), port: 1, probe }, own)
    const toB = await made({ source: a.end, target: b.end }, own)
    expect((await own.call('DELETE', `/servers/${b.id}`)).status).toBe(204)
    expect((await shown(toB.id, own)).target).toMatchObject({ id: b.id, name: b.name, state: 'deleted' })
    const { nodes } = await graph(`root=${a.key}`, own)
    expect(nodes.find((node: Json) => node.key === b.key).state).toBe('deleted')
    await own.call('DELETE', `/servers/${a.id}`)
    expect(await totals(own)).toEqual([2, 1])
    expect((await own.call('DELETE', `/servers/${a.id}/permanent`)).status).toBe(204)
    await watchConnections(hub.hub)
    expect(await totals(own)).toEqual([0, 0])
    expect((await own.call('GET', `/audit-log?subject=${of.id}`)).body.data[0].action).toBe('connection.delete')
    const c = await server(own)
    await made({ source: c.end, target: service('x') }, own)
    await hub.hub.database.db.execute(sql`delete from servers where id = ${c.id}`)
    await forgetNodes(hub.hub)
    expect(await totals(own)).toEqual([0, 0])
  })
})

test('[RES-127] [RES-132] manifests name both ends, and an export of connections plans to nothing', async () => {
  const own = await acme(hub)
  const run = await submit(hub, own, [
    manifest(own.slug, 'connection', 'shop-db', {
      source: { kind: 'server', name: 'shop' },
      target: { kind: 'external', host: 'db.example.net' },
      port: 5432,
      probe: { by: 'agent', interval_seconds: 120 },
    }),
    manifest(own.slug, 'connection', 'pay', {
      source: { kind: 'service', name: 'Pay' },
      target: { kind: 'server', name: 'shop' },
    }),
    manifest(own.slug, 'server', 'shop', {}),
  ])
  expect([run.status, run.errors]).toEqual(['planned', []])
  expect((await applied(own, run.id)).status).toBe('applied')
  const { data } = (await own.call('GET', '/connections')).body
  expect(data.map((row: Json) => [row.name, row.source.name, row.target.name, row.origin])).toEqual([
    ['pay', 'Pay', 'shop', 'iac'],
    ['shop-db', 'shop', 'db.example.net', 'iac'],
  ])
  const exported = (await own.call('GET', '/iac/export/connection')).body.data
  const again = await submit(hub, own, exported)
  expect([again.errors, again.items.map((item: Json) => item.action)]).toEqual([[], ['none', 'none']])
})
