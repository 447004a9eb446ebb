// The scan API from outside: who is let in, what is taken, and what is refused before anything of it is kept.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import { until } from '../support/until.ts'
import { Rig } from './rig.ts'
import { contentHash, machineHash, packagesOf, reportOf, type ScanClient } from './scan-client.ts'

const MIB = 1024 * 1024
let rig: Rig

beforeAll(async () => {
  rig = await new Rig().start()
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null)
})
afterAll(() => rig.dispose())

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))
const count = (): number => rig.told().length + rig.state.counters().outboxDepth

/** Nothing was kept: no event was made, and the next report with this time is the host's first. */
async function expectNothingStored(client: ScanClient): Promise<void> {
  expect(rig.state.host(client.hostId)?.reportedAtMs ?? 0).toBe(0)
  expect(rig.told(client.hostId)).toEqual([])
}

describe('ping', () => {
  test('GET /ping needs no headers and says the time and the protocol', async () => {
    const response = await fetch(`${rig.scanUrl}/scan/v1/ping`)
    const body: Record<string, unknown> = JSON.parse(await response.text())
    expect(response.status).toBe(200)
    expect(body).toEqual({ server_time_ms: expect.any(Number), proto_min: 1, proto_max: 1 })
    expect(Math.abs(Number(body.server_time_ms) - Date.now())).toBeLessThan(5000)
  })

  test('paths and methods that there are not are answered 404 and 405', async () => {
    expect((await fetch(`${rig.scanUrl}/scan/v1/nothing`)).status).toBe(404)
    const response = await fetch(`${rig.scanUrl}/scan/v1/report`)
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST')
  })
})

describe('enrollment', () => {
  test('[MAT-037] a code becomes a host, which may report at once', async () => {
    const client = rig.client('enrolls')
    const answer = await client.enroll('code')
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      host_id: expect.any(String),
      server_time_ms: expect.any(Number),
      settings: { enabled: true, reason: '', interval_seconds: 86_400, next_after_seconds: 0, version: 1 },
    })
    expect((await client.report(reportOf('enrolls'))).status).toBe(200)
    const [forwarded] = rig.hub.to('/scan-hosts/enroll').slice(-1)
    expect(forwarded?.body).toMatchObject({ code: 'code', public_key: client.publicKey, ip_addresses: ['192.0.2.1'] })
  })

  test('[MAT-038] the same code with the same key answers the same host', async () => {
    const client = rig.client('repeats')
    const first = await client.enroll('code')
    const second = await client.enroll('code')
    expect(second.status).toBe(201)
    expect(second.body.host_id).toBe(first.body.host_id)
  })

  test('[MAT-037] refusals of the hub reach the agent by their code', async () => {
    expect(await rig.client('x').enroll('nothing')).toMatchObject({ status: 401, code: 'invalid_code' })
    rig.hub.script = ({ path }) => (path.endsWith('/enroll') ? rig.hub.error(422, 'quota_exceeded') : null)
    expect(await rig.client('x').enroll('code')).toMatchObject({ status: 422, code: 'quota_exceeded' })
    rig.hub.script = ({ path }) =>
      path.endsWith('/enroll') ? rig.hub.error(422, 'invalid_data', {}, 'server_id: has a scan host') : null
    expect(await rig.client('x').enroll('code')).toMatchObject({ status: 422, code: 'server_taken' })
    rig.hub.script = ({ path }) => (path.endsWith('/enroll') ? rig.hub.error(500, 'server_error') : null)
    expect(await rig.client('x').enroll('code')).toMatchObject({ status: 503, code: 'unavailable' })
    rig.hub.script = () => null
  })

  test('[MAT-037] fields over their limit are invalid, and do not reach the hub', async () => {
    const before = rig.hub.to('/scan-hosts/enroll').length
    const wrong: readonly Record<string, unknown>[] = [
      { hostname: 'h'.repeat(254) },
      { ip_addresses: Array.from({ length: 33 }, () => '192.0.2.1') },
      { os: { id: 'd'.repeat(129) } },
      { machine_id_hash: 'f'.repeat(63) },
      { machine_id_hash: 'F'.repeat(64) },
    ]
    for (const more of wrong)
      expect(await rig.client('x').enroll('code', more)).toMatchObject({ status: 422, code: 'invalid' })
    expect(rig.hub.to('/scan-hosts/enroll')).toHaveLength(before)
    const atLimit = {
      hostname: 'h'.repeat(253),
      ip_addresses: Array.from({ length: 32 }, () => '::1'),
      os: { id: 'd'.repeat(128) },
    }
    expect((await rig.client('limit').enroll('code', atLimit)).status).toBe(201)
  })

  test('an enrollment that is not signed by the key that it brings is refused', async () => {
    const client = rig.client('liar')
    const other = rig.client('other')
    expect(await client.enroll('code', { public_key: other.publicKey })).toMatchObject({
      status: 401,
      code: 'unauthorized',
    })
    expect(await client.enroll('code', { public_key: 'short' })).toMatchObject({ status: 400, code: 'bad_request' })
    expect(await client.enroll('code', {}, { timeMs: Date.now() - 600_000 })).toMatchObject({
      status: 401,
      code: 'clock_skew',
    })
  })

  test('[MAT-035] a host is unknown with 503 until the first whole sync, and then with 401', async () => {
    const fresh = new Rig()
    fresh.hub.script = ({ path }) => (path === '/scan-hosts' ? fresh.hub.error(500, 'server_error') : null)
    await fresh.start()
    const client = fresh.client('unknown')
    client.hostId = randomUUID()
    expect(await client.report(reportOf('unknown'))).toMatchObject({ status: 503, code: 'unavailable' })
    fresh.hub.script = () => null
    await until('the first whole sync', () => fresh.state.feed().syncedAtMs !== null)
    expect(await client.report(reportOf('unknown'))).toMatchObject({ status: 401, code: 'unauthorized' })
    await fresh.dispose()
  })
})

describe('signature', () => {
  test('[MAT-035] wrong key, changed body, changed path, missing headers: 401, and nothing is stored', async () => {
    const client = await rig.enrolled('signs')
    const stranger = rig.client('signs')
    stranger.hostId = client.hostId
    const before = count()
    const report = reportOf('signs')
    const body = json(report)
    const unauthorized = { status: 401, code: 'unauthorized' }
    expect(await stranger.report(report)).toMatchObject(unauthorized)
    expect(
      await client.call('POST', '/report', { body, signed: { body: json({ ...report, elts: true }) } }),
    ).toMatchObject(unauthorized)
    expect(await client.call('POST', '/report', { body, signed: { path: '/rotate' } })).toMatchObject(unauthorized)
    expect(await client.call('POST', '/report?a=1', { body, signed: { path: '/report' } })).toMatchObject(unauthorized)
    expect(await client.call('POST', '/report', { body, signed: { method: 'PUT' } })).toMatchObject(unauthorized)
    for (const name of [
      'x-svc-scan-proto',
      'x-svc-agent-version',
      'x-svc-scan-host',
      'x-svc-scan-time',
      'x-svc-scan-signature',
    ])
      expect(await client.report(report, { headers: { [name]: null } })).toMatchObject(unauthorized)
    expect(await client.report(report, { headers: { 'x-svc-scan-signature': 'AAAA' } })).toMatchObject(unauthorized)
    expect(await client.report(report, { headers: { 'x-svc-scan-host': 'no-id' } })).toMatchObject(unauthorized)
    expect(await client.report(report, { headers: { 'x-svc-scan-proto': '2' } })).toMatchObject({
      status: 426,
      code: 'upgrade_required',
    })
    await expectNothingStored(client)
    expect(count()).toBe(before)
    expect((await client.report(report)).status).toBe(200)
  })

  test('[MAT-033] a time more than 5 minutes off answers clock_skew with the time', async () => {
    const client = await rig.enrolled('skewed')
    for (const off of [-301_000, 301_000]) {
      const answer = await client.report(reportOf('skewed'), { timeMs: Date.now() + off })
      expect(answer).toMatchObject({ status: 401, code: 'clock_skew' })
      expect(Math.abs(Number(answer.body.server_time_ms) - Date.now())).toBeLessThan(5000)
    }
    await expectNothingStored(client)
    expect((await client.report(reportOf('skewed'), { timeMs: Date.now() - 290_000 })).status).toBe(200)
  })

  test('[MAT-034] the same request again gets the answer of the first; another one of that time or before is replayed', async () => {
    const client = await rig.enrolled('replays')
    const timeMs = Date.now()
    const report = reportOf('replays')
    const first = await client.report(report, { timeMs })
    await rig.delivered()
    const events = rig.told(client.hostId).length
    const again = await client.report(report, { timeMs })
    expect(again.status).toBe(200)
    expect({ ...again.body, server_time_ms: 0, settings: 0 }).toEqual({ ...first.body, server_time_ms: 0, settings: 0 })
    for (const off of [0, -1000]) {
      const other = reportOf('replays', { packages: packagesOf(['bash', `1.${off}`]) })
      expect(await client.report(other, { timeMs: timeMs + off })).toMatchObject({ status: 409, code: 'replayed' })
    }
    await rig.delivered()
    expect(rig.told(client.hostId)).toHaveLength(events)
  })

  test('[MAT-035] a revoked host is told so, after it has shown its key', async () => {
    const client = await rig.enrolled('revoked')
    rig.hub.putHost({ host_id: client.hostId, state: 'revoked' })
    await until('the revocation', () => rig.state.host(client.hostId)?.state === 'revoked')
    expect(await client.report(reportOf('revoked'))).toMatchObject({ status: 403, code: 'host_revoked' })
    const stranger = rig.client('revoked')
    stranger.hostId = client.hostId
    expect(await stranger.report(reportOf('revoked'))).toMatchObject({ status: 401 })
    await expectNothingStored(client)
  })

  test('[MAT-036] the report of another computer is refused, and nothing is stored', async () => {
    const client = await rig.enrolled('original')
    expect(await client.report(reportOf('clone'))).toMatchObject({ status: 409, code: 'machine_changed' })
    await expectNothingStored(client)
    expect((await client.report(reportOf('original'))).status).toBe(200)
  })

  test('a new key is taken from the next call on, and the old one is not taken any more', async () => {
    const client = await rig.enrolled('rotates')
    const old = Object.assign(Object.create(Object.getPrototypeOf(client)), client) as ScanClient
    expect((await client.rotate()).status).toBe(200)
    expect((await client.report(reportOf('rotates'))).status).toBe(200)
    expect(await old.report(reportOf('rotates'))).toMatchObject({ status: 401 })
    const body = json({ public_key: rig.client('y').publicKey, signature: 'AAAA' })
    expect(await client.call('POST', '/rotate', { body })).toMatchObject({ status: 422, code: 'invalid' })
  })
})

describe('bodies', () => {
  test('[MAT-039] a body that becomes 8 MiB is refused before it is inflated', async () => {
    const client = await rig.enrolled('bomb')
    const zeros = zstdCompressSync(Buffer.alloc(8 * MIB))
    expect(zeros.length).toBeLessThan(2048)
    expect(await client.call('POST', '/report', { body: zeros, encoding: 'zstd' })).toMatchObject({
      status: 413,
      code: 'too_large',
    })
    // Says that it becomes 200 GiB, and has not the bytes for it: inflating it would answer 400.
    const claim = Buffer.from('28b52ffde00000000032000000010000', 'hex')
    expect((await client.call('POST', '/report', { body: claim, encoding: 'zstd' })).status).toBe(413)
    expect(await client.call('POST', '/report', { body: Buffer.alloc(MIB + 1) })).toMatchObject({ status: 413 })
    await expectNothingStored(client)
  })

  test('[MAT-039] Content-Encoding is zstd or none', async () => {
    const client = await rig.enrolled('encoded')
    const body = json(reportOf('encoded'))
    for (const encoding of ['gzip', 'br', 'deflate'])
      expect(await client.call('POST', '/report', { body, encoding })).toMatchObject({
        status: 415,
        code: 'unsupported_encoding',
      })
    expect((await client.call('POST', '/report', { body })).status).toBe(200)
  })

  test('[MAT-039] bad JSON and a bad schema are answered 400 with the path of the fault, a later schema 426', async () => {
    const client = await rig.enrolled('schema')
    const send = (body: Uint8Array) => client.call('POST', '/report', { body })
    const refused = async (report: unknown, path: string) => {
      const answer = await send(json(report))
      expect(answer).toMatchObject({ status: 400, code: 'bad_request' })
      expect((answer.body.error as { message: string }).message).toContain(path)
    }
    const good = reportOf('schema')
    for (const text of ['', '{', 'null', '[]', '"a"', '{"a":1}x', '\xff\xfe'])
      expect((await send(Buffer.from(text, 'latin1'))).status).toBe(400)
    expect((await send(Buffer.from('['.repeat(100_000)))).status).toBe(400)
    await refused({ ...good, kernel: { ...good.kernel, running: 1 } }, '/kernel/running')
    await refused({ ...good, os: { ...good.os, id: 'x'.repeat(129) } }, '/os/id')
    await refused({ ...good, schema: 0 }, '/schema')
    await refused({ ...good, packages: { ...good.packages, name: ['a'] } }, '/packages/')
    await refused({ ...good, packages: packagesOf(['a\u0000b', '1']) }, '/packages/name/0')
    await refused({ ...good, packages: packagesOf(['\ud800', '1']) }, '/packages/name/0')
    await refused({ ...good, system: 'pacman' }, '/system')
    await refused({ ...good, error_codes: ['made_up'] }, '/error_codes/0')
    expect(await send(json({ ...good, schema: 2 }))).toMatchObject({ status: 426, code: 'upgrade_required' })
    await expectNothingStored(client)
    const later = { ...good, collected_at_ms: Date.now(), more: [{ system: 'npm', packages: {} }] }
    expect((await send(json(later))).status).toBe(200)
  })

  test('a report by hash is taken when that is the one held, and asked for otherwise', async () => {
    const client = await rig.enrolled('hashes')
    const report = reportOf('hashes')
    expect(await client.reportHash(contentHash(report))).toMatchObject({ status: 409, code: 'need_report' })
    rig.hub.settings.set(rig.company, { scan_interval_hours: 24 })
    expect((await client.report(report)).status).toBe(200)
    expect((await client.reportHash(contentHash(report))).status).toBe(200)
    expect(await client.reportHash('no hash')).toMatchObject({ status: 400 })
    await rig.delivered()
    const scans = rig.told(client.hostId).filter(event => event.type === 'server.scanned')
    expect(scans).toHaveLength(2)
  })
})

describe('rates', () => {
  test('[MAT-040] one early report a day is taken, and the next one is too soon and says when', async () => {
    const client = await rig.enrolled('early')
    const send = (version: string) => client.report(reportOf('early', { packages: packagesOf(['bash', version]) }))
    expect([(await send('1')).status, (await send('2')).status]).toEqual([200, 200])
    await rig.delivered()
    const events = rig.told(client.hostId).length
    const late = await send('3')
    expect(late).toMatchObject({ status: 429, code: 'too_soon' })
    const seconds = Number(late.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(80_000 * 0.9)
    expect(seconds).toBeLessThanOrEqual(86_400)
    expect(rig.told(client.hostId)).toHaveLength(events)
  })

  test("[MAT-040] [MAT-221] the plan's minimum counts and not the interval that the company chose, where the hub names it", async () => {
    const statuses = async (name: string, settings: Record<string, unknown>): Promise<number[]> => {
      // In the morning: the early report of a day is not that of the next.
      const clock = { ms: Math.floor(Date.now() / 86_400_000) * 86_400_000 + 36_000_000 }
      const timed = await new Rig({ nowMs: () => clock.ms }).start()
      timed.hub.settings.set(timed.company, { version: 2, scan_interval_hours: 24, ...settings })
      const client = timed.client(name, () => clock.ms)
      await client.enroll('code')
      const answers = []
      for (const hours of [0, 1, 1, 1]) {
        clock.ms += hours * 3_600_000
        const packages = packagesOf(['bash', `5.${answers.length}`])
        const answer = await client.report(reportOf(name, { packages, collected_at_ms: clock.ms }))
        if (answer.status === 200) expect(answer.body.settings).toMatchObject({ interval_seconds: 86_400 })
        answers.push(answer.status)
      }
      await timed.dispose()
      return answers
    }
    expect(await statuses('named', { min_scan_interval_hours: 1 })).toEqual([200, 200, 200, 200])
    // One early report a day is taken all the same.
    expect(await statuses('unnamed', {})).toEqual([200, 200, 429, 429])
  })

  test('[MAT-041] addresses and hosts have their rates', async () => {
    const keys = {
      'limits.enroll_per_minute': 12,
      'limits.enroll_failures': 10,
      'limits.host_per_minute': 6,
      trusted_proxies: ['127.0.0.1'],
    }
    const limited = await new Rig({ keys }).start()
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    const codes = async (code: string, address: string, times: number) => {
      const answers = []
      for (let index = 0; index < times; index++)
        answers.push((await limited.client(`${code} ${index}`).enroll(code, {}, from(address))).status)
      return answers
    }
    expect(await codes('wrong', '198.51.100.1', 11)).toEqual([...Array.from({ length: 10 }, () => 401), 429])
    expect(await codes('code', '198.51.100.2', 13)).toEqual([...Array.from({ length: 12 }, () => 201), 429])
    const client = await limited.client('often')
    expect((await client.enroll('code', {}, from('198.51.100.3'))).status).toBe(201)
    const statuses = []
    for (let index = 0; index < 7; index++) statuses.push((await client.reportHash('0'.repeat(64))).status)
    expect(statuses).toEqual([409, 409, 409, 409, 409, 409, 429])
    await limited.dispose()
  })
})

describe('settings', () => {
  test('[MAT-055] [MAT-221] reports of an inactive host, and of a company that is not scanned, are answered and not stored', async () => {
    const client = await rig.enrolled('inactive')
    rig.hub.putHost({ host_id: client.hostId, inactive: true })
    await until('the host to be inactive', () => rig.state.host(client.hostId)?.isInactive === true)
    const answer = await client.report(reportOf('inactive'))
    expect(answer.status).toBe(200)
    expect(answer.body.settings).toMatchObject({ enabled: false, reason: 'inactive' })
    await expectNothingStored(client)
    const other = randomUUID()
    rig.hub.codes.set('switched off', other)
    rig.hub.settings.set(other, { enabled: false, scan_interval_hours: 12, version: 4 })
    const disabled = await rig.enrolled('disabled', 'switched off')
    const response = await disabled.report(reportOf('disabled'))
    expect(response.status).toBe(200)
    expect(response.body.settings).toMatchObject({
      enabled: false,
      reason: 'disabled',
      interval_seconds: 43_200,
      version: 4,
    })
    await expectNothingStored(disabled)
  })

  test('[MAT-056] the hub is told once that a host was seen, however often it reports', async () => {
    const client = await rig.enrolled('seen')
    await client.report(reportOf('seen'))
    await until('the hub to be told', () => rig.hub.to(`/scan-hosts/${client.hostId}/seen`).length > 0)
    await client.report(reportOf('seen', { packages: packagesOf(['bash', '9']) }))
    await rig.delivered()
    const told = rig.hub.to(`/scan-hosts/${client.hostId}/seen`)
    expect(told).toHaveLength(1)
    expect(told[0]?.body).toMatchObject({ scanner_version: '0.1.0' })
  })
})

test('[MAT-042] no answer and no line of the log holds a code, a key, a token or a path', () => {
  const log = rig.lines.join('\n')
  expect(log).toContain('"report"')
  expect(log).not.toContain(rig.dir)
  expect(log).not.toContain('service-token')
  expect(log).not.toContain(machineHash('signs'))
  for (const { body } of rig.hub.to('/scan-hosts/enroll')) expect(log).not.toContain(String(body.public_key))
})
