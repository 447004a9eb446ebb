// What a client may put into one segment, and what it may not put onto the wire at all. Raw sockets: a client library
// would not send it.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomFrom } from '../support/random.ts'
import { askRaw, openRaw, type RawConnection, statusesOf } from '../support/raw-http.ts'
import { until } from '../support/until.ts'
import { firstCertificate } from './certificates.ts'
import { protoHeaders, type Rig, startRig, token } from './rig.ts'

const KEYS = { 'ingest.limits.metrics_burst': 100_000, 'ingest.limits.metrics_per_minute': 1_000_000 }
const ping = 'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\n\r\n'
const unknown = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'
const agentHeaders = Object.entries({ ...protoHeaders, authorization: `Bearer ${token}` })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')
/** Two fields that nobody knows: a batch of no samples. */
const BODY = 'x\x01x\x01'
const post = (more = `Content-Length: ${BODY.length}\r\n`, body = BODY) =>
  `POST /agent/v1/metrics HTTP/1.1\r\nHost: x\r\n${agentHeaders}${more}\r\n${body}`
const chunked = (size = '4', body = BODY, rest = '\r\n0\r\n\r\n') =>
  post('Transfer-Encoding: chunked\r\n', `${size}\r\n${body}${rest}`)
const stranger =
  'POST /agent/v1/metrics HTTP/1.1\r\nHost: x\r\nX-SVC-Proto: 1\r\nX-SVC-Agent-Version: 1\r\nContent-Length: 3\r\n\r\nabc'

const directory = mkdtempSync(join(tmpdir(), 'svc-pipelining-'))
const files = { 'tls.cert_file': join(directory, 'cert.pem'), 'tls.key_file': join(directory, 'key.pem') }
writeFileSync(files['tls.cert_file'], firstCertificate.cert)
writeFileSync(files['tls.key_file'], firstCertificate.key)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const kindsOfListener: readonly (readonly [string, number, boolean])[] = [
  ['one thread', 0, false],
  ['several threads', 2, false],
  ['one thread, TLS', 0, true],
  ['several threads, TLS', 2, true],
]
for (const [name, threads, isTls] of kindsOfListener)
  describe(name, () => {
    let rig: Rig
    beforeAll(async () => {
      rig = await startRig({ keys: { ...KEYS, ...(isTls ? files : {}) }, threads })
    })
    afterAll(() => rig.stop())

    const open = (): RawConnection => openRaw(rig.ingest.url)
    const statuses = statusesOf
    const ask = (segments: readonly string[], count: number) => askRaw(rig.ingest.url, segments, count)
    const times = (request: string, count: number) => request.repeat(count)
    const all = (status: number, count: number) => Array.from({ length: count }, () => status)

    test('requests of one segment are answered, each in its turn', async () => {
      for (const count of [2, 3, 20])
        for (const request of [ping, post(), chunked(), unknown.replace('GET', 'POST'), stranger]) {
          const { statuses: found } = await ask([times(request, count)], count)
          expect([request, found]).toEqual([request, all(found[0]!, count)])
        }
      const mixed = await ask([post() + ping + unknown + chunked() + stranger + ping + post()], 7)
      expect(mixed.statuses).toEqual([200, 200, 404, 200, 401, 200, 200])
      expect(mixed.text).toMatch(
        /octet|x-protobuf[\s\S]*server_time_ms[\s\S]*not_found[\s\S]*x-protobuf[\s\S]*unauthorized/,
      )
    })

    test('a body may be split over segments, and the next request begin in its last one', async () => {
      const request = post()
      for (const at of [10, request.length - 5, request.length - 2])
        expect((await ask([request.slice(0, at), request.slice(at) + ping], 2)).statuses).toEqual([200, 200])
      expect((await ask([...chunked()], 1)).statuses).toEqual([200])
    })

    test('after a request that cannot be read there is an answer, and the connection is closed', async () => {
      for (const bad of [
        'nonsense\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\nHost: x\n\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost : x\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\rX-Other: y\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\nX-Other: y\nX-More: z\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\nX Other: y\r\n\r\n',
        'GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n',
        'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
        'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n',
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
        post(`Content-Length: 4\r\nContent-Length: 5\r\n`),
        post(`Content-Length: 4\r\nContent-Length: 4\r\n`),
        post('Content-Length: 4, 4\r\n'),
        post('Content-Length: +4\r\n'),
        post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'),
        post('Content-Length: -1\r\n'),
        post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n'),
        // A no-break space is no blank.
        post('Content-Length: \xa04\r\n'),
      ]) {
        const { statuses: found, isClosed, text } = await ask([ping + bad + ping], 3)
        expect([bad, found, isClosed]).toEqual([bad, [200, 400], true])
        expect(text).toContain('"code":"bad_request"')
      }
      const status = async (bad: string) => (await ask([ping + bad], 3)).statuses
      expect(await status('GET /agent/v1/ping HTTP/2.0\r\nHost: x\r\n\r\n')).toEqual([200, 505])
      expect(await status(post('Expect: 200-ok\r\nContent-Length: 4\r\n'))).toEqual([200, 417])
      for (const coding of ['gzip, chunked', '\xa0chunked', 'chunked\xa0'])
        expect([coding, await status(post(`Transfer-Encoding: ${coding}\r\n`))]).toEqual([coding, [200, 501]])
      expect(await status(`GET /agent/v1/ping HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`)).toEqual([
        200, 431,
      ])
    })

    test('a target is read as a URL: dot segments, a fragment, a host of its own', async () => {
      for (const target of [
        '/agent/v1/x/../ping',
        '/agent/v1/x/%2E%2e/ping',
        '/agent/./v1/ping?x=/../y',
        '/agent\\v1\\ping',
        '/agent/v1/ping#x',
        'http://other.example/agent/v1/ping',
        'HTTP://other.example:81/agent/v1/x/../ping',
      ])
        expect([target, (await ask([ping.replace('/agent/v1/ping', target) + ping], 2)).statuses]).toEqual([
          target,
          [200, 200],
        ])
      expect((await ask([ping.replace('/agent/v1/ping', '/agent/v1/ping/..') + ping], 2)).statuses).toEqual([404, 200])
    })

    test('extensions of chunks are left aside, a size is one of hexadecimal digits', async () => {
      expect((await ask([chunked('4;name="value"') + chunked('04') + chunked('0004 ;x')], 3)).statuses).toEqual([
        200, 200, 200,
      ])
      expect((await ask([chunked('4', BODY, '\r\n0\r\nX-Trailer: y\r\n\r\n') + ping], 2)).statuses).toEqual([200, 200])
    })

    test('a trailer has field lines, each with a name and a colon', async () => {
      const trailed = (line: string) => chunked('4', BODY, `\r\n0\r\n${line}\r\n\r\n`)
      for (const good of ['X-Trailer:', 'x: y: z', 'a:\ty\xa0\r\nB: c'])
        expect([good, (await ask([trailed(good) + ping], 2)).statuses]).toEqual([good, [200, 200]])
      for (const bad of ['nonsense', ': y', 'X Trailer: y', 'X-Trailer : y', ' folded: y', 'x: y\0', 'x: y\r\n folded'])
        expect([bad, (await ask([trailed(bad) + ping], 2)).statuses]).toEqual([bad, [400]])
    })

    test('a body of very many small chunks is refused, one of large chunks is not', async () => {
      const bodyOf = (bytes: number, chunks: number): string =>
        `${bytes.toString(16)}\r\n${BODY.repeat(bytes / BODY.length)}\r\n`.repeat(chunks)
      const small = post('Transfer-Encoding: chunked\r\n', `${bodyOf(4, 2_000)}0\r\n\r\n`)
      expect((await ask([small], 2)).statuses).toEqual([400])
      const large = post('Transfer-Encoding: chunked\r\n', `${bodyOf(128, 2_000)}0\r\n\r\n`)
      expect((await ask([large + ping], 2)).statuses).toEqual([200, 200])
    })

    test('chunks of the wrong size are a body that ended early', async () => {
      for (const bad of [
        chunked('5'),
        chunked('3'),
        chunked('zz'),
        chunked('-1'),
        chunked('ffffffffff'),
        chunked('4', BODY, 'x'),
        chunked('0x4'),
        chunked('4 4'),
        chunked('4\n'),
        chunked('4;x\ry'),
      ])
        expect([bad, (await ask([bad], 2)).statuses]).toEqual([bad, [400]])
    })

    test('HTTP/1.0, Connection: close, Expect and Upgrade are answered as the standard says', async () => {
      const old = await ask(['GET /agent/v1/ping HTTP/1.0\r\n\r\n'], 2)
      expect([old.statuses, old.isClosed]).toEqual([[200], true])
      const head = await ask([ping.replace('GET', 'HEAD') + ping], 2)
      expect([head.statuses, head.text.match(/server_time_ms/g)?.length]).toEqual([[200, 200], 1])
      const closing = await ask([ping.replace('Host: x', 'Host: x\r\nConnection: close') + ping], 2)
      expect([closing.statuses, closing.isClosed]).toEqual([[200], true])
      const expecting = post(`Expect: 100-continue\r\nContent-Length: ${BODY.length}\r\n`, '')
      const { socket, received } = open()
      socket.write(expecting)
      await until('word to go on', () => statuses(received()).includes(100))
      socket.write(Buffer.from(BODY, 'latin1'))
      await until('the response', () => statuses(received()).length === 2)
      expect(statuses(received())).toEqual([100, 200])
      socket.destroy()
      const upgrade = ping.replace('Host: x', 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket')
      expect((await ask([upgrade + ping], 2)).statuses).toEqual([200, 200])
    })

    test('a client that says that it will send no more gets what it asked for', async () => {
      const { socket, received, isClosed } = open()
      socket.end(Buffer.from(post() + ping, 'latin1'))
      await until('the end', isClosed)
      expect(statuses(received())).toEqual([200, 200])
    })

    test('a client that does not read its answers is read no more, and gets them all once it reads', async () => {
      const { socket } = open()
      socket.pause()
      const count = 100_000
      const requests = Buffer.from(ping.repeat(count))
      socket.write(requests)
      expect((await ask([ping], 1)).statuses).toEqual([200])
      // Ten megabytes of answers fit no buffer of the system.
      let answers = 0
      let rest = ''
      socket.on('data', part => {
        const text = rest + part.toString('latin1')
        const found = text.split('HTTP/1.1 200')
        answers += found.length - 1
        rest = found.at(-1)!.slice(-12)
      })
      socket.resume()
      await until('all answers', () => answers === count, 20_000)
      socket.destroy()
    }, 120_000)

    test('a thousand requests at once, cut anywhere, get a thousand answers in their order', async () => {
      const seed = Math.floor(Math.random() * 1_000_000)
      console.log(`pipelining: --seed ${seed}`)
      const random = randomFrom(seed)
      const kinds: readonly (readonly [string, number])[] = [
        [ping, 200],
        [post(), 200],
        [chunked(), 200],
        [unknown, 404],
        [stranger, 401],
      ]
      const chosen = Array.from({ length: 1_000 }, () => kinds[Math.floor(random() * kinds.length)]!)
      const text = chosen.map(([request]) => request).join('')
      const segments: string[] = []
      for (let at = 0; at < text.length; ) {
        const length = 1 + Math.floor(random() ** 4 * 100_000)
        segments.push(text.slice(at, at + length))
        at += length
      }
      expect([seed, (await ask(segments, 1_000)).statuses]).toEqual([seed, chosen.map(([, status]) => status)])
    })
  })
