import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { findingChanges, isToldChange } from '../../../core/matching/finding-changes.ts'
import type { FindingColumns } from '../../../core/matching/finding-event.ts'
import { eventId, findingKey } from '../../../core/matching/finding-key.ts'
import { findingsOfHost } from '../../../core/matching/findings-of-host.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import { instancesOfReport } from '../../../core/matching/package-instance.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { evaluateInstance } from '../../../core/matching/verdict.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')

/** A server as one report and one database show it. */
function looked(report: Report, reader: AdvisoryReader, nowMs = DAY) {
  const instances = instancesOfReport(report, DEFAULT_MATCH_OPTIONS)
  const result = findingsOfHost({
    host: report,
    instances,
    verdictsOf: instance => evaluateInstance(instance, reader, DEFAULT_MATCH_OPTIONS),
    reader,
    nowMs,
    options: DEFAULT_MATCH_OPTIONS,
  })
  return { findings: result.findings, cause: { match: result.match, host: report, instances } }
}

/** What is told between two looks: `+ key vuln`, `~ key vuln`, `- key vuln reason`. */
function told(before: ReturnType<typeof looked>, now: ReturnType<typeof looked>, isSwitchedOff = false): string[] {
  const changes = findingChanges(before.findings, now.findings, { ...now.cause, isSwitchedOff })
  const name = (finding: { readonly package_key: string; readonly vuln_id: string }) =>
    `${finding.package_key} ${finding.vuln_id}`.trim()
  return [
    ...changes.opened.map(finding => `+ ${name(finding)}`),
    ...changes.updated.map(pair => `~ ${name(pair.now)}`),
    ...changes.resolved.map(({ before: finding, reason }) => `- ${name(finding)} ${reason}`),
  ]
}

const bash = databaseOf({
  'debian:12 bash': [{ vuln: 'CVE-1', fixed: '5.2-3' }],
  'debian:13 bash': [{ vuln: 'CVE-1', fixed: '5.2-3' }],
})

const ended = databaseOf({ 'debian:10 bash': [{ vuln: 'CVE-1', fixed: '5.2-3' }] })

describe('the reason of a resolution', () => {
  test('[MAT-151] a package that was updated, one that was removed', () => {
    const before = looked(reportOf('debian', ['bash 5.2-2', 'zlib1g 1.2']), bash)
    expect(told(before, looked(reportOf('debian', ['bash 5.2-3', 'zlib1g 1.2']), bash))).toEqual([
      '- bash CVE-1 package_updated',
    ])
    expect(told(before, looked(reportOf('debian', ['zlib1g 1.2']), bash))).toEqual(['- bash CVE-1 package_removed'])
  })

  test('[MAT-151] another release counts before what became of the package, and closes the end of the old one', () => {
    const before = looked(reportOf('debian', ['bash 5.2-2'], { os: { version_id: '10' } }), ended)
    expect(before.findings.map(each => each.vuln_id)).toEqual(['SVC-EOL-DEBIAN-10', 'CVE-1'])
    const after = looked(reportOf('debian', ['bash 5.2-3'], { os: { version_id: '12' } }), bash)
    expect(told(before, after)).toEqual(['- SVC-EOL-DEBIAN-10 release_upgraded', '- bash CVE-1 release_upgraded'])
    // What still hits lives on: the key has no release.
    const stillHit = looked(reportOf('debian', ['bash 5.2-2'], { os: { version_id: '12' } }), bash)
    expect(told(before, stillHit)).toEqual(['- SVC-EOL-DEBIAN-10 release_upgraded'])
  })

  test('[MAT-151] an end that is moved, or bought off, closes the finding of the end', () => {
    const focal = (attached: boolean) =>
      reportOf('ubuntu', [], { os: { version_id: '20.04' }, esm: { attached, infra: attached, apps: false } })
    const reader = databaseOf({ 'ubuntu:20.04 bash': [] })
    expect(told(looked(focal(false), reader), looked(focal(true), reader))).toEqual([
      '- SVC-EOL-UBUNTU-20.04 out_of_scope',
    ])
    const earlier = Date.parse('2025-01-01')
    expect(told(looked(focal(false), reader), looked(focal(false), reader, earlier))).toEqual([
      '- SVC-EOL-UBUNTU-20.04 advisory_changed',
    ])
  })

  test('[MAT-151] the same version under another database', () => {
    const report = reportOf('debian', ['bash 5.2-2'])
    const changed = databaseOf({ 'debian:12 bash': [{ vuln: 'CVE-2', fixed: '5.2-3' }] })
    expect(told(looked(report, bash), looked(report, changed))).toEqual([
      '+ bash CVE-2',
      '- bash CVE-1 advisory_changed',
    ])
  })

  test('[MAT-151] a release without rows, an unknown distribution, settings, and a package that is another’s now', () => {
    const before = looked(reportOf('debian', ['bash 5.2-2']), bash)
    const gone = databaseOf({ 'debian:13 bash': [] })
    expect(told(before, looked(reportOf('debian', ['bash 5.2-2']), gone))).toEqual(['- bash CVE-1 out_of_scope'])
    expect(told(before, looked(reportOf('arch', ['bash 5.2-2']), bash))).toEqual(['- bash CVE-1 out_of_scope'])
    expect(told(before, { ...before, findings: [] }, true)).toEqual(['- bash CVE-1 out_of_scope'])
    const rocky = databaseOf({ 'rocky:9 nginx': [{ vuln: 'CVE-1' }] })
    expect(
      told(
        looked(reportOf('rocky', ['nginx 1.20-1 vendor=Rocky']), rocky),
        looked(reportOf('rocky', ['nginx 1.20-1 vendor=Nginx_Inc.']), rocky),
      ),
    ).toEqual(['- nginx CVE-1 out_of_scope'])
  })

  test('[MAT-151] kernels: a reboot into a fixed image is an update, the last image gone a removal', () => {
    const linux = databaseOf({ 'debian:12 linux': [{ vuln: 'CVE-1', fixed: '6.1.76-1' }] })
    const old = 'linux-image-6.1.0-16-amd64 6.1.67-1 source=linux-signed-amd64'
    const fixed = 'linux-image-6.1.0-18-amd64 6.1.76-1 source=linux-signed-amd64'
    const on = (uname: string, ...images: string[]) =>
      looked(reportOf('debian', [...images, 'bash 5'], { running: uname }), linux)
    const one = on('6.1.0-16-amd64', old)
    const both = on('6.1.0-16-amd64', old, fixed)
    expect(told(one, both)).toEqual(['~ linux CVE-1'])
    expect(both.findings[0]!.reboot_required).toBe(true)
    expect(told(both, on('6.1.0-18-amd64', old, fixed))).toEqual(['- linux CVE-1 package_updated'])
    expect(told(both, on('6.1.0-18-amd64', fixed))).toEqual(['- linux CVE-1 package_updated'])
    expect(told(both, on('6.1.0-16-amd64'))).toEqual(['- linux CVE-1 package_removed'])
  })
})

describe('updates', () => {
  const finding = looked(reportOf('debian', ['bash 5.2-2']), bash).findings[0]!

  test('[MAT-150] every column that is told is told, in one event', () => {
    const changed: Partial<FindingColumns>[] = [
      { installed_version: '5.2-2.1' },
      { fixed_version: '5.2-4' },
      { fix_status: 'wont_fix' },
      { fix_channel: 'elts' },
      { severity_label: 'high' },
      { reboot_required: true },
      { minor: true },
      { packages: [] },
      { packages: [{ name: 'bash', version: '5.2-2', arch: 'i386' }] },
      { packages: [{ name: 'bash', version: '5.2-2.1', arch: 'amd64' }] },
      { packages: [{ name: 'bash-static', version: '5.2-2', arch: 'amd64' }] },
      { advisory_ids: ['DSA-1'] },
    ]
    for (const change of changed)
      expect([change, isToldChange(finding, { ...finding, ...change })]).toEqual([change, true])
    expect(isToldChange({ ...finding, advisory_ids: ['DSA-1'] }, { ...finding, advisory_ids: ['DSA-2'] })).toBe(true)
    const reader = databaseOf({ 'debian:12 bash': [{ vuln: 'CVE-1', fixed: '5.2-9', severity: 'high' }] })
    const report = reportOf('debian', ['bash 5.2-4'])
    expect(told(looked(reportOf('debian', ['bash 5.2-2']), bash), looked(report, reader))).toEqual(['~ bash CVE-1'])
  })

  test('[MAT-150] scores, aliases, titles and the version of the database alone are not told', () => {
    const rows = { 'debian:12 bash': [{ vuln: 'CVE-1', fixed: '5.2-3' }] }
    const vulnerabilities = [{ id: 'CVE-1', aliases: ['GHSA-1'], cvss_score: 9.8, title: 'other' }]
    const scored = databaseOf(rows, { version: 2026020100, vulnerabilities })
    const report = reportOf('debian', ['bash 5.2-2'])
    const [before, now] = [looked(report, databaseOf(rows)), looked(report, scored)]
    expect(now.findings[0]).toMatchObject({ aliases: ['GHSA-1'], cvss_score: 9.8 })
    expect(told(before, now)).toEqual([])
    expect(findingChanges(before.findings, now.findings, now.cause).unchanged).toHaveLength(1)
  })
})

describe('identities', () => {
  test('[MAT-140] a finding’s key is the SHA-256 of its lines', () => {
    const identity = { kind: 'vulnerability', distro: 'debian', package_key: 'bash', vuln_id: 'CVE-1' } as const
    const key = findingKey('c', 'h', identity)
    expect(key).toBe(
      createHash('sha256').update('svc-finding-v1\nc\nh\nvulnerability\ndebian\nbash\nCVE-1').digest('hex'),
    )
    expect(new Set([key, findingKey('d', 'h', identity), findingKey('c', 'i', identity)]).size).toBe(3)
  })

  test('[MAT-162] an event’s id is that of its host and seq', () => {
    expect(eventId('h', 1_767_225_600_000)).toBe(
      createHash('sha256').update('svc-event-v1\nh\n1767225600000').digest('hex'),
    )
  })
})
