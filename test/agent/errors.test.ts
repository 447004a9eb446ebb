// What the running agent does with every row of the error table (document 3 "Errors").
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, type Transform } from 'node:stream'
import { createGzip, createZstdCompress, gzipSync, type ZstdOptions, zstdCompressSync } from 'node:zlib'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { AgentConfigSchema, MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { FIRST_TOKEN, protocolError } from './peer.ts'
import { type Rig, withRig } from './rig.ts'

const buffered = (rig: Rig): string[] => readdirSync(join(rig.stateDir, 'buffer'))
const sendTimes = (rig: Rig): number[] => rig.peer.of('POST /metrics').map(({ atMs }) => atMs)
const stampsSent = (rig: Rig): number[] => rig.peer.points('uptime_seconds').map(({ tsMs }) => tsMs)

async function untilSends(rig: Rig, count: number): Promise<void> {
  await rig.clock.runUntil(() => rig.peer.of('POST /metrics').length >= count, `${count} sends`)
  await rig.clock.idle()
}

test('[AGT-038] a delivered batch leaves the buffer', () =>
  withRig(async rig => {
    const agent = await rig.start()
    await untilSends(rig, 1)
    expect(buffered(rig)).toEqual([])
    expect(agent.state).toBe('online')
  }))

test('[AGT-038] 202 counts as delivered', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', new Response(null, { status: 202 }))
    await untilSends(rig, 1)
    expect(buffered(rig)).toEqual([])
  }))

test('[AGT-039] a batch that meets 400 is dropped, logged and not sent again', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(400, 'bad_request'))
    await untilSends(rig, 1)
    expect(buffered(rig)).toEqual([])
    expect(rig.lines('the collector refuses a batch: dropping it').length).toBe(1)
    expect(rig.status()).toMatchObject({ state: 'online', last_success_at_ms: null })
    expect(rig.status().last_error).not.toBeNull()
    await untilSends(rig, 2)
    expect(rig.status().last_error).toBeNull()
    expect(new Set(stampsSent(rig)).size).toBe(1)
    expect(rig.peer.batches[0]?.stats?.droppedPoints).toBeGreaterThan(0n)
  }))

test('[AGT-048] a batch that meets 422 invalid_series is dropped, and the next one is sent', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(422, 'invalid_series'))
    await untilSends(rig, 1)
    expect(buffered(rig)).toEqual([])
    await untilSends(rig, 2)
    expect(rig.peer.batches.length).toBe(1)
  }))

for (const status of [500, 502, 503, 504]) {
  test(`[AGT-052] on ${status} the batch stays in the buffer and is sent after a backoff`, () =>
    withRig(async rig => {
      const agent = await rig.start()
      rig.peer.next('POST /metrics', protocolError(status, status === 500 ? 'server_error' : 'unavailable'))
      await untilSends(rig, 1)
      expect(buffered(rig).length).toBe(1)
      expect(agent.state).toBe('buffering')
      await untilSends(rig, 2)
      const [first, second] = sendTimes(rig)
      expect(second! - first!).toBe(2_500)
      expect(stampsSent(rig)).toEqual([first!])
      expect(agent.state).toBe('online')
    }))
}

test('[AGT-009 AGT-053] when the connection breaks before the answer, the agent keeps the batch and sends its points again', () =>
  withRig(async rig => {
    await rig.start()
    const taken: number[] = []
    rig.peer.always('POST /metrics', (_, body) => {
      taken.push(
        ...fromBinary(MetricsBatchSchema, body).series.flatMap(({ points }) => points.map(p => Number(p.tsMs))),
      )
      void rig.peer.stop()
      return new Promise(() => {})
    })
    await untilSends(rig, 1)
    expect(buffered(rig).length).toBe(1)
    rig.peer.always('POST /metrics', null)
    rig.peer.restart()
    await untilSends(rig, 2)
    expect(stampsSent(rig)).toEqual([taken[0]!])
  }))

test('[AGT-053] without a collector at all cycles pile up, and all of them arrive, oldest first, once it is back', () =>
  withRig(async rig => {
    const agent = await rig.start()
    await agent.enrolled
    await rig.peer.stop()
    await rig.clock.runFor(300_000)
    const waiting = buffered(rig).length
    expect(waiting).toBeGreaterThanOrEqual(9)
    expect(agent.state).toBe('buffering')
    rig.peer.restart()
    await rig.clock.runUntil(() => rig.peer.batches.length > 0, 'a batch', 600_000)
    await rig.clock.idle()
    expect(buffered(rig)).toEqual([])
    const stamps = stampsSent(rig)
    expect(stamps.length).toBeGreaterThanOrEqual(waiting)
    expect(stamps).toEqual(stamps.toSorted((a, b) => a - b))
    expect(new Set(stamps).size).toBe(stamps.length)
  }))

test('[AGT-054 AGT-055 AGT-056 AGT-057 AGT-059] waits are random under a ceiling of 5 s, doubled to 300 s, and start over after a success', () =>
  withRig(async rig => {
    await rig.start({ interval: '300s' })
    rig.peer.always('POST /metrics', () => protocolError(503, 'unavailable'))
    await untilSends(rig, 10)
    const gaps = (times: number[]) => times.slice(1).map((atMs, index) => atMs - times[index]!)
    // The rig's random share is always one half.
    expect(gaps(sendTimes(rig))).toEqual([2500, 5000, 10_000, 20_000, 40_000, 80_000, 150_000, 150_000, 150_000])
    rig.peer.always('POST /metrics', null)
    await untilSends(rig, 11)
    rig.peer.always('POST /metrics', () => protocolError(503, 'unavailable'))
    await untilSends(rig, 13)
    expect(gaps(sendTimes(rig)).at(-1)).toBe(2500)
  }))

test('[AGT-051 AGT-058] on 429 the agent waits at least as long as Retry-After says', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(429, 'rate_limited', { retryAfter: '120' }))
    await untilSends(rig, 2)
    const [first, second] = sendTimes(rig)
    expect(second! - first!).toBe(120_000)
  }))

test('[AGT-058] a Retry-After below the backoff does not shorten it', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(429, 'rate_limited', { retryAfter: '1' }))
    await untilSends(rig, 2)
    const [first, second] = sendTimes(rig)
    expect(second! - first!).toBe(2_500)
  }))

test('[AGT-040 AGT-041 AGT-042] on 401 sending stops, /config is asked every 10 minutes, and the state is unauthorized', () =>
  withRig(async rig => {
    const agent = await rig.start()
    await untilSends(rig, 1)
    for (const route of ['POST /metrics', 'GET /config'])
      rig.peer.always(route, () => protocolError(401, 'unauthorized'))
    await rig.clock.runUntil(() => agent.state === 'unauthorized', 'unauthorized')
    expect(rig.status().state).toBe('unauthorized')
    const atMs = rig.clock.now()
    const sends = rig.peer.of('POST /metrics').length
    const reads = rig.peer.of('GET /config').length
    await rig.clock.runFor(1_800_000)
    expect(rig.peer.of('POST /metrics').length).toBe(sends)
    expect(Number(rig.status().buffer_batches)).toBe(buffered(rig).length)
    const after = rig.peer.of('GET /config').slice(reads)
    expect(after.map(seen => seen.atMs - atMs)).toEqual([600_000, 1_200_000, 1_800_000])
    for (const route of ['POST /metrics', 'GET /config']) rig.peer.always(route, null)
    await rig.clock.runUntil(() => agent.state === 'online', 'online again', 900_000)
    expect(buffered(rig)).toEqual([])
    expect(new Set(stampsSent(rig)).size).toBeGreaterThan(55)
  }))

test('[AGT-043] on 403 agent_revoked the agent stops, and a restart does not make it send', () =>
  withRig(async rig => {
    const agent = await rig.start()
    await untilSends(rig, 1)
    rig.peer.always('POST /metrics', () => protocolError(403, 'agent_revoked'))
    await rig.clock.runUntil(() => agent.state === 'revoked', 'revoked', 3_600_000, 2, 0)
    await agent.ended
    expect(rig.status().state).toBe('revoked')
    const seen = rig.peer.seen.length
    rig.peer.always('POST /metrics', null)
    const again = await rig.start()
    await again.ended
    expect(again.state).toBe('revoked')
    expect(rig.peer.seen.length).toBe(seen)
    expect(rig.clock.sleeperCount).toBe(0)
  }))

test('a 403 that is not the collector saying agent_revoked ends nothing', () =>
  withRig(async rig => {
    const agent = await rig.start()
    rig.peer.next('POST /metrics', new Response('<html>proxy</html>', { status: 403 }))
    await untilSends(rig, 2)
    expect(agent.state).toBe('online')
  }))

test('[AGT-045] on 413 the batch is sent again in two parts', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(413, 'too_large'))
    await untilSends(rig, 3)
    const [one, two] = rig.peer.batches
    expect(one!.series.length).toBeGreaterThan(0)
    expect(Math.abs(one!.series.length - two!.series.length)).toBeLessThanOrEqual(1)
    expect(rig.peer.points('uptime_seconds').length).toBe(1)
    expect(buffered(rig)).toEqual([])
    expect(rig.status().dropped_points).toBe(0)
  }))

test('[AGT-046] a part that meets 413 again is dropped', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(413, 'too_large'), protocolError(413, 'too_large'), null)
    await untilSends(rig, 3)
    expect(rig.peer.batches.length).toBe(1)
    expect(buffered(rig)).toEqual([])
    expect(Number(rig.status().dropped_points)).toBeGreaterThan(0)
    expect(rig.status().last_success_at_ms).not.toBeNull()
    const sends = rig.peer.of('POST /metrics').length
    await rig.clock.runFor(14_000)
    expect(rig.peer.of('POST /metrics').length).toBe(sends)
  }))

test('several cycles in one request that is too large are sent in smaller requests, and nothing is lost', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.always('POST /metrics', () => protocolError(503, 'unavailable'))
    await rig.clock.runFor(600_000)
    rig.peer.always('POST /metrics', (_, body) => (body.length > 6_000 ? protocolError(413, 'too_large') : null))
    await rig.clock.runUntil(
      () => rig.peer.batches.length > 0 && buffered(rig).length === 0,
      'an empty buffer',
      1_200_000,
    )
    await rig.clock.idle()
    expect(rig.status().dropped_points).toBe(0)
    const stamps = stampsSent(rig)
    stamps.slice(1).forEach((tsMs, index) => {
      expect(tsMs - stamps[index]!).toBe(30_000)
    })
  }))

test('[AGT-045] of two cycles in one request that is too large both are sent, and none is deleted unsent', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('POST /metrics', protocolError(503, 'unavailable', { retryAfter: '45' }))
    await untilSends(rig, 1)
    const cycles = (body: Uint8Array): number =>
      fromBinary(MetricsBatchSchema, body).series.find(({ name }) => name === 'uptime_seconds')?.points.length ?? 0
    let refused = 0
    rig.peer.always('POST /metrics', (_, body) => {
      if (cycles(body) < 2) return null
      refused++
      return protocolError(413, 'too_large')
    })
    await rig.clock.runUntil(() => stampsSent(rig).length >= 4, 'four cycles')
    await rig.clock.idle()
    expect(refused).toBeGreaterThan(0)
    const stamps = stampsSent(rig)
    expect(stamps.map((tsMs, index) => tsMs - stamps[0]! - index * 30_000)).toEqual(stamps.map(() => 0))
    expect(rig.status().dropped_points).toBe(0)
  }))

/** So many MiB of zeros, compressed a piece at a time: in whole they would be most of what this process holds. */
async function zeros(stream: Transform, mib: number): Promise<Buffer> {
  const piece = Buffer.alloc(2 ** 20)
  const compressed: Buffer[] = []
  for await (const part of Readable.from(Array<Buffer>(mib).fill(piece)).pipe(stream)) compressed.push(part as Buffer)
  return Buffer.concat(compressed)
}

test('[AGT-053] an answer that inflates to a GiB is like none: the batch stays, and the memory of the agent too', () =>
  withRig(async rig => {
    const agent = await rig.start()
    const headers = (encoding: string) => ({ 'Content-Type': 'application/x-protobuf', 'Content-Encoding': encoding })
    const sizeSaid: ZstdOptions & { pledgedSrcSize: number } = { pledgedSrcSize: 2 ** 30 }
    const bombs = [
      new Response(await zeros(createZstdCompress(sizeSaid), 1_024), { headers: headers('zstd') }),
      new Response(await zeros(createZstdCompress(), 512), { headers: headers('zstd') }),
      new Response((await zeros(createGzip({ level: 1 }), 256)).subarray(0, 2_000_000), { headers: headers('gzip') }),
      new Response('x', { headers: headers('br') }),
      new Response(Buffer.alloc(2 ** 20 + 1), { headers: { 'Content-Type': 'application/x-protobuf' } }),
      new Response(zstdCompressSync(Buffer.from('x'.repeat(9_999))).subarray(0, 12), { headers: headers('zstd') }),
    ]
    rig.peer.next('POST /metrics', ...bombs)
    let peakMb = 0
    const baseMb = process.memoryUsage.rss() / 1e6
    await rig.clock.runUntil(() => {
      peakMb = Math.max(peakMb, process.memoryUsage.rss() / 1e6)
      return rig.peer.of('POST /metrics').length >= bombs.length
    }, 'the bombs')
    await rig.clock.idle()
    expect(agent.state).toBe('buffering')
    expect(String(rig.status().last_error)).toContain('answer')
    expect(peakMb - baseMb).toBeLessThan(100)
    await untilSends(rig, bombs.length + 1)
    expect(agent.state).toBe('online')
    expect(stampsSent(rig)[0]).toBe(sendTimes(rig)[0]!)
  }))

test('an answer that is compressed as the agent asked for is read', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 60 })
    const config = toBinary(AgentConfigSchema, create(AgentConfigSchema, { etag: 'two', intervalSeconds: 90 }))
    rig.peer.next(
      'GET /config',
      new Response(gzipSync(config), { headers: { 'Content-Encoding': 'gzip' } }),
      new Response(zstdCompressSync(config), { headers: { 'Content-Encoding': 'zstd' } }),
    )
    await rig.start()
    for (const reads of [1, 2]) {
      await rig.clock.runUntil(() => rig.peer.of('GET /config').length >= reads, 'a read of the config')
      await rig.clock.runUntil(() => rig.status().config_etag === 'two', 'the config in force')
    }
    expect(rig.peer.of('GET /config')[0]?.headers.get('accept-encoding')).toBe('zstd, gzip')
  }))

test('[AGT-049 AGT-050] on 426 the batch is kept and tried again, and the need to upgrade is reported', () =>
  withRig(async rig => {
    const agent = await rig.start()
    rig.peer.next('POST /metrics', protocolError(426, 'upgrade_required'))
    await untilSends(rig, 1)
    expect(agent.state).toBe('upgrade_required')
    expect(rig.status().warnings).toEqual([expect.stringContaining('upgrade the agent')])
    expect(buffered(rig).length).toBe(1)
    await untilSends(rig, 2)
    expect(stampsSent(rig)).toEqual([sendTimes(rig)[0]!])
    expect(agent.state).toBe('online')
  }))

for (const code of ['already_enrolled', 'token_used']) {
  test(`[AGT-044] 409 ${code} at enrollment is reported and not tried again`, () =>
    withRig(async rig => {
      rig.peer.always('POST /enroll', () => protocolError(409, code))
      const agent = await rig.start()
      expect(await agent.enrolled).toBeNull()
      expect(await agent.ended).toBeNull()
      expect(rig.status().state).toBe('enroll_failed')
      expect(String(rig.status().last_error)).toContain(code)
      expect(rig.clock.sleeperCount).toBe(0)
      expect(rig.peer.seen.length).toBe(1)
    }))
}

for (const [what, token] of [
  ['a line break in it', `agt_${'a'.repeat(20)}\r\nX-Forged: 1`],
  ['19 characters', `agt_${'a'.repeat(19)}`],
  ['201 characters', `agt_${'a'.repeat(201)}`],
  ['another prefix', `lic_${'a'.repeat(43)}`],
  ['a character outside base62', `agt_${'a'.repeat(20)}_`],
] as const) {
  test(`[ENR-006] a token with ${what} is refused at the enrollment, and nothing of it is kept`, () =>
    withRig(async rig => {
      rig.peer.enrolledToken = token
      const agent = await rig.start()
      expect(await agent.enrolled).toBeNull()
      expect(rig.status().state).toBe('enroll_failed')
      expect(readdirSync(rig.stateDir)).not.toContain('token')
      expect(rig.peer.of('POST /enroll').length).toBe(1)
      expect(rig.logged).not.toContain(token)
    }))
}

for (const [status, code] of [
  [422, 'binding_failed'],
  [422, 'quota_exceeded'],
  [401, 'token_revoked'],
] as const) {
  test(`[AGT-047] ${status} ${code} at enrollment is reported and not tried again`, () =>
    withRig(async rig => {
      rig.peer.always('POST /enroll', () => protocolError(status, code))
      const agent = await rig.start()
      expect(await agent.enrolled).toBeNull()
      expect(rig.status().state).toBe('enroll_failed')
      expect(String(rig.status().last_error)).toContain(code)
      expect(rig.clock.sleeperCount).toBe(0)
      expect(rig.peer.seen.length).toBe(1)
    }))
}

test('a state directory without a place for batches is told before the licence is spent, and mended without a restart', () =>
  withRig(async rig => {
    writeFileSync(join(rig.stateDir, 'buffer'), '')
    const agent = await rig.start()
    await rig.clock.idle(1)
    expect(String(rig.status().last_error)).toContain('cannot keep a token in the state directory')
    expect(rig.peer.seen).toEqual([])
    rmSync(join(rig.stateDir, 'buffer'))
    await rig.clock.runUntil(() => rig.peer.enrollments.length > 0, 'an enrollment', 600_000, 1)
    expect(await agent.enrolled).toBe(rig.peer.agentId)
  }))

for (const isStopped of [false, true])
  test(`a token that the disk refuses once the licence is spent is used, told, and kept ${isStopped ? 'at the stop' : 'as soon as it can be'}`, () =>
    withRig(async rig => {
      const blocked = join(rig.stateDir, 'token.tmp')
      rig.peer.always('POST /enroll', () => {
        mkdirSync(blocked)
        return null
      })
      const agent = await rig.start()
      await untilSends(rig, 1)
      expect(agent.state).toBe('online')
      expect(rig.status().warnings).toEqual([expect.stringContaining('does not take the token')])
      expect(rig.logged).not.toContain(FIRST_TOKEN)
      rmSync(blocked, { recursive: true })
      if (isStopped) await agent.stop()
      else await untilSends(rig, 4)
      expect(rig.file('token')).toContain(FIRST_TOKEN)
      if (!isStopped) expect(rig.status().warnings).toEqual([])
      expect(rig.peer.enrollments.length).toBe(1)
    }))

test('an enrollment that meets 503 or 429 is tried again with backoff', () =>
  withRig(async rig => {
    rig.peer.next(
      'POST /enroll',
      protocolError(503, 'unavailable'),
      protocolError(429, 'rate_limited', { retryAfter: '60' }),
    )
    const agent = await rig.start()
    await rig.clock.runUntil(() => rig.peer.enrollments.length > 0, 'an enrollment', 600_000, 1)
    expect(await agent.enrolled).toBe(rig.peer.agentId)
    const times = rig.peer.of('POST /enroll').map(({ atMs }) => atMs - rig.clock.startMs)
    expect(times).toEqual([0, 2_500, 62_500])
  }))
