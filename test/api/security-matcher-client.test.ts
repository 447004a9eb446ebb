import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { DeafListener } from '../support/deaf-listener.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { MatcherListener } from './matcher-listener.ts'

const matcher = new MatcherListener()
const hubs: TestHub[] = []
let hub: TestHub
let tenant: Tenant
let serverId: string

/** A hub whose breaker nobody has touched. */
async function fresh(settings: Record<string, unknown> = {}): Promise<void> {
  hub = await TestHub.start({ 'matcher.url': matcher.url, 'matcher.token': 'of-the-matcher', ...settings })
  hubs.push(hub)
  tenant = await hub.tenant()
  serverId = (await tenant.call('POST', '/servers', { name: 'web-1' })).body.data.id
}

beforeAll(() => fresh())
beforeEach(() => matcher.answers({ status: 200, body: { data: { items: [], next_cursor: null } } }))
afterAll(async () => {
  for (const each of hubs) await each.stop()
  await matcher.stop()
})

const item = (of: string, more: Json = {}): Json => ({
  server_id: of,
  name: 'libssl3',
  version: '3.0.1-1',
  arch: 'amd64',
  source_name: 'openssl',
  source_version: '3.0.1',
  ecosystem: 'debian:12',
  ...more,
})
const packages = async (query = ''): Promise<Json> =>
  (await tenant.call('GET', `/servers/${serverId}/packages${query}`)).body
const search = async (query: string): Promise<Json> =>
  (await tenant.call('GET', `/security/packages/search?${query}`)).body
const nothing = (reason: string, available = false) => ({ data: [], next_cursor: null, matcher: { available, reason } })

describe('packages', () => {
  test('[SECU-025] [SECU-026] [SECU-005] those of a server are asked of the matcher, by company, with what was asked for', async () => {
    matcher.answers({ status: 200, body: { data: { items: [item(serverId)], next_cursor: 'on' } } })
    const body = await packages('?q=ssl&cursor=abc&limit=9999')
    expect(body).toEqual({
      data: [{ ...item(serverId), server: { id: serverId, name: 'web-1', hostname: null } }],
      next_cursor: 'on',
      matcher: { available: true, reason: null },
    })
    const [asked] = matcher.asked
    expect([asked!.method, asked!.path, asked!.token]).toEqual([
      'GET',
      `/internal/v1/servers/${serverId}/packages`,
      'of-the-matcher',
    ])
    expect(Object.fromEntries(asked!.search)).toEqual({
      company_id: tenant.companyId,
      q: 'ssl',
      cursor: 'abc',
      limit: '500',
    })
  })

  test('[SECU-028] [SECU-006] a search names the package and bounds its versions; one row a server', async () => {
    matcher.answers({ status: 200, body: { data: { items: [item(serverId)], next_cursor: null } } })
    const body = await search('name=openssl&version_lt=3.0.2&version_gte=3.0&ecosystem=debian:12')
    expect(body.data).toHaveLength(1)
    const [asked] = matcher.asked
    expect(asked!.path).toBe(`/internal/v1/companies/${tenant.companyId}/packages/search`)
    expect(Object.fromEntries(asked!.search)).toEqual({
      name: 'openssl',
      version_lt: '3.0.2',
      version_gte: '3.0',
      ecosystem: 'debian:12',
      limit: '100',
    })
    expect((await tenant.call('GET', '/security/packages/search')).body.errors).toHaveProperty('name')
  })

  test('[SECU-027] [SECU-038] a 404 of the matcher is no data, and other refusals no answer', async () => {
    matcher.answers({ status: 404, body: { error: { code: 'not_found', message: 'no inventory' } } })
    expect(await packages()).toEqual(nothing('no_data', true))
    matcher.answers({ status: 422, body: { error: { code: 'bad_request', message: 'no' } } })
    expect(await search('name=x')).toEqual(nothing('unavailable'))
  })

  test('rows of servers of another company, or of none, are left out', async () => {
    const foreign = await hub.tenant()
    const foreignId = (await foreign.call('POST', '/servers', { name: 'theirs' })).body.data.id
    const items = [item(foreignId), item(crypto.randomUUID()), item("' or 1=1 --"), item(serverId)]
    matcher.answers({ status: 200, body: { data: { items, next_cursor: null } } })
    expect((await search('name=openssl')).data.map((row: Json) => row.server_id)).toEqual([serverId])
    expect((await packages()).data.map((row: Json) => row.server_id)).toEqual([serverId])
    matcher.answers({ status: 200, body: { data: { items: [], next_cursor: null } } })
    expect((await foreign.call('GET', `/servers/${serverId}/packages`)).status).toBe(404)
    expect(matcher.asked).toEqual([])
  })

  test('an answer of another form is no answer, and hostile names stay text', async () => {
    for (const body of [[], { data: [] }, { data: { items: [{ name: 1 }], next_cursor: null } }, { data: null }]) {
      matcher.answers({ status: 200, body })
      expect(await packages()).toEqual(nothing('unavailable'))
    }
    const name = '<script>alert(1)</script>\u202E\n"'
    matcher.answers({ status: 200, body: { data: { items: [item(serverId, { name })], next_cursor: null } } })
    expect((await packages()).data[0].name).toBe(name)
  })

  test('[SECU-029] software shows what the matcher counts', async () => {
    const data = { servers: 3, oldest_report_ms: 1_700_000_000_000, ecosystems: { 'debian:12': 3 }, open_findings: 9 }
    matcher.answers({ status: 200, body: { data } })
    expect((await tenant.call('GET', '/security/software')).body).toMatchObject({
      inventory: { servers: 3, oldest_report_at: '2023-11-14T22:13:20.000Z', ecosystems: { 'debian:12': 3 } },
      matcher: { available: true, reason: null },
    })
    expect(matcher.asked[0]!.path).toBe(`/internal/v1/companies/${tenant.companyId}/summary`)
  })
})

test('[SECU-032] a resync is asked once, and answers how many events it made', async () => {
  matcher.answers({ status: 200, body: { data: { events: 12 } } })
  const manager = await hub.user(tenant.companyId, ['security.manage'])
  const { status, body } = await manager.call('POST', '/security/resync')
  expect([status, body]).toEqual([202, { data: { events: 12 } }])
  const [asked] = matcher.asked
  expect([asked!.method, asked!.path, asked!.search.get('company_id')]).toEqual([
    'POST',
    '/internal/v1/resync',
    tenant.companyId,
  ])
  const viewer = await hub.user(tenant.companyId, ['security.view'])
  expect((await viewer.call('POST', '/security/resync')).status).toBe(403)
})

describe('a matcher in trouble', () => {
  test('[SECU-035] GET is tried three times in all, and only GET', async () => {
    await fresh()
    matcher.answers({ status: 500 })
    expect(await packages()).toEqual(nothing('unavailable'))
    expect(matcher.count('GET')).toBe(3)
    expect((await tenant.call('POST', '/security/resync')).status).toBe(503)
    expect(matcher.count('POST')).toBe(1)
  })

  test('[SECU-035] a second try that succeeds is the answer', async () => {
    await fresh()
    let tries = 0
    matcher.answers(() =>
      ++tries < 3 ? { status: 503 } : { status: 200, body: { data: { items: [item(serverId)], next_cursor: null } } },
    )
    expect((await packages()).data).toHaveLength(1)
    expect(tries).toBe(3)
  })

  test('[SECU-036] [SECU-037] after five failures in a row nobody is asked any more, and there is no data', async () => {
    await fresh()
    matcher.answers({ status: 500 })
    await packages()
    await packages()
    expect(matcher.asked).toHaveLength(5)
    matcher.answers({ status: 200, body: { data: { items: [item(serverId)], next_cursor: null } } })
    expect(await packages()).toEqual(nothing('unavailable'))
    expect(await search('name=openssl')).toEqual(nothing('unavailable'))
    expect((await tenant.call('POST', '/security/resync')).status).toBe(503)
    expect(matcher.asked).toEqual([])
  })

  test('[SECU-036] an answer in between begins the count anew', async () => {
    await fresh()
    for (const status of [500, 404, 500, 404]) {
      matcher.answers({ status, body: { error: { code: 'x', message: 'x' } } })
      await packages()
    }
    matcher.answers({ status: 200, body: { data: { items: [item(serverId)], next_cursor: null } } })
    expect((await packages()).data).toHaveLength(1)
  })

  test('[SECU-033] a connection that is not taken is waited for two seconds', async () => {
    await using deaf = await DeafListener.start()
    await fresh({ 'matcher.url': deaf.url })
    const startedAt = performance.now()
    expect((await tenant.call('POST', '/security/resync')).status).toBe(503)
    const elapsed = performance.now() - startedAt
    expect(elapsed).toBeGreaterThan(1_900)
    expect(elapsed).toBeLessThan(4_500)
  })

  test('[SECU-034] an answer that does not come is waited for five seconds a try', async () => {
    await fresh()
    matcher.answers('hangs')
    const startedAt = performance.now()
    expect((await tenant.call('POST', '/security/resync')).status).toBe(503)
    const elapsed = performance.now() - startedAt
    expect(elapsed).toBeGreaterThan(4_900)
    expect(elapsed).toBeLessThan(8_000)
  })

  test('[SECU-037] without a matcher there is no data, and nobody to resync', async () => {
    await fresh({ 'matcher.url': '' })
    expect(await packages()).toEqual(nothing('not_configured'))
    expect((await tenant.call('GET', '/security/software')).body.matcher).toEqual({
      available: false,
      reason: 'not_configured',
    })
    expect((await tenant.call('POST', '/security/resync')).status).toBe(503)
    expect(matcher.asked).toEqual([])
  })

  test('while the token changes, a refused one is followed by the next', async () => {
    await fresh({ 'matcher.token': 'old new' })
    matcher.answers(({ token }) =>
      token === 'new' ? { status: 200, body: { data: { items: [], next_cursor: null } } } : { status: 401, body: {} },
    )
    expect((await packages()).matcher).toEqual({ available: true, reason: null })
    expect(matcher.asked.map(each => each.token)).toEqual(['old', 'new'])
    matcher.answers({ status: 401, body: {} })
    expect(await packages()).toEqual(nothing('unavailable'))
  })
})

describe('the overview', () => {
  const overview = async (): Promise<Json> => (await tenant.call('GET', '/security/overview')).body.data.matcher
  const status = (update: Json = {}): Json => ({
    data: {
      db_version: 2026112201,
      db_age_seconds: 7_300,
      sources: [],
      update: { state: 'importing', source: 'debian', records: 1200, fault: 'kev: it answers 404', ...update },
    },
  })

  test('says what the matcher does with its database, and asks it once in a few seconds', async () => {
    await fresh()
    matcher.answers({ status: 200, body: status() })
    const shown = {
      available: true,
      db_version: 2026112201,
      db_age_hours: 2,
      state: 'importing',
      source: 'debian',
      records: 1200,
      fault: 'kev: it answers 404',
    }
    expect(await Promise.all([overview(), overview(), overview()])).toMatchObject([shown, shown, shown])
    expect(matcher.asked.map(each => each.path)).toEqual(['/internal/v1/status'])
  })

  test('answers quickly while the matcher hangs, or says what nobody understands', async () => {
    const unknown = { state: null, source: null, records: null, fault: null }
    await fresh()
    matcher.answers('hangs')
    for (let call = 0; call < 4; call++) {
      const startedAt = performance.now()
      expect(await overview()).toMatchObject(unknown)
      expect(performance.now() - startedAt).toBeLessThan(2_000)
    }
    expect(matcher.asked).toHaveLength(1)
    for (const body of [
      {},
      status({ state: 'asleep' }),
      status({ records: -1 }),
      status({ fault: 'x'.repeat(5000) }),
    ]) {
      await fresh()
      matcher.answers({ status: 200, body })
      expect(await overview()).toMatchObject(unknown)
    }
  })
})

describe('what is deleted for good', () => {
  test('[SECU-030] [SECU-031] is deleted at the matcher, with tries until it answers', async () => {
    await fresh()
    let refusals = 2
    matcher.answers(() => (refusals-- > 0 ? { status: 503 } : { status: 204 }))
    await tenant.call('DELETE', `/servers/${serverId}`)
    const gone = await tenant.call('DELETE', `/servers/${serverId}/permanent`)
    expect(gone.status).toBeLessThan(300)
    const deleted = await until('the matcher was asked three times', async () =>
      matcher.count('DELETE') === 3 ? matcher.asked.at(-1) : null,
    )
    expect([deleted.path, deleted.search.get('company_id')]).toEqual([
      `/internal/v1/servers/${serverId}/data`,
      tenant.companyId,
    ])
  })
})
