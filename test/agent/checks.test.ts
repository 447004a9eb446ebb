// Checks against real sockets, servers and certificates, and their series at the collector.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { pino } from 'pino'
import { isScRunning, isServiceActive, type ProbeContext, probe } from '../../apps/agent/collectors/check-kinds.ts'
import { CHECKS_AT_A_TIME, CheckRunner } from '../../apps/agent/collectors/checks-at-a-time.ts'
import { HostFiles, linuxRoots } from '../../apps/agent/collectors/host-files.ts'
import { askAddresses, parseAhosts } from '../../apps/agent/collectors/resolve-name.ts'
import type { Check } from '../../core/agent/check.ts'
import { until } from '../support/until.ts'
import { withHeldPool } from './held-pool.ts'
import { withRig } from './rig.ts'

const NOW_MS = 1_790_000_000_000
const DAY_MS = 86_400_000
const context: ProbeContext = {
  files: new HostFiles(linuxRoots),
  now: () => Date.now(),
  isServiceActive: async name => name === 'ssh',
  askAddresses,
}
const base = { id: 'c', timeoutMs: 2_000 }

async function valuesOf(check: Check, with_: ProbeContext = context): Promise<Record<string, number>> {
  const samples = await probe(check, with_)
  return Object.fromEntries(samples.map(({ name, labels, value }) => [`${name} ${JSON.stringify(labels)}`, value]))
}

const folder = mkdtempSync(join(tmpdir(), 'checks-test-'))
const keyFile = join(folder, 'key.pem')
const certFile = join(folder, 'cert.pem')
let web: ReturnType<typeof Bun.serve>
let tls: ReturnType<typeof Bun.serve>
const silent = createServer(() => {})
let silentPort = 0

beforeAll(async () => {
  const subject = ['-subj', '/CN=localhost', '-days', '30']
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      ...subject,
      '-keyout',
      keyFile,
      '-out',
      certFile,
    ],
    { stdio: 'ignore' },
  )
  web = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => {
      const { pathname } = new URL(request.url)
      if (pathname === '/moved') return Response.redirect('/', 302)
      return new Response('x', { status: pathname === '/broken' ? 500 : 200 })
    },
  })
  tls = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') },
    fetch: () => new Response('x'),
  })
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  const address = silent.address()
  silentPort = typeof address === 'object' && address !== null ? address.port : 0
})
afterAll(async () => {
  await web.stop(true)
  await tls.stop(true)
  silent.close()
  rmSync(folder, { recursive: true, force: true })
})

test('[AGT-062] a service check reports service_up with label name', async () => {
  expect(await valuesOf({ ...base, type: 'service', name: 'ssh' })).toEqual({ 'service_up {"name":"ssh"}': 1 })
  expect(await valuesOf({ ...base, type: 'service', name: 'gone' })).toEqual({ 'service_up {"name":"gone"}': 0 })
})

test('a unit that systemd does not know is not active, with or without systemd', async () => {
  expect(await isServiceActive('no-such-unit-of-this-test.service', 5_000)).toBe(false)
})

test('a Windows service is up in state 4, in any language of the system', () => {
  const query = (state: string) =>
    `SERVICE_NAME: Spooler\r\n        TYPE               : 110  WIN32\r\n        ${state}\r\n`
  expect(isScRunning(query('STATE              : 4  RUNNING'))).toBe(true)
  expect(isScRunning(query('STATUS             : 4  AKTIV'))).toBe(true)
  expect(isScRunning(query('STATE              : 1  STOPPED'))).toBe(false)
  expect(isScRunning('')).toBe(false)
})

test('[AGT-063] a port check reports port_up with labels port and proto', async () => {
  const port = web.port ?? 0
  const f = async (wanted: number, proto: 'tcp' | 'udp', expected: number) =>
    expect(await valuesOf({ ...base, type: 'port', port: wanted, proto })).toEqual({
      [`port_up {"port":"${wanted}","proto":"${proto}"}`]: expected,
    })
  await f(port, 'tcp', 1)
  await f(port, 'udp', 0)
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const bound = socket.address().port
  await f(bound, 'udp', 1)
  await new Promise<void>(resolve => socket.close(() => resolve()))
  await f(bound, 'udp', 0)
})

test('[AGT-064] a tcp check reports tcp_connect_up and tcp_connect_seconds with label target', async () => {
  const target = `127.0.0.1:${web.port}`
  const up = await valuesOf({ ...base, type: 'tcp', target })
  expect(Object.keys(up)).toEqual([
    `tcp_connect_up {"target":"${target}"}`,
    `tcp_connect_seconds {"target":"${target}"}`,
  ])
  expect(Object.values(up)[0]).toBe(1)
  expect(Object.values(up)[1]).toBeGreaterThan(0)
  const free = createServer()
  await new Promise<void>(resolve => free.listen(0, '127.0.0.1', resolve))
  const address = free.address()
  const closed = typeof address === 'object' && address !== null ? address.port : 0
  await new Promise<void>(resolve => free.close(() => resolve()))
  const down = await valuesOf({ ...base, type: 'tcp', target: `127.0.0.1:${closed}` })
  expect(Object.values(down)[0]).toBe(0)
})

const httpCheck = (url: string, expectStatus = 200): Check => ({ ...base, type: 'http', url, expectStatus })

test('[AGT-065] an http check reports http_up, http_duration_seconds and http_status_code with label target', async () => {
  const url = `http://127.0.0.1:${web.port}/`
  const found = await valuesOf(httpCheck(url))
  const label = JSON.stringify({ target: url })
  expect(Object.keys(found)).toEqual([
    `http_up ${label}`,
    `http_duration_seconds ${label}`,
    `http_status_code ${label}`,
  ])
  expect(found[`http_up ${label}`]).toBe(1)
  expect(found[`http_status_code ${label}`]).toBe(200)
})

test('an http check is up when the status is the expected one, whatever it is, and follows no redirect', async () => {
  const f = async (path: string, expectStatus: number, up: number, status: number) => {
    const values = Object.values(await valuesOf(httpCheck(`http://127.0.0.1:${web.port}${path}`, expectStatus)))
    expect([values[0], values[2]]).toEqual([up, status])
  }
  await f('/broken', 200, 0, 500)
  await f('/broken', 500, 1, 500)
  await f('/moved', 302, 1, 302)
  await f('/moved', 200, 0, 302)
})

test('an http check without an answer is down and has no status; a certificate that does not verify is no answer', async () => {
  for (const url of [
    `http://127.0.0.1:${silentPort}/`,
    `https://127.0.0.1:${tls.port}/`,
    'http://no-such-host.invalid/',
  ]) {
    const found = await valuesOf({ ...base, type: 'http', url, expectStatus: 200, timeoutMs: 300 })
    expect(Object.keys(found).length).toBe(2)
    expect(Object.values(found)[0]).toBe(0)
  }
})

test('[AGT-065] of a long url the label is a head and a hash: two that agree in 128 bytes are two series', async () => {
  const url = (end: string): string => `http://127.0.0.1:${web.port}/${'a'.repeat(200)}${end}`
  const label = async (end: string) => (await probe(httpCheck(url(end)), context))[0]?.labels.target
  const hash = createHash('sha256').update(url('1')).digest('hex').slice(0, 12)
  expect(await label('1')).toBe(`${url('1').slice(0, 115)}~${hash}`)
  expect(await label('2')).not.toBe(await label('1'))
})

test('[AGT-066] a cert check reports cert_days_left with label target, without verifying, negative once expired', async () => {
  const target = `127.0.0.1:${tls.port}`
  const check: Check = { ...base, type: 'cert', target }
  const days = Object.entries(await valuesOf(check))
  expect(days[0]?.[0]).toBe(`cert_days_left {"target":"${target}"}`)
  expect(days[0]?.[1]).toBeGreaterThan(29.9)
  expect(days[0]?.[1]).toBeLessThanOrEqual(30)
  const later = { ...context, now: () => Date.now() + 40 * DAY_MS }
  const expired = Object.values(await valuesOf(check, later))[0]!
  expect(expired).toBeLessThan(-9.9)
  const localhost = await valuesOf({ ...base, type: 'cert', target: `localhost:${tls.port}` })
  expect(Object.values(localhost)[0]).toBeGreaterThan(29)
})

for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
  test(`[AGT-066] a cert check of a server that asks for a certificate of ours reads its own over ${version}`, async () => {
    const demanding = createTlsServer({
      key: readFileSync(keyFile),
      cert: readFileSync(certFile),
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: version,
      maxVersion: version,
    })
    demanding.on('tlsClientError', () => {})
    try {
      await new Promise<void>(resolve => demanding.listen(0, '127.0.0.1', resolve))
      const address = demanding.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      const days = Object.values(await valuesOf({ ...base, type: 'cert', target: `127.0.0.1:${port}` }))
      expect(days[0]).toBeGreaterThan(29)
    } finally {
      demanding.close()
    }
  })

test('a cert check without a handshake counts as 0 days, not as silence', async () => {
  for (const target of [`127.0.0.1:${silentPort}`, `127.0.0.1:${web.port}`]) {
    const found = await valuesOf({ ...base, type: 'cert', target, timeoutMs: 300 })
    expect(Object.values(found)).toEqual([0])
  }
})

test('[AGT-064 AGT-066] checks by name are done while every thread of the pool waits for other names', () =>
  withHeldPool(async () => {
    const tcp = await valuesOf({ ...base, type: 'tcp', target: `localhost:${web.port}` })
    expect(Object.values(tcp)[0]).toBe(1)
    const cert = await valuesOf({ ...base, type: 'cert', target: `localhost:${tls.port}` })
    expect(Object.values(cert)[0]).toBeGreaterThan(29)
    const gone = await valuesOf({ ...base, type: 'tcp', target: `no-such-host.invalid:${web.port}` })
    expect(Object.values(gone)[0]).toBe(0)
  }))

test('what the system resolves is read address by address; a name that looks like an option is no name', async () => {
  const printed =
    '::1             STREAM localhost\n::1             DGRAM  \n127.0.0.1       STREAM \n127.0.0.1       RAW\n'
  expect(parseAhosts(`${printed}nonsense\n`)).toEqual(['::1', '127.0.0.1'])
  expect(await askAddresses('localhost', 5_000)).toMatchObject({ outcome: 'found' })
  expect(await askAddresses('--help', 5_000)).toEqual({ outcome: 'not_found' })
})

test('a name that nobody answers for in time fails the check, and never gets to the pool of the runtime', async () => {
  const pipe = join(folder, 'nobody-writes')
  const getent = join(folder, 'getent')
  execFileSync('mkfifo', [pipe])
  writeFileSync(getent, `#!/bin/sh\nread answer < ${pipe}\n`, { mode: 0o755 })
  // Late at once, with the most of the check's time left: the runtime would find localhost without asking anybody, and
  // the check would be up.
  const ask = (host: string) => askAddresses(host, 20, getent)
  expect(await ask('localhost')).toEqual({ outcome: 'late' })
  const silent = { ...context, askAddresses: ask }
  expect(Object.values(await valuesOf(httpCheck(`http://localhost:${web.port}/`), silent))[0]).toBe(0)
  const tcp: Check = { ...base, type: 'tcp', target: `localhost:${web.port}` }
  expect(Object.values(await valuesOf(tcp, silent))[0]).toBe(0)
})

test('on a host whose getent cannot be asked the runtime resolves', async () => {
  for (const getent of [join(folder, 'no-such-program'), 'false']) {
    const bare = { ...context, askAddresses: (host: string, ms: number) => askAddresses(host, ms, getent) }
    const tcp = await valuesOf({ ...base, type: 'tcp', target: `localhost:${web.port}` }, bare)
    expect(Object.values(tcp)[0]).toBe(1)
    expect(Object.values(await valuesOf(httpCheck(`http://localhost:${web.port}/`), bare))[0]).toBe(1)
  }
})

test('at most ten checks run at a time, none twice at once, each stamped with the time it finished', async () => {
  let running = 0
  let most = 0
  let nowMs = NOW_MS
  const started: string[] = []
  const release: (() => void)[] = []
  const isActive = async (name: string) => {
    started.push(name)
    most = Math.max(most, ++running)
    await new Promise<void>(resolve => release.push(resolve))
    running--
    return true
  }
  const runner = new CheckRunner({ ...context, now: () => nowMs, isServiceActive: isActive }, pino({ level: 'silent' }))
  const checks = Array.from(
    { length: 25 },
    (_, index): Check => ({ id: `c${index}`, type: 'service', name: `s${index}`, timeoutMs: 1_000 }),
  )
  runner.start(checks)
  runner.start(checks)
  await until('ten running checks', () => running === CHECKS_AT_A_TIME)
  expect(runner.take()).toEqual([])
  nowMs += 5_000
  while (started.length < 25 || running > 0) {
    for (const go of release.splice(0)) go()
    await until('the next checks', () => release.length > 0 || (started.length === 25 && running === 0))
  }
  await runner.awaitDone(1_000)
  expect(most).toBe(10)
  expect(started.toSorted()).toEqual(checks.map(({ id }) => id.replace('c', 's')).sort())
  const results = runner.take()
  expect(results.length).toBe(25)
  expect(results.every(({ tsMs }) => tsMs === NOW_MS + 5_000)).toBe(true)
  expect(runner.take()).toEqual([])
})

test('[AGT-060 AGT-061] checks of all five types run in every cycle, whatever interval the hub keeps', () =>
  withRig(async rig => {
    rig.peer.setConfig({
      etag: 'checks',
      checks: [
        { id: 'a', type: 'service', name: 'no-such-unit-of-this-test' },
        { id: 'b', type: 'port', port: web.port ?? 0, proto: 'tcp' },
        { id: 'c', type: 'tcp', target: `127.0.0.1:${web.port}` },
        { id: 'd', type: 'http', url: `http://127.0.0.1:${web.port}/` },
        { id: 'e', type: 'cert', target: `127.0.0.1:${tls.port}` },
      ],
    })
    await rig.start({ interval: '15s' })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'three batches')
    const counted = ['service_up', 'port_up', 'tcp_connect_up', 'http_up', 'cert_days_left']
    for (const name of counted) expect(rig.peer.points(name).length).toBe(3)
    const stamps = rig.peer.points('http_up').map(({ tsMs }) => tsMs)
    expect(stamps.slice(1).map((tsMs, index) => tsMs - stamps[index]!)).toEqual([15_000, 15_000])
    expect(rig.peer.points('service_up').every(({ value }) => value === 0)).toBe(true)
    // The last check is deleted at the hub: nothing remote goes on.
    rig.peer.setConfig({ etag: 'none' })
    await rig.clock.runUntil(() => rig.peer.batches.at(-1)?.stats?.configEtag === 'none', 'the config without checks')
    const before = rig.peer.points('http_up').length
    await rig.clock.runFor(60_000)
    expect(rig.peer.points('http_up').length).toBe(before)
  }))

test(
  'a check that is slow does not hold back the cycle',
  () =>
    withRig(async rig => {
      const slow = { type: 'http', url: `http://127.0.0.1:${silentPort}/`, timeout_seconds: 4 }
      await rig.start({ checks: { slow } })
      await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
      expect(rig.peer.points('http_up').length).toBe(0)
      expect(rig.peer.points('mem_total_bytes').length).toBe(1)
    }),
  20_000,
)
