import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { timingSafeEqual } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { isKnownToken } from '../../../apps/admin-api/authorize.ts'
import { startAdminListener } from '../../../apps/admin-api/listener.ts'
import { loadCollectorConfig, workerKeys } from '../../../apps/collector/config.ts'
import { createCollectorMetrics } from '../../../apps/collector/telemetry.ts'
import { startConfiguredOps } from '../../../apps/http/ops-server.ts'
import { firstCertificate, secondCertificate, type TestCertificate } from '../../ingest/certificates.ts'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { adminToken, type Json, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)

const faultsOf = (keys: Record<string, unknown>): string[] =>
  loadCollectorConfig(workerKeys, undefined, { 'admin.token': 'a', ...keys }).faults.map(fault => fault.key)

test('[ADM-009] the admin API is served on loopback unless told otherwise, and beyond this host only over TLS', () => {
  const { config } = loadCollectorConfig(workerKeys, undefined, { 'admin.token': 'a' })
  expect(config['admin.listen']).toStartWith('127.0.0.1:')
  expect(faultsOf({ 'admin.listen': '0.0.0.0:8082' })).toEqual(['admin.listen'])
  expect(faultsOf({ 'admin.listen': '10.0.0.5:8082' })).toEqual(['admin.listen'])
  const folder = mkdtempSync(join(tmpdir(), 'svc-admin-tls-'))
  const files = { 'tls.cert_file': join(folder, 'cert.pem'), 'tls.key_file': join(folder, 'key.pem') }
  writeFileSync(files['tls.cert_file'], firstCertificate.cert)
  writeFileSync(files['tls.key_file'], firstCertificate.key)
  expect(faultsOf({ 'admin.listen': '10.0.0.5:8082', ...files })).toEqual([])
  writeFileSync(files['tls.key_file'], secondCertificate.key)
  expect(faultsOf({ 'admin.listen': '10.0.0.5:8082', ...files })).toEqual(['tls.key_file'])
  rmSync(folder, { recursive: true })
})

test('an address that another process has is told of with its key, that of the ops listener too', async () => {
  const taken = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const address = `127.0.0.1:${taken.port}`
  const told = (key: string): string =>
    `${key}: cannot serve on ${address}: another process has the port; stop that one, or change ${key}`
  const admin = { 'admin.listen': address, 'tls.cert_file': null, 'tls.key_file': null }
  expect(() => startAdminListener(admin, () => new Response())).toThrow(told('admin.listen'))
  const ops = { 'ops.listen': address, 'ops.allowed_hosts': [] }
  expect(() => startConfiguredOps(ops, createCollectorMetrics('1.2.3', 'all'), [])).toThrow(told('ops.listen'))
  await taken.stop()
})

test('[ADM-008] every token is compared in full, by digests of one length, whatever was presented and whichever fits', () => {
  const compared: number[][] = []
  const isEqual = (a: Buffer, b: Buffer): boolean => {
    compared.push([a.length, b.length])
    return timingSafeEqual(a, b)
  }
  const tokens = ['the-token-of-now', 'the-one-before']
  const f = (presented: string, expected: boolean) => {
    compared.length = 0
    expect(isKnownToken(tokens, presented, isEqual)).toBe(expected)
    expect(compared).toEqual([
      [32, 32],
      [32, 32],
    ])
  }
  f('the-token-of-now', true)
  f('the-one-before', true)
  f('', false)
  f('t', false)
  f('the token of no', false)
  f('the token of now '.repeat(1000), false)
  expect(isKnownToken([''], '')).toBe(false)
  expect(isKnownToken([], '')).toBe(false)
})

describe('the listener of the admin API', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-admin-'))
  const certFile = join(directory, 'cert.pem')
  const keyFile = join(directory, 'key.pem')
  const writeCertificate = ({ cert, key }: TestCertificate): void => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
  }
  const keys = { 'tls.cert_file': certFile, 'tls.key_file': keyFile, 'admin.token_previous': 'the-one-before' }
  const rig = new WorkerRig({ keys, withoutHub: true })
  const company = id('admin company')
  const server = serverOf(company, 'a')
  const port = (): number => Number(new URL(rig.running.adminUrl).port)
  const call = async (method: string, path: string, init: Json = {}): Promise<{ status: number; body: Json }> => {
    const response = await fetch(`${rig.running.adminUrl}/internal/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
      tls: { rejectUnauthorized: false },
      ...init,
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  const withToken = (token: string) => call('GET', '/status', { headers: { authorization: `Bearer ${token}` } })
  const handshake = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
    new Promise<{ protocol: string; name: string }>(settle => {
      const options = { rejectUnauthorized: false, minVersion: version, maxVersion: version }
      const socket = connectTls({ port: port(), host: '127.0.0.1', ...options }, () => {
        settle({ protocol: socket.getProtocol() ?? 'none', name: String(socket.getPeerCertificate().subject.CN) })
        socket.destroy()
      })
      socket.on('error', () => settle({ protocol: 'refused', name: '' }))
    })

  beforeAll(async () => {
    writeCertificate(firstCertificate)
    rig.addServer(server)
    await rig.start()
  })
  afterAll(async () => {
    await rig.close()
    rmSync(directory, { recursive: true, force: true })
  })

  test('[ADM-009] with a certificate it speaks TLS 1.2 and later, and nothing else', async () => {
    expect(rig.running.adminUrl).toStartWith('https://')
    expect((await call('GET', '/status')).status).toBe(200)
    expect((await handshake('TLSv1.3')).protocol).toBe('TLSv1.3')
    expect((await handshake('TLSv1.2')).protocol).toBe('TLSv1.2')
    expect((await handshake('TLSv1.1')).protocol).toBe('refused')
    expect(
      await fetch(`http://127.0.0.1:${port()}/internal/v1/status`).then(
        response => response.ok,
        () => false,
      ),
    ).toBe(false)
  })

  test('[ADM-003] bodies that are too large, no JSON, no UTF-8 or cut off are bad_request in the form of every error', async () => {
    const path = `/agents/${server.agentId}`
    const chunks = (count: number) =>
      new ReadableStream({
        start(controller) {
          for (let sent = 0; sent < count; sent++) controller.enqueue(new Uint8Array(65_536).fill(32))
          controller.close()
        },
      })
    for (const body of [
      ' '.repeat(70_000),
      ' '.repeat(3_000_000),
      chunks(3),
      '',
      'null',
      '[]',
      '"x"',
      '{"company_id":',
      new Uint8Array([0xff, 0xfe, 0]),
      '{"company_id":{"$ne":1}}',
    ]) {
      const answer = await call('PUT', path, { body })
      expect(answer.status).toBe(400)
      expect(answer.body).toEqual({ error: { code: 'bad_request', message: expect.any(String) } })
    }
    expect((await call('GET', `/servers/${server.serverId}/status?company_id=${company}`)).status).toBe(200)
  })

  test('[ADM-025] [ADM-026] a slash at the end changes nothing; one too many in between is no path', async () => {
    expect((await call('GET', '/status/')).status).toBe(200)
    expect((await call('GET', '//status')).status).toBe(404)
    expect((await call('POST', '/status/')).status).toBe(405)
    expect((await call('DELETE', '/companies//data')).status).toBe(404)
    expect((await call('GET', '/companies/%zz/summary')).status).toBe(400)
    expect((await call('OPTIONS', '/status')).status).toBe(405)
  })

  test('[ADM-027] what a caller sends beyond the contract is left aside, in queries and in records', async () => {
    const extra = 'not_known_yet=1&page=%00&company_id=ignored'
    const owner = `company_id=${company}`
    for (const path of [
      `/status?${extra}`,
      `/companies/${company}/summary?${extra}`,
      `/servers/${server.serverId}/status?${owner}&${extra}`,
      `/servers/${server.serverId}/series?${owner}&metric=cpu_usage_percent&${extra}`,
    ])
      expect((await call('GET', path)).status).toBe(200)
    const record = {
      company_id: company,
      server_id: server.serverId,
      state: 'active',
      token_hash: 'b'.repeat(64),
      prev_token_hash: null,
      prev_token_expires_at: null,
      version: 1_000_000,
      not_known_yet: { deep: [1, null] },
    }
    const pushed = await call('PUT', `/agents/${server.agentId}`, { body: JSON.stringify(record) })
    expect(pushed.body.data).toMatchObject({ agent_id: server.agentId, version: 1_000_000, applied: true })
  })

  test('[REG-012] [REG-013] no record takes an agent out of revoked, and the answer says so', async () => {
    const server = serverOf(company, 'revoked')
    rig.addServer(server)
    const push = async (state: string, version: number): Promise<unknown> => {
      const record = {
        company_id: company,
        server_id: server.serverId,
        state,
        token_hash: 'c'.repeat(64),
        prev_token_hash: null,
        prev_token_expires_at: null,
        version,
      }
      return (await call('PUT', `/agents/${server.agentId}`, { body: JSON.stringify(record) })).body.data.applied
    }
    expect(await push('active', 1_000_000)).toBe(true)
    expect((await call('DELETE', `/agents/${server.agentId}`)).status).toBe(204)
    expect([await push('active', 1_000_001), await push('revoked', 1_000_002)]).toEqual([false, true])
  })

  test('calls are counted by path and status, refused ones too', async () => {
    const path = '/internal/v1/companies/:company_id/summary'
    const counted = (endpoint: string, code: number) =>
      rig.metric(`svc_http_requests_total{endpoint="${endpoint}",code="${code}"}`)
    await call('GET', `/companies/${company}/summary`)
    const [before, denied, unknown] = [await counted(path, 200), await counted(path, 401), await counted('other', 404)]
    await call('GET', `/companies/${company}/summary`)
    await call('GET', `/companies/${company}/summary`, { headers: {} })
    await call('GET', '/nothing')
    expect(await counted(path, 200)).toBe(before + 1)
    expect(await counted(path, 401)).toBe((denied || 0) + 1)
    expect(await counted('other', 404)).toBe(unknown + 1)
  })

  test('a thousand calls at once are all answered', async () => {
    const owner = `company_id=${company}`
    const paths = [
      '/status',
      `/companies/${company}/summary`,
      `/servers/${server.serverId}/status?${owner}`,
      `/servers/${server.serverId}/series?${owner}&metric=mem_used_percent`,
      `/servers/${server.serverId}/alerting?${owner}`,
    ]
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, index) => call('GET', paths[index % paths.length] ?? '/status')),
    )
    expect(new Set(answers.map(answer => answer.status))).toEqual(new Set([200]))
  })

  test('[ADM-007] [ADM-009] tokens and certificate are changed without a gap; files that cannot be used change nothing', async () => {
    expect((await withToken('the-one-before')).status).toBe(200)
    const reread = (changes: Record<string, unknown>) =>
      loadCollectorConfig(workerKeys, undefined, { 'admin.listen': '127.0.0.1:0', ...keys, ...changes }).config
    writeFileSync(certFile, 'no certificate')
    expect(() => rig.running.reloadAdmin(reread({ 'admin.token': 'the-next' }))).toThrow()
    expect((await withToken(adminToken)).status).toBe(200)
    expect((await withToken('the-next')).status).toBe(401)
    writeCertificate(secondCertificate)
    rig.running.reloadAdmin(reread({ 'admin.token': 'the-next', 'admin.token_previous': adminToken }))
    for (const [token, status] of [
      ['the-next', 200],
      [adminToken, 200],
      ['the-one-before', 401],
    ] as const)
      expect((await withToken(token)).status).toBe(status)
    expect(await until('the new certificate', async () => (await handshake('TLSv1.3')).name === 'second')).toBe(true)
  })
})
