import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { revokeToken } from '../../apps/hub/identity/accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { caller, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)

describe('who calls', () => {
  test('[HUB-016] [HUB-035] [HUB-036] without a token, and with a wrong one, the answer is 401', async () => {
    for (const token of [null, 'nonsense', `hub_${'x'.repeat(40)}`]) {
      const { status, body, headers } = await caller(hub.url, token)('GET', '/servers')
      expect([status, body.reason, typeof body.message]).toEqual([401, 'invalid_token', 'string'])
      expect(headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  test('[HUB-037] [HUB-022] an expired token answers 401', async () => {
    const { call } = await hub.token(tenant.userId, { expiresAt: new Date(Date.now() - 1000) })
    const { status, body } = await call('GET', '/servers')
    expect([status, body.reason]).toEqual([401, 'token_expired'])
  })

  test('[HUB-038] a revoked token answers 401', async () => {
    const { id, call } = await hub.token(tenant.userId)
    expect((await call('GET', '/servers')).status).toBe(200)
    await inTransaction(hub.hub.database.db, tx => revokeToken(tx, id))
    const { status, body } = await call('GET', '/servers')
    expect([status, body.reason]).toEqual([401, 'token_revoked'])
  })

  test('[HUB-023] [HUB-041] a token is used from its IP range only', async () => {
    const inside = await hub.token(tenant.userId, { ipRanges: ['10.0.0.0/8', '127.0.0.0/8'] })
    const outside = await hub.token(tenant.userId, { ipRanges: ['10.0.0.0/8'] })
    expect((await inside.call('GET', '/servers')).status).toBe(200)
    const { status, body } = await outside.call('GET', '/servers', undefined, { 'X-Forwarded-For': '10.1.2.3' })
    expect([status, body.reason]).toEqual([403, 'ip_not_allowed'])
  })

  test('[HUB-017] [HUB-018] [HUB-020] a token never gives more than its user, and loses what the user loses', async () => {
    const user = await hub.user(tenant.companyId, ['servers.view'], {
      tokenPermissions: ['servers.view', 'servers.manage'],
    })
    expect((await user.call('GET', '/servers')).status).toBe(200)
    expect((await user.call('POST', '/servers', { name: 'x' })).status).toBe(403)
    await sql`update users set permissions = '{}' where id = ${user.userId}`
    expect((await user.call('GET', '/servers')).body.reason).toBe('permission_denied')
  })

  test('[HUB-021] [HUB-039] [HUB-040] a missing permission of user or token answers 403', async () => {
    const narrowed = await hub.token(tenant.userId, { permissions: ['servers.view'] })
    expect((await narrowed.call('GET', '/servers')).status).toBe(200)
    const { status, body } = await narrowed.call('GET', '/monitoring/alerts')
    expect([status, body.reason]).toEqual([403, 'permission_denied'])
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    expect((await viewer.call('GET', '/servers')).status).toBe(403)
  })

  test('[HUB-024] [HUB-011] [HUB-012] [HUB-013] [HUB-014] [HUB-015] tokens, single-sign-on keys, logins, passwords and two-factor are not managed over the API', async () => {
    for (const path of [
      '/tokens',
      '/api-tokens',
      '/me/tokens',
      '/sso',
      '/sso-keys',
      '/login',
      '/sessions',
      '/me/password',
      '/password',
      '/two-factor',
      '/me/two-factor',
    ])
      for (const method of ['GET', 'POST']) expect((await tenant.call(method, path)).status).toBe(404)
    expect(JSON.stringify(await sql`select * from api_tokens`)).not.toContain(tenant.token)
  })

  test('[HUB-054] [HUB-055] [HUB-056] view reads, manage changes, delete deletes', async () => {
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    for (const path of ['/monitoring/overview', '/monitoring/agents', '/monitoring/alerts', '/monitoring/checks'])
      expect((await viewer.call('GET', path)).status).toBe(200)
    for (const path of ['/monitoring/licenses', '/monitoring/rules', '/monitoring/silences'])
      expect((await viewer.call('POST', path, {})).status).toBe(403)
    const deleter = await hub.user(tenant.companyId, ['monitoring.delete'])
    const rule = (await tenant.call('GET', '/monitoring/rules')).body.data[0]
    const manager = await hub.user(tenant.companyId, ['monitoring.manage'])
    expect((await manager.call('DELETE', `/monitoring/rules/${rule.id}`)).status).toBe(403)
    expect((await deleter.call('DELETE', `/monitoring/rules/${rule.id}`)).status).toBe(204)
  })
})

describe('which company', () => {
  test('[HUB-031] [HUB-032] [HUB-019] X-Company-Id names a granted child company and nothing else', async () => {
    const parent = await hub.tenant()
    const child = await hub.tenant(undefined, { parentId: parent.companyId })
    const ungranted = await hub.tenant(undefined, { parentId: parent.companyId })
    const { client } = hub.hub.database
    await client`insert into user_company_grants (user_id, company_id) values (${parent.userId}, ${child.companyId})`
    await child.call('POST', '/servers', { name: 'in the child' })
    const inChild = await parent.call('GET', '/servers', undefined, { 'X-Company-Id': child.companyId })
    expect(inChild.body.data.map((item: Json) => item.name)).toEqual(['in the child'])
    expect((await parent.call('GET', '/servers')).body.data).toEqual([])
    for (const id of [ungranted.companyId, tenant.companyId, 'nonsense', crypto.randomUUID()]) {
      const { status, body } = await parent.call('GET', '/servers', undefined, { 'X-Company-Id': id })
      expect([status, body.reason]).toEqual([403, 'company_not_allowed'])
    }
    expect((await child.call('GET', '/servers', undefined, { 'X-Company-Id': parent.companyId })).status).toBe(403)
  })

  test('[HUB-003] [HUB-004] [HUB-033] [HUB-034] [HSV-040] [HRL-002] another company answers 404 and is not changed', async () => {
    const other = await hub.tenant()
    const server = (await other.call('POST', '/servers', { name: 'theirs' })).body.data
    const rule = (await other.call('GET', '/monitoring/rules')).body.data[0]
    const calls: [string, string, Json][] = [
      ['GET', `/servers/${server.id}`, undefined],
      ['PATCH', `/servers/${server.id}`, { name: 'mine' }],
      ['DELETE', `/servers/${server.id}`, undefined],
      ['GET', `/servers/${server.id}/health`, undefined],
      ['GET', `/monitoring/rules/${rule.id}`, undefined],
      ['PATCH', `/monitoring/rules/${rule.id}`, { name: 'mine' }],
      ['POST', `/monitoring/rules/${rule.id}/disable`, undefined],
    ]
    for (const [method, path, body] of calls) expect((await tenant.call(method, path, body)).status).toBe(404)
    expect((await other.call('GET', `/servers/${server.id}`)).body.data.name).toBe('theirs')
    expect((await other.call('GET', `/monitoring/rules/${rule.id}`)).body.data).toMatchObject({
      enabled: true,
      version: 1,
    })
  })
})

describe('form', () => {
  test('[HUB-042] [HUB-059] an unknown resource and an unknown path answer 404 with a message', async () => {
    for (const path of [`/servers/${crypto.randomUUID()}`, '/servers/not-a-uuid', '/nope']) {
      const { status, body } = await tenant.call('GET', path)
      expect([status, Object.keys(body)]).toEqual([404, ['message']])
    }
    const { status, headers } = await tenant.call('PUT', '/servers')
    expect([status, headers.get('allow')]).toEqual([405, 'GET, POST'])
  })

  test('[HUB-043] invalid data answer 422 with texts per field, nested fields with dots', async () => {
    const { status, body } = await tenant.call('POST', '/monitoring/rules', {
      name: '',
      severity: 'bad',
      scope: { server_ids: ['x'] },
    })
    expect(status).toBe(422)
    const missing = ['metric', 'operator', 'threshold']
    expect(Object.keys(body.errors).sort()).toEqual([...missing, 'name', 'scope.server_ids.0', 'severity'].sort())
    for (const texts of Object.values<string[]>(body.errors)) expect(texts[0]).toBeString()
    expect((await tenant.call('POST', '/servers', '{broken')).body.errors.body).toHaveLength(1)
    expect((await tenant.call('POST', '/servers', '[]')).status).toBe(422)
  })

  test('[HUB-027] [HUB-028] a body that is not JSON is 415, an Accept that excludes JSON 406, none is fine', async () => {
    const post = await tenant.call('POST', '/servers', '{"name":"x"}', { 'Content-Type': 'text/plain' })
    expect(post.status).toBe(415)
    expect((await tenant.call('GET', '/servers', undefined, { Accept: 'text/html' })).status).toBe(406)
    expect((await tenant.call('GET', '/servers', undefined, { Accept: '*/*' })).status).toBe(200)
    const large = await tenant.call('POST', '/servers', { name: 'x', notes: 'y'.repeat(2 * 1024 * 1024) })
    expect(large.status).toBe(413)
  })

  test('[HUB-029] [HUB-030] Accept-Language chooses between English and Vietnamese', async () => {
    const message = async (language: string) =>
      (await tenant.call('GET', '/nope', undefined, { 'Accept-Language': language })).body.message
    expect(await message('vi')).toBe('Không tìm thấy.')
    expect(await message('vi-VN,en;q=0.8')).toBe('Không tìm thấy.')
    expect(await message('en;q=0.9, vi;q=0.5')).toBe('Not found.')
    expect(await message('fr')).toBe('Not found.')
    const { headers } = await tenant.call('GET', '/nope', undefined, { 'Accept-Language': 'vi' })
    expect(headers.get('content-language')).toBe('vi')
  })

  test('[HUB-005] [HUB-060] [HUB-009] [HUB-010] v1 is in the path; some paths work without it, marked as deprecated', async () => {
    const groups = ['/api/servers', '/api/monitoring/licenses', '/api/monitoring/alerts']
    for (const path of [...groups, '/api/servers/trashed', '/api/monitoring/alerts/stats']) {
      const { status, headers } = await tenant.call('GET', path)
      expect([path, status, headers.get('deprecation')]).toEqual([path, 200, 'true'])
    }
    expect((await tenant.call('GET', '/api/monitoring/rules')).status).toBe(404)
    expect((await tenant.call('GET', '/servers')).headers.get('deprecation')).toBeNull()
  })

  test('[HUB-052] [HUB-053] lists have 15 rows a page; the next page is ?page=2', async () => {
    const own = await hub.tenant()
    for (let n = 10; n < 28; n++) await own.call('POST', '/servers', { name: `s${n}` })
    const first = (await own.call('GET', '/servers')).body
    expect(first.data).toHaveLength(15)
    expect(first.meta).toEqual({ current_page: 1, per_page: 15, last_page: 2, total: 18 })
    const second = (await own.call('GET', first.links.next.replace(`${hub.url}/api/v1`, ''))).body
    expect(second.data.map((item: Json) => item.name)).toEqual(['s25', 's26', 's27'])
    expect(second.links.next).toBeNull()
    expect((await own.call('GET', '/servers?page=9&unknown=1')).body.data).toEqual([])
    for (const page of ['0', '-1', 'x', '1.5'])
      expect((await own.call('GET', `/servers?page=${page}`)).status).toBe(422)
  })

  test('[HUB-043] the time zone of a profile is one that exists', async () => {
    const own = await hub.tenant()
    const zone = async (time_zone: string) => (await own.call('PATCH', '/me', { time_zone })).body
    expect((await zone('Asia/Ho_Chi_Minh')).data.time_zone).toBe('Asia/Ho_Chi_Minh')
    expect(Object.keys((await zone('Nowhere/Land')).errors)).toEqual(['time_zone'])
  })

  test('[HUB-052] the own sessions are a list like any other', async () => {
    const { body } = await tenant.call('GET', '/me/sessions')
    expect(body.meta).toEqual({ current_page: 1, per_page: 15, last_page: 1, total: 0 })
    expect((await tenant.call('GET', '/me/sessions?page=0')).status).toBe(422)
    // One that is over is none any more, though its row is still there.
    const own = await hub.tenant()
    const [person] = await sql`select id from users where company_id = ${own.companyId} and kind = 'person' limit 1`
    for (const [idle, age] of [
      ['1 minute', '1 hour'],
      ['121 minutes', '3 hours'],
      ['1 minute', '13 hours'],
    ] as const)
      await sql`insert into sessions (id, token_hash, csrf_token, user_id, created_at, last_seen_at)
        values (gen_random_uuid(), gen_random_uuid()::text, 'c', ${String(person?.id)}, now() - ${age}::interval, now() - ${idle}::interval)`
    expect((await own.call('GET', '/me/sessions')).body.meta.total).toBe(1)
  })

  test('[HUB-061] the tables of the monitoring family have the names of the contract', async () => {
    const rows = await sql`select table_name from information_schema.tables where table_name like 'monitoring_%'`
    const names = new Set(rows.map(row => row.table_name))
    for (const name of [
      'licenses',
      'agents',
      'rules',
      'silences',
      'alerts',
      'alert_events',
      'checks',
      'inventory_facts',
      'settings',
      'collectors',
    ])
      expect(names).toContain(`monitoring_${name}`)
  })

  test('the OpenAPI document names every route with its permission, and the page reads it from here', async () => {
    const document = (await (await fetch(`${hub.url}/openapi.json`)).json()) as Json
    // The schemas say null as a type, which only 3.1 knows.
    expect(document.openapi).toStartWith('3.1.')
    expect(document.servers).toEqual([{ url: '/' }])
    expect(document.paths['/api/v1/monitoring/licenses'].post.description).toContain('monitoring.manage')
    const page = await (await fetch(`${hub.url}/docs`)).text()
    expect(page).not.toMatch(/https?:\/\//)
  })
})

describe('limits and faults', () => {
  test('[HUB-047] [HUB-048] [HUB-044] a token has its own limit a minute; beyond it 429 with Retry-After', async () => {
    const { call } = await hub.token(tenant.userId, { rate: 3 })
    for (const left of ['2', '1', '0']) {
      const { status, headers } = await call('GET', '/me')
      expect([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual([200, '3', left])
    }
    const { status, headers, body } = await call('GET', '/me')
    expect([status, body.reason]).toEqual([429, 'rate_limited'])
    expect(Number(headers.get('retry-after'))).toBeWithin(1, 61)
    expect((await tenant.call('GET', '/me')).status).toBe(200)
  })

  test('[HUB-045] [HUB-046] an unexpected fault answers 500 and says nothing of SQL or files', async () => {
    const broken = await TestHub.start()
    try {
      const own = await broken.tenant()
      await broken.hub.database.client`alter table servers rename to servers_gone`
      const { status, body } = await own.call('GET', '/servers')
      expect([status, body]).toEqual([500, { message: 'An unexpected error happened.' }])
    } finally {
      await broken.running.stop()
    }
  })
})
