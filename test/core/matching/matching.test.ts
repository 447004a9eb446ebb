import { describe, expect, test } from 'bun:test'
import type { AdvisoryReader, Rule } from '../../../core/matching/advisory.ts'
import { findingKey } from '../../../core/matching/finding-key.ts'
import { DEFAULT_MATCH_OPTIONS, type MatchOptions } from '../../../core/matching/match-options.ts'
import { matchReport } from '../../../core/matching/match-report.ts'
import { instancesOfReport } from '../../../core/matching/package-instance.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { lookUpOf, rowKeysOf } from '../../../core/matching/rows-of-instance.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')

const matched = (report: Report, reader: AdvisoryReader, options: Partial<MatchOptions> = {}, nowMs = DAY) =>
  matchReport(report, reader, nowMs, { ...DEFAULT_MATCH_OPTIONS, ...options })

/** `package_key vuln_id` of each finding. */
const found = (report: Report, reader: AdvisoryReader, options: Partial<MatchOptions> = {}, nowMs = DAY) =>
  matched(report, reader, options, nowMs).findings.map(each => `${each.package_key} ${each.vuln_id}`.trim())

describe('one server of each distribution', () => {
  test('[MAT-113] [MAT-142] [MAT-232] Debian: all binaries of one source make one finding, field by field', () => {
    const reader = databaseOf(
      {
        'debian:12 openssl': [
          {
            vuln: 'CVE-2024-5535',
            fixed: '3.0.14-1~deb12u2',
            severity: 'medium',
            advisories: ['DSA-5764-1'],
          },
          { vuln: 'CVE-2023-0001', fixed: '3.0.11-1~deb12u1' },
        ],
      },
      {
        vulnerabilities: [
          {
            id: 'CVE-2024-5535',
            aliases: ['GHSA-4fc7-mvrr-wv2c', 'CVE-2024-5535', 'EUVD-1'],
            cvss_score: 9.1,
            cvss_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:H',
            score_source: 'nvd',
          },
        ],
      },
    )
    const report = reportOf('debian', [
      'openssl 3.0.11-1~deb12u2',
      'libssl3 3.0.11-1~deb12u2 source=openssl',
      'bash 5.2.15-2',
    ])
    const result = matched(report, reader)
    expect(result).toEqual({
      match_status: 'ok',
      release_support: 'standard',
      error_codes: [],
      findings: [
        {
          finding_key: findingKey('', '', {
            kind: 'vulnerability',
            distro: 'debian',
            package_key: 'openssl',
            vuln_id: 'CVE-2024-5535',
          }),
          kind: 'vulnerability',
          vuln_id: 'CVE-2024-5535',
          aliases: ['EUVD-1', 'GHSA-4fc7-mvrr-wv2c'],
          advisory_ids: ['DSA-5764-1'],
          ecosystem: 'debian:12',
          package_key: 'openssl',
          packages: [
            { name: 'libssl3', version: '3.0.11-1~deb12u2', arch: 'amd64' },
            { name: 'openssl', version: '3.0.11-1~deb12u2', arch: 'amd64' },
          ],
          installed_version: '3.0.11-1~deb12u2',
          fixed_version: '3.0.14-1~deb12u2',
          fix_status: 'fixed',
          fix_channel: 'standard',
          severity_label: 'medium',
          minor: false,
          kernel: false,
          reboot_required: false,
          no_distro_fix: false,
          eol_date: '',
          upgrade_to: [],
          cvss_score: 9.1,
          cvss_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:H',
          score_source: 'nvd',
          kev: false,
          epss: null,
          first_seen_at: '2026-01-15T12:00:00.000Z',
          db_version: 2026010100,
        },
      ],
    })
  })

  test('[MAT-113] [MAT-143] the version of the source is compared and shown, also where binaries have another', () => {
    const reader = databaseOf({ 'debian:12 gcc-defaults': [{ vuln: 'CVE-1', fixed: '1.204' }] })
    const [finding] = matched(reportOf('debian', ['gcc 4:12.2.0-3 source=gcc-defaults sv=1.203']), reader).findings
    expect(finding).toMatchObject({ package_key: 'gcc-defaults', installed_version: '1.203', fixed_version: '1.204' })
    expect(finding!.packages).toEqual([{ name: 'gcc', version: '4:12.2.0-3', arch: 'amd64' }])
    expect(found(reportOf('debian', ['gcc 4:12.2.0-3 source=gcc-defaults sv=1.204']), reader)).toEqual([])
  })

  test('[MAT-143] two versions of one source: the lowest is shown, and each that is hit is listed', () => {
    const reader = databaseOf({ 'debian:12 foo': [{ vuln: 'CVE-1', fixed: '2.0-2' }] })
    const report = reportOf('debian', [
      'libfoo2 2.0-1 source=foo',
      'libfoo1 1.0-1 source=foo',
      'libfoo3 2.0-2 source=foo',
      'libfoo1 1.0-1 source=foo arch=i386',
    ])
    expect(matched(report, reader).findings).toMatchObject([
      {
        installed_version: '1.0-1',
        packages: [
          { name: 'libfoo1', arch: 'amd64' },
          { name: 'libfoo1', arch: 'i386' },
          { name: 'libfoo2', arch: 'amd64' },
        ],
      },
    ])
  })

  test('[MAT-142] at most 100 packages are listed', () => {
    const reader = databaseOf({ 'debian:12 texlive': [{ vuln: 'CVE-1' }] })
    const names = Array.from({ length: 130 }, (_, index) => `tex-${String(index).padStart(3, '0')} 1-1 source=texlive`)
    const [finding] = matched(reportOf('debian', names.toReversed()), reader).findings
    expect(finding!.packages).toHaveLength(100)
    expect(finding!.packages[0]!.name).toBe('tex-000')
    expect(finding!.packages[99]!.name).toBe('tex-099')
  })

  test('[MAT-110] [MAT-114] Alpine: by origin of its release, absent fixes hit, and edge is a release of its own', () => {
    const reader = databaseOf({
      'alpine:3.20 openssl': [
        { vuln: 'CVE-2024-1', fixed: '3.3.2-r0' },
        { vuln: 'CVE-2024-2', fixed: '3.3.1-r0' },
      ],
      'alpine:edge openssl': [{ vuln: 'CVE-2024-3', fixed: '3.4.0-r0' }],
    })
    const packages = ['libssl3 3.3.1-r3 source=openssl', 'libcrypto3 3.3.1-r3 source=openssl']
    const { findings } = matched(reportOf('alpine', packages), reader)
    expect(findings).toMatchObject([
      {
        ecosystem: 'alpine:3.20',
        package_key: 'openssl',
        vuln_id: 'CVE-2024-1',
        installed_version: '3.3.1-r3',
        fixed_version: '3.3.2-r0',
        severity_label: '',
      },
    ])
    expect(findings[0]!.packages.map(each => each.name)).toEqual(['libcrypto3', 'libssl3'])
    const edge = matched(reportOf('alpine', packages, { os: { branch: 'edge' } }), reader)
    expect(edge.findings).toMatchObject([{ ecosystem: 'alpine:edge', vuln_id: 'CVE-2024-3' }])
  })

  test('[MAT-113] AlmaLinux: by binary, epochs and releases compared, arches and the distribution’s severity', () => {
    const reader = databaseOf({
      'almalinux:9 binary:openssl-libs': [
        { vuln: 'CVE-1', fixed: '1:3.0.7-27.el9', severity: 'important', advisories: ['ALSA-2024:1'] },
        { vuln: 'CVE-2', fixed: '1:3.0.7-24.el9', severity: 'low' },
        { vuln: 'CVE-3', fixed: '1:3.0.7-27.el9', arches: ['aarch64'] },
      ],
      'almalinux:9 binary:openssl': [{ vuln: 'CVE-1', fixed: '1:3.0.7-27.el9', severity: 'important' }],
    })
    const report = reportOf('almalinux', [
      'openssl 1:3.0.7-25.el9_3 vendor=AlmaLinux',
      'openssl-libs 1:3.0.7-25.el9_3 source=openssl vendor=AlmaLinux',
      'openssl-devel 1:3.0.7-25.el9_3 source=openssl vendor=AlmaLinux',
    ])
    expect(matched(report, reader).findings).toMatchObject([
      {
        ecosystem: 'almalinux:9',
        package_key: 'openssl',
        vuln_id: 'CVE-1',
        advisory_ids: ['ALSA-2024:1'],
        packages: [{ name: 'openssl' }, { name: 'openssl-libs' }],
        installed_version: '1:3.0.7-25.el9_3',
        fixed_version: '1:3.0.7-27.el9',
        severity_label: 'important',
      },
    ])
  })

  test('[MAT-113] [MAT-114] Rocky and SUSE: by source, limited to arches and binaries where the source says so', () => {
    const rocky = databaseOf({
      'rocky:9 curl': [{ vuln: 'CVE-1', fixed: '0:7.76.1-26.el9_3.3', severity: 'moderate', arches: ['x86_64'] }],
    })
    const packages = [
      'curl 7.76.1-26.el9 vendor=Rocky_Enterprise_Software_Foundation',
      'curl-doc 7.76.1-26.el9 source=curl arch=noarch',
    ]
    expect(matched(reportOf('rocky', packages), rocky).findings).toMatchObject([
      { ecosystem: 'rocky:9', severity_label: 'moderate', packages: [{ name: 'curl' }, { name: 'curl-doc' }] },
    ])
    const suse = databaseOf({
      'suse:15.6 openssl-3': [{ vuln: 'CVE-1', fixed: '3.1.4-150600.5.15.1', binaries: ['libopenssl3', 'openssl-3'] }],
    })
    const installed = [
      'libopenssl3 3.1.4-150600.5.10.1 source=openssl-3 vendor=SUSE_LLC_<https://www.suse.com/>',
      'libopenssl-3-devel 3.1.4-150600.5.10.1 source=openssl-3 vendor=SUSE_LLC_<https://www.suse.com/>',
    ]
    expect(matched(reportOf('sles', installed), suse, {}, Date.parse('2025-06-01')).findings).toMatchObject([
      {
        ecosystem: 'suse:linux enterprise server 15 sp6',
        package_key: 'openssl-3',
        packages: [{ name: 'libopenssl3' }],
      },
    ])
  })

  test('[MAT-112] CentOS is matched with Red Hat’s rows under its own name, and not at all when that is switched off', () => {
    const reader = databaseOf({ 'rhel:7 bash': [{ vuln: 'CVE-1', severity: 'moderate', status: 'no_fix' }] })
    const report = reportOf('centos', ['bash 4.2.46-34.el7 vendor=CentOS'])
    const now = Date.parse('2024-01-01')
    expect(matched(report, reader, {}, now)).toMatchObject({
      match_status: 'ok',
      findings: [{ ecosystem: 'centos:7' }],
    })
    expect(matched(report, reader, { centosAsRedhat: false }, now)).toMatchObject({
      match_status: 'unsupported_os',
      findings: [],
    })
  })

  test('[MAT-112] Raspbian is matched with Debian’s rows, a derivative with those of its Ubuntu release', () => {
    const reader = databaseOf({
      'debian:12 bash': [{ vuln: 'CVE-1', fixed: '5.2.15-3' }],
      'ubuntu:22.04 bash': [{ vuln: 'CVE-2', fixed: '5.2.15-3' }],
    })
    const ecosystems = (id: 'raspbian' | 'linuxmint') =>
      matched(reportOf(id, ['bash 5.2.15-2']), reader).findings.map(each => `${each.ecosystem} ${each.vuln_id}`)
    expect(ecosystems('raspbian')).toEqual(['raspbian:12 CVE-1'])
    expect(ecosystems('linuxmint')).toEqual(['linuxmint:21.3 CVE-2'])
  })
})

describe('match_status and release_support', () => {
  const reader = databaseOf({ 'debian:12 bash': [], 'ubuntu:22.04 bash': [] })
  const status = (report: Report, nowMs = DAY, from = reader) => {
    const { match_status, release_support } = matched(report, from, {}, nowMs)
    return `${match_status} ${release_support}`.trim()
  }

  test('[MAT-111] the first that holds', () => {
    expect(status(reportOf('arch', []))).toBe('unsupported_os')
    expect(status(reportOf('rocky', []))).toBe('no_db standard')
    expect(status(reportOf('debian', []), DAY, databaseOf({}, { version: 0, distros: ['debian'] }))).toBe(
      'no_db standard',
    )
    expect(status(reportOf('debian', [], { os: { version_id: '8' } }))).toBe('release_eol eol')
    expect(status(reportOf('debian', [], { os: { version_id: '13' } }))).toBe('unsupported_release standard')
    expect(status(reportOf('debian', [], { os: { version_id: '', codename: 'sid' } }))).toBe('unsupported_release')
    expect(status(reportOf('debian', []))).toBe('ok standard')
  })

  test('[MAT-128] a release in paid extension: not attached esm_only and past its end, attached esm_only and ok', () => {
    const from = databaseOf({ 'ubuntu:20.04 bash': [], 'debian:11 bash': [] })
    const focal = (attached: boolean) =>
      reportOf('ubuntu', [], { os: { version_id: '20.04' }, esm: { attached, infra: attached, apps: attached } })
    expect(status(focal(false), DAY, from)).toBe('release_eol esm_only')
    expect(status(focal(true), DAY, from)).toBe('ok esm_only')
    expect(status(focal(true), Date.parse('2031-01-01'), from)).toBe('release_eol eol')
    const bullseye = (elts: boolean) => reportOf('debian', [], { os: { version_id: '11' }, elts })
    const later = Date.parse('2027-01-01')
    expect(status(bullseye(false), later, from)).toBe('release_eol esm_only')
    expect(status(bullseye(true), later, from)).toBe('ok esm_only')
  })

  test('[MAT-127] [MAT-128] support lasts through the day that is named, and ends with it', () => {
    const from = databaseOf({ 'debian:11 bash': [] })
    const report = reportOf('debian', [], { os: { version_id: '11' } })
    expect(status(report, Date.parse('2026-08-31T23:59:59.999Z'), from)).toBe('ok standard')
    expect(status(report, Date.parse('2026-09-01T00:00:00Z'), from)).toBe('release_eol esm_only')
  })

  test('[MAT-127] [MAT-129] past its end a release has one finding more, and keeps all others', () => {
    const from = databaseOf({
      'debian:10 bash': [
        { vuln: 'CVE-1', status: 'no_fix' },
        { vuln: 'CVE-2', fixed: '9' },
      ],
    })
    const report = reportOf('debian', ['bash 5.0-4'], { os: { version_id: '10' } })
    const { findings } = matched(report, from)
    expect(findings.map(each => each.vuln_id)).toEqual(['SVC-EOL-DEBIAN-10', 'CVE-1', 'CVE-2'])
    expect(findings[0]).toMatchObject({
      kind: 'release_eol',
      ecosystem: 'debian:10',
      package_key: '',
      packages: [],
      severity_label: 'high',
      fix_status: 'upgrade_release',
      eol_date: '2024-06-30',
      upgrade_to: ['debian:11', 'debian:12', 'debian:13'],
    })
    // A release past its end gets no fix any more, wherever the distribution still meant to give one.
    expect(findings.map(each => each.no_distro_fix)).toEqual([false, true, false])
  })

  test('[MAT-127] what the database says of a release’s end counts before the table in the code', () => {
    const release = (id: string, standardUntil: string, successors: string[]) => ({
      id,
      distro: 'debian',
      version: id.slice(7),
      codename: '',
      standard_until: standardUntil,
      extended_until: '',
      eol_until: standardUntil,
      channel: 'standard' as const,
      successors,
    })
    const releases = [
      release('debian:12', '2026-01-01', ['debian:13', 'debian:14']),
      release('debian:14', '2040-01-01', []),
    ]
    const from = databaseOf({ 'debian:12 bash': [] }, { releases })
    const [finding] = matched(reportOf('debian', []), from).findings
    expect(finding).toMatchObject({ eol_date: '2026-01-01', upgrade_to: ['debian:13', 'debian:14'] })
  })

  test('[MAT-152] [MAT-153] packages that are not known, or no database, make no finding', () => {
    const from = databaseOf({ 'debian:12 bash': [{ vuln: 'CVE-1' }] })
    expect(found(reportOf('debian', ['bash 5.0-4']), from)).toEqual(['bash CVE-1'])
    for (const code of ['packages_unreadable', 'no_packages', 'too_many_packages', 'os_release_missing'] as const)
      expect(matched(reportOf('debian', ['bash 5.0-4'], { error_codes: [code] }), from)).toMatchObject({
        error_codes: [code],
        findings: [],
      })
    const { packages: _, ...without } = reportOf('debian', [])
    expect(matched(without, from).findings).toEqual([])
  })
})

describe('fixes', () => {
  const one = (rules: Parameters<typeof databaseOf>[0][string], version = '1.0-1', more = {}) =>
    matched(reportOf('debian', [`foo ${version}`]), databaseOf({ 'debian:12 foo': rules }), more).findings.map(
      ({ fix_status, fixed_version, fix_channel, no_distro_fix }) =>
        [fix_status, fixed_version, fix_channel, no_distro_fix ? 'no_distro_fix' : ''].filter(Boolean).join(' '),
    )

  test('[MAT-145] fixed, no_fix and wont_fix, the last alone without a fix to come', () => {
    expect(one([{ vuln: 'CVE-1', fixed: '1.0-2' }])).toEqual(['fixed 1.0-2 standard'])
    expect(one([{ vuln: 'CVE-1', status: 'no_fix' }])).toEqual(['no_fix standard'])
    expect(one([{ vuln: 'CVE-1', status: 'wont_fix' }])).toEqual(['wont_fix standard no_distro_fix'])
    expect(one([{ vuln: 'CVE-1', fixed: '1.0-1' }])).toEqual([])
  })

  test('[MAT-126] what is undetermined makes findings only when it was asked for', () => {
    expect(one([{ vuln: 'CVE-1', status: 'undetermined' }])).toEqual([])
    expect(one([{ vuln: 'CVE-1', status: 'undetermined' }], '1.0-1', { undetermined: true })).toEqual([
      'undetermined standard',
    ])
  })

  test('[MAT-114] boundaries: introduced, fixed, last_affected, single versions', () => {
    const hits = (rule: Partial<Rule>, ...versions: string[]) =>
      versions.filter(version => one([{ vuln: 'CVE-1', ...rule }], version).length > 0)
    expect(hits({ introduced: '1.0', fixed: '1.5' }, '0.9', '1.0', '1.4', '1.5')).toEqual(['1.0', '1.4'])
    expect(hits({ last_affected: '1.5' }, '0.9', '1.5', '1.5-1')).toEqual(['0.9', '1.5'])
    expect(hits({ introduced: '1.0' }, '0.9', '1.0', '9')).toEqual(['1.0', '9'])
    expect(hits({ versions: ['1.0', '1.2'] }, '1.0', '1.1', '1.2', '0:1.2')).toEqual(['1.0', '1.2', '0:1.2'])
  })

  test('[MAT-093] an rpm boundary without a release does not look at the installed one', () => {
    const hits = (rule: Partial<Rule>, version: string) =>
      found(reportOf('rocky', [`foo ${version}`]), databaseOf({ 'rocky:9 foo': [{ vuln: 'CVE-1', ...rule }] })).length >
      0
    expect(hits({ fixed: '1.2' }, '1.2-0.1.el9')).toBe(false)
    expect(hits({ fixed: '1.2-2' }, '1.2-1')).toBe(true)
    expect(hits({ last_affected: '1.2' }, '1.2-7.el9')).toBe(true)
    expect(hits({ last_affected: '1.2' }, '1.2.1-1')).toBe(false)
  })

  test('[MAT-114] several ranges of one vulnerability', () => {
    const ranges = [
      { vuln: 'CVE-1', fixed: '1.5' },
      { vuln: 'CVE-1', introduced: '2.0', fixed: '2.3' },
    ]
    expect(one(ranges, '1.4')).toEqual(['fixed 1.5 standard'])
    expect(one(ranges, '1.7')).toEqual([])
    expect(one(ranges, '2.1')).toEqual(['fixed 2.3 standard'])
    expect(one(ranges, '2.3')).toEqual([])
  })

  test('[MAT-079] [MAT-144] [MAT-147] several advisories of one vulnerability: each must be cleared, those that hit are named', () => {
    const rules = [
      { vuln: 'CVE-1', fixed: '1.0-2', advisories: ['DSA-1'] },
      { vuln: 'CVE-1', fixed: '1.0-4', advisories: ['DSA-2'] },
    ]
    const look = (version: string) =>
      matched(reportOf('debian', [`foo ${version}`]), databaseOf({ 'debian:12 foo': rules })).findings.map(
        each => `${each.fixed_version} ${each.advisory_ids.join(',')}`,
      )
    expect(look('1.0-1')).toEqual(['1.0-4 DSA-1,DSA-2'])
    expect(look('1.0-2')).toEqual(['1.0-4 DSA-2'])
    expect(look('1.0-4')).toEqual([])
  })

  test('[MAT-115] [MAT-116] a fix in esm: told as such, cleared by its build, and behind a standard fix', () => {
    const esmOnly = [{ vuln: 'CVE-1', fixed: '1.0-1+esm2', channel: 'esm' as const }]
    expect(one(esmOnly, '1.0-1')).toEqual(['fixed 1.0-1+esm2 esm'])
    expect(one(esmOnly, '1.0-1+esm2')).toEqual([])
    const unfixedInStandard = [{ vuln: 'CVE-1', status: 'no_fix' as const }, ...esmOnly]
    expect(one(unfixedInStandard, '1.0-1')).toEqual(['fixed 1.0-1+esm2 esm'])
    expect(one(unfixedInStandard, '1.0-1+esm3')).toEqual([])
    const both = [
      { vuln: 'CVE-1', fixed: '1.0-1ubuntu2' },
      { vuln: 'CVE-1', fixed: '1.0-1+esm2', channel: 'esm' as const },
    ]
    expect(one(both, '1.0-1')).toEqual(['fixed 1.0-1ubuntu2 standard'])
    expect(one(both, '1.0-1+esm2')).toEqual([])
    expect(one(both, '1.0-1ubuntu2')).toEqual([])
    expect(one([{ vuln: 'CVE-1', fixed: '1.0-1+deb11u9', channel: 'elts' }], '1.0-1')).toEqual([
      'fixed 1.0-1+deb11u9 elts',
    ])
  })

  test('[MAT-146] several rows: the most severe word, minor only when all are', () => {
    const reader = databaseOf({
      'almalinux:9 binary:foo': [{ vuln: 'CVE-1', fixed: '1-2', severity: 'low', minor: true }],
      'almalinux:9 binary:libfoo': [
        { vuln: 'CVE-1', fixed: '1-3', severity: 'important', minor: false },
        { vuln: 'CVE-2', fixed: '1-3', severity: 'low', minor: true },
      ],
    })
    const { findings } = matched(reportOf('almalinux', ['foo 1-1', 'libfoo 1-1 source=foo']), reader)
    expect(findings).toMatchObject([
      { vuln_id: 'CVE-1', severity_label: 'important', minor: false, fixed_version: '1-3' },
      { vuln_id: 'CVE-2', severity_label: 'low', minor: true },
    ])
  })

  test('[MAT-085] the rows of a minor release’s paid extension count before those of the major release', () => {
    const reader = databaseOf({
      'rhel:8 foo': [
        { vuln: 'CVE-1', fixed: '1.0-9.el8_10' },
        { vuln: 'CVE-2', status: 'no_fix' },
      ],
      'rhel:8.6-eus foo': [{ vuln: 'CVE-1', fixed: '1.0-2.el8_6' }],
    })
    const eus = (version: string, cpe: string) =>
      found(reportOf('rhel', [`foo ${version}`], { os: { version_id: '8.6', cpe_name: cpe } }), reader)
    expect(eus('1.0-1.el8_6', 'cpe:/o:redhat:rhel_eus:8.6::baseos')).toEqual(['foo CVE-1', 'foo CVE-2'])
    expect(eus('1.0-2.el8_6', 'cpe:/o:redhat:rhel_eus:8.6::baseos')).toEqual(['foo CVE-2'])
    expect(eus('1.0-2.el8_6', 'cpe:/o:redhat:enterprise_linux:8::baseos')).toEqual(['foo CVE-1', 'foo CVE-2'])
    expect(eus('1.0-1.el8_8', 'cpe:/o:redhat:rhel_aus:8.8::baseos')).toEqual(['foo CVE-1', 'foo CVE-2'])
  })

  test('[MAT-131] rebuilds take Red Hat’s rows without a fix when that is switched on, and never its fixes', () => {
    const reader = databaseOf({
      'almalinux:9 binary:foo': [{ vuln: 'CVE-1', fixed: '1.0-1.el9.alma.1' }],
      'rhel:9 foo': [
        { vuln: 'CVE-1', status: 'no_fix' },
        { vuln: 'CVE-2', status: 'no_fix', severity: 'moderate' },
        { vuln: 'CVE-3', status: 'wont_fix' },
        { vuln: 'CVE-4', fixed: '1.0-9.el9' },
        { vuln: 'CVE-5', status: 'undetermined' },
      ],
    })
    const report = reportOf('almalinux', ['foo 1.0-1.el9.alma.1'])
    expect(found(report, reader)).toEqual([])
    expect(found(report, reader, { rebuildsUnfixed: true })).toEqual(['foo CVE-2', 'foo CVE-3'])
  })
})

describe('rows', () => {
  test('[MAT-182] the rows by which an instance is found again are those that it is looked up in', () => {
    const keys = (id: Parameters<typeof reportOf>[0], words: string, os: Partial<Report['os']> = {}) => {
      const [instance] = instancesOfReport(reportOf(id, [words], { os }), DEFAULT_MATCH_OPTIONS)
      const matched = lookUpOf(instance!)
      if (typeof matched === 'string') return matched
      return rowKeysOf(matched).map(each => `${each.release} ${each.by} ${each.package}`)
    }
    expect(keys('debian', 'libssl3 3 source=openssl')).toEqual(['debian:12 source openssl'])
    expect(keys('almalinux', 'openssl-libs 3 source=openssl')).toEqual([
      'almalinux:9 source openssl',
      'almalinux:9 binary openssl-libs',
      'rhel:9 source openssl',
      'rhel:9 binary openssl-libs',
    ])
    expect(keys('rhel', 'foo 1', { cpe_name: 'cpe:/o:redhat:rhel_eus:9.2::baseos' })).toEqual([
      'rhel:9.2-eus source foo',
      'rhel:9.2-eus binary foo',
      'rhel:9 source foo',
      'rhel:9 binary foo',
    ])
    expect(keys('debian', 'linux-libc-dev 6.1 source=linux')).toBe('kernel_part')
  })
})

describe('builds', () => {
  test('[MAT-117] a module’s rule hits its stream only, and a rule without one no package with a label', () => {
    const reader = databaseOf({
      'rocky:9 nodejs': [
        { vuln: 'CVE-1', fixed: '1:20.9.0-1.module+el9', module: 'nodejs:20' },
        { vuln: 'CVE-2', fixed: '1:18.19.0-1.module+el9', module: 'nodejs:18' },
        { vuln: 'CVE-3', fixed: '1:99-1.el9' },
        { vuln: 'CVE-4', fixed: '1:18.19.0-1.module+el9', module: 'nodejs:1' },
      ],
    })
    const modular = reportOf('rocky', ['nodejs 1:18.18.0-1.module+el9 module=nodejs:18:9030020231220:rhel9'])
    expect(found(modular, reader)).toEqual(['nodejs CVE-2'])
    expect(found(reportOf('rocky', ['nodejs 1:16.20.0-1.el9']), reader)).toEqual(['nodejs CVE-3'])
  })

  test('[MAT-117] a module’s build whose module nobody said hits only the same upstream version, and is told', () => {
    const reader = databaseOf({ 'almalinux:8 binary:redis': [{ vuln: 'CVE-1', fixed: '6.2.7-3.module_el8' }] })
    const look = (version: string) =>
      matched(reportOf('almalinux', [`redis ${version} module=redis:6:80:el8`], { os: { version_id: '8.9' } }), reader)
    expect(look('6.2.7-1.module_el8')).toMatchObject({
      error_codes: ['module_unknown'],
      findings: [{ vuln_id: 'CVE-1' }],
    })
    expect(look('5.0.3-5.module_el8')).toMatchObject({ error_codes: [], findings: [] })
  })

  test('[MAT-118] a special build is compared with its like only', () => {
    const reader = databaseOf({
      'ubuntu:22.04 openssl': [
        { vuln: 'CVE-1', fixed: '3.0.2-0ubuntu1.20' },
        { vuln: 'CVE-2', fixed: '3.0.2-0ubuntu1.18+Fips1.2', channel: 'esm', flavour: 'fips' },
      ],
    })
    expect(found(reportOf('ubuntu', ['openssl 3.0.2-0ubuntu1.18+Fips1']), reader)).toEqual(['openssl CVE-2'])
    expect(found(reportOf('ubuntu', ['openssl 3.0.2-0ubuntu1.18']), reader)).toEqual(['openssl CVE-1'])
  })

  test('[MAT-119] packages of others are not matched, and told', () => {
    const rows = { 'debian:12 docker-ce': [{ vuln: 'CVE-1' }], 'debian:12 foo': [{ vuln: 'CVE-1' }] }
    const look = (packages: string[]) => matched(reportOf('debian', packages), databaseOf(rows))
    expect(look(['foo 1.0-1'])).toMatchObject({ error_codes: [], findings: [{ package_key: 'foo' }] })
    for (const theirs of ['docker-ce 5:26.1-1', 'foo 1.0-1+rpt2', 'foo 1.0-1+rpi1', 'foo 1.0~ppa1', 'foo 1.0+ppa1'])
      expect(look([theirs])).toMatchObject({ error_codes: ['third_party_packages'], findings: [] })
    const rpm = databaseOf({ 'rocky:9 nginx': [{ vuln: 'CVE-1' }], 'rhel:9 nginx': [{ vuln: 'CVE-1' }] })
    const vendors = (id: 'rocky' | 'rhel', vendor: string) =>
      found(reportOf(id, [`nginx 1-1 vendor=${vendor}`]), rpm).length > 0
    expect(vendors('rocky', 'Rocky_Enterprise_Software_Foundation')).toBe(true)
    expect(vendors('rocky', 'Nginx_Inc.')).toBe(false)
    expect(vendors('rocky', 'Fedora_Project')).toBe(false)
    expect(vendors('rhel', 'Red_Hat,_Inc.')).toBe(true)
    expect(vendors('rhel', 'Rocky_Enterprise_Software_Foundation')).toBe(false)
  })

  test('[MAT-098] an invalid version is not matched, and told', () => {
    const reader = databaseOf({ 'alpine:3.20 foo': [{ vuln: 'CVE-1' }], 'alpine:3.20 bar': [{ vuln: 'CVE-1' }] })
    expect(matched(reportOf('alpine', ['foo 1.0-dirty', 'bar 1.0-r0']), reader)).toMatchObject({
      error_codes: ['version_invalid'],
      findings: [{ package_key: 'bar' }],
    })
  })

  test('[MAT-130] nothing is found by a name that the distribution does not list', () => {
    const reader = databaseOf({ 'debian:12 openssl': [{ vuln: 'CVE-1' }], 'debian:11 bash': [{ vuln: 'CVE-1' }] })
    expect(found(reportOf('debian', ['openssl-tool 1.0 source=other', 'bash 5.0-1']), reader)).toEqual([])
  })
})
