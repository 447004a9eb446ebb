// Every event that a matcher sends has the form of document 3, whatever it is about.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFolder } from '../../apps/matcher/database-link.ts'
import { DatabaseVersions } from '../../apps/matcher/vulndb/database-versions.ts'
import type { FindingPayload, SecurityEvent } from '../../core/matching/finding-event.ts'
import { until } from '../support/until.ts'
import { Rig } from './rig.ts'
import { packagesOf, reportOf, type ScanClient } from './scan-client.ts'
import { buildOf } from './vulndb/support.ts'

const fixedIn = (version: string) => ({ status: 'resolved', fixed_version: version, urgency: 'high' })
const tracker = {
  openssl: {
    'CVE-2024-0001': { releases: { bookworm: fixedIn('3.0.13-1'), stretch: fixedIn('1.1.1-1') } },
    'CVE-2024-0002': { releases: { bookworm: { status: 'open', urgency: 'not yet assigned' } } },
    'CVE-2024-0003': {
      releases: { bookworm: { status: 'open', nodsa_reason: 'ignored', nodsa: 'x', urgency: 'low' } },
    },
  },
  linux: { 'CVE-2024-0004': { releases: { bookworm: fixedIn('6.1.90-1') } } },
}
const secdb = {
  distroversion: 'v3.22',
  reponame: 'main',
  packages: [{ pkg: { name: 'busybox', secfixes: { '1.36.1-r29': ['CVE-2024-0005'] } } }],
}

const NOW_MS = Date.parse('2026-02-01T00:00:00Z')
let rig: Rig
let events: SecurityEvent[]
let seen: FindingPayload[]

async function prepare(dir: string): Promise<void> {
  const folder = new DatabaseVersions(databaseFolder(dir))
  await folder.exclusively(async () => {
    const version = folder.nextVersion(Date.now())
    using built = await buildOf({ debian: { 'tracker.json': tracker }, alpine: { 'main.json': secdb } }, { version })
    const written = join(folder.scratch(), 'new.sqlite')
    copyFileSync(built.file, written)
    folder.switchTo(written, version)
  })
}

beforeAll(async () => {
  // Long before the ends of support of what is supported here.
  const startedMs = performance.now()
  const nowMs = (): number => Math.floor(NOW_MS + performance.now() - startedMs)
  rig = await new Rig({ prepare, nowMs }).start()
  await until('the database', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
  const enrolled = async (name: string): Promise<ScanClient> => {
    const client = rig.client(name, nowMs)
    expect((await client.enroll('code')).status).toBe(201)
    return client
  }
  const kernel = packagesOf(
    ['linux-image-6.1.0-18-amd64', '6.1.76-1', 'linux'],
    ['openssl', '3.0.11-1'],
    ['libssl3', '3.0.11-1', 'openssl'],
  )
  const debian = await enrolled('debian')
  await debian.report(reportOf('debian', { packages: kernel }))
  const old = await enrolled('old')
  const stretch = { id: 'debian', version_id: '9', codename: 'stretch', id_like: [], cpe_name: '' }
  await old.report(reportOf('old', { os: stretch, packages: packagesOf(['openssl', '1.1.0-1']) }))
  const alpine = await enrolled('alpine')
  const v322 = { id: 'alpine', version_id: '3.22.1', codename: '', id_like: [], cpe_name: '' }
  await alpine.report(reportOf('alpine', { os: v322, system: 'apk', packages: packagesOf(['busybox', '1.36.1-r28']) }))
  await rig.delivered()
  await debian.report(
    reportOf('debian', { packages: packagesOf(['openssl', '3.0.13-1'], ['libssl3', '3.0.13-1', 'openssl']) }),
  )
  await rig.delivered()
  events = rig.told()
  seen = events.flatMap(event =>
    event.type === 'finding.opened' || event.type === 'finding.updated' ? [event.payload] : [],
  )
})
afterAll(() => rig.dispose())

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
const HEX_64 = /^[0-9a-f]{64}$/
const ofVuln = (vuln: string): FindingPayload => {
  const found = seen.filter(payload => payload.vuln_id === vuln)
  expect([vuln, found.length > 0]).toEqual([vuln, true])
  return found[0]!
}
const eol = (): FindingPayload => ofVuln('SVC-EOL-DEBIAN-9')

test('[SEC-014] event ids are 64 characters of hex and differ', () => {
  for (const { event_id } of events) expect(event_id).toMatch(HEX_64)
  expect(new Set(events.map(event => event.event_id)).size).toBe(events.length)
})

test('[MAT-155] occurred_at of what a report makes is the time of receiving, in UTC with milliseconds', () => {
  for (const { occurred_at } of events) expect(occurred_at).toMatch(RFC_3339)
  for (const hostEvents of Map.groupBy(events, event => event.host_id).values()) {
    const scans = hostEvents.filter(event => event.type === 'server.scanned')
    // The events of one report have one time: that of its scan.
    const times = new Set(hostEvents.map(event => event.occurred_at))
    expect([...times].toSorted()).toEqual(scans.map(event => event.occurred_at).toSorted())
    for (const scan of scans) if (scan.type === 'server.scanned') expect(scan.payload.scanned_at).toBe(scan.occurred_at)
  }
})

describe('findings', () => {
  test('[SEC-056] [SEC-057] [SEC-059] [SEC-062] [SEC-067] [SEC-068] [SEC-072] [SEC-073] every field has its type', () => {
    expect(seen.length).toBeGreaterThan(5)
    for (const payload of seen) {
      expect(structuredClone(payload)).toMatchObject({
        finding_key: expect.stringMatching(HEX_64),
        kind: expect.stringMatching(/^(vulnerability|release_eol)$/),
        vuln_id: expect.any(String),
        installed_version: expect.any(String),
        fixed_version: expect.any(String),
        severity_label: expect.stringMatching(/^[a-z ]*$/),
        first_seen_at: expect.stringMatching(RFC_3339),
        db_version: rig.state.currentVersion(),
      })
      for (const list of [payload.aliases, payload.advisory_ids, payload.upgrade_to])
        expect(Array.isArray(list) && list.every(text => typeof text === 'string')).toBe(true)
      for (const flag of [payload.minor, payload.kernel, payload.reboot_required, payload.no_distro_fix])
        expect(flag).toBeBoolean()
      for (const each of payload.packages)
        expect(structuredClone(each)).toEqual({
          name: expect.any(String),
          version: expect.any(String),
          arch: expect.any(String),
        })
    }
  })

  test('[SEC-060] an ecosystem is <distro>:<release>', () => {
    expect(new Set(seen.map(payload => payload.ecosystem))).toEqual(new Set(['debian:12', 'debian:9', 'alpine:3.22']))
  })

  test('[SEC-063] [SEC-064] [SEC-066] the fix is told by its status; without one the version is empty', () => {
    expect(ofVuln('CVE-2024-0001')).toMatchObject({ fix_status: 'fixed', fixed_version: '3.0.13-1' })
    expect(ofVuln('CVE-2024-0002')).toMatchObject({ fix_status: 'no_fix', fixed_version: '', no_distro_fix: false })
    expect(ofVuln('CVE-2024-0003')).toMatchObject({ fix_status: 'wont_fix', fixed_version: '', no_distro_fix: true })
    expect(ofVuln('CVE-2024-0004')).toMatchObject({ fix_status: 'fixed', kernel: true, package_key: 'linux' })
    expect(ofVuln('CVE-2024-0005')).toMatchObject({ fix_status: 'fixed', fixed_version: '1.36.1-r29' })
    for (const { fix_channel } of seen) expect(['standard', 'esm', 'elts']).toContain(fix_channel)
  })

  test('[SEC-058] [SEC-061] [SEC-065] [SEC-069] the end of a release has no package, and alone a day and where to go', () => {
    expect(eol()).toMatchObject({
      kind: 'release_eol',
      package_key: '',
      packages: [],
      severity_label: 'high',
      fix_status: 'upgrade_release',
      eol_date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
    })
    expect(eol().upgrade_to.length).toBeGreaterThan(0)
    const others = seen.filter(payload => payload.kind !== 'release_eol')
    for (const payload of others) {
      expect(structuredClone(payload)).toMatchObject({ eol_date: '', upgrade_to: [] })
      expect(payload.package_key).not.toBe('')
      expect(payload.fix_status).not.toBe('upgrade_release')
    }
  })
})

test('[SEC-077] [SEC-078] a scan tells how it was matched, and how the release is supported', () => {
  const told = events.flatMap(event =>
    event.type === 'server.scanned' ? [[event.payload.match_status, event.payload.release_support]] : [],
  )
  expect(told).toEqual([
    ['ok', 'standard'],
    // Its free support has ended, its paid one has not.
    ['release_eol', 'esm_only'],
    ['ok', 'standard'],
    ['ok', 'standard'],
  ])
})
