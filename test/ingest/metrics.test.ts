import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import type { PublishRefusal } from '../../apps/collector/bus/bus.ts'
import { ingestKeys, loadCollectorConfig } from '../../apps/collector/config.ts'
import { metrics } from '../../core/series/catalogue.ts'
import { MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { until } from '../support/until.ts'
import {
  ackOf,
  agentId,
  agentRecord,
  companyId,
  errorOf,
  protoHeaders,
  type Rig,
  serverId,
  someSeries,
  startRig,
  token,
} from './rig.ts'
import { id } from './scripted-hub.ts'

const MIB = 1024 * 1024
/** The bus of this file says no when a test says so. */
let refuseWith: PublishRefusal | null = null
let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    keys: { 'ingest.limits.metrics_burst': 100_000, 'ingest.limits.metrics_per_minute': 1_000_000 },
    agents: [
      agentRecord(),
      agentRecord({
        agent_id: id('pending'),
        server_id: id('draft'),
        state: 'pending',
        token_hash: hashOf('agt_pending'),
      }),
      agentRecord({ agent_id: id('revoked'), state: 'revoked', token_hash: hashOf('agt_revoked') }),
    ],
    bus: writer => ({
      publish: (server, entry) => (refuseWith ? Promise.resolve(refuseWith) : writer.publish(server, entry)),
      stats: () => writer.stats(),
      close: () => writer.close(),
    }),
  })
})
afterAll(() => rig.stop())
afterEach(() => {
  refuseWith = null
})

function hashOf(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}

const batch = (fields: Parameters<Rig['send']>[0]) =>
  toBinary(MetricsBatchSchema, create(MetricsBatchSchema, fields)) as Uint8Array<ArrayBuffer>

const post = (body: Bun.BodyInit, headers: Record<string, string> = {}) =>
  rig.call('/metrics', { method: 'POST', headers: { 'content-type': 'application/x-protobuf', ...headers }, body })

const publishedCount = async () => (await rig.published()).length

test('[ING-001] [ING-004] [ING-005] [ING-007] [ING-008] [WIRE-017] a batch is answered with an acknowledgement', async () => {
  const beforeMs = Date.now()
  const ack = await ackOf(await rig.send({ seq: 18_446_744_073_709_551_615n, series: someSeries(3) }))
  expect(ack.ackSeq).toBe(18_446_744_073_709_551_615n)
  expect(Number(ack.serverTimeMs)).toBeGreaterThanOrEqual(beforeMs)
  expect(Number(ack.serverTimeMs)).toBeLessThanOrEqual(Date.now())
  expect(ack.acceptedPoints).toBe(3)
  expect(ack.droppedPoints).toBe(0)
  expect(ack.warnings).toEqual([])
  expect((await rig.published()).at(-1)).toMatchObject({ companyId, serverId, agentId, points: 3 })
})

test('[WIRE-005] [WIRE-006] [WIRE-007] [WIRE-008] zstd, gzip and plain bodies are taken', async () => {
  const bytes = batch({ seq: 5n, series: someSeries(4) })
  const forms: [string | null, Uint8Array<ArrayBuffer>][] = [
    [null, bytes],
    ['identity', bytes],
    ['gzip', new Uint8Array(gzipSync(bytes))],
    ['zstd', new Uint8Array(Bun.zstdCompressSync(bytes))],
    // A stream encoder does not know the size beforehand: no declared size.
    ['zstd', new Uint8Array(zstdCompressSync(bytes, { pledgedSrcSize: undefined }))],
    ['ZSTD', new Uint8Array(Bun.zstdCompressSync(bytes))],
  ]
  for (const [encoding, body] of forms) {
    const response = await post(body, encoding === null ? {} : { 'content-encoding': encoding })
    expect(response.headers.get('content-type')).toBe('application/x-protobuf')
    expect((await ackOf(response)).acceptedPoints).toBe(4)
  }
})

test('a body in chunks of unknown length is taken', async () => {
  const bytes = batch({ seq: 6n, series: someSeries(40) })
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.slice(0, 10))
      controller.enqueue(bytes.slice(10))
      controller.close()
    },
  })
  expect((await ackOf(await post(stream))).acceptedPoints).toBe(40)
})

test('[ING-003] an empty batch is taken and put on the bus', async () => {
  const before = await publishedCount()
  const ack = await ackOf(await rig.send({ seq: 7n }))
  expect(ack).toMatchObject({ ackSeq: 7n, acceptedPoints: 0, droppedPoints: 0 })
  expect(await publishedCount()).toBe(before + 1)
  const bare = await ackOf(await rig.call('/metrics', { method: 'POST' }))
  expect(bare.ackSeq).toBe(0n)
  const encoded = await ackOf(await rig.call('/metrics', { method: 'POST', headers: { 'content-encoding': 'zstd' } }))
  expect(encoded.acceptedPoints).toBe(0)
})

test('[WIRE-042] [WIRE-040] [WIRE-010] [ING-013] malformed bodies answer 400 in JSON, and nothing of them is kept', async () => {
  const before = await publishedCount()
  const bytes = batch({ seq: 8n, series: someSeries(3) })
  const zstd = new Uint8Array(Bun.zstdCompressSync(bytes))
  const bodies: [string, Uint8Array<ArrayBuffer>, Record<string, string>][] = [
    ['cut', bytes.slice(0, -3), {}],
    ['noise', new Uint8Array([0xff, 0xfe, 0x00]), {}],
    ['zstd cut', zstd.slice(0, -2), { 'content-encoding': 'zstd' }],
    ['zstd with a tail', new Uint8Array([...zstd, 1, 2, 3]), { 'content-encoding': 'zstd' }],
    ['not zstd', bytes, { 'content-encoding': 'zstd' }],
    ['gzip cut', new Uint8Array(gzipSync(bytes)).slice(0, -9), { 'content-encoding': 'gzip' }],
    ['not gzip', bytes, { 'content-encoding': 'gzip' }],
    ['encoding br', bytes, { 'content-encoding': 'br' }],
    ['two encodings', zstd, { 'content-encoding': 'gzip, zstd' }],
    ['JSON', new TextEncoder().encode('{"seq":1}'), { 'content-type': 'application/json' }],
    ['text', new TextEncoder().encode('hello'), { 'content-type': 'text/plain' }],
  ]
  for (const [what, body, headers] of bodies) {
    const response = await post(body, headers)
    expect(response.headers.get('content-type'), what).toContain('application/json')
    expect(await errorOf(response), what).toBe('400 bad_request')
  }
  expect(await publishedCount()).toBe(before)
})

/** A valid batch of exactly this many bytes: an unknown field fills it up. */
function batchOfBytes(bytes: number): Uint8Array<ArrayBuffer> {
  const head = batch({ seq: 9n, series: someSeries(1) })
  const filler = bytes - head.length - 5
  const whole = new Uint8Array(bytes)
  whole.set(head)
  // Field 15, length-delimited, a length of three bytes... or four.
  const length = filler - (filler - 1 >= 1 << 21 ? 0 : 0)
  whole.set(
    [0x7a, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, ((length >> 14) & 0x7f) | 0x80, length >> 21],
    head.length,
  )
  for (let at = head.length + 5; at < bytes; at++) whole[at] = (at * 2_654_435_761) >>> 24
  return whole
}

test('[ING-012] [ING-016] [ING-013] a body of exactly 1 MiB is taken, one byte more answers 413, in both framings', async () => {
  const before = await publishedCount()
  expect((await ackOf(await post(batchOfBytes(MIB)))).acceptedPoints).toBe(1)
  expect(await publishedCount()).toBe(before + 1)
  expect(await errorOf(await post(batchOfBytes(MIB + 1)))).toBe('413 too_large')
  const chunked = (bytes: Uint8Array) => {
    let at = 0
    return new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= bytes.length) return controller.close()
        controller.enqueue(bytes.slice(at, at + 65_536))
        at += 65_536
      },
    })
  }
  expect((await ackOf(await post(chunked(batchOfBytes(MIB))))).acceptedPoints).toBe(1)
  expect(await errorOf(await post(chunked(batchOfBytes(MIB + 1))))).toBe('413 too_large')
  expect(await errorOf(await post(batchOfBytes(8 * MIB)))).toBe('413 too_large')
  expect(await publishedCount()).toBe(before + 2)
})

test('[ING-014] [ING-015] what inflates to more than 8 MiB answers 413, whether it says so or not', async () => {
  const fits = new Uint8Array(8 * MIB)
  const over = new Uint8Array(8 * MIB + 1)
  const bomb = new Uint8Array(200 * MIB)
  const undeclared = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => {
    // Two frames one after another: no single declared size holds for them.
    const half = Bun.zstdCompressSync(bytes.subarray(0, bytes.length >> 1) as Uint8Array<ArrayBuffer>)
    const rest = Bun.zstdCompressSync(bytes.subarray(bytes.length >> 1) as Uint8Array<ArrayBuffer>)
    return new Uint8Array(Buffer.concat([half, rest]))
  }
  const f = async (body: Uint8Array<ArrayBuffer>, encoding: string) =>
    errorOf(await post(body, { 'content-encoding': encoding }))
  // Zeros are no MetricsBatch: 400 says that they were inflated.
  expect(await f(new Uint8Array(Bun.zstdCompressSync(fits)), 'zstd')).toBe('400 bad_request')
  expect(await f(new Uint8Array(gzipSync(fits)), 'gzip')).toBe('400 bad_request')
  for (const bytes of [over, bomb]) {
    expect(await f(new Uint8Array(Bun.zstdCompressSync(bytes)), 'zstd')).toBe('413 too_large')
    expect(await f(undeclared(bytes), 'zstd')).toBe('413 too_large')
    expect(await f(new Uint8Array(gzipSync(bytes)), 'gzip')).toBe('413 too_large')
  }
})

test('[ING-017] [ING-018] 20,000 points are taken, 20,001 answer 413', async () => {
  const nowMs = Date.now()
  const points = (count: number) => [
    {
      name: 'cpu_load1',
      points: Array.from({ length: count }, (_, index) => ({ tsMs: BigInt(nowMs - index), value: 1 })),
    },
  ]
  expect((await ackOf(await rig.send({ series: points(20_000) }))).acceptedPoints).toBe(20_000)
  const before = await publishedCount()
  expect(await errorOf(await rig.send({ series: points(20_001) }))).toBe('413 too_large')
  expect(await publishedCount()).toBe(before)
})

test('[ING-027] [ING-028] [ING-029] [ING-030] [ING-031] [ING-032] [ING-033] [ING-034] [ING-035] what breaks the grammar is dropped with a warning, the rest is kept', async () => {
  const nowMs = Date.now()
  const at = (tsMs: number, value = 1) => ({ tsMs: BigInt(tsMs), value })
  const ack = await ackOf(
    await rig.send({
      series: [
        { name: 'Bad-Name', points: [at(nowMs), at(nowMs)] },
        { name: 'cpu_load5', labels: { 'Bad Key': 'x' }, points: [at(nowMs)] },
        { name: 'cpu_load5', labels: { agent_id: 'forged', mount: '/' }, points: [at(nowMs)] },
        { name: 'cpu_load15', labels: { mount: 'é'.repeat(100) }, points: [at(nowMs)] },
        {
          name: 'uptime_seconds',
          points: [at(nowMs - 25 * 3_600_000), at(nowMs + 600_000), at(nowMs), at(nowMs, Number.NaN)],
        },
      ],
    }),
  )
  expect(ack.acceptedPoints).toBe(3)
  expect(ack.droppedPoints).toBe(6)
  expect([...ack.warnings].sort()).toEqual([
    'invalid label: Bad Key',
    'invalid series: Bad-Name',
    'label value truncated: mount',
    'points out of time window: 2',
    'reserved label dropped: agent_id',
  ])
  expect((await rig.published()).at(-1)?.keys).toEqual([
    'cpu_load5{mount="/"}',
    `cpu_load15{mount="${'é'.repeat(64)}"}`,
    'uptime_seconds',
  ])
  await until('the line', () => JSON.stringify(rig.logLines).includes('reserved label dropped: agent_id'))
  const text = await rig.metricsText()
  for (const [reason, count] of [
    ['invalid_name', 2],
    ['invalid_label', 1],
    ['too_old', 1],
    ['too_new', 1],
    ['not_finite', 1],
  ])
    expect(text).toContain(`svc_ingest_dropped_total{reason="${reason}"} ${count}`)
})

test('[ING-009] [ING-010] [ING-011] company and server come from the token, not from labels', async () => {
  const forged = { company_id: id('other company'), server_id: id('other server') }
  await ackOf(
    await rig.send({
      series: [{ name: 'cpu_load1', labels: forged, points: [{ tsMs: BigInt(Date.now()), value: 1 }] }],
    }),
  )
  expect((await rig.published()).at(-1)).toMatchObject({ companyId, serverId, agentId })
})

test('[WIRE-029] [WIRE-030] [WIRE-034] [WIRE-028] the protocol headers are needed, and another version is 426', async () => {
  const f = async (headers: Record<string, string>) => {
    const response = await fetch(`${rig.ingest.url}/agent/v1/metrics`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: batch({ seq: 1n }),
    })
    return response.status === 200 ? '200' : errorOf(response)
  }
  expect(await f(protoHeaders)).toBe('200')
  expect(await f({ 'x-svc-agent-version': '1.0.0' })).toBe('400 bad_request')
  expect(await f({ 'x-svc-proto': 'one', 'x-svc-agent-version': '1.0.0' })).toBe('400 bad_request')
  expect(await f({ 'x-svc-proto': '1.5', 'x-svc-agent-version': '1.0.0' })).toBe('400 bad_request')
  expect(await f({ 'x-svc-proto': '1' })).toBe('400 bad_request')
  expect(await f({ 'x-svc-proto': '0', 'x-svc-agent-version': '1.0.0' })).toBe('426 upgrade_required')
  expect(await f({ 'x-svc-proto': '2', 'x-svc-agent-version': '1.0.0' })).toBe('426 upgrade_required')
})

test('[WIRE-033] ping tells the versions that are spoken: the newest and the one before it, each of which is answered', async () => {
  const spoken = (await (await rig.call('/ping')).json()) as { proto_min: number; proto_max: number }
  expect(spoken.proto_max).toBeGreaterThanOrEqual(1)
  // Version 1 has none before it.
  expect(spoken.proto_min).toBe(Math.max(1, spoken.proto_max - 1))
  for (let version = spoken.proto_min; version <= spoken.proto_max; version++) {
    const headers = { 'x-svc-proto': String(version) }
    expect((await rig.call('/metrics', { method: 'POST', headers, body: batch({ seq: 1n }) })).status).toBe(200)
  }
})

test('[WIRE-038] the version of an endpoint stands in its path: what is served under /agent/v1 is not there under /agent/v2', async () => {
  const paths = ['ping', 'enroll', 'metrics', 'config', 'inventory', 'credentials/renew', 'update']
  for (const path of paths) {
    const [now, next] = await Promise.all(
      ['v1', 'v2'].map(version => fetch(`${rig.ingest.url}/agent/${version}/${path}`, { method: 'PATCH' })),
    )
    expect([await errorOf(now!), await errorOf(next!)], path).toEqual(['405 method_not_allowed', '404 not_found'])
  }
})

test('[WIRE-043] [WIRE-044] [REG-019] [REG-020] missing and wrong tokens answer 401, those of a revoked agent 403', async () => {
  expect(await errorOf(await rig.call('/metrics', { method: 'POST', token: null }))).toBe('401 unauthorized')
  expect(await errorOf(await rig.send({}, { token: 'agt_wrong' }))).toBe('401 unauthorized')
  expect(
    await errorOf(
      await rig.call('/metrics', { method: 'POST', token: null, headers: { authorization: 'Basic eDp5' } }),
    ),
  ).toBe('401 unauthorized')
  expect(await errorOf(await rig.send({}, { token: 'agt_revoked' }))).toBe('403 agent_revoked')
})

test('a pending agent is answered, nothing of it is kept, and it counts as seen', async () => {
  const before = await publishedCount()
  const ack = await ackOf(await rig.send({ seq: 3n, series: someSeries(5) }, { token: 'agt_pending' }))
  expect(ack).toMatchObject({ ackSeq: 3n, acceptedPoints: 0, droppedPoints: 5, warnings: ['agent pending approval'] })
  expect(await publishedCount()).toBe(before)
  expect(await rig.metricsText()).toContain('svc_ingest_dropped_total{reason="pending_agent"} 5')
})

test('the times of requests and of decoding are counted in histograms', async () => {
  const counted = async (name: string) =>
    Number((await rig.metricsText()).match(new RegExp(`^svc_ingest_${name}_seconds_count (\\d+)$`, 'm'))?.[1])
  const [requests, decodes] = [await counted('request'), await counted('decode')]
  await ackOf(await rig.send({ series: someSeries(3) }))
  expect([await counted('request'), await counted('decode')]).toEqual([requests + 1, decodes + 1])
})

test('a batch that the bus does not take answers 503 with Retry-After, and its series are defined again', async () => {
  const series = [
    { name: 'net_interface_up', labels: { interface: 'new0' }, points: [{ tsMs: BigInt(Date.now()), value: 1 }] },
  ]
  const refusals: PublishRefusal[] = ['full', 'failed']
  for (const refusal of refusals) {
    refuseWith = refusal
    const response = await rig.send({ series })
    expect(response.headers.get('retry-after')).toBe('30')
    expect(await errorOf(response)).toBe('503 unavailable')
  }
  refuseWith = null
  await ackOf(await rig.send({ series }))
  expect((await rig.published()).at(-1)?.keys).toEqual(['net_interface_up{interface="new0"}'])
  await ackOf(await rig.send({ series }))
  expect((await rig.published()).at(-1)?.keys).toEqual([])
  expect(await rig.metricsText()).toContain('svc_bus_dropped_total 2')
  expect(rig.logLines.filter(line => String(line.msg).startsWith('the bus is full'))).toHaveLength(1)
})

test('definitions go out again each hour, and with every batch while the bus has not answered for them', async () => {
  const settles: ((refusal: PublishRefusal | null) => void)[] = []
  let isHeld = false
  // Both batches in one thread: between threads the second one waits until the bus has answered for the first.
  const own = await startRig({
    threads: 0,
    bus: writer => ({
      publish: async (server, lent) => {
        const entry = lent.slice()
        if (isHeld) {
          const refusal = await new Promise<PublishRefusal | null>(settle => void settles.push(settle))
          if (refusal) return refusal
        }
        return writer.publish(server, entry)
      },
      stats: () => writer.stats(),
      close: () => writer.close(),
    }),
  })
  const startMs = Date.now()
  own.clock.nowMs = startMs
  const load = (tsMs: number) => [{ name: 'cpu_load1', points: [{ tsMs: BigInt(tsMs), value: 1 }] }]
  await ackOf(await own.send({ series: load(startMs) }))
  await ackOf(await own.send({ series: load(startMs) }))
  own.clock.nowMs = startMs + 3_600_000
  await ackOf(await own.send({ series: load(own.clock.nowMs) }))
  await ackOf(await own.send({ series: load(own.clock.nowMs) }))
  expect((await own.published()).map(batch => batch.keys.length)).toEqual([1, 0, 1, 0])

  isHeld = true
  const fresh = [{ name: 'cpu_load5', points: [{ tsMs: BigInt(own.clock.nowMs), value: 1 }] }]
  const first = own.send({ series: fresh })
  await until('the first is on its way', () => settles.length === 1)
  const second = own.send({ series: fresh })
  await until('the second is on its way', () => settles.length === 2)
  settles[0]?.('failed')
  settles[1]?.(null)
  expect([(await first).status, (await second).status]).toEqual([503, 200])
  expect((await own.published()).at(-1)?.keys).toEqual(['cpu_load5'])
  await own.stop()
})

test('the definitions of an agent go out again once an hour, a few with each batch, also where the bus refused one', async () => {
  let isFull = false
  const own = await startRig({
    threads: 0,
    bus: writer => ({
      publish: (server, entry) => (isFull ? Promise.resolve('full' as const) : writer.publish(server, entry)),
      stats: () => writer.stats(),
      close: () => writer.close(),
    }),
  })
  const startMs = Date.now()
  const send = () => {
    const points = [{ tsMs: BigInt(own.clock.nowMs), value: 1 }]
    return own.send({ series: metrics.slice(0, 40).map(({ name }) => ({ name, points })) })
  }
  for (own.clock.nowMs = startMs; own.clock.nowMs <= startMs + 3_600_000; own.clock.nowMs += 60_000) {
    const minute = (own.clock.nowMs - startMs) / 60_000
    isFull = minute >= 20 && minute < 24
    expect((await send()).status).toBe(isFull ? 503 : 200)
  }
  const [first, ...later] = (await own.published()).map(batch => batch.keys)
  expect(first).toHaveLength(40)
  expect(later.flat().sort()).toEqual([...first!].sort())
  // Forty in sixty batches; five minutes' worth after the refusals.
  for (const keys of later) expect(keys.length).toBeLessThanOrEqual(6)
  await own.stop()
})

test('[WIRE-032] the X-Request-Id of an agent stands in the log', async () => {
  await rig.call('/metrics', { method: 'POST', headers: { 'x-request-id': '6f1a2f6e-0000-4000-8000-000000000001' } })
  await until('the line', () => rig.logLines.some(line => 'request_id' in line))
  expect(rig.logLines).toContainEqual(
    expect.objectContaining({ request_id: '6f1a2f6e-0000-4000-8000-000000000001', endpoint: 'metrics', status: 200 }),
  )
})

test('other methods and paths answer 405 and 404 in JSON', async () => {
  const wrong = await rig.call('/metrics')
  expect(wrong.headers.get('allow')).toBe('POST')
  expect(await errorOf(wrong)).toBe('405 method_not_allowed')
  expect(await errorOf(await rig.call('/nothing'))).toBe('404 not_found')
  expect(await errorOf(await fetch(`${rig.ingest.url}/agent/v2/metrics`))).toBe('404 not_found')
})

test('[ING-036] [ING-037] ten batches at once, then one in 15 s: more answer 429 with Retry-After', async () => {
  const own = await startRig()
  own.clock.nowMs = Date.now()
  for (let index = 0; index < 10; index++) await ackOf(await own.send({ seq: BigInt(index) }))
  const refused = await own.send({})
  expect(refused.headers.get('retry-after')).toBe('15')
  expect(await errorOf(refused)).toBe('429 rate_limited')
  own.clock.nowMs += 14_999
  expect((await own.send({})).status).toBe(429)
  own.clock.nowMs += 1
  expect((await own.send({})).status).toBe(200)
  expect((await own.send({})).status).toBe(429)
  await own.stop()
})

test('[OPS-004] [ING-019] [ING-020] [ING-021] [ING-022] [ING-023] 500 series are active at once; further ones are dropped until places are free', async () => {
  const own = await startRig()
  own.clock.nowMs = Date.now()
  expect((await ackOf(await own.send({ series: someSeries(500) }))).acceptedPoints).toBe(500)
  const ack = await ackOf(await own.send({ series: someSeries(501) }))
  expect(ack.acceptedPoints).toBe(500)
  expect(ack.droppedPoints).toBe(1)
  expect(ack.warnings).toEqual([
    'series limit reached',
    'series dropped: cpu_core_usage_percent{core="500"} and all after it; 500 of 500 in use',
  ])
  expect(await own.metricsText()).toContain('svc_ingest_dropped_total{reason="series_limit_dropped"} 1')
  own.clock.nowMs += 3_600_000
  const later = [{ name: 'cpu_load1', points: [{ tsMs: BigInt(own.clock.nowMs), value: 1 }] }]
  expect((await ackOf(await own.send({ series: later }))).acceptedPoints).toBe(1)
  await own.stop()
})

test('[ING-032] ingest.limits.max_point_age takes history as long as raw samples are kept, and no longer', async () => {
  const own = await startRig({ keys: { 'ingest.limits.max_point_age': '720h' } })
  const daysAgo = (days: number) => ({ tsMs: BigInt(Date.now() - days * 86_400_000), value: 1 })
  const ack = await ackOf(
    await own.send({ series: [{ name: 'cpu_load1', points: [daysAgo(29), daysAgo(31), daysAgo(0)] }] }),
  )
  expect(ack).toMatchObject({ acceptedPoints: 2, droppedPoints: 1 })
  await own.stop()
  const tooLong = loadCollectorConfig(ingestKeys, undefined, { 'ingest.limits.max_point_age': '721h' })
  expect(tooLong.faults.map(fault => fault.key)).toEqual(['ingest.limits.max_point_age'])
})

test('[OPS-005] [ING-024] [ING-025] [ING-026] series over the limit of the company are dropped with a warning', async () => {
  const own = await startRig({
    keys: { 'ingest.limits.max_series_per_company': 5 },
    agents: [
      agentRecord(),
      agentRecord({ agent_id: id('second'), server_id: id('second server'), token_hash: hashOf('agt_second') }),
    ],
  })
  expect((await ackOf(await own.send({ series: someSeries(3) }))).acceptedPoints).toBe(3)
  const ack = await ackOf(await own.send({ series: someSeries(3) }, { token: 'agt_second' }))
  expect(ack.acceptedPoints).toBe(2)
  expect(ack.warnings).toEqual(['company series limit reached'])
  expect(await own.metricsText()).toContain('svc_ingest_dropped_total{reason="company_series_limit"} 1')
  await own.stop()
})

test('[WIRE-009] [OPS-015] with debug.accept_json a JSON body is taken and answered in JSON', async () => {
  const own = await startRig({ keys: { 'debug.accept_json': true } })
  const response = await own.call('/metrics', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      seq: '12',
      sent_at_ms: String(Date.now()),
      series: [{ name: 'cpu_load1', labels: { mount: '/' }, points: [{ ts_ms: String(Date.now()), value: 0.5 }] }],
    }),
  })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ ack_seq: '12', accepted_points: 1, dropped_points: 0, warnings: [] })
  const broken = await own.call('/metrics', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{',
  })
  expect(await errorOf(broken)).toBe('400 bad_request')
  await own.stop()
})

test('[WIRE-001] [WIRE-026] [WIRE-027] [WIRE-025] ping answers without a token and without headers', async () => {
  const response = await fetch(`${rig.ingest.url}/agent/v1/ping`)
  const body = (await response.json()) as Record<string, number>
  expect(body).toMatchObject({ proto_min: 1, proto_max: 1 })
  expect(Number.isInteger(body.server_time_ms)).toBe(true)
  expect(Math.abs(body.server_time_ms! - Date.now())).toBeLessThan(5000)
  const binary = await fetch(`${rig.ingest.url}/agent/v1/ping`, { headers: { accept: 'application/x-protobuf' } })
  expect(binary.headers.get('content-type')).toBe('application/x-protobuf')
})
