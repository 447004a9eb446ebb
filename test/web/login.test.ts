// Login, sessions and their limits, over HTTP against a real hub and database.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { tokenHash } from '../../apps/hub/identity/token-forms.ts'
import { type Tenant, TestHub } from '../api/hub-harness.ts'
import { askView, Live, logIn, newPerson, PASSWORD, type Person, type Session, sendLogin, slugOf } from './visitor.ts'

let hub: TestHub
let tenant: Tenant
let person: Person

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, trusted_proxies: '127.0.0.1' })
  tenant = await hub.tenant()
  person = await newPerson(hub, tenant.companyId)
}, 120_000)
afterAll(() => hub.stop(), 120_000)

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${hub.url}${path}`, { headers, redirect: 'manual' })
const me = ({ cookie }: Session) => get('/api/v1/me', { cookie })
const tokenIn = (cookie: string): string => cookie.split('=')[1] ?? ''

describe('login', () => {
  test('[HUB-013] without a session the page is the login form; with the right password it leads to the company', async () => {
    const form = await (await get('/')).text()
    expect(form).toContain('action="/login"')
    expect(form).toContain('type="password"')
    const answer = await sendLogin(hub.url, person.email)
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toBe('/')
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^hub_session=ses_[0-9A-Za-z]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/)
    const session = { cookie: cookie.split(';')[0] ?? '' }
    const home = (await get('/', session)).headers.get('location') ?? ''
    expect(home).toMatch(/^\/c\/[a-z0-9-]+\//)
    const page = await (await get(home, session)).text()
    expect(page).toContain('id="app"')
    expect(page).not.toContain('action="/login"')
  })

  test('e-mails are told apart without regard to case', async () => {
    expect((await sendLogin(hub.url, person.email.toUpperCase())).status).toBe(303)
  })

  test('a wrong password and an unknown e-mail are refused with the same words, and set no cookie', async () => {
    const wrong = await sendLogin(hub.url, person.email, 'wrong')
    const unknown = await sendLogin(hub.url, 'nobody@example.test', 'wrong')
    const text = 'E-mail or password is wrong.'
    for (const answer of [wrong, unknown]) {
      expect(answer.status).toBe(401)
      expect(answer.headers.get('set-cookie')).toBeNull()
      expect(await answer.text()).toContain(text)
    }
  })

  test('users without password, disabled users and service accounts cannot log in', async () => {
    const { email } = await hub.user(tenant.companyId, ['*'])
    expect((await sendLogin(hub.url, email, '')).status).toBe(401)
    expect((await sendLogin(hub.url, email, 'null')).status).toBe(401)
    const disabled = await newPerson(hub, tenant.companyId)
    await hub.hub.database.db.execute(sql`update users set disabled_at = now() where id = ${disabled.userId}`)
    expect((await sendLogin(hub.url, disabled.email)).status).toBe(401)
    const service = await newPerson(hub, tenant.companyId)
    await hub.hub.database.db.execute(sql`update users set kind = 'collector' where id = ${service.userId}`)
    expect((await sendLogin(hub.url, service.email)).status).toBe(401)
  })

  test('twenty-nine wrong logins of one address delay a login from another by one hash or two, not by all', async () => {
    let wrongAnswered = 0
    const wrong = Array.from({ length: 29 }, async (_, count) => {
      const { status } = await sendLogin(hub.url, `nobody-${count}@example.test`, 'wrong', {
        'X-Forwarded-For': '192.0.2.66',
      })
      wrongAnswered++
      return status
    })
    // The queue is there once the first of them is answered.
    await Promise.race(wrong)
    const before = wrongAnswered
    const right = await sendLogin(hub.url, person.email, undefined, { 'X-Forwarded-For': '198.51.100.7' })
    const overtaking = wrongAnswered - before
    expect(right.status).toBe(303)
    expect(overtaking).toBeLessThan(10)
    expect(new Set(await Promise.all(wrong))).toEqual(new Set([401]))
  }, 120_000)

  test('after five failures of an e-mail the sixth attempt is 429 with Retry-After, even with the right password; others can log in', async () => {
    const hunted = await newPerson(hub, tenant.companyId)
    const attempts = await Promise.all(Array.from({ length: 8 }, () => sendLogin(hub.url, hunted.email, 'wrong')))
    expect(attempts.map(answer => answer.status).sort()).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
    const right = await sendLogin(hub.url, hunted.email)
    expect(right.status).toBe(429)
    expect(Number(right.headers.get('retry-after'))).toBeWithin(1, 61)
    expect((await sendLogin(hub.url, person.email)).status).toBe(303)
  })

  test('a form that another site sent is refused', async () => {
    expect((await sendLogin(hub.url, person.email, undefined, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await sendLogin(hub.url, person.email, undefined, { origin: 'https://elsewhere.test' })).status).toBe(403)
    expect((await sendLogin(hub.url, person.email, undefined, { origin: hub.url })).status).toBe(303)
  })

  test('[HUB-013] a password is nothing to the API', async () => {
    const basic = `Basic ${btoa(`${person.email}:correct horse battery staple`)}`
    expect((await get('/api/v1/me', { authorization: basic })).status).toBe(401)
  })
})

describe('sessions', () => {
  test('the database has a hash of the session and not the session', async () => {
    const { cookie } = await logIn(hub.url, person.email)
    const rows = await hub.hub.database.db.execute<{ token_hash: string; text: string }>(
      sql`select token_hash, s::text as text from sessions s where user_id = ${person.userId}`,
    )
    expect(rows.some(row => row.token_hash === tokenHash(tokenIn(cookie)))).toBe(true)
    for (const row of rows) expect(row.text).not.toContain(tokenIn(cookie))
  })

  test('the cookie opens the API; what changes something needs the token of the session besides', async () => {
    const session = await logIn(hub.url, person.email)
    expect((await me(session)).status).toBe(200)
    const create = (headers: Record<string, string>) =>
      fetch(`${hub.url}/api/v1/servers`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', cookie: session.cookie, ...headers },
        body: JSON.stringify({ name: 'made in a session' }),
      })
    expect((await create({})).status).toBe(403)
    expect((await create({ 'x-csrf-token': 'guessed' })).status).toBe(403)
    expect((await create({ 'x-csrf-token': session.csrfToken })).status).toBe(201)
  })

  test('a logout ends the session; without its token it does not', async () => {
    const session = await logIn(hub.url, person.email)
    const leave = (body: Record<string, string>) =>
      fetch(`${hub.url}/logout`, {
        method: 'POST',
        headers: { cookie: session.cookie },
        body: new URLSearchParams(body),
        redirect: 'manual',
      })
    await leave({ csrf_token: 'guessed' })
    expect((await me(session)).status).toBe(200)
    const left = await leave({ csrf_token: session.csrfToken })
    expect(left.status).toBe(303)
    expect(left.headers.get('set-cookie')).toContain('Max-Age=0')
    expect((await me(session)).status).toBe(401)
  })

  test('a session ends after 120 idle minutes, and after twelve hours in any case', async () => {
    const age = async (set: ReturnType<typeof sql>): Promise<number> => {
      const session = await logIn(hub.url, person.email)
      await hub.hub.database.db.execute(
        sql`update sessions set ${set} where token_hash = ${tokenHash(tokenIn(session.cookie))}`,
      )
      return (await me(session)).status
    }
    expect(await age(sql`last_seen_at = now() - interval '119 minutes'`)).toBe(200)
    expect(await age(sql`last_seen_at = now() - interval '121 minutes'`)).toBe(401)
    expect(await age(sql`created_at = now() - interval '11 hours 59 minutes'`)).toBe(200)
    expect(await age(sql`created_at = now() - interval '12 hours 1 minute'`)).toBe(401)
  })

  test('a second login in the same browser ends the first session', async () => {
    const first = await logIn(hub.url, person.email)
    expect((await sendLogin(hub.url, person.email, undefined, { cookie: first.cookie })).status).toBe(303)
    expect((await me(first)).status).toBe(401)
  })

  test('login and logout are in the audit log', async () => {
    const own = await newPerson(hub, tenant.companyId)
    const session = await logIn(hub.url, own.email)
    await fetch(`${hub.url}/logout`, {
      method: 'POST',
      headers: { cookie: session.cookie, 'x-csrf-token': session.csrfToken },
      redirect: 'manual',
    })
    const rows = await hub.hub.database.db.execute<{ action: string }>(
      sql`select action from audit_log where actor_id = ${own.userId} order by created_at`,
    )
    expect(rows.map(row => row.action)).toEqual(['user.login', 'user.logout'])
  })
})

describe('pages', () => {
  test('a page allows nothing inline, nothing from elsewhere and no frame around it; its files are there and do not change', async () => {
    const answer = await get('/')
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    const { page } = await logIn(hub.url, person.email)
    const files = [...page.matchAll(/(?:src|href)="(\/web\/[^"]+)"/g)].map(match => match[1] ?? '')
    expect(new Set(files.map(file => file.split('.').at(-1)))).toEqual(new Set(['svg', 'css', 'js']))
    for (const file of files) {
      const got = await get(file)
      expect(got.status).toBe(200)
      expect(got.headers.get('cache-control')).toContain(file.endsWith('.svg') ? 'max-age' : 'immutable')
    }
    expect(page).not.toMatch(/<script(?! type="application\/json"|[^>]*src=)|\son\w+=|\sstyle=/)
    expect(page).not.toMatch(/(?:src|href|action)="(?:https?:)?\/\//)
  })

  test('names are text, whatever is in them', async () => {
    const name = `<script>alert("1")</script> & 'Co'`
    const odd = await newPerson(hub, tenant.companyId, ['*'], name)
    await hub.hub.database.db.execute(sql`update companies set name = ${name} where id = ${tenant.companyId}`)
    const { page } = await logIn(hub.url, odd.email)
    const escaped = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;Co&#39;'
    expect(page).toContain(`<title>${escaped} · `)
    expect(page).not.toContain('<script>alert')
    const data = JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? '')
    expect([data.user.name, data.company.name]).toEqual([name, name])
    const refused = await sendLogin(hub.url, '"><img src=x>', 'wrong')
    expect(await refused.text()).not.toContain('<img src=x>')
  })

  test('a path that nothing has is a page that says so and leads back; below /api it is an error of the API', async () => {
    const page = await get('/no-such-page', { 'accept-language': 'vi' })
    expect(page.status).toBe(404)
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const text = await page.text()
    expect(text).toContain('Không có trang này')
    expect(text).toContain('href="/"')
    expect((await get('/api/v1/no-such-path')).headers.get('content-type')).toContain('application/json')
  })

  test('over https the cookie has the prefix that no other host can set, and the browser is told to keep to https', async () => {
    const https = { 'X-Forwarded-Proto': 'https' }
    const answer = await sendLogin(hub.url, person.email, undefined, https)
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(
      /^__Host-hub_session=ses_[0-9A-Za-z]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
    const [pair = ''] = cookie.split(';')
    const plain = pair.slice('__Host-'.length)
    expect((await get('/api/v1/me', { ...https, cookie: pair })).status).toBe(200)
    // The plain name can be set by a neighbour: over https it is not believed, and does not stand in the way.
    expect((await get('/api/v1/me', { ...https, cookie: plain })).status).toBe(401)
    expect((await get('/', { ...https, cookie: plain })).headers.get('content-type')).toContain('text/html')
    expect((await get('/api/v1/me', { ...https, cookie: `hub_session=ses_planted; x=1; ${pair}` })).status).toBe(200)
    expect((await get('/api/v1/me', { cookie: `hub_session=ses_planted; ${pair}` })).status).toBe(200)
    for (const path of ['/', '/login', '/docs', '/openapi.json', '/api/v1/me', '/no-such-page']) {
      const hsts = (await get(path, https)).headers.get('strict-transport-security')
      expect([path, hsts]).toEqual([path, 'max-age=31536000'])
      expect((await get(path)).headers.get('strict-transport-security')).toBeNull()
      expect((await get(path, { 'X-Forwarded-Proto': 'http' })).headers.get('strict-transport-security')).toBeNull()
    }
    const ended = await fetch(`${hub.url}/logout`, { method: 'POST', redirect: 'manual', headers: https })
    expect(ended.headers.get('set-cookie')).toStartWith('__Host-hub_session=; Max-Age=0; Path=/; ')
  })

  test('every answer forbids the browser to guess a type, and what it may do', async () => {
    for (const path of [
      '/',
      '/login',
      '/docs',
      '/openapi.json',
      '/api/v1/me',
      '/api/v1/nothing',
      '/no-such-page',
      '/favicon.ico',
    ]) {
      const { headers } = await get(path)
      expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
      expect([path, headers.get('content-security-policy')]).toEqual([
        path,
        expect.stringContaining("default-src 'none'"),
      ])
      expect([path, headers.get('content-security-policy')]).toEqual([
        path,
        expect.stringContaining("frame-ancestors 'none'"),
      ])
    }
    expect((await get('/docs')).headers.get('content-security-policy')).not.toContain('unsafe')
  })

  test('the texts are Vietnamese or English by Accept-Language', async () => {
    const text = async (language: string) => (await get('/login', { 'accept-language': language })).text()
    expect(await text('vi-VN,vi;q=0.9,en;q=0.5')).toContain('Đăng nhập')
    expect(await text('de')).toContain('Sign in')
  })

  test('[HUB-007] without monitoring.view or servers.view there is a page that says so, and no data', async () => {
    for (const permissions of [['servers.view'], ['monitoring.view'], []]) {
      const guest = await newPerson(hub, tenant.companyId, permissions)
      const session = await logIn(hub.url, guest.email)
      expect((await get(`${session.base}/servers`, { cookie: session.cookie })).status).toBe(403)
      expect(session.page).toContain('"view":null')
      const refused = await askView(hub.url, session, 'servers')
      expect([refused.status, await refused.json()]).toMatchObject([403, { reason: 'permission_denied' }])
      const live = await Live.open(hub.url, session.cookie, `servers?company=${slugOf(session)}`)
      expect(await live.next('fault')).toMatchObject({ status: 403 })
      live.close()
    }
  })

  test('an address of before leads on: a company by its id, an alert by its own; nonsense leads nowhere', async () => {
    const session = await logIn(hub.url, person.email)
    const to = async (path: string) => {
      const answer = await get(path, { cookie: session.cookie })
      return answer.headers.get('location') ?? answer.status
    }
    expect(await to(`/?company=${tenant.companyId}`)).toStartWith(`${session.base}/`)
    expect(await to(`/alerts/${crypto.randomUUID()}`)).toBe(404)
    expect(await to('/alerts/x%2F%2Felsewhere.test')).toBe(404)
    expect(await to('/c/no-such-company/servers')).toBe(404)
    expect(await to(`${session.base}/no-such-page`)).toBe(404)
  })

  test('who follows a link without a session signs in and is led to it, and to no other site', async () => {
    const link = `/c/acme/servers?q=state:down`
    const form = await (await get(link)).text()
    expect(form).toContain(`<input type="hidden" name="next" value="${link}">`)
    const to = async (next: string) => {
      const body = new URLSearchParams({ email: person.email, password: PASSWORD, next })
      return (await fetch(`${hub.url}/login`, { method: 'POST', body, redirect: 'manual' })).headers.get('location')
    }
    expect(await to(link)).toBe(link)
    for (const elsewhere of ['//evil.test/c/', 'https://evil.test', '/c/\\evil.test', '/\tc/x', '/web/session'])
      expect([elsewhere, await to(elsewhere)]).toEqual([elsewhere, '/'])
  })
})
