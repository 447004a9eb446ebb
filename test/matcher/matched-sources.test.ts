// From each source's own format through the import to findings: one server of each distribution.
import { describe, expect, test } from 'bun:test'
import { DEFAULT_MATCH_OPTIONS } from '../../core/matching/match-options.ts'
import { matchReport } from '../../core/matching/match-report.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { reportOf } from '../core/matching/made-database.ts'
import { buildOf } from './vulndb/support.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')

/** `package vuln status version channel severity` of each finding, with marks behind. */
async function found(
  source: string,
  files: Readonly<Record<string, unknown>>,
  report: Report,
  nowMs = DAY,
): Promise<string[]> {
  using built = await buildOf({ [source]: files })
  return matchReport(report, built.reader, nowMs, DEFAULT_MATCH_OPTIONS).findings.map(each =>
    [
      each.package_key,
      each.vuln_id,
      each.fix_status,
      each.fixed_version,
      each.fix_channel,
      each.severity_label,
      each.minor ? 'minor' : '',
      each.no_distro_fix ? 'no_distro_fix' : '',
      each.advisory_ids.join(),
    ]
      .filter(Boolean)
      .join(' '),
  )
}

const osv = (id: string, vuln: string, summary: string, affected: readonly (readonly [string, string, string?])[]) => ({
  schema_version: '1.7.0',
  id,
  modified: '2026-01-02T03:04:05Z',
  published: '2026-01-01T00:00:00Z',
  summary,
  related: [vuln],
  upstream: [vuln],
  affected: affected.map(([ecosystem, name, fixed]) => ({
    package: { ecosystem, name },
    ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])] }],
  })),
})
const lines = (...records: object[]) => ({ 'all.jsonl': records.map(each => JSON.stringify(each)).join('\n') })

describe('from source to finding', () => {
  test('[MAT-080] [MAT-081] [MAT-145] Debian: fixed, no_fix, wont_fix, and nothing of what is undetermined or gone by', async () => {
    const entry = (status: string, more: object = {}) => ({
      releases: { bookworm: { status, urgency: 'medium', ...more } },
    })
    const tracker = {
      openssl: {
        'CVE-2024-0001': entry('resolved', { fixed_version: '3.0.14-1~deb12u2' }),
        'CVE-2024-0002': entry('open', { nodsa: 'Minor issue', nodsa_reason: 'postponed' }),
        'CVE-2024-0003': entry('open', { nodsa: 'Minor issue', nodsa_reason: 'ignored' }),
        'CVE-2024-0004': entry('undetermined'),
        'CVE-2024-0005': entry('resolved', { fixed_version: '0' }),
        'CVE-2024-0006': entry('resolved', { fixed_version: '3.0.11-1~deb12u2' }),
        'CVE-2024-0007': entry('open', { urgency: 'unimportant' }),
      },
    }
    const report = reportOf('debian', ['libssl3 3.0.11-1~deb12u2 source=openssl'])
    expect(await found('debian', { 'tracker.json': tracker }, report)).toEqual([
      'openssl CVE-2024-0001 fixed 3.0.14-1~deb12u2 standard medium',
      'openssl CVE-2024-0002 no_fix standard medium minor',
      'openssl CVE-2024-0003 wont_fix standard medium minor no_distro_fix',
      'openssl CVE-2024-0007 no_fix standard unimportant minor',
    ])
  })

  test('[MAT-082] [MAT-115] [MAT-116] [MAT-118] Ubuntu: standard, Pro and FIPS', async () => {
    const records = lines(
      osv('UBUNTU-CVE-2024-1', 'CVE-2024-0001', '', [
        ['Ubuntu:22.04:LTS', 'curl', '7.81.0-1ubuntu1.20'],
        ['Ubuntu:Pro:22.04:LTS', 'curl', '7.81.0-1ubuntu1.16+esm1'],
      ]),
      osv('UBUNTU-CVE-2024-2', 'CVE-2024-0002', '', [
        ['Ubuntu:22.04:LTS', 'curl'],
        ['Ubuntu:Pro:22.04:LTS', 'curl', '7.81.0-1ubuntu1.16+esm2'],
      ]),
      osv('UBUNTU-CVE-2024-3', 'CVE-2024-0003', '', [
        ['Ubuntu:Pro:FIPS:22.04:LTS', 'curl', '7.81.0-1ubuntu1.99+Fips1'],
      ]),
    )
    const of = (version: string) => found('ubuntu', records, reportOf('ubuntu', [`curl ${version}`]))
    expect(await of('7.81.0-1ubuntu1.15')).toEqual([
      'curl CVE-2024-0001 fixed 7.81.0-1ubuntu1.20 standard',
      'curl CVE-2024-0002 fixed 7.81.0-1ubuntu1.16+esm2 esm',
    ])
    expect(await of('7.81.0-1ubuntu1.16+esm2')).toEqual([])
    expect(await of('7.81.0-1ubuntu1.15+Fips1')).toEqual(['curl CVE-2024-0003 fixed 7.81.0-1ubuntu1.99+Fips1 esm'])
  })

  test('[MAT-083] Alpine: by origin', async () => {
    const secdb = {
      distroversion: 'v3.20',
      reponame: 'main',
      packages: [
        { pkg: { name: 'openssl', secfixes: { '3.3.2-r0': ['CVE-2024-0001 CVE-2024-0002'], '0': ['CVE-2024-9'] } } },
      ],
    }
    const report = reportOf('alpine', ['libssl3 3.3.1-r3 source=openssl'])
    expect(await found('alpine', { 'main.json': secdb }, report)).toEqual([
      'openssl CVE-2024-0001 fixed 3.3.2-r0 standard',
      'openssl CVE-2024-0002 fixed 3.3.2-r0 standard',
    ])
  })

  test('[MAT-078] [MAT-117] AlmaLinux by binary, Rocky by source, modules by their titles', async () => {
    const alma = lines(
      osv('ALSA-2024:1', 'CVE-2024-0001', 'Important: openssl security update', [
        ['AlmaLinux:9', 'openssl-libs', '1:3.0.7-27.el9'],
      ]),
    )
    const openssl = reportOf('almalinux', ['openssl-libs 1:3.0.7-25.el9_3 source=openssl', 'openssl 1:3.0.7-25.el9_3'])
    expect(await found('almalinux', alma, openssl)).toMatchObject([
      expect.stringMatching(/^openssl CVE-2024-0001 fixed 1:3.0.7-27.el9 standard.* ALSA-2024:1$/),
    ])
    const rocky = lines(
      osv('RLSA-2024:1', 'CVE-2024-0001', 'Important: nodejs:20 security update', [
        ['Rocky Linux:9', 'nodejs', '1:20.11.1-1.module+el9'],
      ]),
      osv('RLSA-2024:2', 'CVE-2024-0001', 'Important: nodejs:18 security update', [
        ['Rocky Linux:9', 'nodejs', '1:18.19.1-1.module+el9'],
      ]),
    )
    const of = (stream: string, version: string) =>
      found('rocky', rocky, reportOf('rocky', [`nodejs ${version} module=nodejs:${stream}:1:x`]))
    expect(await of('18', '1:18.19.1-1.module+el9')).toEqual([])
    expect((await of('18', '1:18.18.0-1.module+el9'))[0]).toMatch(/ 1:18\.19\.1-1\.module\+el9 .*RLSA-2024:2$/)
    expect((await of('20', '1:20.10.0-1.module+el9'))[0]).toMatch(/ 1:20\.11\.1-1\.module\+el9 .*RLSA-2024:1$/)
  })

  test('[MAT-078] SUSE and openSUSE: the products and modules of a service pack are one release', async () => {
    const suse = lines(
      osv('SUSE-SU-2024:1', 'CVE-2024-0001', '', [
        ['SUSE:Linux Enterprise Module for Basesystem 15 SP6', 'openssl-3', '3.1.4-150600.5.15.1'],
      ]),
    )
    const installed = ['libopenssl3 3.1.4-150600.5.10.1 source=openssl-3 vendor=SUSE_LLC']
    const supported = Date.parse('2025-06-01')
    expect(await found('suse', suse, reportOf('sles', installed), supported)).toEqual([
      'openssl-3 CVE-2024-0001 fixed 3.1.4-150600.5.15.1 standard SUSE-SU-2024:1',
    ])
    const leap = lines(
      osv('openSUSE-SU-2024:1', 'CVE-2024-0001', '', [['openSUSE:Leap 15.6', 'openssl-3', '3.1.4-150600.5.15.1']]),
    )
    expect(await found('opensuse', leap, reportOf('opensuse-leap', installed), supported)).toEqual([
      'openssl-3 CVE-2024-0001 fixed 3.1.4-150600.5.15.1 standard openSUSE-SU-2024:1',
    ])
  })

  test('[MAT-084] [MAT-112] Red Hat: fixed, no_fix and wont_fix, for CentOS too', async () => {
    const report = (id: 'rhel' | 'centos') =>
      reportOf(id, ['bash 5.1.8-6.el9', 'perl 4:5.32.1-480.el9', 'ruby 3.0.4-160.el9'], {
        os: { version_id: '9', pretty_name: '' },
      })
    const expected = [
      'bash CVE-2024-0001 fixed 5.1.8-9.el9 standard important RHSA-2024:1',
      'perl CVE-2024-0001 no_fix standard important',
      'ruby CVE-2024-0001 wont_fix standard important no_distro_fix',
    ]
    expect(await found('redhat', { 'cve-2024-0001.json': vex }, report('rhel'))).toEqual(expected)
    expect(await found('redhat', { 'cve-2024-0001.json': vex }, report('centos'))).toEqual(expected)
  })
})

const stream = 'AppStream-9.4.0.Z.MAIN'
const relationOf = (component: string, parent: string) => ({
  category: 'default_component_of',
  full_product_name: { product_id: `${parent}:${component}`, name: component },
  product_reference: component,
  relates_to_product_reference: parent,
})
const vex = {
  document: { aggregate_severity: { text: 'Important' }, tracking: { current_release_date: '2024-02-01T00:00:00Z' } },
  product_tree: {
    branches: [
      {
        product: {
          product_id: stream,
          name: stream,
          product_identification_helper: { cpe: 'cpe:/a:redhat:enterprise_linux:9::appstream' },
        },
      },
      {
        product: {
          product_id: 'red_hat_enterprise_linux_9',
          name: 'Red Hat Enterprise Linux 9',
          product_identification_helper: { cpe: 'cpe:/o:redhat:enterprise_linux:9' },
        },
      },
      {
        product: {
          product_id: 'bash-0:5.1.8-9.el9.src',
          name: 'bash',
          product_identification_helper: { purl: 'pkg:rpm/redhat/bash@5.1.8-9.el9?arch=src' },
        },
      },
    ],
    relationships: [
      relationOf('bash-0:5.1.8-9.el9.src', stream),
      relationOf('perl', 'red_hat_enterprise_linux_9'),
      relationOf('ruby', 'red_hat_enterprise_linux_9'),
    ],
  },
  vulnerabilities: [
    {
      cve: 'CVE-2024-0001',
      product_status: {
        fixed: [`${stream}:bash-0:5.1.8-9.el9.src`],
        known_affected: ['red_hat_enterprise_linux_9:perl', 'red_hat_enterprise_linux_9:ruby'],
      },
      remediations: [
        {
          category: 'vendor_fix',
          product_ids: [`${stream}:bash-0:5.1.8-9.el9.src`],
          url: 'https://access.redhat.com/errata/RHSA-2024:1',
        },
        { category: 'no_fix_planned', product_ids: ['red_hat_enterprise_linux_9:ruby'], details: 'Will not fix' },
      ],
      threats: [{ category: 'impact', details: 'Important' }],
    },
  ],
}
