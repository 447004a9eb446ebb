// Several requests on one connection to the hub and its ops listener, plain and over TLS; streams that end with their
// readers; bodies in pieces; who is taken for the client.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { firstCertificate } from '../ingest/certificates.ts'
import { requestOf, testPipelining } from '../support/pipelining.ts'
import { askRaw, openRaw, statusesOf } from '../support/raw-http.ts'
import { until } from '../support/until.ts'
import { type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)

const directory = mkdtempSync(join(tmpdir(), 'svc-pipelining-'))
const files = { 'tls.cert_file': join(directory, 'cert.pem'), 'tls.key_file': join(directory, 'key.pem') }
writeFileSync(files['tls.cert_file'], firstCertificate.cert)
writeFileSync(files['tls.key_file'], firstCertificate.key)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

for (const isTls of [false, true])
  describe(isTls ? 'the hub over TLS' : 'the hub', () => {
    let hub: TestHub
    let tenant: Tenant
    beforeAll(async () => {
      hub = await TestHub.start({ ...(isTls ? files : {}), 'streams.heartbeat': '50ms', 'streams.per_token': 3 })
      tenant = await hub.tenant()
    })
    afterAll(() => hub.stop())
    const headers = () => ({ authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' })
    const server = (name: string) => JSON.stringify({ name })
    const servers = '/api/v1/servers'

    testPipelining(
      'hub',
      () => hub.url,
      () => [
        [requestOf('GET', `${servers}?per_page=1`, headers()), 200],
        [requestOf('PATCH', '/api/v1/me', headers(), '{"name":"Somebody"}'), 200],
        [requestOf('GET', '/openapi.json'), 200],
        [requestOf('POST', servers, headers(), '{"name":'), 422],
        [requestOf('DELETE', '/api/v1/me', headers()), 405],
        [requestOf('GET', '/api/v1/nothing', headers()), 404],
        [requestOf('GET', servers), 401],
        [requestOf('BREW', servers, headers()), 501],
      ],
    )
    testPipelining(
      'ops',
      () => hub.running.opsUrl ?? '',
      () => [
        [requestOf('GET', '/readyz'), 200],
        [requestOf('GET', '/metrics'), 200],
        [requestOf('GET', '/nothing'), 404],
      ],
    )

    test('answers are in the order of the requests, and not of the time that they take', async () => {
      const { text } = await askRaw(
        hub.url,
        [
          requestOf('POST', servers, headers(), server('the slow one')) +
            requestOf('GET', '/api/v1/nothing', { 'x-request-id': 'the-quick-one' }) +
            requestOf('POST', servers, headers(), server('the last one')),
        ],
        3,
      )
      expect(text).toMatch(/the slow one[\s\S]*the-quick-one[\s\S]*the last one/)
    })

    test('a body may come in chunks, in pieces and after word to go on; a part of one is none', async () => {
      const patch = (more: string, body: string) => {
        const lines = Object.entries(headers()).map(([name, value]) => `${name}: ${value}\r\n`)
        return `PATCH /api/v1/me HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}${more}\r\n${body}`
      }
      const body = `{"name":"Somebody"${' '.repeat(5_000)}}`
      const chunked = patch(
        'Transfer-Encoding: chunked\r\n',
        `${body
          .match(/[\s\S]{1,700}/g)!
          .map(part => `${part.length.toString(16)}\r\n${part}\r\n`)
          .join('')}0\r\n\r\n`,
      )
      expect((await askRaw(hub.url, [chunked + chunked], 2)).statuses).toEqual([200, 200])
      const whole = patch(`Content-Length: ${body.length}\r\n`, body)
      expect((await askRaw(hub.url, whole.match(/[\s\S]{1,900}/g)!, 1)).statuses).toEqual([200])
      const { socket, received } = openRaw(hub.url)
      socket.write(patch(`Content-Length: ${body.length}\r\nExpect: 100-continue\r\n`, ''))
      await until('word to go on', () => statusesOf(received()).includes(100))
      socket.write(body)
      await until('the response', () => statusesOf(received()).length === 2)
      expect(statusesOf(received())).toEqual([100, 200])
      socket.destroy()
      expect(
        (await askRaw(hub.url, [patch('Transfer-Encoding: chunked\r\n', '5\r\nabcde!!\r\n')], 1)).statuses,
      ).toEqual([400])
      const large = patch(`Content-Length: ${3 * 1024 * 1024}\r\n`, 'x'.repeat(3 * 1024 * 1024))
      expect((await askRaw(hub.url, [large + requestOf('GET', '/openapi.json')], 2)).statuses).toEqual([413, 200])
      const endless = patch(
        'Transfer-Encoding: chunked\r\n',
        `${`10000\r\n${'x'.repeat(65_536)}\r\n`.repeat(40)}0\r\n\r\n`,
      )
      expect((await askRaw(hub.url, [endless + requestOf('GET', '/openapi.json')], 2)).statuses).toEqual([413, 200])
    })

    test('an event stream goes on while it is read, and its place is free once the reader is gone', async () => {
      const stream = requestOf('GET', '/api/v1/notifications/stream', headers())
      for (let round = 0; round < 3; round++) {
        const readers = Array.from({ length: 3 }, () => openRaw(hub.url))
        for (const { socket } of readers) socket.write(requestOf('GET', '/openapi.json') + stream)
        for (const { received } of readers) {
          await until('heartbeats', () => received().split(': heartbeat').length > 3)
          expect(received()).toMatch(/text\/event-stream[\s\S]*: connected/i)
          expect(received()).toMatch(/transfer-encoding: chunked/i)
        }
        expect((await askRaw(hub.url, [stream], 1)).statuses).toEqual([429])
        // One ends its side, one drops the connection, one goes in the middle of the next request.
        readers[0]!.socket.end()
        readers[1]!.socket.destroy()
        readers[2]!.socket.write('GET / HT')
        readers[2]!.socket.destroy()
        await until('a free place', async () => (await askRaw(hub.url, [stream], 1)).statuses[0] === 200)
        await until('all places', async () => {
          const again = await Promise.all([1, 2, 3].map(() => askRaw(hub.url, [stream], 1)))
          return again.every(answer => answer.statuses[0] === 200)
        })
      }
    })

    test('a stop ends streams, and an answer under way comes before it', async () => {
      const own = await TestHub.start({ ...(isTls ? files : {}), 'streams.heartbeat': '50ms' })
      const someone = await own.tenant()
      const { socket, received, isClosed } = openRaw(own.url)
      socket.write(requestOf('GET', '/api/v1/notifications/stream', { authorization: `Bearer ${someone.token}` }))
      await until('the stream', () => received().includes(': connected'))
      await own.stop()
      await until('the end', isClosed)
      expect(received()).toEndWith('0\r\n\r\n')
      socket.destroy()
    })
  })

test('the client is the peer, or whom a trusted proxy names', async () => {
  const hub = await TestHub.start({ trusted_proxies: '127.0.0.1/32' })
  try {
    const tenant = await hub.tenant()
    const made = await hub.token(tenant.userId, { ipRanges: ['192.0.2.0/24'] })
    const ask = async (forwarded: string | null) => {
      const more: Record<string, string> = forwarded === null ? {} : { 'x-forwarded-for': forwarded }
      const request = requestOf('GET', '/api/v1/servers', { authorization: `Bearer ${made.token}`, ...more })
      return (await askRaw(hub.url, [request + request], 2)).statuses
    }
    expect(await ask(null)).toEqual([403, 403])
    expect(await ask('192.0.2.7')).toEqual([200, 200])
  } finally {
    await hub.stop()
  }
})
