// A token that one person makes for another: it never gives more than both may do, and ends with its maker.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { migrations } from '../../apps/hub/platform/db/migrate.ts'
import { caller, type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { logIn, newPerson, type Person, type Session } from './visitor.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.token_max_per_minute': 500 })
  tenant = await hub.tenant()
}, 120_000)
afterAll(() => hub.stop(), 120_000)

const MAKER = ['api-tokens.manage', 'monitoring.view', 'servers.view']
type Maker = { readonly person: Person; readonly session: Session }

async function newMaker(permissions: readonly string[] = MAKER, companyId = tenant.companyId): Promise<Maker> {
  const person = await newPerson(hub, companyId, permissions)
  return { person, session: await logIn(hub.url, person.email) }
}

async function post(path: string, { cookie, csrfToken }: Session, fields: readonly [string, string][]) {
  const body = new URLSearchParams([['csrf_token', csrfToken], ...fields])
  const answer = await fetch(`${hub.url}${path}`, { method: 'POST', headers: { cookie }, body, redirect: 'manual' })
  return { status: answer.status, page: await answer.text() }
}

async function issue(maker: Maker, userId: string, permissions: readonly string[] = [], more: Json = {}) {
  const fields = { name: crypto.randomUUID(), user_id: userId, expires_in_days: '90', ...more }
  const { status, page } = await post('/tokens', maker.session, [
    ...Object.entries<string>(fields),
    ...permissions.map(key => ['permissions', key] as [string, string]),
  ])
  const token = /id="token">(hub_[0-9A-Za-z]{40})</.exec(page)?.[1] ?? ''
  const fault = /role="alert">([^<]*)</.exec(page)?.[1] ?? ''
  return { status, fault, token, name: fields.name, call: caller(hub.url, token) }
}

const allowed = async (call: ReturnType<typeof caller>) => (await call('GET', '/me/permissions')).body.data
const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
const give = (userId: string, permissions: string) =>
  sql`update users set permissions = ${permissions}::text[] where id = ${userId}`

describe('a token for somebody else', () => {
  test('[HUB-018] does not follow its person to rights that came later, whether its maker gets them too or not', async () => {
    const maker = await newMaker()
    const person = await newPerson(hub, tenant.companyId, ['servers.view'])
    const token = await issue(maker, person.userId)
    expect([token.status, await allowed(token.call)]).toEqual([201, ['servers.view']])
    await give(person.userId, '{*}')
    expect(await allowed(token.call)).toEqual(MAKER)
    await give(maker.person.userId, '{*}')
    expect(await allowed(token.call)).toEqual(MAKER)
    expect((await token.call('POST', '/servers', { name: 'x' })).status).toBe(403)
  })

  test('[HUB-020] loses what its maker loses, for the maker has seen it; a token of one’s own does not', async () => {
    const maker = await newMaker()
    const person = await newPerson(hub, tenant.companyId, ['monitoring.view', 'servers.view'])
    const [token, narrowed] = [await issue(maker, person.userId), await issue(maker, person.userId, ['servers.view'])]
    const own = await issue(maker, maker.person.userId)
    await give(maker.person.userId, '{monitoring.view}')
    expect(await allowed(token.call)).toEqual(['monitoring.view'])
    expect(await allowed(narrowed.call)).toEqual([])
    await give(maker.person.userId, '{*}')
    expect(await allowed(narrowed.call)).toEqual(['servers.view'])
    expect(await allowed(own.call)).toContain('servers.delete')
  })

  test('counts as revoked while its maker is disabled, and is when the maker is deleted', async () => {
    const maker = await newMaker()
    const person = await newPerson(hub, tenant.companyId, ['servers.view'])
    const token = await issue(maker, person.userId)
    const answer = async () => {
      const { status, body } = await token.call('GET', '/servers')
      return [status, body.reason]
    }
    const REVOKED = [401, 'token_revoked']
    await tenant.call('POST', `/users/${maker.person.userId}/disable`)
    expect(await answer()).toEqual(REVOKED)
    await tenant.call('POST', `/users/${maker.person.userId}/enable`)
    expect(await answer()).toEqual([200, undefined])
    await tenant.call('DELETE', `/users/${maker.person.userId}`)
    expect(await answer()).toEqual(REVOKED)
    const [row] = await sql`select revoked_at is not null as revoked from api_tokens where name = ${token.name}`
    expect(row?.revoked).toBe(true)
    const log = await tenant.call('GET', '/audit-log?action=token.revoke')
    expect(log.body.data[0].subject.name).toBe(token.name)
  })

  test('[HUB-019] reaches no child company that was granted later, and only those that its maker was granted too', async () => {
    const own = await hub.tenant()
    const maker = await newMaker(MAKER, own.companyId)
    const person = await newPerson(hub, own.companyId, ['servers.view'])
    const child = await hub.tenant(undefined, { parentId: own.companyId })
    const grant = (userId: string) =>
      sql`insert into user_company_grants (user_id, company_id) values (${userId}, ${child.companyId})`
    const inChild = async ({ call }: { call: ReturnType<typeof caller> }) =>
      (await call('GET', '/servers', undefined, { 'X-Company-Id': child.companyId })).status
    const before = await issue(maker, person.userId)
    await grant(person.userId)
    const between = await issue(maker, person.userId)
    await grant(maker.person.userId)
    const after = await issue(maker, person.userId)
    expect(await Promise.all([before, between, after].map(inChild))).toEqual([403, 403, 200])
    expect((await before.call('GET', '/me/companies')).body.data).toHaveLength(1)
    expect(await inChild(await hub.token(person.userId))).toBe(200)
    await sql`delete from user_company_grants where user_id = ${maker.person.userId}`
    expect(await inChild(after)).toBe(403)
  })

  test('[HUB-018] is refused with rights that its person does not hold, or its maker, and says which', async () => {
    const maker = await newMaker()
    const person = await newPerson(hub, tenant.companyId, ['servers.view', 'servers.manage'])
    for (const [userId, permission, words] of [
      [person.userId, 'servers.delete', 'does not hold the permission servers.delete'],
      [person.userId, 'monitoring.view', 'does not hold the permission monitoring.view'],
      [person.userId, 'servers.manage', 'you do not hold the permission servers.manage'],
      [maker.person.userId, 'servers.delete', 'does not hold the permission servers.delete'],
    ] as const) {
      const { status, fault } = await issue(maker, userId, ['servers.view', permission])
      expect([status, fault]).toEqual([422, expect.stringContaining(words)])
      expect(fault).toStartWith('permissions:')
    }
  })

  test('does not reach the account of a person who may do more than its maker', async () => {
    const maker = await newMaker([...MAKER, 'notifications.view'])
    const token = await issue(maker, tenant.userId, ['notifications.view'])
    expect(token.status).toBe(201)
    expect((await token.call('GET', '/notifications')).status).toBe(403)
    const peer = await newPerson(hub, tenant.companyId, ['notifications.view'])
    const ofPeer = await issue(maker, peer.userId, ['notifications.view'])
    expect((await ofPeer.call('GET', '/notifications')).status).toBe(200)
  })

  test('a token that gives more than one holds is not revoked by those who may only issue', async () => {
    const maker = await newMaker()
    const admin = await newMaker(['*'])
    const powerful = await issue(admin, admin.person.userId)
    const idOf = async (name: string) => (await sql`select id from api_tokens where name = ${name}`)[0]?.id as string
    const id = await idOf(powerful.name)
    expect((await post('/tokens/revoke', maker.session, [['id', id]])).status).toBe(403)
    expect((await powerful.call('GET', '/servers')).status).toBe(200)
    const weak = await issue(admin, admin.person.userId, ['servers.view'])
    expect((await post('/tokens/revoke', maker.session, [['id', await idOf(weak.name)]])).status).toBe(303)
    expect((await weak.call('GET', '/servers')).status).toBe(401)
    expect((await post('/tokens/revoke', admin.session, [['id', id]])).status).toBe(303)
  })
})

describe('bounds of the screen', () => {
  test('[HUB-048] a token is given no higher rate than the hub allows, or the company', async () => {
    const own = await hub.tenant()
    const maker = await newMaker(MAKER, own.companyId)
    const rate = async (rate_per_minute: string) =>
      (await issue(maker, maker.person.userId, [], { rate_per_minute })).fault
    expect(await rate('501')).toBe('rate_per_minute: must be at most 500')
    expect(await rate('500')).toBe('')
    await sql`update companies set token_rate_max = 90 where id = ${own.companyId}`
    expect(await rate('91')).toBe('rate_per_minute: must be at most 90')
  })
})

describe('tokens from before', () => {
  test('one whose maker the log names is held to what the maker may do; every other goes on', async () => {
    const maker = await newPerson(hub, tenant.companyId, ['servers.view'])
    const gone = await newPerson(hub, tenant.companyId, ['servers.view'])
    const person = await newPerson(hub, tenant.companyId, ['servers.view', 'monitoring.view'])
    const made = await hub.token(person.userId)
    const [ofGone, own] = [await hub.token(person.userId), await hub.token(maker.userId)]
    for (const [id, actor] of [
      [made.id, maker.userId],
      [ofGone.id, gone.userId],
      [own.id, maker.userId],
    ] as const)
      await sql`
        insert into audit_log (id, company_id, actor_type, actor_id, action, subject_type, subject_id)
        values (gen_random_uuid(), ${tenant.companyId}, 'user', ${actor}, 'token.create', 'token', ${id})`
    await sql`delete from users where id = ${gone.userId}`
    const migration = migrations.find(each => each.name === 'token_makers')?.sql ?? ''
    const update = /update api_tokens[^;]*;/.exec(migration)?.[0] ?? ''
    expect(update).not.toBe('')
    await hub.hub.database.client.unsafe(update)
    expect(await allowed(made.call)).toEqual(['servers.view'])
    expect(await allowed(ofGone.call)).toEqual(['monitoring.view', 'servers.view'])
    await give(maker.userId, '{*}')
    expect(await allowed(made.call)).toEqual(['servers.view'])
    expect(await allowed(own.call)).toContain('servers.delete')
  })
})
