import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../../core/series/hash.ts'
import { CODE, LaneRig } from './lane-rig.ts'
import { hashOf, isSignedCall, scanError } from './scripted-matcher.ts'

setDefaultTimeout(60_000)

const HOUR_MS = 3_600_000

/** Half of an answer. */
const cut = (): Response => {
  return new Response('{"server_time_ms":', { headers: { 'Content-Type': 'application/json' } })
}

test('[MAT-030] [MAT-037] a code makes a scan host, whose key is on the disk before it is used, and a report follows', async () => {
  await using rig = new LaneRig()
  let modeWhenUsed = 0
  rig.matcher.next('/enroll', call => {
    modeWhenUsed = statSync(join(rig.stateDir, 'scan-host')).mode & 0o777
    return rig.matcher.usual(call)
  })
  rig.start()
  await rig.calls('/report', 1)
  expect(modeWhenUsed).toBe(0o600)
  const enrollment = JSON.parse(rig.matcher.of('/enroll')[0]!.body.toString())
  expect(enrollment).toMatchObject({
    code: CODE,
    machine_id_hash: sha256Hex('svc-scan-v1\n0123456789abcdef0123456789abcdef'),
    os: { id: 'debian', version_id: '12', codename: 'bookworm' },
  })
  expect(Buffer.from(enrollment.public_key, 'base64')).toHaveLength(32)
  expect(rig.matcher.of('/enroll')[0]!.hostId).toBe('')
  const [report] = rig.matcher.of('/report')
  expect(isSignedCall(report!, enrollment.public_key)).toBe(true)
  expect(report!.headers.get('content-encoding')).toBe('zstd')
  expect(rig.matcher.reports[0]?.packages?.name).toEqual(['base-files'])
  expect(rig.status).toEqual({
    host_id: report!.hostId,
    last_report_ms: rig.clock.now(),
    match_status: 'ok',
    open_findings: 3,
    next_ms: rig.clock.now() + 80_000_000,
    reason: null,
    last_error: null,
  })
  expect(rig.store.unsent()).toBeNull()
})

test('[MAT-023] [MAT-002] an equal report is delivered by its hash, and whole when the matcher does not hold it', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  await rig.calls('/report', 2, 25 * HOUR_MS)
  const second = rig.matcher.of('/report')[1]!
  expect(second.body).toHaveLength(0)
  expect(second.headers.get('x-svc-scan-content')).toBe(hashOf(rig.matcher.reports[0]!))
  expect(second.timeMs).toBe(rig.clock.startMs + 80_000_000)
  rig.matcher.heldHash = ''
  await rig.calls('/report', 4, 25 * HOUR_MS)
  expect(rig.matcher.of('/report').map(({ body }) => body.length > 0)).toEqual([true, false, false, true])
  expect(rig.matcher.reports).toHaveLength(2)
  expect(rig.matcher.of('/enroll')).toHaveLength(1)
})

test('[MAT-033] [MAT-034] a clock that is off is corrected once, and the times of calls grow all the same', async () => {
  await using rig = new LaneRig()
  rig.matcher.now = () => rig.clock.now() + 2 * HOUR_MS
  rig.start()
  await rig.calls('/report', 2)
  const [first, second] = rig.matcher.of('/report')
  expect(Math.round((second!.timeMs - first!.timeMs) / 1000)).toBe(7_200)
  await rig.calls('/report', 3, 25 * HOUR_MS)
  expect(rig.matcher.of('/report')).toHaveLength(3)
  // Set back, and right now.
  rig.matcher.now = () => rig.clock.now()
  rig.install('base-files', '2')
  await rig.calls('/report', 5, 25 * HOUR_MS)
  expect(rig.matcher.reports).toHaveLength(2)
  expect(rig.matcher.reports[1]?.collected_at_ms).toBeGreaterThan(rig.clock.startMs)
  expect(rig.status?.reason).toBeNull()
})

test('[MAT-035] [MAT-048] a revoked host is quiet until another code makes it a new one, with a new key', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  const before = rig.store.host()
  rig.matcher.next('/report', () => scanError(403, 'host_revoked'))
  await rig.calls('/report', 2, 25 * HOUR_MS)
  await rig.clock.runFor(50 * HOUR_MS, 1)
  expect(rig.matcher.calls).toHaveLength(3)
  expect(rig.status).toMatchObject({ reason: 'host_revoked' })
  expect(rig.store.unsent()).toBeNull()
  // The code that it has is used up.
  await rig.stopLanes()
  rig.start()
  await rig.clock.runFor(HOUR_MS, 1)
  expect(rig.matcher.calls).toHaveLength(3)
  await rig.stopLanes()
  rig.start({ 'scan.enrol_code': 'another' })
  await rig.calls('/report', 3)
  const after = rig.store.host()
  expect(after?.hostId).not.toBe(before?.hostId)
  expect(after?.privateKey).not.toBe(before?.privateKey)
  expect(rig.matcher.reports).toHaveLength(2)
  expect(rig.status).toMatchObject({ reason: null, host_id: after!.hostId })
})

test('a 403 of a proxy revokes nothing', async () => {
  await using rig = new LaneRig()
  rig.matcher.next('/report', () => new Response('forbidden', { status: 403 }))
  rig.start()
  await rig.calls('/report', 2)
  expect(rig.status).toMatchObject({ reason: null, match_status: 'ok' })
})

test('[MAT-036] a host with another machine-id says so and sends nothing more, until it has its own again', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  rig.root.write('etc/machine-id', 'ffffffffffffffffffffffffffffffff\n')
  rig.matcher.next('/report', () => scanError(409, 'machine_changed'))
  await rig.calls('/report', 2, 25 * HOUR_MS)
  await rig.clock.runFor(50 * HOUR_MS, 1)
  expect(rig.matcher.calls).toHaveLength(3)
  expect(rig.status).toMatchObject({ reason: 'machine_changed' })
  rig.root.write('etc/machine-id', '0123456789abcdef0123456789abcdef\n')
  await rig.calls('/report', 3, 25 * HOUR_MS)
  expect(rig.status).toMatchObject({ reason: null })
})

test('[MAT-043] after 5xx and 429 the newest report waits on the disk, longer each time, as long as is asked for', async () => {
  await using rig = new LaneRig()
  const failing = [500, 503, 429].map(status => () => scanError(status, 'unavailable'))
  rig.matcher.next('/report', ...failing, () => scanError(503, 'unavailable', {}, '7200'))
  rig.start()
  await rig.calls('/report', 1)
  expect(rig.status).toMatchObject({ reason: 'unreachable', last_error: 'unavailable: said unavailable' })
  expect(rig.store.unsent()).not.toBeNull()
  // Another process goes on with it.
  await rig.stopLanes()
  rig.start()
  await rig.calls('/report', 6, 10 * HOUR_MS)
  const times = rig.matcher.of('/report').map(({ timeMs }) => timeMs)
  const waits = times.slice(1).map((timeMs, index) => timeMs - times[index]!)
  // The same call within minutes is the same call; random is 1, so that each wait is the ceiling.
  expect(waits).toEqual([0, 0, 0, 30_000 + 60_000 + 120_000 + 7_200_000 - 1, 1])
  // Later it may be held without the answer having come: that is asked first.
  expect(rig.matcher.of('/report').map(({ body }) => body.length > 0)).toEqual([true, true, true, true, false, true])
  expect(rig.matcher.reports).toHaveLength(1)
  expect(rig.store.unsent()).toBeNull()
  expect(rig.matcher.of('/enroll')).toHaveLength(1)
})

test('[MAT-034] [MAT-043] a report whose answer was lost is sent again as the same signed call', async () => {
  await using rig = new LaneRig()
  rig.matcher.next('/report', cut)
  rig.start()
  await rig.calls('/report', 2)
  const [first, second] = rig.matcher.of('/report')
  expect(second!.signature).toBe(first!.signature)
  expect(second!.body.equals(first!.body)).toBe(true)
})

test('[MAT-043] what the matcher refuses as it is, is not sent again until it changes', async () => {
  for (const status of [400, 413, 422]) {
    await using rig = new LaneRig()
    rig.matcher.next('/report', () => scanError(status, 'invalid'))
    rig.start()
    await rig.calls('/report', 1)
    await rig.clock.runFor(60 * HOUR_MS, 1)
    expect(rig.matcher.of('/report')).toHaveLength(1)
    expect(rig.status?.last_error).toBe('invalid: said invalid')
    rig.install('base-files', '2')
    await rig.calls('/report', 2, 30 * HOUR_MS)
    expect(rig.matcher.reports).toHaveLength(1)
  }
})

test('[MAT-037] [MAT-045] a code that is not taken is not tried again, another one is', async () => {
  await using rig = new LaneRig()
  rig.matcher.next('/enroll', () => scanError(401, 'invalid_code'))
  rig.start()
  await rig.calls('/enroll', 1)
  await rig.clock.runFor(50 * HOUR_MS, 1)
  expect(rig.matcher.calls).toHaveLength(1)
  expect(rig.status).toMatchObject({ reason: 'not_enrolled', last_error: 'invalid_code: said invalid_code' })
  expect(rig.logged + JSON.stringify(rig.status)).not.toContain(CODE)
  await rig.stopLanes()
  rig.start({ 'scan.enrol_code': 'another' })
  await rig.calls('/report', 1)
})

test('[MAT-037] a code for a server that has a scan host is tried again, since that one may be revoked', async () => {
  await using rig = new LaneRig()
  rig.matcher.next('/enroll', () => scanError(422, 'server_taken'))
  rig.start()
  await rig.calls('/enroll', 1)
  expect(rig.status).toMatchObject({ reason: 'not_enrolled', last_error: 'server_taken: said server_taken' })
  await rig.calls('/report', 1, 30 * HOUR_MS)
})

test('[MAT-038] an enrollment whose answer was lost is made again with the same key', async () => {
  await using rig = new LaneRig()
  rig.matcher.next('/enroll', cut, () => scanError(503, 'unavailable'))
  rig.start()
  await rig.calls('/report', 1)
  const keys = rig.matcher.of('/enroll').map(({ body }) => JSON.parse(body.toString()).public_key)
  expect(keys).toHaveLength(3)
  expect(new Set(keys).size).toBe(1)
})

test('[MAT-031] [MAT-045] an inactive host is told so, asks again, and sends its report when it is wanted', async () => {
  await using rig = new LaneRig()
  const wanted = rig.matcher.settings
  rig.matcher.settings = { ...wanted, enabled: false, reason: 'inactive' }
  rig.start()
  await rig.calls('/report', 1)
  expect(rig.status).toMatchObject({ reason: 'inactive', last_report_ms: null })
  rig.matcher.settings = wanted
  rig.matcher.heldHash = ''
  await rig.calls('/report', 2, 25 * HOUR_MS)
  expect(rig.matcher.of('/report')[1]!.body.length).toBeGreaterThan(0)
  expect(rig.status).toMatchObject({ reason: null, last_report_ms: rig.clock.now() })
})

test('[MAT-025] changed packages are reported when they rest, once a day before the interval has passed', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  await rig.clock.runFor(600_000, 1)
  expect(rig.matcher.calls).toHaveLength(2)
  rig.install('base-files', '2')
  const changedAtMs = rig.clock.now()
  await rig.calls('/report', 2)
  const waitedMs = rig.clock.now() - changedAtMs
  expect(waitedMs).toBeGreaterThanOrEqual(120_000)
  expect(waitedMs).toBeLessThanOrEqual(420_000)
  expect(rig.matcher.reports[1]?.packages?.version).toEqual(['2'])
  // The one early report is used: the next one waits for the interval.
  rig.install('base-files', '3')
  await rig.calls('/report', 3, 30 * HOUR_MS)
  expect(rig.clock.now() - changedAtMs).toBeGreaterThan(20 * HOUR_MS)
})

test('[MAT-025] a database that was only touched makes no report', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  rig.install('base-files', '1')
  await rig.clock.runFor(HOUR_MS, 1)
  rig.install('base-files', '1')
  await rig.clock.runFor(HOUR_MS, 1)
  expect(rig.matcher.of('/report')).toHaveLength(1)
})

test('[MAT-002] a start scans when the last report is older than the interval, and not before', async () => {
  await using rig = new LaneRig()
  rig.start()
  await rig.calls('/report', 1)
  await rig.stopLanes()
  rig.start()
  await rig.clock.runFor(12 * HOUR_MS, 1)
  expect(rig.matcher.of('/report')).toHaveLength(1)
  await rig.stopLanes()
  rig.clock.set(13 * HOUR_MS)
  rig.start()
  await rig.calls('/report', 2, 1_000)
})

test('a key takes over from the old one when that is due, also when the answer to it was lost', async () => {
  await using rig = new LaneRig()
  rig.start({ renew_period: '48h' })
  await rig.calls('/report', 1)
  const first = rig.store.host()!
  await rig.calls('/rotate', 1, 60 * HOUR_MS)
  const second = rig.store.host()!
  expect(second.privateKey).not.toBe(first.privateKey)
  expect(second.nextPrivateKey).toBeNull()
  rig.matcher.next('/rotate', call => {
    rig.matcher.usual(call)
    return cut()
  })
  await rig.calls('/rotate', 2, 100 * HOUR_MS)
  expect(rig.store.host()?.privateKey).toBe(second.privateKey)
  const sent = rig.matcher.of('/report').length
  rig.install('base-files', '9')
  await rig.calls('/report', sent + 2, 30 * HOUR_MS)
  const third = rig.store.host()!
  expect(third.privateKey).not.toBe(second.privateKey)
  expect(third.nextPrivateKey).toBeNull()
  expect(rig.status?.reason).toBeNull()
})

test('[MAT-046] without an address nothing is read, connected or kept', async () => {
  await using rig = new LaneRig()
  rig.start({ 'scan.matcher_url': undefined })
  await rig.stopLanes()
  expect(rig.matcher.calls).toEqual([])
  expect(existsSync(join(rig.stateDir, 'scan-state'))).toBe(false)
  expect(rig.clock.sleeperCount).toBe(0)
})

test('[MAT-046] without a code there is no connection, and the status says why', async () => {
  await using rig = new LaneRig()
  rig.start({ 'scan.enrol_code': undefined })
  await rig.clock.runFor(HOUR_MS, 1)
  expect(rig.matcher.calls).toEqual([])
  expect(rig.status).toMatchObject({ reason: 'not_enrolled', host_id: null })
})
