// The second factor of a login, over HTTP and in a browser against a real hub and database. Codes are made here by
// hand, as RFC 6238 has them, and not with the hub's library.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { type Tenant, TestHub } from '../api/hub-harness.ts'
import { commandOf } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { sharedBrowser, violationsOf } from './browser.ts'
import { logIn, newPerson, PASSWORD, type Person, type Session } from './visitor.ts'

const STEP_MS = 30_000

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, trusted_proxies: '127.0.0.1' })
  tenant = await hub.tenant()
}, 120_000)
afterAll(() => hub.stop(), 120_000)

function bytesOf(base32: string): Buffer {
  const bits = [...base32].map(char => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char).toString(2).padStart(5, '0'))
  return Buffer.from((bits.join('').match(/.{8}/g) ?? []).map(byte => Number.parseInt(byte, 2)))
}

/** The code of a secret, `steps` half minutes from now. */
function codeOf(secret: string, steps = 0): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / STEP_MS) + steps))
  const digest = createHmac('sha1', bytesOf(secret)).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 15
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

/** A code of six digits that is none of the secret's about now. */
function wrongCode(secret: string): string {
  const right = [-2, -1, 0, 1, 2].map(steps => codeOf(secret, steps))
  return ['000000', '111111', '222222', '333333', '444444', '555555'].find(code => !right.includes(code)) ?? ''
}

let addresses = 0
/** An address that nobody else in this file comes from: limits are by address. */
const newAddress = (): string => `198.51.100.${++addresses}`

type Sent = { readonly ip?: string; readonly cookie?: string; readonly url?: string }

const get = (path: string, { cookie = '', url = hub.url }: Sent = {}) =>
  fetch(`${url}${path}`, { headers: { cookie, 'accept-language': 'en' }, redirect: 'manual' })

const post = (path: string, fields: Record<string, string>, { ip = newAddress(), cookie = '', url = hub.url }: Sent) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { cookie, 'X-Forwarded-For': ip },
    redirect: 'manual',
  })

const cookieOf = (answer: Response, name: string): string =>
  answer.headers
    .getSetCookie()
    .find(cookie => cookie.startsWith(`${name}=`))
    ?.split(';')[0] ?? ''

const fieldOf = (page: string, name: string): string =>
  new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1] ?? ''
const codesIn = (page: string): string[] =>
  [...page.matchAll(/<li><code>([^<]+)<\/code>/g)].map(match => match[1] ?? '')

/** The cookie that the right password gives a person with a second factor. */
async function pendingOf({ email }: Person, next = '', url = hub.url): Promise<string> {
  const answer = await post('/login', { email, password: PASSWORD, ...(next === '' ? {} : { next }) }, { url })
  expect([answer.status, answer.headers.get('location')]).toEqual([303, expect.stringContaining('/login/two-factor')])
  return cookieOf(answer, 'hub_login')
}

const sendCode = (cookie: string, code: string, sent: Sent = {}, next = '') =>
  post('/login/two-factor', { code, next }, { ...sent, cookie })

/** As if a half minute had passed: the code of now is good again. */
const forgetLastCode = ({ userId }: Person) =>
  hub.hub.database.db.execute(sql`update user_second_factors set last_step = 0 where user_id = ${userId}`)

type Guarded = {
  readonly person: Person
  readonly session: Session
  readonly secret: string
  readonly used: string
  readonly codes: string[]
}

/** A person who has turned the second factor on, in the way of the page; the code that did it is used up. */
async function guarded(): Promise<Guarded> {
  const person = await newPerson(hub, tenant.companyId)
  const session = await logIn(hub.url, person.email)
  const page = await (await get('/two-factor', session)).text()
  const secret = /<code id="secret">([A-Z2-7]+)</.exec(page)?.[1] ?? ''
  const fields = { offer: fieldOf(page, 'offer'), csrf_token: session.csrfToken, password: PASSWORD }
  const used = codeOf(secret)
  const answer = await post('/two-factor', { ...fields, code: used }, session)
  expect(answer.status).toBe(201)
  return { person, session, secret, used, codes: codesIn(await answer.text()) }
}

async function actionsOf({ userId }: Person): Promise<string[]> {
  const rows = await hub.hub.database.db.execute<{ action: string }>(
    sql`select action from audit_log where subject_id = ${userId} order by position`,
  )
  return rows.map(row => row.action)
}

const isOn = async ({ userId }: Person): Promise<boolean> =>
  (await hub.hub.database.db.execute(sql`select 1 from user_second_factors where user_id = ${userId}`)).length > 0

const meStatus = async (cookie: string) => (await get('/api/v1/me', { cookie })).status

describe('turning on', () => {
  test('the page shows the secret as text, as a link and as a picture that the policy of pages allows', async () => {
    const person = await newPerson(hub, tenant.companyId, [])
    const session = await logIn(hub.url, person.email)
    const page = await (await get('/two-factor', session)).text()
    const secret = /<code id="secret">([A-Z2-7]{32})</.exec(page)?.[1] ?? ''
    expect(page).toContain(`href="otpauth://totp/`)
    expect(page).toContain(`secret=${secret}&amp;algorithm=SHA1&amp;digits=6&amp;period=30`)
    expect(page).toMatch(/<svg class="qr" role="img"[^>]*><rect [^>]*\/><path d="M4 4h1v1h-1z/)
    expect(page).not.toMatch(/<script|\son\w+=|\sstyle=|<style/)
    expect(page).toContain('<a class="plain" href="/two-factor">')
    expect(await (await get('/two-factor', session)).text()).not.toContain(secret)
    const vietnamese = await fetch(`${hub.url}/two-factor`, {
      headers: { cookie: session.cookie, 'accept-language': 'vi' },
    })
    expect(await vietnamese.text()).toContain('Xác thực hai yếu tố')
    expect((await get('/two-factor')).headers.get('location')).toBe('/login')
  })

  test('a code of the secret and the password turn it on; ten recovery codes are shown once; other sessions end', async () => {
    const person = await newPerson(hub, tenant.companyId)
    const [session, other] = [await logIn(hub.url, person.email), await logIn(hub.url, person.email)]
    const page = await (await get('/two-factor', session)).text()
    const secret = /<code id="secret">([A-Z2-7]+)</.exec(page)?.[1] ?? ''
    const right = {
      offer: fieldOf(page, 'offer'),
      csrf_token: session.csrfToken,
      password: PASSWORD,
      code: codeOf(secret),
    }
    const refused = async (change: Record<string, string>, status: number) => {
      const answer = await post('/two-factor', { ...right, ...change }, session)
      expect([answer.status, await isOn(person)]).toEqual([status, false])
      return answer.text()
    }
    expect(await refused({ code: wrongCode(secret) }, 401)).toContain(secret)
    await refused({ password: 'wrong' }, 401)
    await refused({ offer: '' }, 401)
    await refused({ csrf_token: 'guessed' }, 303)
    const neighbour = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
    await refused({ offer: fieldOf(await (await get('/two-factor', neighbour)).text(), 'offer') }, 401)
    expect(await meStatus(other.cookie)).toBe(200)

    const answer = await post('/two-factor', right, session)
    const codes = codesIn(await answer.text())
    expect([answer.status, await isOn(person)]).toEqual([201, true])
    expect([codes.length, new Set(codes).size]).toEqual([10, 10])
    expect([await meStatus(session.cookie), await meStatus(other.cookie)]).toEqual([200, 401])
    const after = await (await get('/two-factor', session)).text()
    expect(after).toContain('On. You have 10 recovery codes left.')
    for (const shown of [secret, ...codes]) expect(after).not.toContain(shown)
    // A second time nothing changes.
    expect((await post('/two-factor', right, session)).status).toBe(401)
    expect(await actionsOf(person)).toEqual(['user.login', 'user.login', 'user.two_factor_on'])
  })

  test('the database has the secret sealed, and hashes of the recovery codes', async () => {
    const { person, secret, codes } = await guarded()
    const [row] = await hub.hub.database.db.execute<{ text: string; secret_sealed: string }>(
      sql`select f::text as text, secret_sealed from user_second_factors f where user_id = ${person.userId}`,
    )
    expect(hub.hub.sealer.open(row?.secret_sealed ?? '')).toBe(secret)
    for (const clear of [secret, ...codes, ...codes.map(code => code.replaceAll('-', ''))])
      expect(row?.text).not.toContain(clear)
    const [logged] = await hub.hub.database.db.execute<{ text: string }>(
      sql`select string_agg(a::text, ' ') as text from audit_log a where subject_id = ${person.userId}`,
    )
    expect(logged?.text).toContain('user.two_factor_on')
    for (const clear of [secret, row?.secret_sealed ?? '', ...codes]) expect(logged?.text).not.toContain(clear)
  })
})

describe('login', () => {
  test('[HUB-013] [HUB-015] after the password there is no session: its cookie opens no page and no API; the code makes the session', async () => {
    const { person, secret } = await guarded()
    await forgetLastCode(person)
    const link = '/c/acme/servers?q=state:down'
    const answer = await post('/login', { email: person.email, password: PASSWORD, next: link }, {})
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^hub_login=[\w-]+; Max-Age=300; Path=\/; HttpOnly; SameSite=Strict$/),
    ])
    const location = answer.headers.get('location') ?? ''
    expect(location).toBe(`/login/two-factor?${new URLSearchParams({ next: link })}`)
    const cookie = cookieOf(answer, 'hub_login')
    const asSession = `hub_session=${cookie.slice('hub_login='.length)}`
    for (const tried of [cookie, asSession]) {
      expect(await meStatus(tried)).toBe(401)
      expect((await get('/web/session', { cookie: tried })).status).toBe(401)
      expect(await (await get('/', { cookie: tried })).text()).toContain('action="/login"')
      expect((await get('/two-factor', { cookie: tried })).headers.get('location')).toBe('/login')
    }
    const logins = async () => (await actionsOf(person)).filter(action => action === 'user.login').length
    const before = await logins()
    const form = await (await get(location, { cookie })).text()
    expect(form).toContain('action="/login/two-factor"')
    expect(form).toContain(`<input type="hidden" name="next" value="${link}">`)

    const wrong = await sendCode(cookie, wrongCode(secret))
    expect([wrong.status, cookieOf(wrong, 'hub_session'), await logins()]).toEqual([401, '', before])
    const right = await sendCode(cookie, codeOf(secret), {}, link)
    expect([right.status, right.headers.get('location')]).toEqual([303, link])
    expect(right.headers.getSetCookie()).toContainEqual(expect.stringMatching(/^hub_login=; Max-Age=0; /))
    expect([await meStatus(cookieOf(right, 'hub_session')), await logins()]).toEqual([200, before + 1])
  })

  test('[HUB-015] no path of the API has anything of it', async () => {
    const document = await (await get('/openapi.json')).text()
    expect(document).not.toMatch(/two.?factor|second.?factor|recovery.?code/i)
    for (const path of ['/api/v1/two-factor', '/api/v1/login/two-factor', '/api/v1/me/two-factor'])
      expect((await tenant.call('POST', path, { code: '123456' })).status).toBe(404)
  })

  test('without the cookie of a right password the form of the code leads to the login', async () => {
    for (const cookie of ['', 'hub_login=', 'hub_login=made-up', `hub_login=${'A'.repeat(200)}`]) {
      expect((await get('/login/two-factor', { cookie })).headers.get('location')).toBe('/login')
      const answer = await sendCode(cookie, '123456')
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/login'])
      expect(cookieOf(answer, 'hub_session')).toBe('')
    }
  })

  test('over https the cookie has the prefix that no other host can set, and the plain one does not count', async () => {
    const { person } = await guarded()
    const https = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': newAddress() }
    const body = new URLSearchParams({ email: person.email, password: PASSWORD })
    const answer = await fetch(`${hub.url}/login`, { method: 'POST', body, headers: https, redirect: 'manual' })
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(/^__Host-hub_login=[\w-]+; Max-Age=300; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    const status = async (pair: string) =>
      (await fetch(`${hub.url}/login/two-factor`, { headers: { ...https, cookie: pair }, redirect: 'manual' })).status
    const [pair = ''] = cookie.split(';')
    expect([await status(pair), await status(pair.slice('__Host-'.length))]).toEqual([200, 303])
  })

  test('a code is good once, also where two hubs are sent it at once', async () => {
    const { person, secret, used } = await guarded()
    const peer = await hub.peer({ trusted_proxies: '127.0.0.1' })
    try {
      const pending = await pendingOf(person)
      // It has turned the second factor on.
      expect((await sendCode(pending, used)).status).toBe(401)
      await forgetLastCode(person)
      const code = codeOf(secret)
      const urls = [hub.url, peer.url, hub.url, peer.url]
      const answers = await Promise.all(urls.map(url => sendCode(pending, code, { url })))
      expect(answers.map(answer => answer.status).sort()).toEqual([303, 401, 401, 401])
      expect((await sendCode(pending, code)).status).toBe(401)
    } finally {
      await peer.running.stop()
    }
  }, 120_000)

  test('clocks may differ by one half minute; an earlier code than the last is not taken', async () => {
    const { person, secret } = await guarded()
    const pending = await pendingOf(person)
    const statusOf = async (steps: number) => (await sendCode(pending, codeOf(secret, steps))).status
    await until('the half minute has just begun', () => Date.now() % STEP_MS < STEP_MS - 5_000)
    await forgetLastCode(person)
    expect(await statusOf(-3)).toBe(401)
    expect(await statusOf(3)).toBe(401)
    expect(await statusOf(-1)).toBe(303)
    expect(await statusOf(1)).toBe(303)
    expect(await statusOf(0)).toBe(401)
  })

  test('a recovery code signs in once, however it is typed', async () => {
    const { person, codes } = await guarded()
    const pending = await pendingOf(person)
    const [first = '', second = ''] = codes
    expect((await sendCode(pending, first)).status).toBe(303)
    expect((await sendCode(pending, first)).status).toBe(401)
    const answer = await sendCode(pending, ` ${second.replaceAll('-', ' ').toUpperCase()} `)
    expect(answer.status).toBe(303)
    const page = await (await get('/two-factor', { cookie: cookieOf(answer, 'hub_session') })).text()
    expect(page).toContain('On. You have 8 recovery codes left.')
  })

  test('a code is that of the person whose password was right', async () => {
    const [alice, bob] = [await guarded(), await guarded()]
    await Promise.all([forgetLastCode(alice.person), forgetLastCode(bob.person)])
    const pending = await pendingOf(bob.person)
    expect((await sendCode(pending, codeOf(alice.secret))).status).toBe(401)
    expect((await sendCode(pending, alice.codes[0] ?? '')).status).toBe(401)
    const answer = await sendCode(pending, codeOf(bob.secret))
    expect(await (await get('/api/v1/me', { cookie: cookieOf(answer, 'hub_session') })).json()).toMatchObject({
      data: { id: bob.person.userId },
    })
  })

  test('a changed password, a disabled person and five minutes end what was begun', async () => {
    const { person, codes } = await guarded()
    const { db } = hub.hub.database
    const leadsTo = async (cookie: string) => (await sendCode(cookie, codes[0] ?? '')).headers.get('location')
    const pending = await pendingOf(person)
    const [user] = await db.execute<{ hash: string }>(
      sql`select password_hash as hash from users where id = ${person.userId}`,
    )
    const setHash = (hash: string) =>
      db.execute(sql`update users set password_hash = ${hash} where id = ${person.userId}`)
    await setHash(await Bun.password.hash(PASSWORD, { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 }))
    expect(await leadsTo(pending)).toBe('/login')
    await setHash(user?.hash ?? '')
    await db.execute(sql`update users set disabled_at = now() where id = ${person.userId}`)
    expect(await leadsTo(pending)).toBe('/login')
    await db.execute(sql`update users set disabled_at = null where id = ${person.userId}`)

    const sealed = Buffer.from(pending.slice('hub_login='.length), 'base64url')
    const kept = JSON.parse(Buffer.from(hub.hub.sealer.openBytes(sealed, 'pending login') ?? '').toString())
    const agedBy = (ms: number) => {
      const content = Buffer.from(JSON.stringify({ ...kept, untilMs: kept.untilMs - ms }))
      return `hub_login=${Buffer.from(hub.hub.sealer.sealBytes(content, 'pending login')).toString('base64url')}`
    }
    expect(await leadsTo(agedBy(300_000))).toBe('/login')
    expect(await leadsTo(agedBy(240_000))).toBe('/')
  })
})

describe('limits', () => {
  test('five wrong codes from one address are followed by 429, even for a right one; from another it is taken', async () => {
    const { person, secret, codes } = await guarded()
    const [ip, pending] = [newAddress(), await pendingOf(person)]
    const statuses = await Promise.all(Array.from({ length: 7 }, () => sendCode(pending, wrongCode(secret), { ip })))
    expect(statuses.map(answer => answer.status).sort()).toEqual([401, 401, 401, 401, 401, 429, 429])
    const limited = await sendCode(pending, codes[0] ?? '', { ip })
    expect([limited.status, cookieOf(limited, 'hub_session')]).toEqual([429, ''])
    expect(Number(limited.headers.get('retry-after'))).toBeWithin(1, 61)
    // It is the limit of wrong passwords too.
    expect((await post('/login', { email: person.email, password: PASSWORD }, { ip })).status).toBe(429)
    expect((await sendCode(pending, codes[0] ?? '')).status).toBe(303)
  })

  test('after ten wrong codes of a person none is looked at for 15 minutes, from wherever', async () => {
    const { person, session, secret, codes } = await guarded()
    const pending = await pendingOf(person)
    const wrong = await Promise.all(Array.from({ length: 12 }, () => sendCode(pending, wrongCode(secret))))
    expect(wrong.map(answer => answer.status).sort()).toEqual([...Array(10).fill(401), 429, 429])
    const refused = await sendCode(pending, codes[0] ?? '')
    expect([refused.status, Number(refused.headers.get('retry-after')) > 800]).toEqual([429, true])
    const off = await post('/two-factor/off', { csrf_token: session.csrfToken, code: codes[0] ?? '' }, session)
    expect([off.status, await isOn(person)]).toEqual([429, true])
    const age = (minutes: number) =>
      hub.hub.database.db.execute(sql`update user_second_factors
        set refused_until = refused_until - make_interval(mins => ${minutes}) where user_id = ${person.userId}`)
    await age(14)
    expect((await sendCode(pending, codes[0] ?? '')).status).toBe(429)
    await age(1)
    expect((await sendCode(pending, codes[0] ?? '')).status).toBe(303)
  })

  test('wrong codes of more than 15 minutes ago do not count', async () => {
    const { person, secret, codes } = await guarded()
    const pending = await pendingOf(person)
    const wrong = (count: number) =>
      Promise.all(Array.from({ length: count }, async () => (await sendCode(pending, wrongCode(secret))).status))
    await wrong(9)
    await hub.hub.database.db.execute(sql`update user_second_factors
      set failures_since = failures_since - interval '16 minutes' where user_id = ${person.userId}`)
    expect(new Set(await wrong(9))).toEqual(new Set([401]))
    expect((await sendCode(pending, codes[0] ?? '')).status).toBe(303)
  })
})

describe('turning off, and new codes', () => {
  test('both ask for a code and for the token of the session; the password alone does neither', async () => {
    const { person, session, secret, codes } = await guarded()
    for (const path of ['/two-factor/off', '/two-factor/codes']) {
      const foreign = await post(path, { csrf_token: 'guessed', code: codes[0] ?? '' }, session)
      expect([foreign.status, foreign.headers.get('location')]).toEqual([303, '/two-factor'])
      const withoutCode: Record<string, string>[] = [
        { code: wrongCode(secret) },
        { code: PASSWORD },
        { password: PASSWORD },
      ]
      for (const fields of withoutCode)
        expect((await post(path, { csrf_token: session.csrfToken, ...fields }, session)).status).toBe(401)
    }
    const fields = { csrf_token: session.csrfToken, code: codes[0] ?? '' }
    const renewed = codesIn(await (await post('/two-factor/codes', fields, session)).text())
    expect(renewed.length).toBe(10)
    const pending = await pendingOf(person)
    expect((await sendCode(pending, codes[1] ?? '')).status).toBe(401)
    expect((await sendCode(pending, renewed[0] ?? '')).status).toBe(303)

    await forgetLastCode(person)
    const off = await post('/two-factor/off', { ...fields, code: codeOf(secret) }, session)
    expect([off.status, await isOn(person)]).toEqual([303, false])
    expect((await sendCode(pending, renewed[1] ?? '')).headers.get('location')).toBe('/login')
    const plain = await post('/login', { email: person.email, password: PASSWORD }, {})
    expect(await meStatus(cookieOf(plain, 'hub_session'))).toBe(200)
    const actions = (await actionsOf(person)).filter(action => action !== 'user.login')
    expect(actions).toEqual(['user.two_factor_on', 'user.two_factor_codes', 'user.two_factor_off'])
  })

  test('a command turns it off for somebody who has lost it, and ends their sessions', async () => {
    const { person, session } = await guarded()
    const reset = async () => {
      const words = ['user', 'reset-two-factor', person.email.toUpperCase(), '--database-url', hub.databaseUrl]
      const child = Bun.spawn([...commandOf('hub'), ...words], { stdout: 'pipe', stderr: 'pipe' })
      const error = await new Response(child.stderr).text()
      return { code: await child.exited, error }
    }
    expect(await reset()).toEqual({ code: 0, error: '' })
    expect([await isOn(person), await meStatus(session.cookie)]).toEqual([false, 401])
    expect((await actionsOf(person)).at(-1)).toBe('user.two_factor_off')
    expect(await meStatus((await logIn(hub.url, person.email)).cookie)).toBe(200)
    expect(await reset()).toMatchObject({ code: 1, error: expect.stringContaining('has no second factor') })
  }, 60_000)

  test('it goes with its person', async () => {
    const { person } = await guarded()
    await hub.hub.database.db.execute(sql`delete from users where id = ${person.userId}`)
    expect(await isOn(person)).toBe(false)
  })
})

describe('in a browser', () => {
  test('it is turned on from the menu of a page; a session that ends within a page leads to the login and its code', async () => {
    const person = await newPerson(hub, tenant.companyId)
    const context = await (await sharedBrowser()).newContext({ locale: 'en-GB' })
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    const faults: string[] = []
    page.on('pageerror', error => faults.push(error.message))
    page.on('console', message => {
      if (message.type() === 'error' && !message.text().includes('401')) faults.push(message.text())
    })
    const enterPassword = async () => {
      await page.getByLabel('E-mail').fill(person.email)
      await page.getByLabel('Password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
    }
    await page.goto(`${hub.url}/login`)
    await enterPassword()
    await page.waitForURL(/\/c\//)
    const of = page.url()
    await page.locator('summary').filter({ hasText: 'Test person' }).click()
    await page.getByRole('link', { name: 'Two-factor login' }).click()
    await page.getByRole('img', { name: 'QR code of the secret' }).waitFor()
    const secret = (await page.locator('#secret').textContent()) ?? ''
    expect(await violationsOf(page)).toEqual([])
    await page.getByLabel('Code that the app shows').fill(codeOf(secret))
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByText('On. You have 10 recovery codes left.').waitFor()
    const codes = await page.locator('.recovery-codes code').allTextContents()

    await page.goto(of)
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
    await hub.hub.database.db.execute(sql`delete from sessions where user_id = ${person.userId}`)
    const dialog = page.getByRole('dialog', { name: 'Your session is over' })
    await dialog.getByLabel('Password').fill(PASSWORD)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('E-mail').waitFor()
    await enterPassword()
    await page.getByLabel('Code of your app, or a recovery code').fill(codes[0] ?? '')
    expect(await violationsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(of)
    expect(faults).toEqual([])
    await context.close()
  }, 120_000)
})
