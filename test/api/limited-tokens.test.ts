// What a token that is limited to some permissions reaches of its person's own account, and how fast a token may be.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { createToken } from '../../apps/hub/identity/accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { caller, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.token_max_per_minute': 50 })
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

/** What belongs to the caller alone: by method and path, the permission that a limited token needs. */
const OWN: readonly [method: string, path: string, permission: string, body?: Json][] = [
  ['PATCH', '/me', 'identity.manage', { name: 'x' }],
  ['PUT', '/me/avatar', 'identity.manage', { image: 'x' }],
  ['DELETE', '/me/avatar', 'identity.manage'],
  ['GET', '/me/sessions', 'identity.view'],
  ['DELETE', '/me/sessions/:session', 'identity.manage'],
  ['GET', '/me/activity', 'audit.view'],
  ['GET', '/notifications', 'notifications.view'],
  ['GET', '/notifications/unread-count', 'notifications.view'],
  ['GET', '/notifications/preferences', 'notifications.view'],
  ['PUT', '/notifications/preferences', 'notifications.manage', { email: { min_severity: 'off' } }],
  ['POST', '/notifications/read-all', 'notifications.manage'],
  ['POST', '/notifications/:notification/read', 'notifications.manage'],
  ['DELETE', '/notifications/:notification', 'notifications.manage'],
]
const pathOf = (path: string): string => path.replace(/:[a-z]+/g, () => randomUUID())

describe('the own account', () => {
  test('a token limited to servers.view neither reads notifications nor switches off alert messages nor ends sessions', async () => {
    const limited = await hub.token(tenant.userId, { permissions: ['servers.view'] })
    for (const [method, path, permission, body] of OWN) {
      const { status, body: told } = await limited.call(method, pathOf(path), body)
      expect([status, told.reason], `${method} ${path}`).toEqual([403, 'permission_denied'])
      expect(told.message).toContain(permission)
    }
    const stream = await fetch(`${hub.url}/api/v1/notifications/stream`, {
      headers: { Authorization: `Bearer ${limited.token}` },
    })
    expect(stream.status).toBe(403)
    await stream.body?.cancel()
    expect((await tenant.call('GET', '/notifications/preferences')).body.data.email.min_severity).toBe('warning')
  })

  test('a token that names the permission for it may, and every token may ask who and what it is', async () => {
    for (const [method, path, permission, body] of OWN) {
      const { call } = await hub.token(tenant.userId, { permissions: [permission] })
      expect([200, 204, 404, 422], `${method} ${path}`).toContain((await call(method, pathOf(path), body)).status)
    }
    const limited = await hub.token(tenant.userId, { permissions: ['servers.view'] })
    for (const path of ['/me', '/me/permissions', '/me/companies'])
      expect((await limited.call('GET', path)).status, path).toBe(200)
    expect((await limited.call('GET', '/me/permissions')).body.data).toEqual(['servers.view'])
  })

  test('a token without a limit reaches it, whatever its person may do; one with every permission is not limited', async () => {
    const person = await hub.user(tenant.companyId, [])
    const all = (await tenant.call('GET', '/permissions')).body.data
    for (const call of [person.call, (await hub.token(person.userId, { permissions: all })).call])
      for (const [method, path, , body] of OWN)
        expect([200, 204, 404, 422], `${method} ${path}`).toContain((await call(method, pathOf(path), body)).status)
  })

  test('each route without a permission says what a limited token needs, or only tells the token what it is', () => {
    const free = apiRoutes.filter(
      route => route.permissions.length === 0 && !route.superAdmin && route.accountPermission === null,
    )
    const tells = free.map(route => `${route.method} ${route.path}`).sort()
    // Search finds only what the token may view; a run and a ticket ask in their own code (the test below).
    const ticket = ['GET /approvals/tickets/:ticket', 'POST /approvals/tickets/:ticket/comments']
    const inside = [...ticket, 'GET /iac/runs/:run', 'GET /search']
    expect(tells).toEqual([...inside, 'GET /me', 'GET /me/companies', 'GET /me/permissions'].sort())
  })

  test('a submitter sees the own run with a token that may submit, and not with one for other things', async () => {
    const person = await hub.user(tenant.companyId, ['iac.submit', 'servers.view'])
    const manifests = [{ path: 'x.yaml', contents: 'kind: nothing' }]
    const made = await person.call('POST', '/iac/runs', { manifests })
    expect(made.status).toBe(201)
    const statusWith = async (permissions: string[]) => {
      const token = await hub.token(person.userId, { permissions })
      return (await token.call('GET', `/iac/runs/${made.body.data.id}`)).status
    }
    expect((await person.call('GET', `/iac/runs/${made.body.data.id}`)).status).toBe(200)
    expect([await statusWith(['iac.submit']), await statusWith(['servers.view'])]).toEqual([200, 403])
  })
})

describe('a limited token of a super administrator', () => {
  test('[HUB-033] finds no company outside the own tree; one without a limit finds every company', async () => {
    const other = await hub.tenant()
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    const limited = await hub.token(root.userId, { permissions: ['identity.view', 'queues.view'] })
    const statusBy = async (by: Pick<Tenant, 'call'>, companyId: string) =>
      (await by.call('GET', `/companies/${companyId}`)).status
    expect(await statusBy(root, other.companyId)).toBe(200)
    expect(await statusBy(limited, tenant.companyId)).toBe(200)
    expect(await statusBy(limited, other.companyId)).toBe(404)
  })
})

describe('the rate of a token', () => {
  const issued = (ratePerMinute: number) =>
    inTransaction(hub.hub.database.db, tx =>
      createToken(tx, {
        userId: tenant.userId,
        name: 'fast',
        ratePerMinute,
        expiresAt: null,
        maker: { id: tenant.userId, permissions: ['*'] },
      }),
    )
  const limitOf = async (token: string) => (await caller(hub.url, token)('GET', '/me')).headers.get('x-ratelimit-limit')

  test('[HUB-048] one that was issued on the screen is held to the bound of the hub, or of the company, at every request', async () => {
    const { token } = await issued(100_000)
    expect(await limitOf(token)).toBe('50')
    await hub.hub.database.client`update companies set token_rate_max = 2000 where id = ${tenant.companyId}`
    expect(await limitOf(token)).toBe('2000')
    await hub.hub.database.client`update companies set token_rate_max = 7 where id = ${tenant.companyId}`
    expect(await limitOf(token)).toBe('7')
    await hub.hub.database.client`update companies set token_rate_max = null where id = ${tenant.companyId}`
    expect(await limitOf((await issued(3)).token)).toBe('3')
  })

  test('[HUB-048] a company that is made below a bounded one has its bound', async () => {
    const { client } = hub.hub.database
    await client`update companies set token_rate_max = 7 where id = ${tenant.companyId}`
    const { data } = (await tenant.call('POST', '/companies', { name: 'child' })).body
    await client`update companies set token_rate_max = null where id = ${tenant.companyId}`
    const [child] = await client`select token_rate_max from companies where id = ${data.id}`
    expect(child?.token_rate_max).toBe(7)
  })

  test('[HUB-048] a command of the hub gives any rate', async () => {
    const { token } = await hub.token(tenant.userId, { rate: 100_000 })
    expect(await limitOf(token)).toBe('100000')
  })
})
