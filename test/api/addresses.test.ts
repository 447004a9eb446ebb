// Addresses: what an answer tells of people of other companies, how much mail somebody may cause, and what goes to an
// address that nobody has confirmed.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { logIn, newPerson, PASSWORD, sendLogin } from '../web/visitor.ts'
import { alertEvent as event, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>
let mailServer: MailServer
const UNCONFIRMED_MAX = 3

beforeAll(async () => {
  mailServer = await startMailServer()
  hub = await TestHub.start({
    'smtp.url': mailServer.url,
    'mail.unconfirmed_max': UNCONFIRMED_MAX,
    'rate.mail_per_minute': 12,
    'rate.session_per_minute': 100_000,
  })
  collector = await hub.collector()
})
afterAll(async () => {
  await mailServer.stop()
  await hub.stop()
})
afterEach(() => {
  mailServer.mails.length = 0
})

const address = () => `${crypto.randomUUID()}@example.test`
const idle = () => notificationsIdle(hub)
const invite = (by: Tenant, email: string, more: Json = {}) => by.call('POST', '/invitations', { email, ...more })
const pathOf = (link: string): string => link.slice(new URL(link).origin.length)
const get = (path: string) => fetch(`${hub.url}${path}`, { redirect: 'manual' })
const post = (path: string, fields: Record<string, string>) =>
  fetch(`${hub.url}${path}`, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
const accept = (link: string, password = PASSWORD) => {
  const fields = Object.fromEntries(new URL(link).searchParams)
  return post('/invitation', { ...fields, name: 'Guest', password, again: password })
}
/** The link of the last invitation that was mailed to an address. */
const mailedLink = async (email: string): Promise<string> => {
  await idle()
  const text = mailServer.mails.findLast(mail => mail.to.includes(email))?.text.replaceAll('=3D', '=') ?? ''
  return /http\S+\/invitation\?\S+/.exec(text)?.[0] ?? ''
}

describe('people of other companies', () => {
  test('an address that is used elsewhere is answered like one that is free: created, changed and invited', async () => {
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const used = async () => (await newPerson(hub, other.companyId, [])).email
    const shapeOf = ({ status, body }: { status: number; body: Json }) => [
      status,
      Object.keys(body.data ?? body).sort(),
    ]
    for (const act of [
      (email: string) => own.call('POST', '/users', { email, name: 'x' }),
      async (email: string) => {
        const { data } = (await own.call('POST', '/users', { email: address(), name: 'x' })).body
        return own.call('PATCH', `/users/${data.id}`, { email })
      },
      async (email: string) => {
        const person = await newPerson(hub, own.companyId, [])
        return own.call('PATCH', `/users/${person.userId}`, { email })
      },
      (email: string) => invite(own, email),
    ]) {
      const answer = shapeOf(await act(await used()))
      expect(String(answer[0])).toMatch(/^20[01]$/)
      expect(answer).toEqual(shapeOf(await act(address())))
    }
    const email = await used()
    expect((await own.call('POST', '/users', { email, name: 'x' })).status).toBe(201)
    const again = await own.call('POST', '/users', { email, name: 'x' })
    expect([again.status, Object.keys(again.body.errors)]).toEqual([422, ['email']])
  })

  test('a login stays with who has it: by an invitation, by a change of address, and by a command', async () => {
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const victim = await newPerson(hub, other.companyId)
    const { link } = (await invite(own, victim.email)).body
    const links = [link, await mailedLink(victim.email)]
    for (const each of links) {
      const refused = await accept(each, 'another long password')
      expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('signs in here already')])
    }
    expect((await own.call('GET', `/users?search=${victim.email}`)).body.data).toEqual([])
    const mover = await newPerson(hub, own.companyId, [])
    expect((await own.call('PATCH', `/users/${mover.userId}`, { email: victim.email })).status).toBe(200)
    const session = await logIn(hub.url, victim.email)
    const me = await fetch(`${hub.url}/api/v1/me`, { headers: { cookie: session.cookie } })
    expect(((await me.json()) as Json).data.company.id).toBe(other.companyId)
  })
})

describe('an address that somebody else wrote down', () => {
  test('is a login of whoever reads its mail: a link that was mailed takes it over from one that was not', async () => {
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const email = address()
    const squatter = await accept((await invite(other, email)).body.link, 'password of a squatter')
    const cookie = squatter.headers.get('set-cookie')?.split(';')[0] ?? ''
    const me = () => fetch(`${hub.url}/api/v1/me`, { headers: { cookie } })
    expect([squatter.status, (await me()).status]).toEqual([303, 200])
    mailServer.mails.length = 0
    const { link } = (await invite(own, email)).body
    // The link that the inviter is shown proves nothing, so that of two the first stays.
    expect((await accept(link)).status).toBe(422)
    expect((await me()).status).toBe(200)
    expect((await accept(await mailedLink(email))).status).toBe(303)
    expect([(await me()).status, (await sendLogin(hub.url, email, 'password of a squatter')).status]).toEqual([
      401, 401,
    ])
    const session = await logIn(hub.url, email)
    const mine = await fetch(`${hub.url}/api/v1/me`, { headers: { cookie: session.cookie } })
    expect(((await mine.json()) as Json).data.company.id).toBe(own.companyId)
    const entries = (await other.call('GET', '/audit-log?action=user.login_end')).body.data
    expect(entries).toMatchObject([{ actor: { type: 'system' }, subject: { type: 'user', name: 'Guest' } }])
  })
})

describe('invitations', () => {
  test('one with more than one holds is neither withdrawn nor replaced', async () => {
    const own = await hub.tenant()
    const manager = {
      companyId: own.companyId,
      ...(await hub.user(own.companyId, ['identity.manage', 'identity.view'])),
    }
    const email = address()
    const { data, link } = (await invite(own, email, { permissions: ['*'] })).body
    for (const answer of [await invite(manager, email), await manager.call('DELETE', `/invitations/${data.id}`)])
      expect([answer.status, answer.body.reason]).toEqual([403, 'permission_denied'])
    expect((await get(pathOf(link))).status).toBe(200)
    expect((await own.call('DELETE', `/invitations/${data.id}`)).status).toBe(204)
  })

  test('one is no way back in: it is good while who invited is there and holds what it gives', async () => {
    const own = await hub.tenant()
    const inviter = { companyId: own.companyId, ...(await hub.user(own.companyId, ['*'])) }
    const { link } = (await invite(inviter, address(), { permissions: ['servers.view'] })).body
    const status = async () => (await get(pathOf(link))).status
    const inviterPath = `/users/${inviter.userId}`
    expect(await status()).toBe(200)
    await own.call('POST', `${inviterPath}/disable`)
    expect([await status(), (await accept(link)).status]).toEqual([404, 404])
    await own.call('POST', `${inviterPath}/enable`)
    await own.call('PATCH', inviterPath, { permissions: ['identity.manage'] })
    expect([await status(), (await accept(link)).status]).toEqual([404, 404])
    await own.call('PATCH', inviterPath, { permissions: ['identity.manage', 'servers.view'] })
    expect(await status()).toBe(200)
    await own.call('DELETE', inviterPath)
    expect([await status(), (await accept(link)).status]).toEqual([404, 404])
  })
})

describe('the address of somebody who was invited', () => {
  test('is confirmed by the link of the mail, not by the one that the inviter is shown', async () => {
    const own = await hub.tenant()
    const joinBy = async (linkOf: (shown: string) => string): Promise<boolean> => {
      mailServer.mails.length = 0
      const email = address()
      const { link } = (await invite(own, email)).body
      await idle()
      const { searchParams } = new URL(linkOf(link))
      const fields = { ...Object.fromEntries(searchParams), name: 'Guest', password: PASSWORD, again: PASSWORD }
      expect((await post('/invitation', fields)).status).toBe(303)
      const [row] = await hub.hub.database.client`select address_unconfirmed from users where email = ${email}`
      return row?.address_unconfirmed
    }
    const inMail = () => {
      const text = mailServer.mails[0]?.text.replaceAll('=3D', '=') ?? ''
      return /http\S+\/invitation\?\S+/.exec(text)?.[0] ?? ''
    }
    expect(await joinBy(shown => shown)).toBe(true)
    expect(await joinBy(inMail)).toBe(false)
    const other = inMail()
    expect(await joinBy(shown => `${shown}&mailed=${new URL(other).searchParams.get('mailed')}`)).toBe(true)
    const page = await (await get(pathOf((await invite(own, address())).body.link))).text()
    expect(page).toContain('name="mailed"')
  })
})

describe('mail that somebody asks for', () => {
  test('[HUB-044] a company causes so much a minute, by invitations, group addresses and tests together; then 429', async () => {
    const own = await hub.tenant()
    const channel = (await own.call('POST', '/notifications/channels', { name: 'x', address: address() })).body.data
    for (let n = 0; n < 10; n++) expect((await invite(own, address())).status).toBe(201)
    expect((await own.call('POST', `/notifications/channels/${channel.id}/test`)).status).toBe(202)
    for (const answer of [
      await invite(own, address()),
      await own.call('POST', `/notifications/channels/${channel.id}/test`),
      await own.call('POST', '/notifications/channels', { name: 'y', address: address() }),
    ]) {
      expect([answer.status, answer.body.reason]).toEqual([429, 'rate_limited'])
      expect(Number(answer.headers.get('retry-after'))).toBeWithin(1, 61)
    }
    expect((await own.call('PATCH', `/notifications/channels/${channel.id}`, { name: 'z' })).status).toBe(200)
    expect((await invite(await hub.tenant(), address())).status).toBe(201)
    await idle()
  })

  test('one address is not invited over and over', async () => {
    const own = await hub.tenant()
    const email = address()
    for (let n = 0; n < 5; n++) expect((await invite(own, email)).status).toBe(201)
    const { status, headers } = await invite(own, email)
    expect([status, Number(headers.get('retry-after')) > 60]).toEqual([429, true])
    await idle()
  })
})

describe('an address that nobody has confirmed', () => {
  const failed = (by: Tenant) =>
    until('a delivery failed', async () => {
      const { data } = (await by.call('GET', '/notifications/deliveries?state=failed')).body
      return data.length > 0 ? data : null
    })
  const linkIn = (text: string): string =>
    /http\S+\/address\?token=adr_\w+/.exec(text.replaceAll('=3D', '='))?.[0] ?? ''

  async function channelOf(own: Tenant) {
    await own.call('PUT', '/notifications/preferences', { email: { min_severity: 'off' } })
    const to = address()
    const { data } = (await own.call('POST', '/notifications/channels', { name: 'ops', address: to.toUpperCase() }))
      .body
    const send = async () => {
      await own.call('POST', `/notifications/channels/${data.id}/test`)
      await idle()
    }
    const state = async () => (await own.call('GET', `/notifications/channels/${data.id}`)).body.data.address_state
    return { to, send, state, id: data.id as string }
  }

  test('gets its first alerts at once, each with a link that who reads the deliveries does not see', async () => {
    const own = await hub.tenant()
    const channel = await channelOf(own)
    expect(await channel.state()).toBe('unconfirmed')
    const server = (await own.call('POST', '/servers', { name: 'web' })).body.data.id
    await collector.call('POST', '/events', { events: [event(own, server, 'alert.opened')] })
    await idle()
    const [mail] = mailServer.mails
    expect(mail?.to).toHaveLength(1)
    expect(linkIn(mail?.text ?? '')).toStartWith(`${hub.url}/address?token=adr_`)
    expect(mail?.text).toMatch(/^List-Unsubscribe:\s+</m)
    expect(JSON.stringify((await own.call('GET', '/notifications/deliveries')).body)).not.toContain('adr_')
  })

  test('gets no more than so many, though the group address is made anew; confirmed it gets all, without the link', async () => {
    const own = await hub.tenant()
    const channel = await channelOf(own)
    for (let n = 0; n < UNCONFIRMED_MAX; n++) await channel.send()
    const link = linkIn(mailServer.mails[0]?.text ?? '')
    await own.call('DELETE', `/notifications/channels/${channel.id}`)
    const { data } = (await own.call('POST', '/notifications/channels', { name: 'ops', address: channel.to })).body
    await own.call('POST', `/notifications/channels/${data.id}/test`)
    const [refused] = await failed(own)
    expect(refused.last_error).toContain('nobody has confirmed the address')
    expect(mailServer.mails).toHaveLength(UNCONFIRMED_MAX)

    const page = await (await get(pathOf(link))).text()
    expect(page).toContain(channel.to)
    const token = link.split('token=')[1] ?? ''
    const foreign = await fetch(`${hub.url}/address`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site' },
      body: new URLSearchParams({ token, decision: 'confirm' }),
    })
    expect(foreign.status).toBe(404)
    expect((await post('/address', { token, decision: 'confirm' })).status).toBe(200)
    expect((await own.call('POST', `/notifications/deliveries/${refused.id}/retry`)).status).toBe(202)
    await idle()
    expect(linkIn(mailServer.mails.at(-1)?.text ?? '')).toBe('')
    expect(mailServer.mails).toHaveLength(UNCONFIRMED_MAX + 1)
    expect((await own.call('GET', `/notifications/channels/${data.id}`)).body.data.address_state).toBe('confirmed')
  })

  test('gets nothing more once it says so', async () => {
    const own = await hub.tenant()
    const channel = await channelOf(own)
    await channel.send()
    const token = linkIn(mailServer.mails[0]?.text ?? '').split('token=')[1] ?? ''
    expect((await post('/address', { token, decision: 'stop' })).status).toBe(200)
    expect(await channel.state()).toBe('stopped')
    await own.call('POST', `/notifications/channels/${channel.id}/test`)
    expect((await failed(own))[0].last_error).toContain('no more messages')
    expect(mailServer.mails).toHaveLength(1)
    expect((await get('/address?token=adr_nothing')).status).toBe(404)
  })

  test('of a person counts too when somebody else wrote it down, until the person confirms it', async () => {
    const own = await hub.tenant()
    await own.call('PUT', '/notifications/preferences', { email: { min_severity: 'off' } })
    const email = address()
    await own.call('POST', '/users', { email, name: 'Stranger', permissions: ['monitoring.view'] })
    const server = (await own.call('POST', '/servers', { name: 'web' })).body.data.id
    for (let n = 0; n <= UNCONFIRMED_MAX; n++) {
      const series_key = `cpu_load${n}`
      await collector.call('POST', '/events', { events: [event(own, server, 'alert.opened', { series_key })] })
    }
    await failed(own)
    await until('the others have gone', async () => mailServer.mails.length >= UNCONFIRMED_MAX)
    expect(mailServer.mails.map(mail => mail.to)).toEqual(Array(UNCONFIRMED_MAX).fill([email]))
    const token = linkIn(mailServer.mails[0]?.text ?? '').split('token=')[1] ?? ''
    await post('/address', { token, decision: 'confirm' })
    await collector.call('POST', '/events', { events: [event(own, server, 'alert.opened', { series_key: 'cpu_y' })] })
    await until('it is told', async () => mailServer.mails.length > UNCONFIRMED_MAX)
    expect(linkIn(mailServer.mails.at(-1)?.text ?? '')).toBe('')
  })
})
