// A matcher with the real hub on a real database: from a code on the screen to a finding of a server, and back.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { freePort } from '../../../apps/standalone/ports.ts'
import { type Call, type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { nameDatabase } from '../databases.ts'
import { adminToken, Rig } from '../rig.ts'
import { packagesOf, reportOf, type ScanClient } from '../scan-client.ts'

setDefaultTimeout(60_000)
const port = freePort()
let hub: TestHub
let tenant: Tenant
let rig: Rig
let call: Call

beforeAll(async () => {
  hub = await TestHub.start({ 'matcher.url': `http://127.0.0.1:${port}`, 'matcher.token': adminToken })
  tenant = await hub.tenant({ agent_quota: null, metrics_retention_days: null }, { planCode: 'pro' })
  call = tenant.call
  const { token, id } = await hub.matcher()
  rig = await new Rig({
    keys: { 'hub.url': hub.url, 'hub.token': token, 'admin.listen': `127.0.0.1:${port}`, matcher_id: id },
    prepare: async dir =>
      void (await nameDatabase(dir, { openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1', 'CVE-2024-0002': null } })),
  }).start()
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
})
afterAll(async () => {
  await rig.dispose()
  await hub.stop()
})

async function data(method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body?.data
}

const findingsOf = async (query: string): Promise<Json[]> => data('GET', `/security/findings?${query}`)

async function enrolled(name: string): Promise<ScanClient> {
  const { code } = await data('POST', '/security/scan-hosts/enrolment-codes', {})
  const client = rig.client(name)
  const answer = await client.enroll(code)
  expect(answer.status).toBe(201)
  return client
}

test('[MAT-032] [MAT-053] enroll, report, attach: the findings of a report are those of the server, within 2 s', async () => {
  const client = await enrolled('web-1')
  const server = await data('POST', '/servers', { name: 'web-1', hostname: 'web-1.example.net' })
  const startedMs = performance.now()
  expect((await client.report(reportOf('web-1'))).body).toMatchObject({ match_status: 'ok', open_findings: 2 })
  await until('the findings', async () => (await findingsOf('status=open')).length === 2)
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  await data('POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: server.id })
  const found = await until('the findings of the server', async () => {
    const findings = await findingsOf(`server_id=${server.id}&status=open`)
    return findings.length === 2 && findings
  })
  expect(found.map((finding: Json) => [finding.vuln_id, finding.package_key, finding.fix_status]).toSorted()).toEqual([
    ['CVE-2024-0001', 'openssl', 'fixed'],
    ['CVE-2024-0002', 'openssl', 'no_fix'],
  ])
  await until('the server at the matcher', () => rig.state.host(client.hostId)?.serverId === server.id)
  const packages = await data('GET', `/servers/${server.id}/packages`)
  expect(JSON.stringify(packages)).toContain('libssl3')
  const upgraded = packagesOf(['bash', '5.2.15-2+b2'], ['openssl', '3.0.13-1~deb12u1'])
  expect((await client.report(reportOf('web-1', { packages: upgraded }))).status).toBe(200)
  await until('the resolution', async () => (await findingsOf(`server_id=${server.id}&status=open`)).length === 1)
  const [resolved] = await findingsOf(`server_id=${server.id}&status=resolved`)
  expect(resolved).toMatchObject({ vuln_id: 'CVE-2024-0001', resolved_reason: 'package_updated' })
})

test('[MAT-223] reference data of what is open arrive, and the hub takes every event', async () => {
  await until('the reference data', () => rig.state.referencesToSend(10).length === 0, 30_000)
  expect(rig.state.counters()).toMatchObject({ deadLetters: 0, outboxDepth: 0 })
  expect(await rig.metrics.scrape()).not.toContain('svc_matcher_events_rejected_total{')
})

test('[MAT-037] codes that are used or unknown are refused, and a new key is taken', async () => {
  const { code } = await data('POST', '/security/scan-hosts/enrolment-codes', {})
  const client = rig.client('web-2')
  expect((await client.enroll(code)).status).toBe(201)
  expect(await rig.client('web-3').enroll(code)).toMatchObject({ status: 401, code: 'invalid_code' })
  expect(await rig.client('web-3').enroll('nothing')).toMatchObject({ status: 401, code: 'invalid_code' })
  expect((await client.rotate()).status).toBe(200)
  expect((await client.report(reportOf('web-2'))).status).toBe(200)
  await data('POST', `/security/scan-hosts/${client.hostId}/revoke`)
  await until('the revocation', async () => (await client.reportHash('0'.repeat(64))).code === 'host_revoked')
})

test('[MAT-171] a resync that somebody asks for reaches the matcher', async () => {
  const before = rig.state.counters().events['finding.opened']
  expect((await call('POST', '/security/resync')).status).toBeLessThan(300)
  await until('the events', () => rig.state.counters().events['finding.opened'] > before)
  await until('their delivery', () => rig.state.counters().outboxDepth === 0)
})

test('[MAT-053] [MAT-164] what is rejected since the feed lagged behind a detachment is told anew', async () => {
  const rejections = async (): Promise<number> =>
    (await rig.metrics.scrape()).split('svc_matcher_events_rejected_total{reason="unknown_server"}').length - 1
  const openVulns = async (host: string): Promise<string> =>
    (await findingsOf(`status=open&limit=500`))
      .filter((finding: Json) => finding.host_id === host)
      .map((finding: Json) => finding.vuln_id)
      .toSorted()
      .join()
  // Mostly the first detachment is quicker than the feed; when it was not, another round shows it.
  for (let round = 0; round < 20 && (await rejections()) === 0; round++) {
    const client = await enrolled(`moved-${round}`)
    const server = await data('POST', '/servers', { name: `moved-${round}`, hostname: `moved-${round}.example.net` })
    await data('POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: server.id })
    await until('the server at the matcher', () => rig.state.host(client.hostId)?.serverId === server.id)
    expect((await client.report(reportOf(`moved-${round}`))).status).toBe(200)
    await until('both findings', async () => (await openVulns(client.hostId)) === 'CVE-2024-0001,CVE-2024-0002')
    await data('POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: null })
    const packages = packagesOf(['openssl', '3.0.13-1~deb12u1'])
    expect((await client.report(reportOf(`moved-${round}`, { packages }))).status).toBe(200)
    await until('the resolution', async () => (await openVulns(client.hostId)) === 'CVE-2024-0002')
  }
  expect(await rejections()).toBe(1)
})
