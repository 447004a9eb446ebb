// Nobody acts on a person, role, team or invitation that has more permissions than they do, and identity.manage alone
// is no way to what a child company has.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
type Holder = Omit<Tenant, 'companyId'>
/** Holds identity.manage and what comes with it, and nothing else. */
let manager: Holder

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  manager = await hub.user(tenant.companyId, ['identity.manage', 'identity.view'])
})
afterAll(() => hub.stop())

const mail = () => `${crypto.randomUUID()}@example.test`
const refusal = ({ status, body }: Answer) => [status, body?.reason]
const DENIED = [403, 'permission_denied']
const made = async (path: string, body: Json): Promise<Json> => (await tenant.call('POST', path, body)).body.data
const role = (permissions: string[]) => made('/roles', { name: crypto.randomUUID(), permissions })

describe('people', () => {
  test('with identity.manage alone an administrator is not renamed, readdressed, stripped, disabled, enabled or deleted', async () => {
    const admin = await hub.user(tenant.companyId, ['*'])
    const path = `/users/${admin.userId}`
    const acts: [string, string, Json][] = [
      ['PATCH', path, { email: mail() }],
      ['PATCH', path, { name: 'x' }],
      ['PATCH', path, { permissions: [] }],
      ['PUT', `${path}/roles`, { role_ids: [] }],
      ['POST', `${path}/disable`, undefined],
      ['POST', `${path}/enable`, undefined],
      ['DELETE', path, undefined],
    ]
    const before = (await tenant.call('GET', path)).body
    for (const [method, where, body] of acts) {
      const answer = await manager.call(method, where, body)
      expect(refusal(answer), `${method} ${where}`).toEqual(DENIED)
      expect(answer.body.message).toContain('monitoring.view')
    }
    expect((await tenant.call('GET', path)).body).toEqual(before)
    expect((await admin.call('GET', '/servers')).status).toBe(200)
    for (const [method, where, body] of acts) expect((await tenant.call(method, where, body)).status).toBeLessThan(300)
  })

  test('a permission that somebody holds by a role counts, and one of several is enough', async () => {
    const { id } = await role(['servers.delete'])
    const person = await hub.user(tenant.companyId, ['identity.view'])
    expect((await manager.call('PATCH', `/users/${person.userId}`, { name: 'Pat' })).status).toBe(200)
    await tenant.call('PUT', `/users/${person.userId}/roles`, { role_ids: [id] })
    const answer = await manager.call('PUT', `/users/${person.userId}/roles`, { role_ids: [] })
    expect([...refusal(answer), answer.body.message.includes('servers.delete')]).toEqual([...DENIED, true])
  })

  test('a token that is limited to identity.manage acts on nobody who may do more than the token, its own person included', async () => {
    const limited = await hub.token(tenant.userId, { permissions: ['identity.manage', 'identity.view'] })
    for (const userId of [tenant.userId, (await hub.user(tenant.companyId, ['*'])).userId])
      expect(refusal(await limited.call('PATCH', `/users/${userId}`, { email: mail() }))).toEqual(DENIED)
    expect((await limited.call('PATCH', `/users/${manager.userId}`, { name: 'M' })).status).toBe(200)
  })

  test('a limited token of a super administrator has no power over the hub, and gives no more than it holds', async () => {
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    const limited = await hub.token(root.userId, { permissions: ['identity.manage', 'identity.view'] })
    expect((await root.call('GET', '/monitoring/collectors')).status).toBe(200)
    expect((await limited.call('GET', '/monitoring/collectors')).status).toBe(403)
    const body = { email: mail(), name: 'x', permissions: ['*'] }
    expect(Object.keys((await limited.call('POST', '/users', body)).body.errors)).toEqual(['permissions'])
    const whole = await hub.token(root.userId, { permissions: (await root.call('GET', '/permissions')).body.data })
    expect((await whole.call('GET', '/monitoring/collectors')).status).toBe(200)
  })
})

describe('roles', () => {
  test('a role that grants more than one holds is not emptied, renamed or deleted', async () => {
    for (const permissions of [['*'], ['identity.view', 'servers.delete']]) {
      const { id } = await role(permissions)
      const acts: [string, string, Json][] = [
        ['PATCH', `/roles/${id}`, { permissions: [] }],
        ['PATCH', `/roles/${id}`, { name: crypto.randomUUID() }],
        ['PUT', `/roles/${id}/permissions`, { permissions: ['identity.view'] }],
        ['DELETE', `/roles/${id}`, undefined],
      ]
      for (const [method, path, body] of acts)
        expect(refusal(await manager.call(method, path, body)), `${method} ${path}`).toEqual(DENIED)
      expect((await tenant.call('GET', `/roles/${id}`)).body.data.permissions).toEqual(permissions)
    }
    const own = await role(['identity.view'])
    expect((await manager.call('PATCH', `/roles/${own.id}`, { permissions: [] })).status).toBe(200)
    expect((await manager.call('DELETE', `/roles/${own.id}`)).status).toBe(204)
  })
})

describe('teams', () => {
  test('a team with a member who may do more is not renamed or deleted, and the member stays', async () => {
    const { id } = await made('/teams', { name: crypto.randomUUID() })
    const path = `/teams/${id}`
    const add = (by: Holder, userId: string) => by.call('POST', `${path}/members`, { user_id: userId })
    expect((await add(manager, manager.userId)).status).toBe(201)
    expect(refusal(await add(manager, tenant.userId))).toEqual(DENIED)
    expect((await add(tenant, tenant.userId)).status).toBe(201)
    expect(refusal(await manager.call('PATCH', path, { name: 'x' }))).toEqual(DENIED)
    expect(refusal(await manager.call('DELETE', path))).toEqual(DENIED)
    expect(refusal(await manager.call('DELETE', `${path}/members/${tenant.userId}`))).toEqual(DENIED)
    expect((await tenant.call('GET', path)).body.data.members).toHaveLength(2)
    expect((await manager.call('DELETE', `${path}/members/${manager.userId}`)).status).toBe(204)
  })
})

describe('companies', () => {
  test('with identity.manage alone a child company is made and renamed, and neither moved nor deleted', async () => {
    const make = async () => (await manager.call('POST', '/companies', { name: 'Child' })).body.data.id
    const [child, other] = [await make(), await make()]
    expect((await manager.call('PATCH', `/companies/${child}`, { name: 'Kid' })).status).toBe(200)
    expect(refusal(await manager.call('PATCH', `/companies/${child}`, { parent_id: other }))).toEqual(DENIED)
    expect(refusal(await manager.call('DELETE', `/companies/${child}`))).toEqual(DENIED)
    expect((await tenant.call('GET', `/companies/${child}`)).body.data.parent_id).toBe(tenant.companyId)
    expect((await tenant.call('PATCH', `/companies/${child}`, { parent_id: other })).status).toBe(200)
    expect((await tenant.call('DELETE', `/companies/${child}`)).status).toBe(204)
  })

  test('a grant is neither given to nor withdrawn from somebody who may do more', async () => {
    const { id } = await made('/companies', { name: 'Child' })
    const grants = `/companies/${id}/grants`
    expect(refusal(await manager.call('POST', grants, { user_id: tenant.userId }))).toEqual(DENIED)
    expect((await tenant.call('POST', grants, { user_id: tenant.userId })).status).toBe(201)
    expect(refusal(await manager.call('DELETE', `${grants}/${tenant.userId}`))).toEqual(DENIED)
    expect((await manager.call('POST', grants, { user_id: manager.userId })).status).toBe(201)
    expect((await manager.call('DELETE', `${grants}/${manager.userId}`)).status).toBe(204)
    // Of people elsewhere nothing is told.
    const stranger = await hub.tenant()
    expect((await manager.call('DELETE', `${grants}/${stranger.userId}`)).status).toBe(404)
  })
})

describe('side by side', () => {
  test('a person who is raised meanwhile is either changed before or not at all, and never lowered again', async () => {
    for (let n = 0; n < 15; n++) {
      const { userId } = await hub.user(tenant.companyId, [])
      const path = `/users/${userId}`
      const [raised, renamed] = await Promise.all([
        tenant.call('PATCH', path, { permissions: ['servers.delete'] }),
        manager.call('PATCH', path, { name: 'Renamed' }),
      ])
      expect(raised.status).toBe(200)
      const { data } = (await tenant.call('GET', path)).body
      expect([renamed.status, data.name, data.permissions]).toEqual([
        renamed.status === 200 ? 200 : 403,
        renamed.status === 200 ? 'Renamed' : 'Test user',
        ['servers.delete'],
      ])
    }
  })
})
