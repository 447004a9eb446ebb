// A whole matcher between scanners and a hub: what becomes of a report, and of what the hub asks.
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { startOpsServer } from '../../apps/http/ops-server.ts'
import { databaseFolder } from '../../apps/matcher/database-link.ts'
import { openMatcher } from '../../apps/matcher/open-matcher.ts'
import { until } from '../support/until.ts'
import { nameDatabase, nameSources } from './databases.ts'
import { openFindings, Rig } from './rig.ts'
import { packagesOf, reportOf } from './scan-client.ts'

const rigs: Rig[] = []
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.dispose()
})

async function startRig(options: ConstructorParameters<typeof Rig>[0] = {}): Promise<Rig> {
  const rig = await new Rig(options).start()
  rigs.push(rig)
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null)
  return rig
}

const withDatabase = (fixes: Parameters<typeof nameDatabase>[1]) => ({
  prepare: async (dir: string) => void (await nameDatabase(dir, fixes)),
})
const vulnsOf = (rig: Rig, hostId: string): string[] =>
  [...openFindings(rig.told(hostId)).values()].map(finding => finding.vuln_id).toSorted()
const openssl = { openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1', 'CVE-2024-0002': null } }

describe('reports', () => {
  test('[MAT-032] [MAT-053] enroll, report, attach: findings are at the hub within 2 s, and name the server once there is one', async () => {
    const rig = await startRig(withDatabase(openssl))
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const startedMs = performance.now()
    const answer = await client.report(reportOf('web'))
    expect(answer.body).toMatchObject({ match_status: 'ok', open_findings: 2 })
    await until('both findings', () => vulnsOf(rig, client.hostId).length === 2)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    expect(vulnsOf(rig, client.hostId)).toEqual(['CVE-2024-0001', 'CVE-2024-0002'])
    expect(rig.told(client.hostId).every(event => event.server_id === null)).toBe(true)
    const server = randomUUID()
    rig.hub.putHost({ host_id: client.hostId, server_id: server })
    await until('the server', () => rig.state.host(client.hostId)?.serverId === server)
    const packages = packagesOf(['libssl3', '3.0.13-1~deb12u1', 'openssl'])
    await client.report(reportOf('web', { packages }))
    await until('the resolution', () => vulnsOf(rig, client.hostId).length === 1)
    await rig.delivered()
    const last = rig.told(client.hostId).slice(-3)
    expect(last.map(event => [event.type, event.server_id])).toContainEqual(['finding.resolved', server])
    expect(last.at(-1)).toMatchObject({ type: 'server.scanned', server_id: server })
  })

  test('[MAT-153] [MAT-254] without a database the packages are kept, and the first database matches them within 5 s', async () => {
    const rig = await startRig()
    const client = await rig.enrolled('early')
    expect((await client.report(reportOf('early'))).body).toMatchObject({ match_status: 'no_db', open_findings: 0 })
    const startedMs = performance.now()
    const version = await nameDatabase(rig.dir, openssl)
    await until('the findings', () => vulnsOf(rig, client.hostId).length === 2)
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(rig.state.currentVersion()).toBe(version)
    await rig.stop()
    await rig.start()
    expect(rig.state.currentVersion()).toBe(version)
    expect(rig.state.counters().findingsOpen).toBe(2)
  })

  test('[MAT-070] [MAT-210] [MAT-222] a state whose database is gone says version 0 until there is one', async () => {
    const rig = await startRig()
    await nameDatabase(rig.dir, openssl)
    await until('the database', () => rig.state.currentVersion() > 0)
    await rig.stop()
    rmSync(databaseFolder(rig.dir), { recursive: true })
    const opened = await openMatcher({ config: rig.config, log: rig.log })
    expect(opened.dbVersion()).toBe(0)
    await opened.stop()
    const beats = rig.hub.to('/heartbeat').length
    await rig.start()
    const said = async () => [
      (await rig.admin('GET', '/status')).data?.db_version,
      (await rig.metrics.scrape()).match(/^svc_matcher_db_version (\d+)$/m)?.[1],
    ]
    expect(await said()).toEqual([0, '0'])
    const beat = await until('the heartbeat', () => rig.hub.to('/heartbeat')[beats])
    expect(beat.body).toMatchObject({ db_version: 0 })
    const version = await nameDatabase(rig.dir, openssl)
    await until('the database', async () => (await said())[0] === version)
    expect(await said()).toEqual([version, String(version)])
  })

  test('[MAT-183] another database is followed while the matcher runs, and only what changed is told', async () => {
    const rig = await startRig(withDatabase(openssl))
    await until('the database', () => rig.state.currentVersion() > 0)
    const [one, two] = [await rig.enrolled('one'), await rig.enrolled('two')]
    await one.report(reportOf('one'))
    await two.report(reportOf('two', { packages: packagesOf(['bash', '5.2.15-2']) }))
    await rig.delivered()
    const before = rig.told().length
    await nameDatabase(rig.dir, { ...openssl, bash: { 'CVE-2024-0003': '5.2.21-1' } })
    await until('the new finding', () => vulnsOf(rig, two.hostId).length === 1)
    await rig.state.rematched()
    await rig.delivered()
    const added = rig.told().slice(before)
    expect(added.map(event => event.type)).toEqual(['finding.opened', 'finding.opened'])
    expect(new Set(added.map(event => event.host_id))).toEqual(new Set([one.hostId, two.hostId]))
  })
})

describe('the hub', () => {
  test('[MAT-222] [MAT-223] it gets a heartbeat, and reference data of what is open', async () => {
    const rig = await startRig(withDatabase(openssl))
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    await client.report(reportOf('web'))
    await until('the reference data', () => rig.hub.vulnerabilities.size === 2, 20_000)
    expect(rig.hub.vulnerabilities.get('CVE-2024-0001')).toMatchObject({ kev: false, aliases: [], kev_due_date: null })
    const [beat] = rig.hub.to('/heartbeat')
    expect(beat?.body).toEqual({ version: expect.any(String), db_version: expect.any(Number), queue_depth: 0 })
  })

  test('[MAT-150] [MAT-223] scores and aliases that change alone make no event, and reach the hub as reference data', async () => {
    const record = (more: object) => ({
      schema_version: '1.7.0',
      id: 'UBUNTU-CVE-2024-1',
      modified: '2026-01-02T03:04:05Z',
      upstream: ['CVE-2024-0001'],
      affected: [
        {
          package: { ecosystem: 'Ubuntu:24.04:LTS', name: 'openssl' },
          ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '3.0.13-1' }] }],
        },
      ],
      ...more,
    })
    const ubuntu = (more: object) => ({ ubuntu: { 'all.jsonl': JSON.stringify(record(more)) } })
    const rig = await startRig({ prepare: async dir => void (await nameSources(dir, ubuntu({}))) })
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const os = { id: 'ubuntu', version_id: '24.04', codename: 'noble', id_like: ['debian'], cpe_name: '' }
    await client.report(reportOf('web', { os }))
    await until('the reference data', () => rig.hub.vulnerabilities.has('CVE-2024-0001'), 20_000)
    await rig.delivered()
    const before = rig.told()
    expect(before.map(({ type }) => type)).toEqual(['finding.opened', 'server.scanned'])
    const vector = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
    const changed = ubuntu({ aliases: ['CVE-2024-0001', 'GHSA-2'], severity: [{ type: 'CVSS_V3', score: vector }] })
    const version = await nameSources(rig.dir, changed)
    await until('the new database', () => rig.state.currentVersion() === version)
    await until(
      'the new reference data',
      () => rig.hub.vulnerabilities.get('CVE-2024-0001')?.cvss_vector === vector,
      20_000,
    )
    expect(rig.hub.vulnerabilities.get('CVE-2024-0001')).toMatchObject({ cvss_score: 9.8, aliases: ['GHSA-2'] })
    await rig.state.rematched()
    await rig.delivered()
    expect(rig.told()).toEqual(before)
  })

  test('[MAT-220] the last known settings are kept while the hub is away, and over a restart', async () => {
    const rig = await startRig()
    rig.hub.settings.set(rig.company, { scan_interval_hours: 6, version: 9 })
    const client = await rig.enrolled('web')
    await rig.hub.stop()
    const told = (await client.report(reportOf('web'))).body.settings
    expect(told).toMatchObject({ interval_seconds: 21_600, version: 9 })
    await rig.stop()
    await rig.start()
    expect(rig.state.settings(rig.company)).toMatchObject({ scanIntervalHours: 6, version: 9 })
    rig.hub.restart()
    await rig.delivered()
    expect(rig.told(client.hostId)).toHaveLength(1)
  })

  test('[MAT-050] [MAT-051] the feed is read page by page to its end, and a lower version changes nothing', async () => {
    const rig = new Rig()
    rig.hub.pageMax = 7
    const hosts = Array.from({ length: 40 }, () => randomUUID())
    const publicKey = rig.hub.putHost({ host_id: randomUUID() }).public_key || 'A'.repeat(43).concat('=')
    for (const host_id of hosts) rig.hub.putHost({ host_id, company_id: rig.company, public_key: publicKey })
    rigs.push(await rig.start())
    await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null)
    expect(hosts.every(hostId => rig.state.host(hostId)?.companyId === rig.company)).toBe(true)
    expect(rig.hub.to('/scan-hosts').length).toBeGreaterThan(5)
    // The record without a key and a company cannot be read, and holds up none of the others.
    expect(rig.lines.some(line => line.includes('records of the feed cannot be read'))).toBe(true)
    const [first] = hosts
    rig.hub.putHost({ host_id: first!, deleted: true })
    await until('the deletion', () => rig.state.host(first!)?.state !== 'active')
  })

  test('[MAT-051] of two records the version says which is newer, not their place in the feed', async () => {
    const rig = new Rig()
    const hostId = randomUUID()
    const publicKey = 'A'.repeat(43).concat('=')
    const put = (version: number, host: { state?: 'active' | 'revoked'; server_id?: string }) =>
      rig.hub.putHost({ host_id: hostId, company_id: rig.company, public_key: publicKey, version, ...host })
    const other = async () => {
      const later = rig.hub.putHost({ host_id: randomUUID(), company_id: rig.company, public_key: publicKey })
      await until('the page with it', () => rig.state.host(later.host_id) !== null)
    }
    put(3, { state: 'revoked' })
    rigs.push(await rig.start())
    await until('the revocation', () => rig.state.host(hostId)?.state === 'revoked')
    put(2, { state: 'active' })
    await other()
    expect(rig.state.host(hostId)?.state).toBe('revoked')
    const [first, second] = [randomUUID(), randomUUID()]
    put(4, { state: 'active', server_id: first })
    await until('the higher version', () => rig.state.host(hostId)?.serverId === first)
    put(4, { server_id: second })
    await until('the newer content of one version', () => rig.state.host(hostId)?.serverId === second)
  })

  test('[MAT-166] [MAT-234] refused events are told while they are held, whatever else the hub answers', async () => {
    const rig = await startRig()
    rig.hub.script = ({ path }) => (path === '/events' ? rig.hub.error(401, 'unauthorized') : null)
    const client = await rig.enrolled('web')
    await client.report(reportOf('web'))
    const ops = startOpsServer('127.0.0.1:0', [], rig.metrics, rig.matcher.ready)
    const failing = async () => ((await (await fetch(`${ops.url}/readyz`)).json()) as { failing: string[] }).failing
    await until('the refusal', () => rig.hub.to('/events').length === 1)
    const polls = rig.hub.to('/scan-hosts').length
    await until('another answer', () => rig.hub.to('/scan-hosts').length > polls + 1)
    expect(await failing()).toEqual(['unauthorized'])
    await ops.stop()
  })

  test('[MAT-234] readiness names the part that fails', async () => {
    const rig = new Rig()
    rig.hub.script = ({ path }) => (path === '/scan-hosts' ? rig.hub.error(500, 'server_error') : null)
    rigs.push(await rig.start())
    const ops = startOpsServer('127.0.0.1:0', [], rig.metrics, rig.matcher.ready)
    const failing = async () => ((await (await fetch(`${ops.url}/readyz`)).json()) as { failing: string[] }).failing
    expect(await failing()).toEqual(['hub'])
    rig.hub.script = () => null
    await until('the first sync', async () => (await failing()).length === 0)
    rig.hub.token = 'another'
    await until('the refusal', async () => (await failing()).includes('unauthorized'))
    rig.hub.token = 'service-token-of-the-matcher'
    await until('the right token', async () => (await failing()).length === 0)
    const counted = rig.state.counters()
    const counters = spyOn(rig.state, 'counters').mockReturnValue({ ...counted, isOutboxFull: true })
    expect(await failing()).toEqual(['outbox_full'])
    counters.mockImplementation(() => {
      throw new Error('disk I/O error')
    })
    expect((await fetch(`${ops.url}/readyz`)).status).toBe(503)
    expect(await failing()).toContain('state')
    counters.mockRestore()
    const text = await (await fetch(`${ops.url}/metrics`)).text()
    for (const name of ['reports_total', 'match_seconds_bucket', 'outbox_depth', 'db_version 0', 'feed_age_seconds'])
      expect(text).toContain(`svc_matcher_${name}`)
    await ops.stop()
  })

  test('new tokens are taken without a restart', async () => {
    const rig = await startRig()
    rig.hub.token = 'another'
    await until('the refusal', () => rig.matcher.ready.some(part => part.name === 'unauthorized' && !part.isReady()))
    const client = await rig.enrolled('x').catch(error => String(error))
    expect(client).toContain('503')
    await rig.matcher.reload({
      ...rig.config,
      'hub.token': 'another',
      'admin.token': 'new',
      'admin.token_previous': null,
    })
    await until('the new token', () => rig.matcher.ready.every(part => part.isReady()))
    expect((await rig.admin('GET', '/status')).status).toBe(401)
    expect((await rig.admin('GET', '/status', 'new')).status).toBe(200)
  })
})
