// Two companies with a scan host each, a matcher and the real hub: what the one tries with its key, its codes, its
// token and its reports reaches nothing of the other (MAT-189, MAT-200, SEC-020).
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { freePort } from '../../../apps/standalone/ports.ts'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { nameDatabase } from '../databases.ts'
import { adminToken, Rig } from '../rig.ts'
import { contentHash, machineHash, packagesOf, reportOf, type ScanClient } from '../scan-client.ts'

setDefaultTimeout(60_000)
const port = freePort()
let hub: TestHub
let rig: Rig
/** Who attacks, and who is attacked. */
let mallory: Party
let alice: Party

type Party = {
  readonly tenant: Tenant
  readonly client: ScanClient
  readonly serverId: string
  readonly findingId: string
}

/** Formulas, markup, lines and directions in the names of packages: all of them are data. */
const HOSTILE_SOURCE = '=HYPERLINK("http://203.0.113.1","x")'
const HOSTILE_NAMES = [
  '=cmd|calc',
  '+1+1',
  '<script>alert(1)</script>',
  '"; drop table security_findings; --',
  'a\r\n=1+1',
  '\u202Egnp.exe',
  '../../etc/passwd',
  '__proto__',
]

async function data(tenant: Tenant, method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await tenant.call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body?.data
}

const codeOf = async (tenant: Tenant): Promise<string> =>
  (await data(tenant, 'POST', '/security/scan-hosts/enrolment-codes', {})).code

async function enrolled(tenant: Tenant, name: string): Promise<ScanClient> {
  const client = rig.client(name)
  expect((await client.enroll(await codeOf(tenant))).status).toBe(201)
  return client
}

const ofAlice = { packages: packagesOf(['openssl', '3.0.11-1~deb12u2'], ['alices-own-package', '1.0-1']) }

async function partyOf(name: string): Promise<Party> {
  const tenant = await hub.tenant({ agent_quota: null, metrics_retention_days: null }, { planCode: 'pro' })
  const client = await enrolled(tenant, name)
  const { id: serverId } = await data(tenant, 'POST', '/servers', { name, hostname: `${name}.example.net` })
  await data(tenant, 'POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: serverId })
  expect((await client.report(reportOf(name, ofAlice))).status).toBe(200)
  const [finding] = await until('the finding, with what is known of its vulnerability', async () => {
    const found = await data(tenant, 'GET', `/security/findings?server_id=${serverId}&status=open`)
    return found[0]?.title && found
  })
  await until('the server at the matcher', () => rig.state.host(client.hostId)?.serverId === serverId)
  return { tenant, client, serverId, findingId: finding.id }
}

beforeAll(async () => {
  hub = await TestHub.start({ 'matcher.url': `http://127.0.0.1:${port}`, 'matcher.token': adminToken })
  const { token, id } = await hub.matcher()
  rig = await new Rig({
    keys: { 'hub.url': hub.url, 'hub.token': token, 'admin.listen': `127.0.0.1:${port}`, matcher_id: id },
    prepare: async dir =>
      void (await nameDatabase(dir, {
        openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1' },
        [HOSTILE_SOURCE]: { 'CVE-2024-0666': '2.0-1' },
      })),
  }).start()
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
  alice = await partyOf('alice')
  mallory = await partyOf('mallory')
})
afterAll(async () => {
  await rig.dispose()
  await hub.stop()
})

/** Everything that Alice has of her host and her findings. */
async function allOfAlice(): Promise<string> {
  const { tenant, client, serverId } = alice
  const paths = ['/security/findings?per_page=100', '/security/exceptions', '/security/scan-hosts']
  const parts = await Promise.all([...paths, `/servers/${serverId}/packages`].map(path => data(tenant, 'GET', path)))
  const [findings, exceptions, hosts, packages] = parts
  // When it was last seen, and when that was told, may move by itself.
  const { last_seen_at: _seen, ...host } = hosts.find((each: Json) => each.id === client.hostId)
  const { seenToldAtMs: _told, ...known } = rig.state.host(client.hostId) ?? { seenToldAtMs: 0 }
  return JSON.stringify([findings, exceptions, host, packages, known])
}

const statusOf = async (method: string, path: string, body?: unknown): Promise<number> =>
  (await mallory.tenant.call(method, path, body)).status

describe('with the key of a scan host', () => {
  test('[MAT-035] [MAT-189] reports, rotations and hashes for the host of another company are refused, and change nothing', async () => {
    const before = await allOfAlice()
    const { client } = mallory
    const asAlice = { headers: { 'x-svc-scan-host': alice.client.hostId } }
    const empty = reportOf('alice', { packages: packagesOf(['bash', '1']) })
    expect(await client.report(empty, asAlice)).toMatchObject({ status: 401, code: 'unauthorized' })
    // Signed for it, too: the key is still another.
    const own = client.hostId
    client.hostId = alice.client.hostId
    expect(await client.report(empty)).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(await client.rotate()).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(await client.reportHash(contentHash(reportOf('alice', ofAlice)))).toMatchObject({ status: 401 })
    client.hostId = own
    expect(await allOfAlice()).toBe(before)
  })

  test('[MAT-023] [MAT-189] the hash of what another host reported tells nothing, and is no report', async () => {
    const answer = await mallory.client.reportHash(contentHash(reportOf('alice', ofAlice)))
    expect(answer).toMatchObject({ status: 409, code: 'need_report' })
  })

  test('[MAT-034] an older report, and one that is sent again, change nothing', async () => {
    const client = await enrolled(mallory.tenant, 'replayer')
    const timeMs = client.nextTimeMs()
    const first = await client.report(reportOf('replayer', ofAlice), { timeMs })
    expect(first).toMatchObject({ status: 200, body: { open_findings: 1 } })
    const other = reportOf('replayer', { packages: packagesOf(['openssl', '3.0.13-1~deb12u1']) })
    expect(await client.report(other, { timeMs })).toMatchObject({ status: 409, code: 'replayed' })
    expect(await client.report(other, { timeMs: timeMs - 1 })).toMatchObject({ status: 409, code: 'replayed' })
    await rig.delivered()
    const findings: Json[] = await data(mallory.tenant, 'GET', '/security/findings?status=open&server_id=none')
    expect(findings.filter(each => each.host_id === client.hostId)).toHaveLength(1)
  })

  test('[MAT-036] the machine-id of another host is refused', async () => {
    expect(await mallory.client.report(reportOf('alice'))).toMatchObject({ status: 409, code: 'machine_changed' })
  })

  test('[MAT-039] a body that inflates beyond its limit is refused, and the matcher goes on', async () => {
    const bomb = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024))
    expect(await mallory.client.call('POST', '/report', { body: bomb, encoding: 'zstd' })).toMatchObject({
      status: 413,
    })
    const deep = Buffer.from(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)
    expect((await mallory.client.call('POST', '/report', { body: deep })).status).toBe(400)
    expect((await mallory.client.call('GET', '/ping')).status).toBe(200)
  })

  test('[SEC-002] what signs reports opens nothing at the hub', async () => {
    const { client } = mallory
    for (const token of [client.publicKey, client.hostId, adminToken]) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ events: [] })
      expect((await fetch(`${hub.url}/api/v1/security/matcher/events`, { method: 'POST', headers, body })).status).toBe(
        401,
      )
    }
  })
})

describe('with codes', () => {
  test('[MAT-037] [SEC-053] a code that another company has used is good for nobody else', async () => {
    const code = await codeOf(alice.tenant)
    const own = rig.client('alice-2')
    expect((await own.enroll(code)).status).toBe(201)
    expect(await rig.client('mallory-2').enroll(code)).toMatchObject({ status: 401, code: 'invalid_code' })
  })

  test('[MAT-036] [SEC-053] the machine-id of another company enrolls a host of its own, and leaves the other alone', async () => {
    const before = await allOfAlice()
    const twin = rig.client('twin')
    const machine_id_hash = machineHash('alice')
    expect((await twin.enroll(await codeOf(mallory.tenant), { machine_id_hash })).status).toBe(201)
    expect(twin.hostId).not.toBe(alice.client.hostId)
    const claims = { company_id: alice.tenant.companyId, server_id: alice.serverId, host_id: alice.client.hostId }
    const liar = rig.client('liar')
    // What a body says of its company is not looked at.
    expect((await liar.enroll(await codeOf(mallory.tenant), claims)).status).toBe(201)
    await until('the host at the matcher', () => rig.state.host(liar.hostId)?.companyId === mallory.tenant.companyId)
    expect(await allOfAlice()).toBe(before)
  })

  test('[SECU-009] [SEC-053] a code for the server of another company is refused', async () => {
    expect(await statusOf('POST', '/security/scan-hosts/enrolment-codes', { server_id: alice.serverId })).toBe(422)
  })
})

describe('with a token of the API', () => {
  test('[MAT-200] [SECU-001] nothing of another company is there, by whatever id', async () => {
    const before = await allOfAlice()
    const { serverId, findingId, client, tenant } = alice
    const exception = await data(tenant, 'POST', '/security/exceptions', {
      type: 'false_positive',
      reason: 'not built in',
      finding_ids: [findingId],
    })
    const started = await data(tenant, 'POST', '/security/exports', { format: 'csv' })
    const notFound: [string, string, unknown?][] = [
      ['GET', `/security/findings/${findingId}`],
      ['GET', `/servers/${serverId}/security`],
      ['GET', `/servers/${serverId}/packages`],
      ['POST', `/security/exceptions/${exception.id}/approve`],
      ['POST', `/security/exceptions/${exception.id}/reject`],
      ['DELETE', `/security/exceptions/${exception.id}`],
      ['GET', `/security/exports/${started.id}/download`],
      ['POST', `/security/scan-hosts/${client.hostId}/revoke`],
      ['POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: mallory.serverId }],
    ]
    for (const [method, path, body] of notFound) expect([path, await statusOf(method, path, body)]).toEqual([path, 404])
    // Her own host on the server of another.
    const attach = `/security/scan-hosts/${mallory.client.hostId}/attach`
    expect(await statusOf('POST', attach, { server_id: serverId })).toBe(422)
    const wanted = { type: 'false_positive', reason: 'mine now' }
    expect(await statusOf('POST', '/security/exceptions', { ...wanted, finding_ids: [findingId] })).toBe(422)
    expect(await statusOf('POST', '/security/exceptions', { ...wanted, filter: { server_id: serverId } })).toBe(422)
    const search = await data(mallory.tenant, 'GET', '/security/packages/search?name=alices-own-package')
    expect(search.map((row: Json) => row.server?.id ?? row.server_id)).toEqual([mallory.serverId])
    const others = { 'x-company-id': tenant.companyId }
    expect((await mallory.tenant.call('GET', '/security/findings', undefined, others)).status).toBeGreaterThanOrEqual(
      403,
    )
    await data(tenant, 'DELETE', `/security/exceptions/${exception.id}`)
    const now = JSON.parse(await allOfAlice())
    now[1] = []
    expect(JSON.stringify(now)).toBe(before)
  })

  test('[SEC-003] events, reference data and hosts are for the matcher alone', async () => {
    const event = {
      event_id: '0'.repeat(64),
      type: 'finding.resolved',
      company_id: alice.tenant.companyId,
      server_id: alice.serverId,
      host_id: alice.client.hostId,
      seq: Number.MAX_SAFE_INTEGER,
      occurred_at: new Date().toISOString(),
      payload: {},
    }
    expect(await statusOf('POST', '/security/matcher/events', { events: [event] })).toBe(403)
    expect(await statusOf('PUT', '/security/matcher/vulnerabilities', { items: [] })).toBe(403)
    expect(await statusOf('GET', '/security/matcher/scan-hosts')).toBe(403)
    expect(await statusOf('GET', `/security/matcher/settings/${alice.tenant.companyId}`)).toBe(403)
  })

  test('[MAT-171] [MAT-200] a resync tells of the own company, and the internal API of the matcher takes no such token', async () => {
    const events = async (company: Tenant): Promise<number> =>
      (
        await hub.hub.database.client`
        select 1 from security_finding_events where company_id = ${company.companyId} and type = 'finding.opened'`
      ).length
    const [before, own] = [await events(alice.tenant), await events(mallory.tenant)]
    expect(await statusOf('POST', '/security/resync')).toBe(202)
    await until('the own events', async () => (await events(mallory.tenant)) > own)
    await rig.delivered()
    expect(await events(alice.tenant)).toBe(before)
    const path = `/servers/${alice.serverId}/packages?company_id=`
    expect((await rig.admin('GET', `${path}${alice.tenant.companyId}`, mallory.tenant.token)).status).toBe(401)
    // The hub itself gets nothing of a server for another company, nor for none.
    expect((await rig.admin('GET', `${path}${mallory.tenant.companyId}`)).status).toBe(404)
    expect((await rig.admin('GET', `${path}${randomUUID()}`)).status).toBe(404)
  })
})

describe('with what a report says', () => {
  test('[SECU-009] [MAT-021] hostile names are data: in lists, searches and tables', async () => {
    const { tenant } = mallory
    const client = await enrolled(tenant, 'hostile')
    const { id: serverId } = await data(tenant, 'POST', '/servers', { name: '=1+1', hostname: 'hostile.example.net' })
    await data(tenant, 'POST', `/security/scan-hosts/${client.hostId}/attach`, { server_id: serverId })
    const rows = HOSTILE_NAMES.map(name => [name, '1.0-1', HOSTILE_SOURCE] as const)
    expect((await client.report(reportOf('hostile', { packages: packagesOf(...rows) }))).status).toBe(200)
    const [finding] = await until('the finding', async () => {
      const found = await data(tenant, 'GET', '/security/findings?status=open&vuln_id=CVE-2024-0666')
      return found.length === 1 && found
    })
    expect(finding).toMatchObject({ package_key: HOSTILE_SOURCE, server: { id: serverId } })
    expect(finding.packages.map((each: Json) => each.name).toSorted()).toEqual(HOSTILE_NAMES.toSorted())
    await until('the server at the matcher', () => rig.state.host(client.hostId)?.serverId === serverId)
    const packages = await data(tenant, 'GET', `/servers/${serverId}/packages`)
    expect(packages.map((each: Json) => each.name).toSorted()).toEqual(HOSTILE_NAMES.toSorted())
    for (const name of HOSTILE_NAMES.filter(each => !each.includes('\n')))
      expect(await data(tenant, 'GET', `/security/packages/search?name=${encodeURIComponent(name)}`)).toHaveLength(1)
    const { id } = await data(tenant, 'POST', '/security/exports', { format: 'csv' })
    const text = await until('the export', async () => {
      const headers = { authorization: `Bearer ${tenant.token}` }
      const response = await fetch(`${hub.url}/api/v1/security/exports/${id}/download`, { headers })
      return response.status === 200 && (await response.text())
    })
    const lines: Record<string, string>[] = parse(text, { columns: true })
    for (const line of lines) for (const cell of Object.values(line)) expect(cell).not.toMatch(/^\s*[=+\-@|]/)
    expect(lines.find(line => line.vuln_id === 'CVE-2024-0666')?.package_key).toBe(`'${HOSTILE_SOURCE}`)
    expect(text).not.toContain(alice.tenant.companyId)
    expect(text).not.toContain(alice.serverId)
  })
})
