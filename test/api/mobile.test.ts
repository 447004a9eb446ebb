// Push to devices, with a push service of the test that reads what only a device can, and the screens of the app.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto'
import { isQuiet } from '../../apps/hub/notifications/quiet-hours.ts'
import { encryptPush } from '../../apps/hub/notifications/web-push.ts'
import { until } from '../support/until.ts'
import { alertEvent, notificationsIdle } from './alert-event.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

type Came = { path: string; headers: Headers; body: Buffer }

let hub: TestHub
let own: Tenant
let collect: Call
let service: ReturnType<typeof Bun.serve>
const came: Came[] = []
let status = 201

beforeAll(async () => {
  service = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      came.push({
        path: new URL(request.url).pathname,
        headers: request.headers,
        body: Buffer.from(await request.arrayBuffer()),
      })
      return new Response(null, { status })
    },
  })
  hub = await TestHub.start({ 'webhooks.allow_private': true, 'notifications.group_wait': '0s' })
  own = await hub.tenant()
  collect = (await hub.collector()).call
})
afterAll(async () => {
  await service.stop(true)
  await hub.stop()
})

const url64 = (text: string): Buffer => Buffer.from(text, 'base64url')
const derived = (key: Buffer, salt: Buffer, info: Buffer, size: number) =>
  Buffer.from(hkdfSync('sha256', key, salt, info, size))

/** What a browser does with a message (RFC 8291), from the document and not from the hub. */
function read(body: Buffer, keys: ReturnType<typeof createECDH>, auth: Buffer): Json {
  const [salt, length] = [body.subarray(0, 16), body.readUInt8(20)]
  const theirs = body.subarray(21, 21 + length)
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), keys.getPublicKey(), theirs])
  const secret = derived(keys.computeSecret(theirs), auth, info, 32)
  const key = derived(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const nonce = derived(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const sealed = body.subarray(21 + length)
  const decipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16))
  const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
  expect(plain.at(-1)).toBe(2)
  return JSON.parse(plain.subarray(0, -1).toString())
}

function newDevice(name = randomBytes(6).toString('hex')) {
  const keys = createECDH('prime256v1')
  keys.generateKeys()
  const auth = randomBytes(16)
  const path = `/push/${name}`
  const subscription = {
    endpoint: `http://127.0.0.1:${service.port}${path}`,
    keys: { p256dh: keys.getPublicKey().toString('base64url'), auth: auth.toString('base64url') },
  }
  return {
    subscription,
    body: { platform: 'webpush', name, subscription, language: 'en' },
    got: () => came.filter(each => each.path === path).map(each => ({ ...each, message: read(each.body, keys, auth) })),
  }
}

let servers = 0
async function alert(by: Tenant, severity: string): Promise<void> {
  const server = await by.call('POST', '/servers', { name: `host-${++servers}` })
  const { status: taken } = await collect('POST', '/events', {
    events: [alertEvent(by, server.body.data.id, 'alert.opened', { severity })],
  })
  expect(taken).toBe(200)
  await notificationsIdle(hub)
}

describe('encryption', () => {
  test('[R-051] a message is that of the example of RFC 8291', () => {
    const own = createECDH('prime256v1')
    own.setPrivateKey(url64('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'))
    const p256dh = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'
    const made = encryptPush(
      { p256dh, auth: 'BTBZMqHH6r4Tts7J_aSIgg' },
      Buffer.from('When I grow up, I want to be a watermelon'),
      { salt: url64('DGv6ra1nlYgDCS1FRnbzlw'), own },
    )
    expect(made.toString('base64url')).toBe(
      'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    )
  })
})

describe('devices', () => {
  test('[RES-173] [RES-174] [RES-177] [RES-183] a token belongs to one person, is found again, and never answered', async () => {
    const [mine, theirs] = [await hub.user(own.companyId, ['monitoring.view']), await hub.user(own.companyId, [])]
    const device = newDevice()
    const first = await mine.call('POST', '/mobile/devices', device.body)
    expect(first.status).toBe(201)
    const again = await mine.call('POST', '/mobile/devices', { ...device.body, name: 'New', app_version: '2' })
    expect([again.status, again.body.data.id, again.body.data.name]).toEqual([200, first.body.data.id, 'New'])
    for (const method of ['PATCH', 'DELETE'])
      expect(
        (await theirs.call(method, `/mobile/devices/${first.body.data.id}`, method === 'PATCH' ? {} : undefined))
          .status,
      ).toBe(404)
    expect((await theirs.call('POST', `/mobile/devices/${first.body.data.id}/test`)).status).toBe(404)
    expect((await theirs.call('POST', '/mobile/devices', device.body)).status).toBe(201)
    expect((await mine.call('GET', '/mobile/devices')).body.data).toEqual([])
    const audit = (await own.call('GET', '/audit-log?subject=mobile_device')).body
    const told = JSON.stringify([first.body, again.body, audit])
    expect(told).not.toContain(device.subscription.keys.auth)
    expect(told).not.toContain(device.subscription.endpoint)
    expect(audit.data.length).toBeGreaterThan(0)
  })

  test('[RES-175] [RES-176] [RES-184] what cannot be registered', async () => {
    const person = await hub.user(own.companyId, [])
    const refusal = async (body: Json, by = person.call) => {
      const { status: answered, body: refused } = await by('POST', '/mobile/devices', body)
      return [answered, ...Object.keys(refused.errors ?? {})]
    }
    const { body } = newDevice()
    expect(await refusal({ platform: 'fcm', name: 'x', token: 'abc' })).toEqual([422, 'platform'])
    expect(await refusal({ ...body, subscription: undefined })).toEqual([422, 'subscription'])
    const keys = { p256dh: 'AAAA', auth: body.subscription.keys.auth }
    expect(await refusal({ ...body, subscription: { ...body.subscription, keys } })).toEqual([
      422,
      'subscription.keys.p256dh',
    ])
    const short = { ...body.subscription.keys, auth: 'AAAA' }
    expect(await refusal({ ...body, subscription: { ...body.subscription, keys: short } })).toEqual([
      422,
      'subscription.keys.auth',
    ])
    const metadata = { ...body.subscription, endpoint: 'https://169.254.169.254/push' }
    expect(await refusal({ ...body, subscription: metadata })).toEqual([422, 'subscription.endpoint'])
    for (let count = 0; count < 20; count++) expect(await refusal(newDevice().body)).toEqual([201])
    expect(await refusal(newDevice().body)).toEqual([422, 'limit'])
    const careful = await hub.peer({ 'webhooks.allow_private': false })
    try {
      const call: Call = async (method, path, sent) => {
        const response = await fetch(`${careful.url}/api/v1${path}`, {
          method,
          headers: { Authorization: `Bearer ${own.token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify(sent),
        })
        return { status: response.status, headers: response.headers, body: await response.json() }
      }
      expect(await refusal(body, call)).toEqual([422, 'subscription.endpoint'])
      const local = { ...body.subscription, endpoint: 'https://127.0.0.1/push' }
      expect(await refusal({ ...body, subscription: local }, call)).toEqual([422, 'subscription.endpoint'])
    } finally {
      await careful.running.stop()
    }
  })
})

describe('push', () => {
  const withDevice = async (permissions = ['monitoring.view']) => {
    const tenant = await hub.tenant()
    const person = await hub.user(tenant.companyId, permissions)
    const device = newDevice()
    const { body } = await person.call('POST', '/mobile/devices', device.body)
    return { tenant, person, device, id: body.data.id }
  }

  test('[check 16.40] [RES-178] an alert reaches every enabled device once, and only the device can read it', async () => {
    const { tenant, person, device } = await withDevice()
    const second = newDevice()
    await person.call('POST', '/mobile/devices', second.body)
    const off = newDevice()
    const { body } = await person.call('POST', '/mobile/devices', off.body)
    await person.call('PATCH', `/mobile/devices/${body.data.id}`, { enabled: false })
    await alert(tenant, 'critical')
    expect([device.got().length, second.got().length, off.got().length]).toEqual([1, 1, 0])
    const [{ headers, message, body: bytes }] = device.got() as [ReturnType<typeof device.got>[number]]
    expect(message).toMatchObject({
      type: 'alert.opened',
      severity: 'critical',
      badge: 1,
      link: `/alerts/${message.id}`,
    })
    expect(message.title + message.body).toContain(`host-${servers}`)
    expect(bytes.byteLength).toBeLessThan(4096)
    expect(bytes.includes(`host-${servers}`)).toBe(false)
    expect(Object.fromEntries(headers)).toMatchObject({ 'content-encoding': 'aes128gcm', ttl: '3600', urgency: 'high' })
    expect(headers.get('topic')).toMatch(/^[\w-]{32}$/)
    const { platforms } = (await person.call('GET', '/mobile/settings')).body.data
    const [, token = '', key] = /^vapid t=(\S+), k=(\S+)$/.exec(headers.get('authorization') ?? '') ?? []
    expect(key).toBe(platforms.webpush.public_key)
    const point = url64(String(key))
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url'))
    const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
    const [head = '', claims = '', signature = ''] = token.split('.')
    const isTrue = verify(
      'sha256',
      Buffer.from(`${head}.${claims}`),
      { key: publicKey, dsaEncoding: 'ieee-p1363' },
      url64(signature),
    )
    expect(isTrue).toBe(true)
    expect(JSON.parse(url64(claims).toString())).toMatchObject({
      aud: `http://127.0.0.1:${service.port}`,
      sub: expect.stringMatching(/^mailto:/),
    })
    await alert(tenant, 'warning')
    expect(device.got()).toHaveLength(1)
  })

  test('[check 16.40] [RES-179] [RES-180] quiet hours, and how much is told', async () => {
    const { tenant, person, device } = await withDevice()
    const quiet = { from: '00:00', to: '23:59', time_zone: 'UTC' }
    // One minute of the day is left out, and taken in by the day before.
    const set = (more: Json) => person.call('PUT', '/mobile/settings', { min_severity: 'info', ...more })
    const all = await set({ quiet_hours: { ...quiet, from: '00:01', to: '00:00' } })
    expect(all.body.data).toMatchObject({
      min_severity: 'info',
      quiet_hours: { days: [1, 2, 3, 4, 5, 6, 7] },
      critical_breaks_quiet: true,
    })
    await person.call('PUT', '/mobile/settings', { quiet_hours: { ...quiet, from: '12:00', to: '11:59' } })
    await alert(tenant, 'warning')
    expect(device.got()).toHaveLength(0)
    await set({ show_details: false })
    await alert(tenant, 'critical')
    expect(device.got().map(({ message }) => message.title)).toEqual(['Alert: critical'])
    // No id can look like a name with letters beyond f.
    expect(JSON.stringify(device.got()[0]?.message)).not.toContain(`host-${servers}`)
    await set({ critical_breaks_quiet: false })
    await alert(tenant, 'critical')
    expect(device.got()).toHaveLength(1)
    const night = { from: '22:00', to: '06:00', time_zone: 'Asia/Ho_Chi_Minh', days: [5] }
    // Friday 22:30 and Saturday 05:30 in Vietnam; Saturday evening is none of Friday's night.
    for (const [at, is] of [
      ['2026-01-02T15:30Z', true],
      ['2026-01-02T22:30Z', true],
      ['2026-01-03T15:30Z', false],
      ['2026-01-02T14:59Z', false],
    ] as const)
      expect([at, isQuiet(night, Date.parse(at))]).toEqual([at, is])
  })

  test('[check 16.40] [RES-181] a device that the push service has forgotten is disabled, and tried no more', async () => {
    const { tenant, person, device } = await withDevice()
    status = 410
    try {
      await alert(tenant, 'critical')
    } finally {
      status = 201
    }
    expect(device.got()).toHaveLength(1)
    expect((await person.call('GET', '/mobile/devices')).body.data[0]).toMatchObject({
      enabled: false,
      disabled_reason: 'gone',
    })
    await alert(tenant, 'critical')
    expect(device.got()).toHaveLength(1)
  })

  test('[R-051] a push service that is busy is asked again', async () => {
    const { tenant, device } = await withDevice()
    status = 503
    const server = await tenant.call('POST', '/servers', { name: 'web-1' })
    await collect('POST', '/events', {
      events: [alertEvent(tenant, server.body.data.id, 'alert.opened', { severity: 'critical' })],
    })
    await until('it was tried', () => device.got().length > 0)
    status = 201
    await notificationsIdle(hub)
    const { client } = hub.hub.database
    const [row] = await client`select state from push_deliveries where company_id = ${tenant.companyId}`
    expect(row?.state).toBe('delivered')
  })

  test('[RES-182] who may not see alerts any more, or is disabled, gets none', async () => {
    const { tenant, person, device } = await withDevice()
    await hub.hub.database.client`update users set permissions = '{}' where id = ${person.userId}`
    await alert(tenant, 'critical')
    await hub.hub.database
      .client`update users set permissions = '{monitoring.view}', disabled_at = now() where id = ${person.userId}`
    await alert(tenant, 'critical')
    expect(device.got()).toHaveLength(0)
  })

  test('[R-051] a test reaches the device, five a minute', async () => {
    const { person, device, id } = await withDevice([])
    for (let count = 0; count < 5; count++)
      expect((await person.call('POST', `/mobile/devices/${id}/test`)).status).toBe(202)
    const sixth = await person.call('POST', `/mobile/devices/${id}/test`)
    expect([sixth.status, sixth.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)])
    await until('all have come', () => device.got().length === 5)
    expect(device.got()[0]?.message).toMatchObject({ type: 'test', title: 'Test' })
  })
})

test('a disabled device is sent no test, and its owner is told so', async () => {
  const person = await hub.user(own.companyId, [])
  const device = newDevice()
  const { id } = (await person.call('POST', '/mobile/devices', device.body)).body.data
  expect((await person.call('PATCH', `/mobile/devices/${id}`, { enabled: false })).status).toBe(200)
  const refused = await person.call('POST', `/mobile/devices/${id}/test`)
  expect([refused.status, refused.body.errors]).toEqual([422, { state: ['not possible in state disabled'] }])
  await person.call('PATCH', `/mobile/devices/${id}`, { enabled: true })
  expect((await person.call('POST', `/mobile/devices/${id}/test`)).status).toBe(202)
  await until('it has come', () => device.got().length === 1)
})

describe('the screens', () => {
  test('[RES-185] [RES-186] [RES-187] the start screen agrees with the rest, and changes can be followed', async () => {
    const tenant = await hub.tenant()
    for (const severity of ['critical', 'warning', 'info']) await alert(tenant, severity)
    const { body } = await tenant.call('GET', '/mobile/summary')
    const overview = (await tenant.call('GET', '/monitoring/overview')).body.data
    const unread = (await tenant.call('GET', '/notifications/unread-count')).body.data
    expect(body.data).toMatchObject({
      alerts: { active: overview.alerts.active, critical: 1, warning: 1, info: 1, unacknowledged: 3 },
      servers: overview.servers,
      unread_notifications: Object.values(unread)[0],
      badge: 1,
      worst: 'critical',
      approvals_waiting: 0,
    })
    expect(body.data.newest).toHaveLength(3)
    expect(JSON.stringify(body).length).toBeLessThan(8192)
    const list = async (query = '') => (await tenant.call('GET', `/mobile/alerts${query}`)).body.data
    const [first] = (await list('?severity=critical')) as Json[]
    expect(first).toMatchObject({ s: 'critical', st: 'open', l: `/alerts/${first.id}` })
    // What the answer says is where the next request begins.
    const since = (await tenant.call('GET', '/mobile/alerts')).body.meta.server_time
    expect(Math.abs(Date.parse(since) - Date.now())).toBeLessThan(60_000)
    expect(await list(`?updated_since=${since}`)).toEqual([])
    await tenant.call('POST', `/monitoring/alerts/${first.id}/close`, {})
    expect((await list()).map((each: Json) => each.s).sort()).toEqual(['info', 'warning'])
    expect((await list(`?updated_since=${since}`)).map((each: Json) => [each.id, each.st])).toEqual([
      [first.id, 'closed'],
    ])
    expect(await list('?acknowledged=1')).toEqual([])
  })
})
