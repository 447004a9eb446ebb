import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { type Rig, startRig, token } from '../ingest/rig.ts'
import { batchFields, mutate } from './batch-messages.ts'
import { Random, runsOf, seedOf } from './seeded.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    keys: {
      'ingest.limits.metrics_burst': 10_000_000,
      'ingest.limits.metrics_per_minute': 10_000_000,
      'ingest.limits.config_per_minute': 10_000_000,
      'debug.accept_json': true,
    },
  })
})
afterAll(() => rig.stop())

/** Paths with the method that they take; `/metrics` more often than the others. */
const endpoints: readonly (readonly [string, string])[] = [
  ['/metrics', 'POST'],
  ['/metrics', 'POST'],
  ['/metrics', 'POST'],
  ['/metrics', 'POST'],
  ['/enroll', 'POST'],
  ['/inventory', 'POST'],
  ['/credentials/renew', 'POST'],
  ['/config', 'GET'],
  ['/ping', 'GET'],
  ['/update?os=linux', 'GET'],
  ['/none', 'POST'],
]
const methods = ['POST', 'GET', 'PUT', 'DELETE', 'PATCH']

/** A body in some encoding, often damaged after it was compressed. */
function body(random: Random): { bytes: Uint8Array<ArrayBuffer>; encoding: string | null } {
  const plain = new Uint8Array(batchFields(Date.now(), random).flat())
  const inner = random.chance(0.3) ? mutate(plain, random) : plain
  const encoding = random.pick([null, 'zstd', 'zstd', 'gzip', 'identity', 'br', 'ZSTD', 'zstd, gzip'])
  const packed =
    encoding?.toLowerCase() === 'zstd'
      ? Bun.zstdCompressSync(inner as Uint8Array<ArrayBuffer>)
      : encoding === 'gzip'
        ? gzipSync(inner)
        : inner
  const outer = random.chance(0.4) ? mutate(new Uint8Array(packed), random) : new Uint8Array(packed)
  return { bytes: new Uint8Array(outer), encoding }
}

function headersOf(random: Random, encoding: string | null): Record<string, string> {
  const headers: Record<string, string> = {
    'x-svc-proto': random.pick([
      '1',
      '1',
      '1',
      '1',
      '1',
      '1',
      '1',
      '1',
      '1',
      '0',
      '2',
      '',
      'x',
      '-1',
      '99999999999999999999',
    ]),
    'x-svc-agent-version': random.pick(['1.0.0', '1.0.0', '1.0.0', '1.0.0', '', 'x'.repeat(300)]),
    authorization: random.pick([
      `Bearer ${token}`,
      `Bearer ${token}`,
      `bearer ${token}`,
      'Bearer',
      'Bearer x y',
      `Bearer ${'t'.repeat(2000)}`,
      'Basic eA==',
    ]),
    'content-type': random.pick([
      'application/x-protobuf',
      'application/x-protobuf',
      'application/json',
      'text/plain',
      '',
    ]),
    'if-none-match': random.pick(['', '*', '"x', 'W/']),
  }
  if (encoding !== null) headers['content-encoding'] = encoding
  return headers
}

test('[WIRE-040] whatever is sent, the answer is one of the contract, never a fault of the server', async () => {
  const seed = seedOf('agent-api')
  const random = new Random(seed)
  const seen = new Map<number, number>()
  for (let run = 0; run < runsOf(3000); run++) {
    const { bytes, encoding } = body(random)
    const [path, taken] = random.pick(endpoints)
    const method = random.chance(0.95) ? taken : random.pick(methods)
    const response = await fetch(`${rig.ingest.url}/agent/v1${path}`, {
      method,
      headers: headersOf(random, encoding),
      ...(method === 'GET' ? {} : { body: bytes }),
    })
    const text = await response.text()
    seen.set(response.status, (seen.get(response.status) ?? 0) + 1)
    const where = `seed ${seed}, run ${run}, ${method} ${path}: ${response.status} ${text.slice(0, 100)}`
    // 503: the scripted hub answers enrollment and renewal with something that is no answer to them.
    expect([200, 202, 204, 304, 400, 401, 404, 405, 413, 422, 426, 429, 503], where).toContain(response.status)
    if (response.status < 400) continue
    const { error } = JSON.parse(text) as { error: { code: string; message: string } }
    expect(error.code, where).toMatch(/^[a-z_]+$/)
    expect(error.message, where).not.toMatch(/\bat \/|node_modules|\.ts\b/)
  }
  console.log('agent-api:', Object.fromEntries(seen))
  expect(seen.get(200)).toBeGreaterThan(50)
  expect(seen.get(400)).toBeGreaterThan(50)
  const log = JSON.stringify(rig.logLines)
  expect(log).not.toContain('cannot answer a request')
  expect(log).not.toContain(token)
}, 600_000)

test('bytes that are no HTTP leave the server in service', async () => {
  const random = new Random(seedOf('raw bytes'))
  const port = Number(new URL(rig.ingest.url).port)
  for (let run = 0; run < 100; run++)
    await new Promise<void>(settle => {
      const socket = connect(port, '127.0.0.1', () => {
        const head = random.chance(0.5)
          ? 'POST /agent/v1/metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
          : ''
        socket.write(
          Buffer.concat([
            Buffer.from(head),
            Buffer.from(Array.from({ length: random.below(300) }, () => random.below(256))),
          ]),
        )
        socket.end()
      })
      socket.on('error', () => settle())
      socket.on('close', () => settle())
      socket.resume()
    })
  expect((await fetch(`${rig.ingest.url}/agent/v1/ping`)).status).toBe(200)
})
