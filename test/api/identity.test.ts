import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { assignablePermissions } from '../../apps/hub/identity/permission-keys.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

const mail = () => `${crypto.randomUUID()}@example.test`
const user = async (body: Json = {}, by: Omit<Tenant, 'companyId'> = tenant) =>
  by.call('POST', '/users', { email: mail(), name: 'A person', ...body })
const role = async (permissions: string[], name: string = crypto.randomUUID()) =>
  tenant.call('POST', '/roles', { name, permissions })

describe('users', () => {
  test('are created, listed, changed and deleted inside the company', async () => {
    const made = await user({ name: 'Zoe', permissions: ['monitoring.view'] })
    expect([made.status, made.body.data.permissions]).toEqual([201, ['monitoring.view']])
    const path = `/users/${made.body.data.id}`
    expect((await tenant.call('GET', '/users?search=zoe')).body.data.map((item: Json) => item.id)).toEqual([
      made.body.data.id,
    ])
    expect((await tenant.call('PATCH', path, { name: 'Zoé' })).body.data.name).toBe('Zoé')
    expect((await user({ email: made.body.data.email.toUpperCase() })).body.errors.email).toHaveLength(1)
    const other = await hub.tenant()
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect((await other.call(method, path, method === 'PATCH' ? {} : undefined)).status).toBe(404)
    expect((await tenant.call('DELETE', path)).status).toBe(204)
    expect((await tenant.call('GET', path)).status).toBe(404)
  })

  test('an e-mail address is what mail servers of a site of its own take: no dot is asked of its domain', async () => {
    const name = crypto.randomUUID()
    expect((await user({ email: `${name}@localhost` })).status).toBe(201)
    for (const email of [
      name,
      `${name}@`,
      `@${name}`,
      `two words@example.test`,
      `${name}@a@b`,
      7,
      `${name}@${'x'.repeat(254)}`,
    ]) {
      const { status, body } = await user({ email })
      expect([email, status, Object.keys(body.errors)]).toEqual([email, 422, ['email']])
    }
  })

  test('an id is a UUID of either case, and nothing that a library of formats takes for one', async () => {
    const made = await user()
    expect((await tenant.call('GET', `/users/${made.body.data.id.toUpperCase()}`)).status).toBe(200)
    const { status, body } = await tenant.call('POST', '/servers/bulk/tags', {
      server_ids: [`urn:uuid:${crypto.randomUUID()}`],
      add: ['a'],
    })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['server_ids.0']])
  })

  test('a disabled user is out at once; nobody disables or deletes themselves', async () => {
    const person = await hub.user(tenant.companyId, ['servers.view'])
    expect((await person.call('GET', '/servers')).status).toBe(200)
    await tenant.call('POST', `/users/${person.userId}/disable`)
    expect((await person.call('GET', '/servers')).status).toBe(401)
    await tenant.call('POST', `/users/${person.userId}/enable`)
    expect((await person.call('GET', '/servers')).status).toBe(200)
    expect((await tenant.call('POST', `/users/${tenant.userId}/disable`)).status).toBe(422)
    expect((await tenant.call('DELETE', `/users/${tenant.userId}`)).status).toBe(422)
  })

  test('nobody gives what they do not hold, nor touches a super administrator', async () => {
    const manager = await hub.user(tenant.companyId, ['identity.manage', 'identity.view', 'servers.view'])
    expect((await user({ permissions: ['servers.view'] }, manager)).status).toBe(201)
    expect((await user({ permissions: ['servers.manage'] }, manager)).body.errors.permissions).toHaveLength(1)
    expect((await user({ permissions: ['*'] }, manager)).status).toBe(422)
    const roles = (await manager.call('GET', '/roles')).body.data
    const admin = roles.find((item: Json) => item.name === 'admin')
    const made = (await user({}, manager)).body.data
    expect((await manager.call('PUT', `/users/${made.id}/roles`, { role_ids: [admin.id] })).status).toBe(422)
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    expect((await tenant.call('PATCH', `/users/${root.userId}`, { email: mail() })).status).toBe(422)
    expect((await tenant.call('POST', `/users/${root.userId}/disable`)).status).toBe(422)
  })
})

describe('roles', () => {
  test('[HUB-058] [HUB-007] the role screen refuses permissions of service accounts, and knows the same keys as the API', async () => {
    for (const permission of ['monitoring.collector', 'security.matcher', 'no.such']) {
      const { status, body } = await role(['monitoring.view', permission])
      expect([status, Object.keys(body.errors)]).toEqual([422, ['permissions']])
    }
    const { id } = (await role(['monitoring.view'])).body.data
    expect(
      (await tenant.call('PUT', `/roles/${id}/permissions`, { permissions: ['monitoring.collector'] })).status,
    ).toBe(422)
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    expect((await root.call('PUT', `/roles/${id}/permissions`, { permissions: ['security.matcher'] })).status).toBe(422)
    const keys = (await tenant.call('GET', '/permissions')).body.data
    expect(keys).toContain('monitoring.manage')
    expect(keys).not.toContain('monitoring.collector')
    expect(keys).not.toContain('security.matcher')
  })

  test('[HUB-057] the wildcard never includes monitoring.collector or security.matcher', async () => {
    const all = (await tenant.call('GET', '/me/permissions')).body.data
    expect(all).toContain('servers.delete')
    expect(all).not.toContain('monitoring.collector')
    expect(all).not.toContain('security.matcher')
    expect((await tenant.call('GET', '/monitoring/collector/rules')).status).toBe(403)
  })

  test('a role gives its permissions at once and takes them at once', async () => {
    const person = await hub.user(tenant.companyId, [])
    const { id } = (await role(['servers.view'])).body.data
    expect((await person.call('GET', '/servers')).status).toBe(403)
    expect((await tenant.call('PUT', `/users/${person.userId}/roles`, { role_ids: [id] })).body.data.roles[0].id).toBe(
      id,
    )
    expect((await person.call('GET', '/servers')).status).toBe(200)
    expect((await tenant.call('GET', `/users/${person.userId}/permissions`)).body.data).toEqual(['servers.view'])
    await tenant.call('PUT', `/roles/${id}/permissions`, { permissions: ['monitoring.view'] })
    expect((await person.call('GET', '/servers')).status).toBe(403)
    expect((await tenant.call('DELETE', `/roles/${id}`)).body.errors.role).toHaveLength(1)
    await tenant.call('PUT', `/users/${person.userId}/roles`, { role_ids: [] })
    expect((await tenant.call('DELETE', `/roles/${id}`)).status).toBe(204)
  })

  test('the built-in roles are there for everybody and cannot be changed', async () => {
    const { data } = (await tenant.call('GET', '/roles')).body
    const builtIn = data.filter((item: Json) => item.built_in)
    expect(builtIn.map((item: Json) => item.name).sort()).toEqual(['admin', 'operator', 'viewer'])
    for (const item of builtIn) {
      expect((await tenant.call('PATCH', `/roles/${item.id}`, { name: 'x' })).status).toBe(422)
      expect((await tenant.call('DELETE', `/roles/${item.id}`)).status).toBe(422)
    }
    const known = new Set((await tenant.call('GET', '/permissions')).body.data)
    for (const key of builtIn.flatMap((item: Json) => item.permissions))
      expect(key === '*' || known.has(key)).toBe(true)
  })

  test('[HUB-054] [HUB-055] the viewer holds every key that reads, the operator these and two more', async () => {
    const { data } = (await tenant.call('GET', '/roles')).body
    const held = (name: string): string[] =>
      data.find((item: Json) => item.built_in && item.name === name).permissions.sort()
    const reading = assignablePermissions.filter(key => key.endsWith('.view'))
    expect(held('viewer')).toEqual([...reading].sort())
    expect(held('operator')).toEqual([...reading, 'monitoring.manage', 'iac.submit'].sort())
  })

  test('[HUB-054] a hub that starts gives the built-in roles what it knows, and leaves the roles of companies alone', async () => {
    const { database } = hub.hub
    const read = () => database.client`select id, name, permissions, built_in, company_id from roles order by id`
    const before = await read()
    await database.client`update roles set permissions = array['audit.view'] where built_in`
    await bringUpToDate(database)
    expect(await read()).toEqual(before)
  })
})

describe('companies and teams', () => {
  test('[HUB-031] a child company is created, granted and worked in', async () => {
    const own = await hub.tenant()
    const made = await own.call('POST', '/companies', { name: 'Child' })
    expect([made.status, made.body.data.parent_id]).toEqual([201, own.companyId])
    const child = made.body.data.id
    const inChild = () => own.call('GET', '/monitoring/rules', undefined, { 'X-Company-Id': child })
    expect((await inChild()).status).toBe(403)
    expect((await own.call('POST', `/companies/${child}/grants`, { user_id: own.userId })).status).toBe(201)
    expect((await inChild()).body.meta.total).toBe(8)
    expect((await own.call('GET', '/me/companies')).body.data.map((item: Json) => item.id)).toEqual([
      own.companyId,
      child,
    ])
    await own.call('DELETE', `/companies/${child}/grants/${own.userId}`)
    expect((await inChild()).status).toBe(403)
    expect((await own.call('GET', `/companies/${own.companyId}/children`)).body.data[0].id).toBe(child)
    expect((await tenant.call('GET', `/companies/${child}`)).status).toBe(404)
    expect((await own.call('DELETE', `/companies/${own.companyId}`)).status).toBe(422)
    expect((await own.call('DELETE', `/companies/${child}`)).status).toBe(204)
    expect((await own.call('GET', `/companies/${child}`)).status).toBe(404)
  })

  test('teams have members of the own company', async () => {
    const { data } = (await tenant.call('POST', '/teams', { name: 'Night shift' })).body
    const person = await hub.user(tenant.companyId, [])
    const foreign = await hub.tenant()
    const path = `/teams/${data.id}`
    expect((await tenant.call('POST', `${path}/members`, { user_id: person.userId })).body.data.members).toEqual([
      { id: person.userId, name: 'Test user' },
    ])
    expect((await tenant.call('POST', `${path}/members`, { user_id: foreign.userId })).status).toBe(422)
    expect((await tenant.call('DELETE', `${path}/members/${person.userId}`)).status).toBe(204)
    expect((await tenant.call('GET', path)).body.data.members).toEqual([])
    expect((await foreign.call('GET', path)).status).toBe(404)
    expect((await tenant.call('POST', '/teams', { name: 'night SHIFT' })).status).toBe(422)
    expect((await tenant.call('DELETE', path)).status).toBe(204)
  })

  test('a snapshot is a small PNG, JPEG or WebP whose bytes are what it says', async () => {
    const own = await hub.tenant()
    const png = `data:image/png;base64,${Buffer.from('89504e470d0a1a0a0000', 'hex').toString('base64')}`
    const { status, body } = await own.call('PUT', '/me/avatar', { image: png })
    expect([status, body.data.avatar]).toEqual([200, png])
    const large = `data:image/jpeg;base64,${Buffer.concat([Buffer.from('ffd8ff', 'hex'), Buffer.alloc(131_072)]).toString('base64')}`
    for (const image of [
      'x',
      'https://example.net/x.png',
      'data:image/svg+xml;base64,PHN2Zz4=',
      png.replace('png', 'webp'),
      large,
    ]) {
      const refused = await own.call('PUT', '/me/avatar', { image })
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['image']])
    }
    expect((await own.call('GET', '/me')).body.data.avatar).toBe(png)
    expect((await own.call('DELETE', '/me/avatar')).status).toBe(204)
    expect((await own.call('GET', '/me')).body.data.avatar).toBeNull()
    const actions = (await own.call('GET', '/me/activity')).body.data.map((entry: Json) => entry.action)
    expect(actions.slice(0, 2)).toEqual(['user.update', 'user.update'])
  })
})
