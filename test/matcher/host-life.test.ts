// What becomes of a host between two reports, from the report to what the hub is told: a reboot, a scan that broke, a
// new release (MAT section 15, checks 11, 13 and 14).
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Report } from '../../core/matching/report-schema.ts'
import { until } from '../support/until.ts'
import { nameSources } from './databases.ts'
import { openFindings, Rig } from './rig.ts'
import { packagesOf, reportOf, type ScanClient } from './scan-client.ts'

setDefaultTimeout(60_000)
const HOUR_MS = 3_600_000
let nowMs = Date.now()
let rig: Rig

const entry = (fixed: string | null) =>
  fixed === null ? { status: 'open', urgency: 'high' } : { status: 'resolved', fixed_version: fixed, urgency: 'high' }
/** In bookworm and, when it is given, in trixie. */
const fixes = (bookworm: string | null, trixie: string | null = bookworm) => ({
  releases: { bookworm: entry(bookworm), trixie: entry(trixie) },
})
const tracker = {
  linux: { 'CVE-2024-0001': fixes('6.1.76-1'), 'CVE-2024-0002': fixes('6.1.90-1') },
  openssl: { 'CVE-2024-0003': fixes('3.0.13-1~deb12u1') },
  curl: { 'CVE-2024-0004': fixes('7.88.1-11', null), 'CVE-2024-0005': fixes(null, '8.10.0-1') },
}
const sources = { debian: { 'tracker.json': tracker } }

beforeAll(async () => {
  rig = await new Rig({
    nowMs: () => nowMs,
    prepare: async dir => void (await nameSources(dir, sources)),
  }).start()
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
})
afterAll(() => rig.dispose())

async function enrolled(name: string): Promise<ScanClient> {
  const client = rig.client(name, () => nowMs)
  expect((await client.enroll('code')).status).toBe(201)
  return client
}

/** What the hub is told of a report, a day after the one before. */
async function told(client: ScanClient, report: Partial<Report>): Promise<string[]> {
  nowMs += 25 * HOUR_MS
  const before = rig.told(client.hostId).length
  const answer = await client.report(reportOf(client.name, { collected_at_ms: nowMs, ...report }))
  expect([answer.status, answer.code]).toEqual([200, ''])
  await until('the scan', () =>
    rig
      .told(client.hostId)
      .slice(before)
      .some(event => event.type === 'server.scanned'),
  )
  return rig
    .told(client.hostId)
    .slice(before)
    .map(({ type, payload }) => {
      if (type === 'finding.resolved') return `${type} ${payload.resolved_reason}`
      if (type === 'server.scanned') return `${type} ${payload.match_status} ${payload.open_findings}`
      return `${type} ${payload.vuln_id} ${payload.installed_version} ${payload.reboot_required}`.trim()
    })
}

const kernels = packagesOf(
  ['linux-image-6.1.0-16-amd64', '6.1.67-1', 'linux-signed-amd64'],
  ['linux-image-6.1.0-18-amd64', '6.1.76-1', 'linux-signed-amd64'],
  ['linux-image-6.1.0-21-amd64', '6.1.90-1', 'linux-signed-amd64'],
)
const running = (release: string): Partial<Report> => ({
  packages: kernels,
  kernel: { running: release, build: '#1 SMP', booted_at_ms: nowMs },
})

test('[MAT-122] [MAT-124] [MAT-151] of three kernels the one that runs counts, until the host has booted the newest', async () => {
  const client = await enrolled('kernels')
  expect(await told(client, running('6.1.0-16-amd64'))).toEqual([
    'finding.opened CVE-2024-0001 6.1.67-1 true',
    'finding.opened CVE-2024-0002 6.1.67-1 true',
    'server.scanned ok 2',
  ])
  expect(await told(client, running('6.1.0-21-amd64'))).toEqual([
    'finding.resolved package_updated',
    'finding.resolved package_updated',
    'server.scanned ok 0',
  ])
})

test('[MAT-152] [MAT-151] an update and a removal resolve, each with its reason, and a scan that broke nothing', async () => {
  const client = await enrolled('packages')
  const old = packagesOf(['openssl', '3.0.11-1~deb12u2'])
  expect(await told(client, { packages: old })).toEqual([
    'finding.opened CVE-2024-0003 3.0.11-1~deb12u2 false',
    'server.scanned ok 1',
  ])
  for (const code of ['packages_unreadable', 'no_packages', 'too_many_packages'] as const)
    expect(await told(client, { packages: undefined, error_codes: [code] })).toEqual(['server.scanned ok 1'])
  expect(await told(client, { packages: packagesOf(['openssl', '3.0.13-1~deb12u1']) })).toEqual([
    'finding.resolved package_updated',
    'server.scanned ok 0',
  ])
  await told(client, { packages: old })
  expect(await told(client, { packages: packagesOf(['bash', '5.2.15-2']) })).toEqual([
    'finding.resolved package_removed',
    'server.scanned ok 0',
  ])
})

test('[MAT-140] [MAT-151] a release that is upgraded keeps what still hits, and a distribution that nobody knows is out of scope', async () => {
  const client = await enrolled('upgraded')
  expect(await told(client, { packages: packagesOf(['curl', '7.88.1-10']) })).toEqual([
    'finding.opened CVE-2024-0004 7.88.1-10 false',
    'finding.opened CVE-2024-0005 7.88.1-10 false',
    'server.scanned ok 2',
  ])
  const keyOf = (vuln: string) =>
    [...openFindings(rig.told(client.hostId)).values()].find(({ vuln_id }) => vuln_id === vuln)?.finding_key
  const before = keyOf('CVE-2024-0004')
  const trixie = { id: 'debian', version_id: '13', codename: 'trixie', id_like: [], cpe_name: '' }
  const packages = packagesOf(['curl', '8.14.1-2'])
  expect(await told(client, { os: trixie, packages })).toEqual([
    'finding.resolved release_upgraded',
    'finding.updated CVE-2024-0004 8.14.1-2 false',
    'server.scanned ok 1',
  ])
  expect(keyOf('CVE-2024-0004')).toBe(before!)
  const slackware = { id: 'slackware', version_id: '15.0', codename: '', id_like: [], cpe_name: '' }
  expect(await told(client, { os: slackware, packages })).toEqual([
    'finding.resolved out_of_scope',
    'server.scanned unsupported_os 0',
  ])
})

test('[MAT-127] [MAT-129] [MAT-151] past its end a release has one finding more, which a new release resolves', async () => {
  const client = await enrolled('releases')
  const buster = { id: 'debian', version_id: '10', codename: 'buster', id_like: [], cpe_name: '' }
  const packages = packagesOf(['openssl', '3.0.11-1~deb12u2'])
  expect(await told(client, { os: buster, packages })).toEqual([
    'finding.opened SVC-EOL-DEBIAN-10  false',
    'server.scanned release_eol 1',
  ])
  expect(await told(client, { packages })).toEqual([
    'finding.resolved release_upgraded',
    'finding.opened CVE-2024-0003 3.0.11-1~deb12u2 false',
    'server.scanned ok 1',
  ])
})

test('[MAT-151] [MAT-154] advisories that say something else resolve without a report, and tell no scan', async () => {
  const client = await enrolled('advised')
  await told(client, { packages: packagesOf(['bash', '5.2.15-2'], ['curl', '7.88.1-10']) })
  const before = rig.told(client.hostId).length
  await nameSources(rig.dir, {
    debian: { 'tracker.json': { ...tracker, curl: { 'CVE-2024-0004': fixes('7.88.1-10') } } },
  })
  await until('both to be resolved', () => openFindings(rig.told(client.hostId)).size === 0)
  await rig.state.rematched()
  await rig.delivered()
  const after = rig.told(client.hostId).slice(before)
  expect(after.map(({ type, payload }) => [type, 'resolved_reason' in payload && payload.resolved_reason])).toEqual([
    ['finding.resolved', 'advisory_changed'],
    ['finding.resolved', 'advisory_changed'],
  ])
})
