// Push to apps, with services of the test in the place of Google's and Apple's: tokens are verified as they would be.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { until } from '../support/until.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(90_000)
let hub: TestHub
let own: Tenant
let root: Call
let fcm: ReturnType<typeof Bun.serve>
let status = 200
let grants = 0
const came: { path: string; headers: Json; body: Json }[] = []
const google = generateKeyPairSync('rsa', { modulusLength: 2048 })
const apple = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** The claims of a token that the key of the pair signed; null for any other. */
function claimsOf(token: string, key: KeyObject, more: Json = {}): Json {
  const [head = '', claims = '', signature = ''] = token.split('.')
  const signed = Buffer.from(`${head}.${claims}`)
  const isGood = verify('sha256', signed, { key: createPublicKey(key), ...more }, Buffer.from(signature, 'base64url'))
  return isGood ? { ...JSON.parse(atob(head)), ...JSON.parse(Buffer.from(claims, 'base64url').toString()) } : null
}

const apns = createServer()
apns.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', () => {
    came.push({ path: String(headers[':path']), headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    stream.respond({ ':status': status })
    stream.end()
  })
})

beforeAll(async () => {
  fcm = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/token') {
        const claims = claimsOf(new URLSearchParams(await request.text()).get('assertion') ?? '', google.privateKey)
        if (claims?.iss !== 'push@example.test' || claims.aud !== request.url) return new Response('', { status: 400 })
        return Response.json({ access_token: `grant-${++grants}`, expires_in: 3599 })
      }
      came.push({ path: pathname, headers: Object.fromEntries(request.headers), body: await request.json() })
      return new Response('{}', { status })
    },
  })
  await new Promise<void>(resolve => apns.listen(0, '127.0.0.1', () => resolve()))
  const { port } = apns.address() as AddressInfo
  hub = await TestHub.start({
    'webhooks.allow_private': true,
    'push.fcm_url': `http://127.0.0.1:${fcm.port}`,
    'push.apns_url': `http://127.0.0.1:${port}`,
  })
  own = await hub.tenant()
  root = (await hub.user(own.companyId, ['*'], { superAdmin: true })).call
})
afterAll(async () => {
  await fcm.stop(true)
  apns.close()
  await hub.stop()
})

const set = async (key: string, value: unknown): Promise<void> => {
  const answer = await root('PUT', `/system/settings/push.${key}`, { value })
  if (answer.status !== 200) throw new Error(`${key}: ${JSON.stringify(answer.body)}`)
}
const register = (body: Json) => own.call('POST', '/mobile/devices', { name: 'phone', ...body })
async function tested(id: string): Promise<Json> {
  const before = came.length
  expect((await own.call('POST', `/mobile/devices/${id}/test`)).status).toBe(202)
  return until('the push arrives', () => came.length > before && came.at(-1))
}
const shown = async (id: string): Promise<Json> =>
  (await own.call('GET', '/mobile/devices')).body.data.find((device: Json) => device.id === id)

test('[R-051] [RES-175] [RES-181] FCM: a service account asks for a token once, and a device that is gone is disabled', async () => {
  const refused = await register({ platform: 'fcm', token: 'device-1' })
  expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['platform']])
  const account = {
    project_id: 'shop',
    client_email: 'push@example.test',
    private_key: pem(google.privateKey),
    token_uri: `http://127.0.0.1:${fcm.port}/token`,
  }
  await set('fcm_credentials', JSON.stringify(account))
  expect((await own.call('GET', '/mobile/settings')).body.data.platforms.fcm).toEqual({ enabled: true })
  expect(Object.keys((await register({ platform: 'fcm' })).body.errors)).toEqual(['token'])
  const { id } = (await register({ platform: 'fcm', token: 'device-1' })).body.data
  const first = await tested(id)
  expect(first).toMatchObject({
    path: '/v1/projects/shop/messages:send',
    headers: { authorization: 'Bearer grant-1' },
    body: {
      message: {
        token: 'device-1',
        notification: { title: 'Test' },
        data: { type: 'test', severity: 'info', badge: '0' },
        android: { priority: 'normal', ttl: '3600s' },
      },
    },
  })
  await tested(id)
  expect(grants).toBe(1)
  const again = await register({ platform: 'fcm', token: 'device-1', name: 'same' })
  expect([again.status, again.body.data.id, 'token' in again.body.data]).toEqual([200, id, false])
  status = 404
  await tested(id)
  await until('the device is disabled', async () => (await shown(id)).disabled_reason === 'gone')
  status = 200
  // A phone may say it several times at once: it is one device.
  const atOnce = await Promise.all(Array.from({ length: 6 }, () => register({ platform: 'fcm', token: 'device-2' })))
  for (const { status, body } of atOnce) expect([status, body.errors]).toEqual([status === 201 ? 201 : 200, undefined])
  expect(new Set(atOnce.map(({ body }) => body.data.id)).size).toBe(1)
})

test('[R-051] [RES-181] APNs: HTTP/2 with a token of the team, and a device that is gone is disabled', async () => {
  // Another person: each may send five tests a minute.
  own = await hub.tenant()
  for (const [key, value] of [
    ['apns_key', pem(apple.privateKey)],
    ['apns_key_id', 'KEY1234567'],
    ['apns_team_id', 'TEAM123456'],
    ['apns_topic', 'com.example.shop'],
  ] as const)
    await set(key, value)
  expect(Object.keys((await register({ platform: 'apns', token: '../x' })).body.errors)).toEqual(['token'])
  const token = 'ab'.repeat(32)
  const { id } = (await register({ platform: 'apns', token })).body.data
  const { path, headers, body } = await tested(id)
  expect([path, headers['apns-topic'], headers['apns-push-type'], headers['apns-priority']]).toEqual([
    `/3/device/${token}`,
    'com.example.shop',
    'alert',
    '5',
  ])
  const claims = claimsOf(headers.authorization.replace(/^bearer /, ''), apple.privateKey, {
    dsaEncoding: 'ieee-p1363',
  })
  expect(claims).toMatchObject({ alg: 'ES256', kid: 'KEY1234567', iss: 'TEAM123456' })
  expect(body).toMatchObject({ type: 'test', aps: { alert: { title: 'Test' }, badge: 0, sound: 'default' } })
  expect((await tested(id)).headers.authorization).toBe(headers.authorization)
  status = 410
  await tested(id)
  await until('the device is disabled', async () => (await shown(id)).disabled_reason === 'gone')
  status = 200
})
