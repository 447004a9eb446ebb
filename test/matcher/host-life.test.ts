// What becomes of a host between two reports, from the report to what the hub is told: a reboot, a scan that broke, a
// new release (MAT section 15, checks 11, 13 and 14).
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Report } from '../../core/matching/report-schema.ts'
import { until } from '../support/until.ts'
import { nameDatabase } from './databases.ts'
import { Rig } from './rig.ts'
import { packagesOf, reportOf, type ScanClient } from './scan-client.ts'

setDefaultTimeout(60_000)
const HOUR_MS = 3_600_000
let nowMs = Date.now()
let rig: Rig

beforeAll(async () => {
  rig = await new Rig({
    nowMs: () => nowMs,
    prepare: async dir =>
      void (await nameDatabase(dir, {
        linux: { 'CVE-2024-0001': '6.1.76-1', 'CVE-2024-0002': '6.1.90-1' },
        openssl: { 'CVE-2024-0003': '3.0.13-1~deb12u1' },
      })),
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
  const { packages: _packages, ...broken } = reportOf('packages', { error_codes: ['packages_unreadable'] })
  nowMs += 25 * HOUR_MS
  expect((await client.report({ ...broken, collected_at_ms: nowMs })).body).toMatchObject({ open_findings: 1 })
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
