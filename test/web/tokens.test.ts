// The screen that issues API tokens, and the page behind an invitation, over HTTP against a real hub and database.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { caller, type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { logIn, newPerson, type Person, type Session, sendLogin } from './visitor.ts'

let hub: TestHub
let tenant: Tenant
let manager: Person
let session: Session

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000 })
  tenant = await hub.tenant()
  manager = await newPerson(hub, tenant.companyId, ['api-tokens.manage', 'monitoring.view', 'servers.view'], 'Mira <M>')
  session = await logIn(hub.url, manager.email)
}, 120_000)
afterAll(() => hub.stop(), 120_000)

const get = (path: string, cookie = '') => fetch(`${hub.url}${path}`, { headers: { cookie }, redirect: 'manual' })
const post = (path: string, fields: Record<string, string> | [string, string][], cookie = '') =>
  fetch(`${hub.url}${path}`, {
    method: 'POST',
    headers: { cookie },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  })
const tokenIn = (page: string): string => /id="token">(hub_[0-9A-Za-z]{40})</.exec(page)?.[1] ?? ''

/** Issues a token for the manager; `more` replaces fields of the form. */
async function issue(more: Record<string, string>, from = session): Promise<{ status: number; page: string }> {
  const fields = { csrf_token: from.csrfToken, name: 'script', user_id: manager.userId, expires_in_days: '90', ...more }
  const answer = await post('/tokens', fields, from.cookie)
  return { status: answer.status, page: await answer.text() }
}

describe('the screen for API tokens', () => {
  test('[HUB-025] it needs a session with api-tokens.manage', async () => {
    expect((await get('/tokens')).headers.get('location')).toBe('/login')
    const viewer = await logIn(
      hub.url,
      (await newPerson(hub, tenant.companyId, ['monitoring.view', 'servers.view'])).email,
    )
    expect((await get('/tokens', viewer.cookie)).status).toBe(403)
    const refused = await issue({}, viewer)
    expect([refused.status, tokenIn(refused.page)]).toEqual([403, ''])
    expect((await get('/tokens', session.cookie)).status).toBe(200)
    const byToken = await fetch(`${hub.url}/tokens`, {
      headers: { authorization: `Bearer ${tenant.token}` },
      redirect: 'manual',
    })
    expect(byToken.headers.get('location')).toBe('/login')
  })

  test('[HUB-024] [HUB-026] [HUB-021] an issued token is shown once, works for 90 days, and may what was chosen', async () => {
    const { status, page } = await issue({ name: 'grafana', permissions: 'monitoring.view' })
    const token = tokenIn(page)
    expect(status).toBe(201)
    const call = caller(hub.url, token)
    expect((await call('GET', '/monitoring/alerts')).status).toBe(200)
    expect((await call('GET', '/servers')).status).toBe(403)
    const again = await (await get('/tokens', session.cookie)).text()
    expect(again).not.toContain(token)
    expect(again).toContain(`${token.slice(0, 8)}...${token.slice(-4)}`)
    const [row] = await hub.hub.database.client`
      select expires_at - now() as life, rate_per_minute from api_tokens where name = 'grafana'`
    expect(Math.round(Number.parseInt(String(row?.life), 10))).toBeGreaterThanOrEqual(89)
    const log: Json = await tenant.call('GET', '/audit-log?action=token.create')
    expect([log.body.data[0].actor.name, JSON.stringify(log.body)]).toEqual([
      'Mira <M>',
      expect.not.stringContaining(token),
    ])
  })

  test('[HUB-023] [HUB-048] address range, rate and life are kept; a token that never expires says so', async () => {
    const { page } = await issue({ ip_ranges: '10.0.0.0/8, ::1', rate_per_minute: '7', expires_in_days: '' })
    const answer = await caller(hub.url, tokenIn(page))('GET', '/me')
    expect([answer.status, answer.body.reason]).toEqual([403, 'ip_not_allowed'])
    const [row] = await hub.hub.database.client`
      select ip_ranges, rate_per_minute, expires_at from api_tokens order by created_at desc limit 1`
    expect({ ...row }).toEqual({ ip_ranges: ['10.0.0.0/8', '::1'], rate_per_minute: 7, expires_at: null })
  })

  test('a wrong form says what is wrong, by field, and issues nothing', async () => {
    const count = async () => (await hub.hub.database.client`select count(*)::int as n from api_tokens`)[0]?.n
    const before = await count()
    for (const [fields, word] of [
      [{ name: ' ' }, 'name'],
      [{ expires_in_days: '0' }, 'expires_in_days'],
      [{ expires_in_days: 'soon' }, 'expires_in_days'],
      [{ rate_per_minute: '-1' }, 'rate_per_minute'],
      [{ ip_ranges: '10.0.0' }, 'ip_range'],
      [{ permissions: 'monitoring.collector' }, 'permissions'],
    ] as const) {
      const { status, page } = await issue(fields)
      expect([status, page.includes(`role="alert">${word}`)], JSON.stringify(fields)).toEqual([422, true])
    }
    expect((await issue({ user_id: tenant.companyId })).status).toBe(404)
    expect(await count()).toBe(before)
  })

  test('[HUB-018] a token for somebody else is no way to more permissions, nor out of the company', async () => {
    const refused = await issue({ user_id: tenant.userId })
    expect([refused.status, refused.page.includes('permissions:')]).toEqual([422, true])
    const narrowed = await issue({ user_id: tenant.userId, permissions: 'servers.view' })
    expect(narrowed.status).toBe(201)
    const stranger = await hub.tenant()
    expect((await issue({ user_id: stranger.userId })).status).toBe(404)
  })

  test('[HUB-038] a revoked token stops working at once; of another company none can be revoked', async () => {
    const token = tokenIn((await issue({ name: 'short' })).page)
    expect((await caller(hub.url, token)('GET', '/me')).status).toBe(200)
    const [row] = await hub.hub.database.client`select id from api_tokens where name = 'short'`
    const other = await hub.tenant()
    const outsider = await logIn(hub.url, (await newPerson(hub, other.companyId)).email)
    const foreign = await post('/tokens/revoke', { csrf_token: outsider.csrfToken, id: row?.id }, outsider.cookie)
    expect(foreign.status).toBe(404)
    await post('/tokens/revoke', { csrf_token: 'wrong', id: row?.id }, session.cookie)
    expect((await caller(hub.url, token)('GET', '/me')).status).toBe(200)
    await post('/tokens/revoke', { csrf_token: session.csrfToken, id: row?.id }, session.cookie)
    const gone = await caller(hub.url, token)('GET', '/me')
    expect([gone.status, gone.body.reason]).toEqual([401, 'token_revoked'])
  })

  test('names of people and tokens are text, never markup', async () => {
    await issue({ name: '<img src=x onerror=alert(1)>' })
    const page = await (await get('/tokens', session.cookie)).text()
    expect(page).not.toContain('<img src=x')
    expect(page).toContain('Mira &lt;M&gt;')
  })
})

describe('an invitation', () => {
  const invite = async (body: Json) => (await tenant.call('POST', '/invitations', body)).body
  const password = 'a long enough password'

  test('the link lets one person in once, with the rights of the invitation', async () => {
    const { body: viewer } = await tenant.call('GET', '/roles')
    const role = viewer.data.find((each: Json) => each.name === 'viewer')
    const { data, link } = await invite({ email: 'Ada@Example.test', name: 'Ada', role_ids: [role.id] })
    expect([data.email, data.expired, data.invited_by.name]).toEqual(['ada@example.test', false, 'Test user'])
    const { pathname, search } = new URL(link)
    const token = search.slice('?token='.length)
    const form = await (await get(`${pathname}${search}`)).text()
    expect(form).toContain('ada@example.test')
    const short = await post('/invitation', { token, name: 'Ada', password: 'short', again: 'short' })
    expect([short.status, (await short.text()).includes('at least 12')]).toEqual([422, true])
    const differ = await post('/invitation', { token, name: 'Ada', password, again: `${password}!` })
    expect(differ.status).toBe(422)
    const before = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
    const joined = await post('/invitation', { token, name: 'Ada L.', password, again: password }, before.cookie)
    // The browser is another person's from now on.
    expect((await get('/api/v1/me', before.cookie)).status).toBe(401)
    expect([joined.status, joined.headers.get('location')]).toEqual([303, '/'])
    const cookie = (joined.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const me: Json = await (await get('/api/v1/me', cookie)).json()
    expect([
      me.data.name,
      me.data.permissions.includes('monitoring.view'),
      me.data.permissions.includes('monitoring.manage'),
    ]).toEqual(['Ada L.', true, false])
    expect((await sendLogin(hub.url, 'ada@example.test', password)).status).toBe(303)
    expect((await get(`${pathname}${search}`)).status).toBe(404)
    expect((await tenant.call('GET', '/invitations')).body.meta.total).toBe(0)
  })

  test('withdrawn, replaced and expired ones open nothing; who is a user is not invited', async () => {
    const first = await invite({ email: 'bob@example.test' })
    const second = await invite({ email: 'bob@example.test' })
    const path = (link: string) => link.slice(link.indexOf('/invitation'))
    expect((await get(path(first.link))).status).toBe(404)
    expect((await get(path(second.link))).status).toBe(200)
    await hub.hub.database.client`update invitations set expires_at = now() - interval '1 second'`
    expect((await get(path(second.link))).status).toBe(404)
    expect((await tenant.call('GET', '/invitations')).body.data[0].expired).toBe(true)
    const third = await invite({ email: 'bob@example.test' })
    expect((await tenant.call('DELETE', `/invitations/${third.data.id}`)).status).toBe(204)
    expect((await get(path(third.link))).status).toBe(404)
    const taken = await tenant.call('POST', '/invitations', { email: manager.email.toUpperCase() })
    expect([taken.status, Object.keys(taken.body.errors)]).toEqual([422, ['email']])
  })

  test('nobody invites with more than they may do', async () => {
    const admin = await hub.user(tenant.companyId, ['identity.manage'])
    const answer = await admin.call('POST', '/invitations', {
      email: 'eve@example.test',
      permissions: ['servers.delete'],
    })
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['permissions']])
    const other = await hub.tenant()
    const { data } = await invite({ email: 'eve@example.test' })
    expect((await other.call('DELETE', `/invitations/${data.id}`)).status).toBe(404)
  })

  test('the mail has the link; who reads the deliveries does not', async () => {
    const mailing = await TestHub.start({ 'smtp.url': 'smtp://127.0.0.1:1' })
    const owner = await mailing.tenant()
    const { body } = await owner.call('POST', '/invitations', { email: 'cy@example.test', language: 'vi' })
    expect(body.mailed).toBe(true)
    const deliveries = await owner.call('GET', '/notifications/deliveries')
    expect(deliveries.body.data[0]).toMatchObject({ channel: 'email', target: 'cy@example.test', type: 'invitation' })
    expect(JSON.stringify(deliveries.body)).not.toContain('inv_')
    const sealed = deliveries.body.data[0].payload.sealed_body
    expect(mailing.hub.sealer.open(sealed)).toContain(body.link)
    await mailing.running.stop()
  })
})
