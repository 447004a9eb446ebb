// What all lists have in common, list by list as the routes have them; and that changes of one row follow each other.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import postgres from 'postgres'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { until } from '../support/until.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let call: Call

/** The lists below no resource: what is within one is asked for by the tests of that resource. */
const lists = apiRoutes.filter(
  route =>
    route.method === 'GET' &&
    route.querySchema?.properties.page !== undefined &&
    // A search is no list: it must be asked for something.
    route.querySchema.properties.q === undefined &&
    !route.path.includes(':'),
)

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  tenant = await hub.tenant()
  call = (await hub.user(tenant.companyId, ['*'], { superAdmin: true })).call
})
afterAll(() => hub.stop())

/** One of each kind that a company can make. Returns the ids of all. */
async function makeOneOfEach(by: Call): Promise<string[]> {
  const scope = { all: true }
  const made: [path: string, body: Json][] = [
    ['/servers', { name: 'web-1' }],
    ['/monitoring/licenses', { name: 'key' }],
    ['/monitoring/checks', { name: 'nginx', type: 'service', target: { name: 'nginx' }, scope }],
    ['/monitoring/silences', { reason: 'work', ends_at: new Date(Date.now() + 3_600_000).toISOString(), scope }],
    ['/webhooks', { name: 'hook', url: 'https://127.0.0.1/' }],
    ['/notifications/channels', { name: 'night', address: 'night@example.net' }],
    ['/teams', { name: 'night' }],
    ['/roles', { name: 'watcher', permissions: ['monitoring.view'] }],
    ['/invitations', { email: `${crypto.randomUUID()}@example.net` }],
    ['/companies', { name: 'child' }],
    ['/subnets', { cidr: '10.0.0.0/24' }],
    ['/load-balancers', { name: 'lb-1', vendor: 'haproxy' }],
    ['/files', { name: 'plan.txt', content_base64: 'cGxhbg==' }],
    ['/ips', { address: '10.0.0.7' }],
    ['/connections', { source: { kind: 'service', name: 'shop' }, target: { kind: 'service', name: 'mail' } }],
  ]
  const ids: string[] = []
  for (const [path, body] of made) {
    const answer = await by('POST', path, body)
    expect([path, answer.status]).toEqual([path, 201])
    ids.push(answer.body.data.id)
  }
  return ids
}

describe('lists', () => {
  test('[HUB-052] a page past the end is empty and knows the total, a page below 1 is refused, links keep what was asked', async () => {
    await makeOneOfEach(call)
    for (const { path } of lists) {
      const first = await call('GET', path)
      expect([path, first.status]).toEqual([path, 200])
      const { total } = first.body.meta
      expect([path, first.body.data.length]).toEqual([path, Math.min(total, 15)])
      const past = await call('GET', `${path}?page=999999&lang=x`)
      expect([path, past.status, past.body.data, past.body.meta.total]).toEqual([path, 200, [], total])
      expect(new URL(past.body.links.first).search).toBe('?page=1&lang=x')
      for (const page of ['0', '-1', '1.5', 'x'])
        expect([path, page, (await call('GET', `${path}?page=${page}`)).status]).toEqual([path, page, 422])
    }
  })

  test('[HUB-052] every row stands on one page, in one order, however the list is cut', async () => {
    for (let index = 0; index < 33; index++)
      await call('POST', '/teams', { name: `crew ${String(index).padStart(2, '0')}` })
    const names: string[] = []
    for (const page of [1, 2, 3]) {
      const { data } = (await call('GET', `/teams?page=${page}`)).body
      names.push(...data.map((team: Json) => team.name))
    }
    expect(names).toHaveLength(34)
    expect(names).toEqual([...new Set(names)].sort())
  })

  test('no list has a row of another company', async () => {
    const foreign = await hub.tenant()
    const foreignIds = await makeOneOfEach(foreign.call)
    for (const { path } of lists.filter(each => !each.superAdmin)) {
      const { data } = (await tenant.call('GET', path)).body
      const ids = data.map((row: Json) => row.id)
      expect([path, foreignIds.filter(id => ids.includes(id))]).toEqual([path, []])
    }
  })
})

test('two changes of one row at a time both hold: each sees what the other has written', async () => {
  const database = postgres(hub.databaseUrl, { max: 1, onnotice: () => {} })
  const kinds: [path: string, table: string, body: Json][] = [
    ['/webhooks', 'webhooks', { name: 'before', url: 'https://127.0.0.1/' }],
    ['/notifications/channels', 'notification_channels', { name: 'before', address: 'day@example.net' }],
    ['/monitoring/collectors', 'monitoring_collectors', { name: 'before', base_url: 'https://before.example.net/' }],
  ]
  try {
    for (const [path, table, body] of kinds) {
      const { id } = (await call('POST', path, body)).body.data
      const other =
        path === '/monitoring/collectors' ? { admin_url: 'https://10.0.0.1/' } : { min_severity: 'critical' }
      await database.begin(async sql => {
        await sql.unsafe(`select id from ${table} where id = '${id}' for update`)
        for (const change of [{ name: 'after' }, other]) void call('PATCH', `${path}/${id}`, change)
        // Both requests have begun, and wait for the row.
        await until('both wait', async () => {
          const [row] = await hub.hub.database.client<{ waiting: number }[]>`
            select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
          return row?.waiting === 2
        })
      })
      const held = await until('both are done', async () => {
        const { data } = (await call('GET', `${path}/${id}`)).body
        return data.name === 'after' && Object.entries(other).every(([key, value]) => data[key] === value) ? data : null
      })
      expect(held).toMatchObject({ name: 'after', ...other })
    }
  } finally {
    await database.end()
  }
})

describe('lists of two companies', () => {
  test('[HUB-033] a list that one company has asked for says nothing of it to another that asks the same', async () => {
    const tenants = [await hub.tenant(), await hub.tenant()]
    const scope = { all: true }
    for (const [index, { call }] of tenants.entries()) {
      for (let server = 0; server <= index; server++) await call('POST', '/servers', { name: `web-${index}-${server}` })
      const condition = { severity: 'warning', metric: 'cpu_usage_percent', operator: '>', threshold: 90 }
      const rule = { ...condition, name: `rule-${index}`, scope }
      expect((await call('POST', '/monitoring/rules', rule)).status).toBe(201)
    }
    const namesOf = ({ body }: { body: Json }) => body.data.map(({ name }: Json) => name).sort()
    for (const index of [0, 1, 0, 1]) {
      const { call } = tenants[index]!
      const found = await call('GET', `/monitoring/rules?search=rule-${index}`)
      expect(namesOf(found)).toEqual([`rule-${index}`])
      expect(found.body.data[0].resolved_server_count).toBe(index + 1)
      expect(namesOf(await call('GET', `/monitoring/rules?search=rule-${1 - index}`))).toEqual([])
      const servers = await call('GET', '/servers')
      expect(namesOf(servers)).toEqual(index === 0 ? ['web-0-0'] : ['web-1-0', 'web-1-1'])
      expect(servers.body.meta.total).toBe(index + 1)
    }
  })
})
