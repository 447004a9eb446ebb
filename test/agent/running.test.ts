// The running agent: enrollment, cycles, heartbeat, headers, timestamps.
import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentHash } from '../../core/agent/schedule.ts'
import { DAY_MS } from '../../core/limits.ts'
import { metricByName } from '../../core/series/catalogue.ts'
import { seedOf } from '../fuzz/seeded.ts'
import { randomFrom } from '../support/random.ts'
import { makeCertificate } from './certificate.ts'
import { FIRST_TOKEN, Peer } from './peer.ts'
import { LICENSE, withRig } from './rig.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const SEMVER = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/
const modeOf = (path: string): number => statSync(path).mode & 0o777

test('[AGT-014 AGT-030] an enrollment carries the license in its body, no Authorization, and the machine-id', () =>
  withRig(async rig => {
    const agent = await rig.start()
    expect(await agent.enrolled).toBe(rig.peer.agentId)
    const [request] = rig.peer.enrollments
    expect(request?.license).toBe(LICENSE)
    expect(request?.machineId).toMatch(/^[0-9a-f]{32}$/)
    expect(request?.hostname).not.toBe('')
    expect(rig.peer.of('POST /enroll')[0]?.headers.get('authorization')).toBeNull()
    expect(rig.logged).not.toContain(LICENSE)
    expect(rig.logged).not.toContain(FIRST_TOKEN)
  }))

test('files of the agent are readable by its user only', () =>
  withRig(async rig => {
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length > 0, 'a batch')
    await rig.clock.idle()
    expect(modeOf(rig.stateDir)).toBe(0o700)
    for (const name of ['token', 'seq', 'status.json']) expect(modeOf(join(rig.stateDir, name))).toBe(0o600)
    expect(modeOf(join(rig.stateDir, 'buffer'))).toBe(0o700)
  }))

test('[AGT-002 AGT-013 AGT-015 AGT-016 AGT-017] every request after enrollment carries token, protocol, version and a logged request id', () =>
  withRig(async rig => {
    await rig.start({ 'log.level': 'debug' })
    await rig.clock.runUntil(
      () => rig.peer.of('GET /config').length > 0 && rig.peer.batches.length > 1,
      'config and batches',
    )
    await rig.clock.idle()
    for (const { route, headers } of rig.peer.seen) {
      expect(headers.get('x-svc-proto')).toBe('1')
      expect(headers.get('x-svc-agent-version')).toMatch(SEMVER)
      if (route !== 'POST /enroll') expect(headers.get('authorization')).toBe(`Bearer ${FIRST_TOKEN}`)
      const requestId = headers.get('x-request-id') ?? ''
      expect(requestId).toMatch(UUID)
      expect(rig.logged).toContain(requestId)
    }
    const [metrics] = rig.peer.of('POST /metrics')
    expect(metrics?.headers.get('content-type')).toBe('application/x-protobuf')
    expect(metrics?.headers.get('content-encoding')).toBe('zstd')
  }))

test('[AGT-007 AGT-010 AGT-012] cycles lie on the grid of the interval, offset by hash(agent_id) mod interval, at first too', () =>
  withRig(async rig => {
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 4, 'four batches')
    const offsetMs = agentHash(rig.peer.agentId, 30_000)
    const [first] = rig.peer.of('POST /metrics')
    expect(((first?.atMs ?? 0) - offsetMs) % 30_000).toBe(0)
    expect((first?.atMs ?? 0) - rig.clock.startMs).toBeLessThanOrEqual(30_000)
    rig.peer.batches.forEach((batch, index) => {
      const stamps = new Set(batch.series.flatMap(({ points }) => points.map(({ tsMs }) => tsMs)))
      expect([...stamps]).toEqual([BigInt((first?.atMs ?? 0) + index * 30_000)])
      expect(batch.stats?.intervalSeconds).toBe(30)
      expect(Number(batch.sentAtMs)).toBe((first?.atMs ?? 0) + index * 30_000)
    })
  }))

test('a stop in the middle of a request ends at once, and the batch waits for the next start', () =>
  withRig(async rig => {
    rig.peer.always('POST /metrics', () => new Promise<null>(() => {}))
    const agent = await rig.start()
    await rig.clock.runUntil(() => rig.peer.of('POST /metrics').length >= 1, 'a request', 60_000, 2, 1)
    const stamp = rig.peer.of('POST /metrics')[0]!.atMs
    await agent.stop()
    rig.peer.always('POST /metrics', null)
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    expect(rig.peer.points('uptime_seconds')[0]?.tsMs).toBe(stamp)
  }))

test('after a start the status counts what an earlier run left, before anything is sent', () =>
  withRig(async rig => {
    rig.peer.always('POST /metrics', () => new Promise<null>(() => {}))
    const agent = await rig.start()
    await rig.clock.runUntil(() => rig.peer.of('POST /metrics').length >= 1, 'a request', 60_000, 2, 1)
    await agent.stop()
    const again = await rig.start()
    expect(await again.enrolled).toBe(rig.peer.agentId)
    const { buffer_batches: batches, buffer_bytes: bytes } = rig.status()
    expect([batches, Number(bytes) > 0]).toEqual([1, true])
    expect(rig.peer.of('POST /metrics').length).toBe(1)
  }))

test('points lie on the grid of the clock as it is, after it was set forward and back', () =>
  withRig(async rig => {
    await rig.start()
    const offsetMs = agentHash(rig.peer.agentId, 30_000)
    const next = async (count: number) => {
      await rig.clock.runUntil(() => rig.peer.batches.length >= count, `batch ${count}`)
      const tsMs = rig.peer.points('uptime_seconds').at(-1)?.tsMs ?? 0
      expect((tsMs - offsetMs) % 30_000).toBe(0)
      expect(rig.clock.now() - tsMs).toBeLessThan(30_000)
      expect(tsMs).toBeLessThanOrEqual(rig.clock.now())
    }
    await next(1)
    rig.clock.set(3_600_000)
    await next(2)
    rig.clock.set(-7_200_000)
    await next(3)
    await next(4)
    for (const { name, points } of rig.peer.batches.flatMap(({ series }) => series))
      for (const { value } of points) if (name.endsWith('_per_second')) expect(value).toBeGreaterThanOrEqual(0)
  }))

test('every series is one of the catalogue, with its labels only, and no rate is negative', () =>
  withRig(async rig => {
    await rig.start({ 'collectors.cpu_per_core': true })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'two batches')
    const series = rig.peer.batches.flatMap(batch => batch.series)
    expect(series.length).toBeGreaterThan(30)
    for (const { name, labels, points } of series) {
      expect(metricByName(name)?.labels.toSorted()).toEqual(Object.keys(labels).sort())
      for (const { value } of points) expect(value).toBeGreaterThanOrEqual(0)
    }
  }))

test('[AGT-008] an agent with nothing to send sends an empty batch on schedule', () =>
  withRig(async rig => {
    const off = { cpu: false, memory: false, disk: false, net: false, uptime: false }
    await rig.start(Object.fromEntries(Object.entries(off).map(([name, on]) => [`collectors.${name}`, on])))
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'three batches')
    expect(rig.peer.batches.every(({ series }) => series.length === 0)).toBe(true)
    const times = rig.peer.of('POST /metrics').map(({ atMs }) => atMs)
    expect(times[2]! - times[1]!).toBe(30_000)
  }))

test('[AGT-006] seq grows with every request, over retries and restarts', () =>
  withRig(async rig => {
    const seqs: bigint[] = []
    const agent = await rig.start()
    rig.peer.next('POST /metrics', new Response(null, { status: 503 }), new Response(null, { status: 503 }))
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'two batches')
    await agent.stop()
    seqs.push(...rig.peer.batches.map(({ seq }) => seq))
    await rig.start({ license: undefined })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 4, 'two more batches')
    seqs.push(...rig.peer.batches.slice(seqs.length).map(({ seq }) => seq))
    // Two requests that were refused had numbers of their own.
    expect(seqs[0]! % 1_000n).toBe((BigInt(rig.peer.of('POST /metrics')[0]!.atMs) % 1_000n) + 2n)
    seqs.slice(1).forEach((seq, index) => {
      expect(seq).toBeGreaterThan(seqs[index]!)
    })
    expect(rig.peer.enrollments.length).toBe(1)
  }))

test('[AGT-011] at an interval of 10 s the agent samples every 10 s and sends at most every 15 s', () =>
  withRig(async rig => {
    await rig.start({ interval: '10s' })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 6, 'six batches')
    const sends = rig.peer.of('POST /metrics').map(({ atMs }) => atMs)
    sends.slice(1).forEach((atMs, index) => {
      expect(atMs - sends[index]!).toBeGreaterThanOrEqual(15_000)
    })
    const stamps = rig.peer.points('uptime_seconds').map(({ tsMs }) => tsMs)
    stamps.slice(1).forEach((tsMs, index) => {
      expect(tsMs - stamps[index]!).toBe(10_000)
    })
  }))

test('an agent beside its collector may send its first cycle, rates included, after a second', () =>
  withRig(async rig => {
    await rig.start({}, { firstSendImmediately: true })
    await rig.clock.runUntil(() => rig.peer.batches.length > 0, 'a batch')
    expect(rig.clock.elapsed()).toBe(1_000)
    expect(rig.peer.points('cpu_usage_percent').length + rig.peer.points('net_interface_up').length).toBeGreaterThan(0)
  }))

test('a host that is enrolled anew keeps nothing of what the former agent buffered or was told', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 60 })
    const agent = await rig.start()
    rig.peer.always('POST /metrics', () => Response.json({ error: { code: 'agent_revoked' } }, { status: 403 }))
    await rig.clock.runUntil(() => agent.state === 'revoked', 'revoked', 3_600_000, 2, 0)
    await agent.stop()
    rig.peer.always('POST /metrics', null)
    rig.peer.setConfig({ etag: 'two' })
    const again = await rig.start({ license: 'lic_another' })
    expect(await again.enrolled).toBe(rig.peer.agentId)
    const startedAtMs = rig.clock.now()
    await rig.clock.runUntil(() => rig.peer.batches.length > 0, 'a batch')
    expect(rig.peer.batches[0]?.stats?.intervalSeconds).toBe(30)
    expect(rig.peer.points('uptime_seconds').every(({ tsMs }) => tsMs > startedAtMs)).toBe(true)
    expect(existsSync(join(rig.stateDir, 'config'))).toBe(true)
  }))

test('[AGT-005] over two days an agent calls the agent protocol and nothing else: it emits no events', () =>
  withRig(async rig => {
    await rig.start({ interval: '300s', renew_period: '8h' })
    await rig.clock.runUntil(() => rig.peer.of('GET /update').length >= 2, 'two looks for updates', DAY_MS)
    const routes = new Set(rig.peer.seen.map(({ route }) => route))
    expect([...routes].sort()).toEqual([
      'GET /config',
      'GET /update',
      'POST /credentials/renew',
      'POST /enroll',
      'POST /inventory',
      'POST /metrics',
    ])
  }))

for (const [what, status, type, text] of [
  ['a web page', 200, 'text/html; charset=utf-8', '<html>log in</html>'],
  ['a web page with 400', 400, 'text/html', '<html>Bad Request</html>'],
  ['a web page with 422', 422, 'text/html', '<html>Unprocessable</html>'],
  ['a web page with 401', 401, 'text/html', '<html>log in</html>'],
  ['a text', 200, 'text/plain', 'OK'],
  ['a text that says it is protobuf', 200, 'application/x-protobuf', 'OK'],
] as const)
  test(`${what} that answers in place of the collector takes no batch`, () =>
    withRig(async rig => {
      await rig.start()
      rig.peer.next('POST /metrics', new Response(text, { status, headers: { 'Content-Type': type } }))
      await rig.clock.runUntil(() => rig.peer.of('POST /metrics').length >= 1, 'a request')
      await rig.clock.idle()
      expect(rig.status()).toMatchObject({ state: 'buffering', dropped_points: 0, buffer_batches: 1 })
      expect(String(rig.status().last_error)).toContain('answered instead of the collector')
      await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
      const [first] = rig.peer.of('POST /metrics')
      expect(rig.peer.points('uptime_seconds')[0]?.tsMs).toBe(first!.atMs)
    }))

test('a batch is kept by an answer in JSON, which is the collector’s', () =>
  withRig(async rig => {
    const agent = await rig.start()
    rig.peer.next('POST /metrics', Response.json({ ok: true }))
    await rig.clock.runUntil(() => rig.peer.of('POST /metrics').length >= 1, 'a request')
    await rig.clock.idle()
    expect([agent.state, rig.status().buffer_batches]).toEqual(['online', 0])
  }))

test('a web page that answers an enrollment with 422 refuses nothing: it is tried again', () =>
  withRig(async rig => {
    rig.peer.next(
      'POST /enroll',
      new Response('<html>', { status: 422, headers: { 'Content-Type': 'text/html' } }),
      new Response('OK', { headers: { 'Content-Type': 'text/plain' } }),
    )
    const agent = await rig.start()
    await rig.clock.runUntil(() => rig.peer.enrollments.length > 0, 'an enrollment', 600_000, 1)
    expect(await agent.enrolled).toBe(rig.peer.agentId)
  }))

test('over https the collector must show a certificate of the configured authority', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tls-'))
  const { certFile, key, cert } = makeCertificate(folder)
  const secure = new Peer({ key, cert })
  try {
    await withRig(async rig => {
      const distrusting = await rig.start({ collector_url: secure.url })
      await rig.clock.idle(1)
      expect(secure.seen.length).toBe(0)
      await distrusting.stop()
      const trusting = await rig.start({ collector_url: secure.url, 'tls.ca_file': certFile })
      expect(await trusting.enrolled).toBe(secure.agentId)
      await rig.clock.runUntil(() => secure.batches.length >= 1, 'a batch')
    })
  } finally {
    await secure.stop()
    rmSync(folder, { recursive: true })
  }
})

test('[AGT-060] with a clock that is slewed every cycle comes once: none is skipped, none doubled', () =>
  withRig(async rig => {
    const random = randomFrom(seedOf('slewed clock'))
    // Each reading is up to 3 ms off: behind the timer that was waited for, or ahead of the reading before.
    const clock = {
      now: () => rig.clock.now() + Math.round(random() * 6 - 3),
      elapsed: () => rig.clock.elapsed(),
      sleep: (ms: number, signal: AbortSignal) => rig.clock.sleep(ms, signal),
    }
    await rig.start({}, { clock })
    await rig.clock.runUntil(() => rig.peer.points('uptime_seconds').length >= 60, 'sixty cycles', 3_600_000)
    const stamps = rig.peer.points('uptime_seconds').map(({ tsMs }) => tsMs)
    expect(stamps.map((tsMs, index) => tsMs - stamps[0]! - index * 30_000)).toEqual(stamps.map(() => 0))
  }))
