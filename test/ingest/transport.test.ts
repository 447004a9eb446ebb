import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { until } from '../support/until.ts'
import { firstCertificate, secondCertificate, type TestCertificate } from './certificates.ts'
import { ackOf, errorOf, protoHeaders, type Rig, startRig, token } from './rig.ts'

let rig: Rig
let directory = ''
const certFile = () => join(directory, 'cert.pem')
const keyFile = () => join(directory, 'key.pem')

function writeCertificate({ cert, key }: TestCertificate): void {
  writeFileSync(certFile(), cert)
  writeFileSync(keyFile(), key)
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-tls-'))
  writeCertificate(firstCertificate)
  rig = await startRig({
    keys: {
      'tls.cert_file': certFile(),
      'tls.key_file': keyFile(),
      'ingest.limits.metrics_burst': 1000,
      'ingest.limits.metrics_per_minute': 1000,
    },
  })
})
afterAll(async () => {
  await rig.stop()
  rmSync(directory, { recursive: true, force: true })
})

const port = () => Number(new URL(rig.ingest.url).port)

/** The protocol that a handshake with this version settles on, or why it failed. */
const handshake = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
  new Promise<string>(settle => {
    const socket = connectTls(
      { port: port(), host: '127.0.0.1', rejectUnauthorized: false, minVersion: version, maxVersion: version },
      () => {
        settle(socket.getProtocol() ?? 'none')
        socket.destroy()
      },
    )
    socket.on('error', () => settle('refused'))
  })

const commonName = () =>
  new Promise<string>((settle, fail) => {
    const socket = connectTls({ port: port(), host: '127.0.0.1', rejectUnauthorized: false }, () => {
      settle(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', fail)
  })

test('[WIRE-002] TLS 1.2 and 1.3 are spoken, 1.1 is refused', async () => {
  expect(await handshake('TLSv1.3')).toBe('TLSv1.3')
  expect(await handshake('TLSv1.2')).toBe('TLSv1.2')
  expect(await handshake('TLSv1.1')).toBe('refused')
})

const insecure = { tls: { rejectUnauthorized: false } }

test('[WIRE-003] [WIRE-056] HTTP/1.1 over TLS is answered, without a certificate of the client', async () => {
  expect(rig.ingest.url).toStartWith('https://')
  expect((await ackOf(await rig.call('/metrics', { method: 'POST', ...insecure }))).acceptedPoints).toBe(0)
})

/** One request over HTTP/2: status and body. */
const http2 = (path: string, headers: Record<string, string>, body: Uint8Array | null) =>
  new Promise<{ status: number; text: string }>((settle, fail) => {
    const session = connectHttp2(rig.ingest.url, { rejectUnauthorized: false })
    session.on('error', fail)
    const method = body === null ? 'GET' : 'POST'
    const request = session.request({ ':path': path, ':method': method, ...headers })
    let status = 0
    const parts: Buffer[] = []
    request.on('response', answer => {
      status = Number(answer[':status'])
    })
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      settle({ status, text: Buffer.concat(parts).toString() })
      session.close()
    })
    request.on('error', fail)
    if (body) request.end(body)
    else request.end()
  })

test('[WIRE-004] HTTP/2 is answered, a refusal too', async () => {
  const authorised = { ...protoHeaders, authorization: `Bearer ${token}` }
  expect((await http2('/agent/v1/ping', {}, null)).status).toBe(200)
  expect((await http2('/agent/v1/metrics', authorised, new Uint8Array(0))).status).toBe(200)
  for (let times = 0; times < 5; times++) {
    const large = await http2('/agent/v1/metrics', authorised, new Uint8Array(3_000_000))
    expect(large).toMatchObject({ status: 413 })
    expect(large.text).toContain('too_large')
    const stranger = await http2('/agent/v1/metrics', protoHeaders, new Uint8Array(60_000))
    expect(stranger.status).toBe(401)
  }
})

test('[WIRE-004] requests of one HTTP/2 connection run side by side; a body without a length, or longer than it says, too', async () => {
  const session = connectHttp2(rig.ingest.url, { rejectUnauthorized: false })
  const authorised = { ...protoHeaders, authorization: `Bearer ${token}` }
  const ask = (headers: Record<string, string>, body: Uint8Array | null) =>
    new Promise<number | string>(settle => {
      const request = session.request({ ':method': body ? 'POST' : 'GET', ...headers })
      let status = 0
      request.on('response', answer => {
        status = Number(answer[':status'])
      })
      request.on('data', () => {})
      request.on('end', () => settle(status))
      request.on('error', () => settle('refused'))
      request.end(body ?? undefined)
    })
  const metrics = { ':path': '/agent/v1/metrics', ...authorised }
  const kinds = [
    () => ask({ ':path': '/agent/v1/ping' }, null),
    () => ask({ ':path': '/agent/v1/x/../ping' }, null),
    () => ask(metrics, Buffer.from('x\x01x\x01')),
    () => ask({ ...metrics, 'content-length': '4' }, Buffer.from('x\x01x\x01')),
    () => ask({ ':path': '/nothing' }, Buffer.alloc(200_000)),
  ]
  const found = await Promise.all(Array.from({ length: 20 }, (_, index) => kinds[index % kinds.length]!()))
  expect(found).toEqual(Array.from({ length: 20 }, (_, index) => [200, 200, 200, 200, 404][index % 5]!))
  expect(await ask({ ...metrics, 'content-length': '2' }, Buffer.from('x\x01x\x01'))).not.toBe(200)
  expect(await ask({ ':path': '/agent/v1/ping' }, null)).toBe(200)
  session.close()
})

test('the certificate is read again; one that cannot be used leaves the old one in force', async () => {
  expect(await commonName()).toBe('first')
  writeCertificate(secondCertificate)
  await rig.ingest.reloadCertificate()
  expect(await commonName()).toBe('second')
  writeFileSync(certFile(), 'no certificate')
  await expect(rig.ingest.reloadCertificate()).rejects.toThrow()
  expect(await commonName()).toBe('second')
  expect((await rig.call('/metrics', { method: 'POST', ...insecure })).status).toBe(200)
})

test('a request under way while the certificate is read again is answered', async () => {
  const socket = connectTls({ port: port(), host: '127.0.0.1', rejectUnauthorized: false })
  let received = ''
  socket.on('data', (part: Buffer) => {
    received += part.toString()
  })
  const head = [
    'POST /agent/v1/metrics HTTP/1.1',
    'Host: x',
    ...Object.entries({ ...protoHeaders, authorization: `Bearer ${token}` }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ]
  // Two fields that no agent knows make a body of four bytes.
  await new Promise<void>(settle => {
    socket.write(`${head.join('\r\n')}\r\nContent-Length: 4\r\n\r\n\x78\x01`, () => settle())
  })
  // Whoever answers these has read what came before them.
  for (let times = 0; times < 8; times++) await commonName()
  writeCertificate(firstCertificate)
  await rig.ingest.reloadCertificate()
  expect(await commonName()).toBe('first')
  socket.write('\x78\x01')
  await until('the answer', () => received.includes('\r\n\r\n'))
  expect(received).toStartWith('HTTP/1.1 200')
  socket.destroy()
})

test('plain HTTP on an address that is not loopback is refused at the start', async () => {
  await expect(startRig({ keys: { listen: '0.0.0.0:0' } })).rejects.toThrow('plain HTTP')
})

test('thousands of idle connections and bodies that do not come leave the others served', async () => {
  const own = await startRig({ keys: { 'ingest.limits.metrics_burst': 1000 } })
  const { port: plainPort } = new URL(own.ingest.url)
  const sockets = await Promise.all(
    Array.from(
      { length: 2000 },
      () =>
        new Promise<ReturnType<typeof connect>>((settle, fail) => {
          const socket = connect(Number(plainPort), '127.0.0.1', () => settle(socket))
          socket.on('error', fail)
        }),
    ),
  )
  for (const socket of sockets.slice(0, 200))
    socket.write(
      `POST /agent/v1/metrics HTTP/1.1\r\nHost: x\r\nX-SVC-Proto: 1\r\nX-SVC-Agent-Version: 1\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n\r\nabc`,
    )
  expect((await own.send({ seq: 1n })).status).toBe(200)
  for (const socket of sockets.slice(1000)) socket.destroy()
  expect(await errorOf(await own.call('/metrics', { method: 'POST', token: null }))).toBe('401 unauthorized')
  // A stop does not wait for them either.
  await own.stop()
  for (const socket of sockets.slice(0, 1000)) socket.destroy()
}, 120_000)

test('[WIRE-042] [ING-013] a sender that breaks off in the middle is no fault of the server, and nothing is kept of it', async () => {
  const own = await startRig({ keys: { 'ingest.limits.metrics_burst': 1000 } })
  const port = Number(new URL(own.ingest.url).port)
  const head = [
    'POST /agent/v1/metrics HTTP/1.1',
    'Host: x',
    'X-SVC-Proto: 1',
    'X-SVC-Agent-Version: 1',
    `Authorization: Bearer ${token}`,
  ]
  for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked'])
    for (let times = 0; times < 20; times++)
      await new Promise<void>(settle => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.write(`${[...head, framing].join('\r\n')}\r\n\r\n5\r\nab`, () => socket.destroy())
        })
        socket.on('error', () => settle())
        socket.on('close', () => settle())
      })
  expect((await own.send({ seq: 1n })).status).toBe(200)
  expect((await own.published()).map(batch => batch.seq)).toEqual([1])
  expect(own.logLines.filter(line => line.level === 50)).toEqual([])
  await own.stop()
})
