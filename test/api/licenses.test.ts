import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sha256Hex } from '../../core/series/hash.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

const create = async (body: Json = { name: 'A license' }, by: Tenant = tenant) =>
  (await by.call('POST', '/monitoring/licenses', body)).body

const sqlRow = async (id: string): Promise<Json> =>
  (await hub.hub.database.client`select * from monitoring_licenses where id = ${id}`)[0]

describe('create', () => {
  test('[LIC-006] [LIC-017] [LIC-015] [LIC-007] a license is created with its clear token, active and unused', async () => {
    const { status, body } = await tenant.call('POST', '/monitoring/licenses', { name: 'Web servers' })
    expect(status).toBe(201)
    expect(body.token).toMatch(/^lic_[0-9A-Za-z]{43}$/)
    expect(body.data).toMatchObject({ name: 'Web servers', status: 'active', max_uses: 1, used_count: 0 })
    expect(body.data.token_hint).toBe(`${body.token.slice(0, 8)}...${body.token.slice(-4)}`)
    expect(body.data.company_id).toBe(tenant.companyId)
  })

  test('[LIC-002] [LIC-003] [LIC-025] the token is stored as its SHA-256 and never shown again', async () => {
    const { data, token } = await create()
    const row = await sqlRow(data.id)
    expect(row.token_hash).toBe(sha256Hex(token))
    expect(JSON.stringify(row)).not.toContain(token)
    const shown = JSON.stringify([
      (await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body,
      (await tenant.call('GET', '/monitoring/licenses')).body,
    ])
    expect(shown).not.toContain(token)
    expect(shown).not.toContain(row.token_hash)
  })

  test.each([
    ['[LIC-008] name is required', {}, 'name'],
    ['[LIC-008] a name of spaces is none', { name: '   ' }, 'name'],
    ['[LIC-009] a name of 256 characters is refused', { name: 'x'.repeat(256) }, 'name'],
    ['[LIC-014] max_uses 0 is refused', { name: 'x', max_uses: 0 }, 'max_uses'],
    ['[LIC-014] max_uses 1001 is refused', { name: 'x', max_uses: 1001 }, 'max_uses'],
    ['[LIC-012] a past expires_at is refused', { name: 'x', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [
      '[LIC-012] a day that its month has not is refused',
      { name: 'x', expires_at: '2999-02-30T00:00:00Z' },
      'expires_at',
    ],
    ['[LIC-010] an unknown server is refused', { name: 'x', server_id: crypto.randomUUID() }, 'server_id'],
    ['[LIC-011] an unknown collector is refused', { name: 'x', collector_id: crypto.randomUUID() }, 'collector_id'],
  ])('%s', async (_name, body, field) => {
    const { status, body: answer } = await tenant.call('POST', '/monitoring/licenses', body)
    expect(status).toBe(422)
    expect(Object.keys(answer.errors)).toEqual([field])
  })

  test('[LIC-009] [LIC-013] 255 characters and an empty expiry are fine', async () => {
    const { data } = await create({ name: 'x'.repeat(255), expires_at: '' })
    expect(data.expires_at).toBeNull()
    expect(data.name).toHaveLength(255)
  })

  test('[LIC-009] a character counts once, whichever it is', async () => {
    const name = '🖥'.repeat(255)
    expect((await create({ name })).data.name).toBe(name)
    const { status, body } = await tenant.call('POST', '/monitoring/licenses', { name: `${name}🖥` })
    expect([status, body.errors]).toEqual([422, { name: ['must have at most 255 characters'] }])
  })

  test('[LIC-010] [LIC-004] a server of another company is refused, one of the own company pins the license', async () => {
    const other = await hub.tenant()
    const foreign = (await other.call('POST', '/servers', { name: 'foreign' })).body.data
    const own = (await tenant.call('POST', '/servers', { name: 'pinned', hostname: 'pinned.example' })).body.data
    expect((await tenant.call('POST', '/monitoring/licenses', { name: 'x', server_id: foreign.id })).status).toBe(422)
    const { data } = await create({ name: 'x', server_id: own.id })
    expect(data.server).toEqual({ id: own.id, name: 'pinned', hostname: 'pinned.example' })
    expect(data.company_id).toBe(tenant.companyId)
  })

  test('[LIC-016] [LIC-034] the sum of max_uses stays within the agent quota of the plan', async () => {
    const small = await hub.tenant({ agent_quota: 5, metrics_retention_days: null })
    const { data } = await create({ name: 'a', max_uses: 3 }, small)
    expect(
      (await small.call('POST', '/monitoring/licenses', { name: 'b', max_uses: 3 })).body.errors.max_uses,
    ).toHaveLength(1)
    expect((await small.call('POST', '/monitoring/licenses', { name: 'b', max_uses: 2 })).status).toBe(201)
    expect((await small.call('PATCH', `/monitoring/licenses/${data.id}`, { max_uses: 4 })).status).toBe(422)
    await small.call('POST', `/monitoring/licenses/${data.id}/revoke`)
    expect((await small.call('POST', '/monitoring/licenses', { name: 'c', max_uses: 3 })).status).toBe(201)
  })

  test('[LIC-018] a personal account has one fixed license and cannot create more', async () => {
    const person = await hub.tenant({ agent_quota: 3, metrics_retention_days: null }, { personal: true })
    const list = (await person.call('GET', '/monitoring/licenses')).body
    expect(list.data.map((item: Json) => [item.name, item.max_uses])).toEqual([['Personal license', 3]])
    expect((await person.call('POST', '/monitoring/licenses', { name: 'more' })).body.errors.license).toHaveLength(1)
  })
})

describe('permissions and tenancy', () => {
  test('[LIC-005] [LIC-028] [LIC-038] [LIC-042] [LIC-019] [LIC-026] changing needs monitoring.manage, reading monitoring.view', async () => {
    const { data } = await create()
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    const path = `/monitoring/licenses/${data.id}`
    expect((await viewer.call('GET', '/monitoring/licenses')).status).toBe(200)
    expect((await viewer.call('GET', path)).status).toBe(200)
    expect((await viewer.call('POST', '/monitoring/licenses', { name: 'x' })).status).toBe(403)
    expect((await viewer.call('PATCH', path, { name: 'x' })).status).toBe(403)
    expect((await viewer.call('POST', `${path}/revoke`)).status).toBe(403)
    expect((await viewer.call('POST', `${path}/regenerate`)).status).toBe(403)
    const manager = await hub.user(tenant.companyId, ['monitoring.manage'])
    expect((await manager.call('GET', '/monitoring/licenses')).status).toBe(403)
    expect((await manager.call('GET', path)).status).toBe(403)
  })

  test('[LIC-027] [LIC-052] another company sees nothing and changes nothing', async () => {
    const { data } = await create()
    const other = await hub.tenant()
    const path = `/monitoring/licenses/${data.id}`
    for (const [method, at, body] of [
      ['GET', path, undefined],
      ['PATCH', path, { max_uses: 'wrong' }],
      ['POST', `${path}/revoke`, undefined],
      ['POST', `${path}/regenerate`, undefined],
    ] as const)
      expect((await other.call(method, at, body)).status).toBe(404)
    expect((await other.call('GET', '/monitoring/licenses')).body.data).toEqual([])
    expect((await tenant.call('GET', path)).body.data.status).toBe('active')
  })
})

describe('list', () => {
  test('[LIC-020] [LIC-021] [LIC-022] [LIC-023] [LIC-024] newest first, filtered, by pages of 15', async () => {
    const own = await hub.tenant()
    const server = (await own.call('POST', '/servers', { name: 'one' })).body.data
    for (let n = 0; n < 16; n++) await create({ name: `batch ${n}` }, own)
    const { data: pinned } = await create({ name: 'pinned 100%', server_id: server.id }, own)
    await own.call('POST', `/monitoring/licenses/${pinned.id}/revoke`)
    const names = async (query: string) =>
      (await own.call('GET', `/monitoring/licenses?${query}`)).body.data.map((item: Json) => item.name)
    const first = (await own.call('GET', '/monitoring/licenses')).body
    expect(first.data.map((item: Json) => item.name)[0]).toBe('pinned 100%')
    expect(first.data).toHaveLength(15)
    expect(first.meta).toEqual({ current_page: 1, per_page: 15, last_page: 2, total: 17 })
    expect(await names('page=2')).toEqual(['batch 1', 'batch 0'])
    expect(await names('page=3')).toEqual([])
    expect(await names('status=revoked')).toEqual(['pinned 100%'])
    expect(await names(`server_id=${server.id}`)).toEqual(['pinned 100%'])
    expect(await names('search=BATCH 15')).toEqual(['batch 15'])
    expect(await names('search=0%25')).toEqual(['pinned 100%'])
    expect((await own.call('GET', '/monitoring/licenses?status=nope')).status).toBe(422)
    expect((await own.call('GET', '/monitoring/licenses?page=0')).status).toBe(422)
  })
})

describe('change', () => {
  test('[LIC-029] [LIC-030] [LIC-031] [LIC-032] [LIC-035] PATCH changes what is sent and nothing else', async () => {
    const { data } = await create({ name: 'before', max_uses: 2 })
    const patch = async (body: Json) => (await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, body)).body.data
    expect(await patch({ name: 'after' })).toMatchObject({ name: 'after', max_uses: 2, expires_at: null })
    expect(await patch({ expires_at: '2999-01-01T07:00:00+07:00' })).toMatchObject({
      name: 'after',
      expires_at: '2999-01-01T00:00:00.000Z',
    })
    expect(await patch({ max_uses: 1000 })).toMatchObject({ max_uses: 1000, expires_at: '2999-01-01T00:00:00.000Z' })
    expect(await patch({ expires_at: null })).toMatchObject({ expires_at: null, max_uses: 1000 })
    const { status } = await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, {
      expires_at: '2001-01-01T00:00:00Z',
    })
    expect(status).toBe(422)
    const empty = await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, { name: '' })
    expect([empty.status, Object.keys(empty.body.errors)]).toEqual([422, ['name']])
  })

  test('[LIC-001] [LIC-051] [LIC-033] status follows the dates and counts; max_uses never falls below used_count', async () => {
    const { data } = await create({ name: 'x', max_uses: 3, expires_at: '2999-01-01T00:00:00Z' })
    const { client } = hub.hub.database
    const status = async () => (await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data.status
    await client`update monitoring_licenses set used_count = 3 where id = ${data.id}`
    expect(await status()).toBe('exhausted')
    expect(
      (await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, { max_uses: 2 })).body.errors.max_uses,
    ).toHaveLength(1)
    expect((await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, { max_uses: 4 })).body.data.status).toBe(
      'active',
    )
    await client`update monitoring_licenses set expires_at = now() - interval '1 second' where id = ${data.id}`
    expect(await status()).toBe('expired')
  })

  test('[LIC-036] [LIC-041] [LIC-038] revoke is final: repeating changes nothing, PATCH and regenerate are refused', async () => {
    const { data } = await create()
    const path = `/monitoring/licenses/${data.id}`
    const first = (await tenant.call('POST', `${path}/revoke`)).body.data
    expect(first.status).toBe('revoked')
    const second = await tenant.call('POST', `${path}/revoke`)
    expect([second.status, second.body.data.revoked_at]).toEqual([200, first.revoked_at])
    expect((await tenant.call('PATCH', path, { name: 'x' })).body.errors.status).toHaveLength(1)
    expect((await tenant.call('POST', `${path}/regenerate`)).body.errors.status).toHaveLength(1)
  })

  test('[LIC-042] [LIC-043] [LIC-045] [LIC-047] [LIC-037] regenerate retires the old key and issues a new one', async () => {
    const { data, token } = await create({ name: 'x', max_uses: 7 })
    const { status, body } = await tenant.call('POST', `/monitoring/licenses/${data.id}/regenerate`)
    expect(status).toBe(200)
    expect(body.token).toMatch(/^lic_/)
    expect(body.token).not.toBe(token)
    expect(body.data).toMatchObject({ name: 'x', max_uses: 7, status: 'active', supersedes: data.id })
    const old = (await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data
    expect(old).toMatchObject({ status: 'superseded', superseded_by: body.data.id })
    const days = (Date.parse(old.migrate_until) - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(29.9)
    expect(days).toBeLessThanOrEqual(30)
    expect((await tenant.call('PATCH', `/monitoring/licenses/${data.id}`, { name: 'y' })).status).toBe(422)
    expect((await tenant.call('POST', `/monitoring/licenses/${data.id}/revoke`)).status).toBe(422)
  })

  test('[AUD-007] the audit log has the acts and neither token nor hash', async () => {
    const { data, token } = await create()
    const again = (await tenant.call('POST', `/monitoring/licenses/${data.id}/regenerate`)).body
    const { body } = await tenant.call('GET', `/audit-log/subjects/license/${data.id}`)
    expect(body.data.map((entry: Json) => entry.action)).toEqual(['license.regenerate', 'license.create'])
    for (const secret of [token, sha256Hex(token), again.token, sha256Hex(again.token)])
      expect(JSON.stringify(body)).not.toContain(secret)
  })
})
