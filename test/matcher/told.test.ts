// What a matcher keeps, tells and shows around its reports: hub away, restarts, metrics, log, and its neighbours.
import { afterEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { resolveMatcherConfig } from '../../apps/matcher/config.ts'
import { until } from '../support/until.ts'
import { nameDatabase } from './databases.ts'
import { adminToken, openFindings, Rig } from './rig.ts'
import { packagesOf, reportOf } from './scan-client.ts'
import { hubToken } from './scripted-hub.ts'

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

const openssl = { openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1', 'CVE-2024-0002': null } }
const withDatabase = { prepare: async (dir: string) => void (await nameDatabase(dir, openssl)) }
const fixed = packagesOf(['openssl', '3.0.13-1~deb12u1'])

describe('reports', () => {
  test('[MAT-052] while the hub is away known hosts are served from the disk, and an unknown one is told 503 until the first sync', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    await rig.hub.stop()
    await rig.stop()
    await rig.start()
    client.url = rig.scanUrl
    expect(await client.report(reportOf('web'))).toMatchObject({
      status: 200,
      body: { match_status: 'ok', open_findings: 2 },
    })
    const fresh = new Rig({ hub: rig.hub })
    await fresh.start()
    const stranger = fresh.client('stranger')
    stranger.hostId = randomUUID()
    expect(await stranger.report(reportOf('stranger'))).toMatchObject({ status: 503, code: 'unavailable' })
    rig.hub.restart()
    await until('the first whole sync', () => fresh.state.feed().syncedAtMs !== null)
    expect(await stranger.report(reportOf('stranger'))).toMatchObject({ status: 401, code: 'unauthorized' })
    await fresh.stop()
  })

  test('[MAT-034] the same signed request after a restart gets the answer of the first, and tells nothing anew', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const timeMs = Date.now()
    const report = reportOf('web')
    const first = await client.report(report, { timeMs })
    await rig.delivered()
    const told = rig.told().length
    await rig.stop()
    await rig.start()
    client.url = rig.scanUrl
    const again = await client.report(report, { timeMs })
    const { match_status, open_findings } = first.body
    expect(again).toMatchObject({ status: 200, body: { match_status, open_findings } })
    const other = reportOf('web', { packages: fixed })
    expect(await client.report(other, { timeMs })).toMatchObject({ status: 409, code: 'replayed' })
    await rig.delivered()
    expect(rig.told()).toHaveLength(told)
  })

  test('[MAT-026] further lists of a later schema are ignored by one that does not know them', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const more = [{ system: 'npm', packages: { name: ['left-pad'], version: ['1'] } }]
    const body = Buffer.from(JSON.stringify({ ...reportOf('web'), more }))
    expect(await client.call('POST', '/report', { body })).toMatchObject({ status: 200, body: { open_findings: 2 } })
    await rig.delivered()
    expect(rig.told().map(event => event.type)).toEqual(['finding.opened', 'finding.opened', 'server.scanned'])
  })

  test('[MAT-125] a live patch closes nothing and is told with the scan', async () => {
    const rig = await startRig({
      prepare: async dir => void (await nameDatabase(dir, { linux: { 'CVE-2024-0009': '6.1.90-1' } })),
    })
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const packages = packagesOf(['linux-image-6.1.0-18-amd64', '6.1.76-1', 'linux'])
    await client.report(reportOf('web', { packages }))
    await client.report(reportOf('web', { packages, livepatch_active: true }))
    await rig.delivered()
    expect([...openFindings(rig.told()).values()]).toMatchObject([{ vuln_id: 'CVE-2024-0009', kernel: true }])
    const scans = rig.told().flatMap(event => (event.type === 'server.scanned' ? [event.payload.livepatch_active] : []))
    expect(scans).toEqual([false, true])
  })

  test('[MAT-148] [MAT-149] kev and epss are placeholders, and what opens again has a new first_seen_at', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    const versions = ['3.0.11-1', '3.0.13-1~deb12u1', '3.0.11-1']
    for (const [at, version] of versions.entries()) {
      await rig.state.acceptReport({
        hostId: client.hostId,
        report: reportOf('web', { packages: packagesOf(['openssl', version]) }),
        contentHash: `${at}`.repeat(64),
        requestTimeMs: client.nextTimeMs(),
        signature: `${at}`,
        receivedAtMs: Date.now() + at * 1000,
        minIntervalMs: 0,
      })
    }
    await rig.delivered()
    const opened = rig
      .told()
      .flatMap(event => (event.type === 'finding.opened' && event.payload.vuln_id === 'CVE-2024-0001' ? [event] : []))
    expect(opened).toHaveLength(2)
    const [first, second] = opened.map(event => Date.parse(event.payload.first_seen_at))
    expect(second).toBeGreaterThan(first!)
    for (const event of opened) {
      expect(event.payload).toMatchObject({ kev: false, epss: null })
      // Nothing is known of its score: nothing is said of it.
      expect(event.payload.cvss_score ?? null).toBeNull()
    }
  })
})

describe('what is shown', () => {
  test('[MAT-206] a summary counts hosts with an inventory, its oldest report, and open findings', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const summary = async () => (await rig.admin('GET', `/companies/${rig.company}/summary`)).data
    expect(await summary()).toEqual({ servers: 0, oldest_report_ms: null, ecosystems: {}, open_findings: 0 })
    const beganMs = Date.now()
    const [one, two] = [await rig.enrolled('one'), await rig.enrolled('two')]
    await rig.enrolled('silent')
    await one.report(reportOf('one'))
    const oldest = Number((await summary()).oldest_report_ms)
    await two.report(reportOf('two', { packages: fixed }))
    expect(await summary()).toEqual({
      servers: 2,
      oldest_report_ms: oldest,
      ecosystems: { 'debian:12': 2 },
      open_findings: 3,
    })
    expect(oldest).toBeGreaterThanOrEqual(beganMs)
  })

  test('[MAT-235] every metric of a matcher is there, with its labels', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    const client = await rig.enrolled('web')
    rig.hub.script = ({ path, body }) =>
      path === '/events'
        ? rig.hub.ok({
            accepted: [],
            rejected: (body.events as { event_id: string }[]).map(event => ({
              event_id: event.event_id,
              reason: 'unknown_server',
            })),
          })
        : null
    await client.report(reportOf('web'))
    await rig.delivered()
    const text = await rig.metrics.scrape()
    const sample = (name: string, labels = ''): void => {
      const found = text.split('\n').some(line => line.startsWith(`svc_matcher_${name}${labels} `))
      expect([name, labels, found]).toEqual([name, labels, true])
    }
    sample('reports_total', '{result="kept"}')
    for (const name of ['report_bytes_count', 'match_seconds_count', 'instances', 'findings_open', 'outbox_depth'])
      sample(name)
    sample('match_seconds_bucket', '{le="0.02"}')
    for (const status of ['ok', 'unsupported_os', 'unsupported_release', 'release_eol', 'no_db'])
      sample('hosts', `{match_status="${status}"}`)
    for (const type of ['finding.opened', 'server.scanned']) sample('events_total', `{type="${type}"}`)
    sample('events_rejected_total', '{reason="unknown_server"}')
    for (const name of ['outbox_age_seconds', 'dead_letters', 'db_version', 'rematch_seconds', 'rematch_keys'])
      sample(name)
    for (const name of ['db_age_seconds', 'db_records', 'db_rejected_total', 'db_fault'])
      sample(name, '{source="debian"}')
    expect(text).toContain('# TYPE svc_matcher_db_import_seconds gauge')
    expect(text).toContain('# TYPE svc_matcher_db_rejected_total counter')
    sample('feed_age_seconds')
    sample('hub_requests_total', '{code="200"}')
  })

  test('[MAT-064] [MAT-235] a source that could not be taken is told by a metric, with no age while none of it is here', async () => {
    const rig = await startRig({ keys: { 'db.mirror': 'file:///nowhere', 'db.sources': ['debian'] } })
    expect((await rig.admin('POST', '/db/update')).status).toBe(202)
    const lineOf = async (name: string) =>
      (await rig.metrics.scrape()).split('\n').find(line => line.startsWith(`svc_matcher_${name}{source="debian"}`))
    await until('the fault', async () => (await lineOf('db_fault'))?.endsWith(' 1'))
    expect(await lineOf('db_age_seconds')).toEndWith(' -1')
  })

  test('[MAT-236] a report is one line at debug; no line holds a code, key or token, and a re-match has its counts', async () => {
    const rig = await startRig(withDatabase)
    await until('the database', () => rig.state.currentVersion() > 0)
    rig.hub.codes.set('secret-code-of-the-test', rig.company)
    const client = await rig.enrolled('web', 'secret-code-of-the-test')
    expect(await rig.client('x').enroll('wrong-code-of-the-test')).toMatchObject({ status: 401 })
    const mark = rig.lines.length
    await client.report(reportOf('web'))
    const ofReport = rig.lines.slice(mark).map(line => JSON.parse(line) as { level: number; msg: string })
    expect(ofReport.filter(line => line.msg === 'report')).toMatchObject([
      { level: 20, host_id: client.hostId, result: 'kept', open_findings: 2 },
    ])
    await nameDatabase(rig.dir, { ...openssl, bash: { 'CVE-2024-0003': '9' } })
    const counts = await until('the re-match', () => rig.lines.findLast(line => line.includes('"re-match"')))
    expect(JSON.parse(counts)).toMatchObject({ keys: expect.any(Number), hosts_changed: expect.any(Number) })
    expect(rig.lines.some(line => line.includes('another version of the vulnerability database is in use'))).toBe(true)
    const log = rig.lines.join('\n')
    for (const secret of ['secret-code', 'wrong-code', client.publicKey, hubToken, adminToken, rig.dir])
      expect([secret, log.includes(secret)]).toEqual([secret, false])
  })

  test('[MAT-063] [MAT-231] a mirror is https, a folder, or plain on this host only', () => {
    const faultsOf = (mirror: string) =>
      resolveMatcherConfig({ 'admin.token': 'x', 'db.mirror': mirror }).faults.map(({ key }) => key)
    for (const mirror of [
      'https://mirror.example.net/',
      'http://127.0.0.1:80',
      'http://[::1]/x',
      'file:///srv/advisories',
    ])
      expect(faultsOf(mirror)).toEqual([])
    for (const mirror of ['http://mirror.example.net', 'ftp://mirror.example.net', 'nothing'])
      expect(faultsOf(mirror)).toEqual(['db.mirror'])
  })

  test('[MAT-231] every key has its default', () => {
    const { config, faults } = resolveMatcherConfig({ 'admin.token': 'x' })
    expect(faults).toEqual([])
    expect(config).toMatchObject({
      listen: '127.0.0.1:8084',
      'admin.listen': '127.0.0.1:8085',
      'admin.token_previous': null,
      'ops.listen': null,
      'tls.cert_file': null,
      'tls.key_file': null,
      'hub.url': null,
      'hub.token': null,
      matcher_id: null,
      trusted_proxies: [],
      'db.sources': ['auto'],
      'db.update_interval': '6h',
      'db.public_key_file': null,
      'db.mirror': null,
      'db.source_max_bytes': 2 * 1024 ** 3,
      'match.centos_as_redhat': true,
      'match.undetermined': false,
      'match.rebuilds_unfixed': false,
      'outbox.max_bytes': 4 * 1024 ** 3,
      'hosts.forget_after': 90 * 86_400_000,
      'hosts.sync_interval': 30_000,
      'limits.max_body_bytes': 1024 ** 2,
      'limits.max_inflated_bytes': 8 * 1024 ** 2,
      'limits.enroll_per_minute': 30,
      'limits.enroll_failures': 10,
      'limits.host_per_minute': 6,
      'log.level': 'info',
    })
    expect(config).toHaveProperty('data_dir')
  })
})

test('[MAT-240] two matchers share nothing: what one holds the other does not know', async () => {
  const [one, two] = [await startRig(withDatabase), await startRig()]
  const client = await one.enrolled('web')
  await one.delivered()
  expect((await client.report(reportOf('web'))).status).toBe(200)
  client.url = two.scanUrl
  expect(await client.report(reportOf('web'))).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(two.state.host(client.hostId)).toBeNull()
  expect(two.state.currentVersion()).toBe(0)
  expect((await two.admin('GET', `/companies/${one.company}/summary`)).data).toMatchObject({ servers: 0 })
})

test('[MAT-161] seq grows strictly over report, re-match, resync, restart, and a clock that is set back an hour', async () => {
  let offMs = 0
  const nowMs = () => Date.now() + offMs
  const rig = await startRig({ ...withDatabase, nowMs })
  await until('the database', () => rig.state.currentVersion() > 0)
  const client = rig.client('web', nowMs)
  expect((await client.enroll('code')).status).toBe(201)
  const toldAfter = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    const before = rig.told().length
    await act()
    await until(`events of ${what}`, () => rig.told().length > before)
    await rig.delivered()
  }
  const reported = async (version: string): Promise<void> => {
    const packages = packagesOf(['openssl', version])
    expect((await client.report(reportOf('web', { packages }))).status).toBe(200)
  }
  const resynced = () => rig.admin('POST', `/resync?company_id=${rig.company}`)
  const rematched = (fix: string) => nameDatabase(rig.dir, { openssl: { 'CVE-2024-0001': fix, 'CVE-2024-0002': null } })
  await toldAfter('the report', () => reported('3.0.11-1'))
  await toldAfter('the re-match', () => rematched('3.0.14-1'))
  await toldAfter('the resync', resynced)
  await rig.stop()
  offMs = -3_600_000
  await rig.start()
  await toldAfter('the resync after the restart', resynced)
  await toldAfter('the re-match after the restart', () => rematched('3.0.15-1'))
  // Set back while it runs, too. What is signed with such a time is refused until the clock has come to the last one.
  offMs = -7_200_000
  const packages = packagesOf(['openssl', '3.0.12-1'])
  const late = { timeMs: nowMs() }
  client.url = rig.scanUrl
  expect(await client.report(reportOf('web', { packages }), late)).toMatchObject({ status: 409, code: 'replayed' })
  await toldAfter('the resync after the clock was set back', resynced)
  offMs = 1_000
  await toldAfter('the report when the clock has come there', () => reported('3.0.12-1'))
  const { taken } = rig.hub
  const seqs = taken.filter(event => event.host_id === client.hostId).map(event => event.seq)
  expect(seqs.length).toBeGreaterThan(8)
  for (const [at, seq] of seqs.entries()) if (at > 0) expect(seq).toBeGreaterThan(seqs[at - 1]!)
})
