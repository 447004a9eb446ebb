// Where webhooks may go: https to public addresses, connected to exactly the address that was checked.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { destinationOf, postTo } from '../../apps/hub/notifications/webhook.ts'
import { callAddress, isAllowedAddress, readBeginning, resolveTarget } from '../../apps/hub/platform/outbound-guard.ts'
import { isPublicAddress } from '../../core/network/public-address.ts'
import { TestHub, until } from './hub-harness.ts'

// For receiver.test alone, valid for a hundred years; its key protects nothing.
const cert = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUETAFyDvZx4tTklA5oNLnzyEIzhYwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDAgFw0yNjExMjAxNDA2MjdaGA8yMTI2
MTAyNzE0MDYyN1owGDEWMBQGA1UEAwwNcmVjZWl2ZXIudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABPU5R2U+V7OEGeDimMmadb8YszWdmkT4qQYIgEmSoRNq
hCupaTw3EGTyfH6WUiR7AFP3Vu434QEODxiT7EMyTNejbTBrMB0GA1UdDgQWBBTG
hzBy86UY5vzqK1E8DNdA+cTJ5jAfBgNVHSMEGDAWgBTGhzBy86UY5vzqK1E8DNdA
+cTJ5jAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDXJlY2VpdmVyLnRlc3Qw
CgYIKoZIzj0EAwIDSAAwRQIgLHs4WbLgN4n48m8Adjo8OND6DxyMWVnjR2X9WMbs
LZMCIQCBIPtnypkF4F+K4qtYP4cYXH2EVHjcDnUDrUSJe3bLYw==
-----END CERTIFICATE-----
`
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/BHRhGaLu7W4bvsq
rxD2yzE8InxtzpiLLr36zmG9BJ2hRANCAAT1OUdlPlezhBng4pjJmnW/GLM1nZpE
+KkGCIBJkqETaoQrqWk8NxBk8nx+llIkewBT91buN+EBDg8Yk+xDMkzX
-----END PRIVATE KEY-----
`

let secure: ReturnType<typeof Bun.serve>
let plain: ReturnType<typeof Bun.serve>
const answer = (request: Request) =>
  new Response('', { status: request.headers.get('host')?.startsWith('receiver.test:') ? 204 : 421 })

beforeAll(() => {
  secure = Bun.serve({ hostname: '127.0.0.1', port: 0, tls: { cert, key }, fetch: answer })
  plain = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
})
afterAll(async () => {
  await Promise.all([secure.stop(true), plain.stop(true)])
})

const post = { headers: {}, body: '{}', timeoutMs: 5_000, ca: cert }
const at = (name: string, port: number | undefined, scheme = 'https') => new URL(`${scheme}://${name}:${port}/hook`)

describe('a call goes to the address that was checked', () => {
  test('whatever its name leads to, with the Host and the certificate of the name', async () => {
    expect(await postTo(at('receiver.test', secure.port), '127.0.0.1', post)).toBe(204)
    expect(await postTo(at('receiver.test', plain.port, 'http'), '127.0.0.1', post)).toBe(204)
  })

  test('a certificate of another name, or of nobody that is trusted, ends it', async () => {
    await expect(postTo(at('other.test', secure.port), '127.0.0.1', post)).rejects.toThrow()
    const { ca: _ca, ...untrusting } = post
    await expect(postTo(at('receiver.test', secure.port), '127.0.0.1', untrusting)).rejects.toThrow()
  })

  test('a connection of one name is not used for another', async () => {
    expect(await postTo(at('receiver.test', secure.port), '127.0.0.1', post)).toBe(204)
    await expect(postTo(at('other.test', secure.port), '127.0.0.1', post)).rejects.toThrow()
    expect(await postTo(at('receiver.test', secure.port), '127.0.0.1', post)).toBe(204)
  })
})

test('addresses inside are private, however they are written', () => {
  const inside = [
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '255.255.255.255',
  ]
  const mapped = ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a00:1', '64:ff9b::7f00:1', '2002:7f00:1::', '::7f00:1']
  const inside6 = ['::', '::1', 'fe80::1', 'fd00::1', 'fec0::1', 'ff02::1', 'nonsense']
  expect([...inside, ...mapped, ...inside6].filter(isPublicAddress)).toEqual([])
  const outside = ['1.1.1.1', '93.184.215.14', '2606:4700::1111', '::ffff:8.8.8.8']
  expect(outside.filter(address => !isPublicAddress(address))).toEqual([])
})

test('private addresses and plain http are refused unless configured, in every spelling', async () => {
  const strict = await TestHub.start()
  try {
    const own = await strict.tenant()
    for (const url of [
      'http://example.com/',
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://localhost/',
      'https://10.0.0.1/',
      'https://[::1]/',
      'https://[::ffff:127.0.0.1]/',
      'https://169.254.169.254/',
      'https://192.88.99.1/',
      'https://[64:ff9b:1::7f00:1]/',
      'https://[::ffff:0:127.0.0.1]/',
      'https://[5f00::1]/',
      'https://[3fff::1]/',
      'https://[2001:2::1]/',
      'https://[2001:10::1]/',
      'https://[2001:20::1]/',
      'https://[100:0:0:1::1]/',
      'https://[2002:7f00:1::]/',
      'https://user:password@1.1.1.1/',
      'ftp://x/',
      'nonsense',
    ])
      expect((await own.call('POST', '/webhooks', { name: 'x', url })).body.errors.url).toHaveLength(1)
    const { data } = (await own.call('POST', '/webhooks', { name: 'x', url: 'https://1.1.1.1/' })).body
    expect((await own.call('PATCH', `/webhooks/${data.id}`, { url: 'https://10.0.0.1/' })).status).toBe(422)
    expect(await destinationOf(strict.hub, 'https://1.1.1.1/x')).toEqual({
      url: new URL('https://1.1.1.1/x'),
      addresses: ['1.1.1.1'],
    })
    // Without a mail server a test of a group address says so.
    const channel = (await own.call('POST', '/notifications/channels', { name: 'x', address: 'x@example.test' })).body
      .data
    await own.call('POST', `/notifications/channels/${channel.id}/test`)
    const [mail] = await until('it has failed', async () => {
      const found = (await own.call('GET', '/notifications/deliveries?state=failed')).body.data
      return found.length > 0 ? found : null
    })
    expect(mail.last_error).toContain('smtp.url')
    // An address that became private since is not called, and not tried again.
    await strict.hub.database
      .client`update webhooks set url = ${`https://127.0.0.1:${secure.port}/`} where id = ${data.id}`
    await own.call('POST', `/webhooks/${data.id}/test`)
    const [delivery] = await until('it has failed', async () => {
      const found = (await own.call('GET', '/notifications/deliveries?state=failed')).body.data
      return found.length > 1 ? found : null
    })
    expect(delivery).toMatchObject({ tries: 1, response_code: null, last_error: 'the address is not allowed' })
  } finally {
    await strict.stop()
  }
})

test('what is no address at all is told as that, where private ones and plain http are taken', async () => {
  const open = await TestHub.start({ 'webhooks.allow_private': true })
  try {
    const own = await open.tenant()
    const told = async (url: string, language: string) =>
      (await own.call('POST', '/webhooks', { name: 'x', url }, { 'accept-language': language })).body.errors?.url
    for (const url of ['ftp://x', 'not a url']) {
      expect([url, await told(url, 'en')]).toEqual([url, ['must be an address of http or https']])
      expect([url, await told(url, 'vi')]).toEqual([url, ['phải là địa chỉ http hoặc https']])
    }
    expect(await told('http://me:secret@x/', 'en')).toEqual(['must not hold credentials'])
    expect(await told('https://169.254.169.254/', 'en')).toHaveLength(1)
    expect(await told('http://127.0.0.1/', 'en')).toBeUndefined()
  } finally {
    await open.stop()
  }
})

describe('the guard of everything that leaves the hub for a company', () => {
  const config = (allowed: readonly string[], isPrivateAllowed = false) => ({
    'webhooks.allow_private': isPrivateAllowed,
    'outbound.allowed_ranges': allowed,
  })
  test('[RES-031] private addresses need a range that holds them', () => {
    for (const address of ['127.0.0.1', '10.1.2.3', 'fe80::1', '::1', '::ffff:10.1.2.3', '192.0.2.1']) {
      expect(isAllowedAddress(config([]), address)).toBe(false)
      expect(isAllowedAddress(config([], true), address)).toBe(true)
    }
    expect(isAllowedAddress(config(['10.0.0.0/8']), '10.1.2.3')).toBe(true)
    expect(isAllowedAddress(config(['10.0.0.0/8']), '::ffff:10.1.2.3')).toBe(true)
    expect(isAllowedAddress(config(['10.0.0.0/8']), '127.0.0.1')).toBe(false)
    expect(isAllowedAddress(config([]), '8.8.8.8')).toBe(true)
    expect(isAllowedAddress(config([]), 'localhost')).toBe(false)
  })
  test('[RES-033] the metadata of clouds are refused under every configuration', async () => {
    for (const address of ['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254']) {
      expect(isAllowedAddress(config(['0.0.0.0/0', '::/0'], true), address)).toBe(false)
      expect(await resolveTarget(config(['0.0.0.0/0', '::/0'], true), address)).toEqual({ fault: 'target_not_allowed' })
    }
  })
  test('a name is its addresses, and one that is not known has none', async () => {
    expect(await resolveTarget(config(['127.0.0.0/8', '::1']), 'localhost')).toHaveProperty('addresses')
    expect(await resolveTarget(config([]), 'localhost')).toEqual({ fault: 'target_not_allowed' })
    expect(await resolveTarget(config([]), 'nobody.invalid')).toEqual({ fault: 'dns' })
  })
  test('no redirect is followed, and only the beginning of a body is read', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ url }) =>
        url.endsWith('/away') ? Response.redirect('http://127.0.0.1:1/') : new Response('x'.repeat(1_000_000)),
    })
    try {
      const call = (path: string) =>
        callAddress(new URL(`http://name.test:${server.port}${path}`), '127.0.0.1', { timeoutMs: 5_000 })
      expect((await call('/away')).status).toBe(302)
      expect((await readBeginning(await call('/'))).length).toBe(256 * 1024)
    } finally {
      await server.stop(true)
    }
  })
})
