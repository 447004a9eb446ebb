// A vulnerability database and reports made by hand, for tests of matching.
import type { AdvisoryReader, Affected, Release, Rule, Vulnerability } from '../../../core/matching/advisory.ts'
import type { PackageColumns, Report } from '../../../core/matching/report-schema.ts'

type RuleWords = Partial<Rule> & { readonly vuln: string }

/** `debian:12 openssl` → rules by source; `almalinux:9 binary:openssl-libs` → by binary. */
type Rows = Readonly<Record<string, readonly RuleWords[]>>

const ruleOf = (words: RuleWords): Rule => ({
  advisories: [],
  status: words.fixed === undefined ? 'no_fix' : 'fixed',
  channel: 'standard',
  severity: '',
  minor: false,
  no_distro_fix: words.status === 'wont_fix',
  ...words,
})

export function databaseOf(
  rows: Rows,
  more: {
    readonly version?: number
    readonly releases?: readonly Release[]
    readonly vulnerabilities?: readonly (Partial<Vulnerability> & { readonly id: string })[]
    readonly distros?: readonly string[]
  } = {},
): AdvisoryReader {
  const affected = new Map<string, Affected>()
  for (const [place, rules] of Object.entries(rows)) {
    const space = place.indexOf(' ')
    const [release, named] = [place.slice(0, space), place.slice(space + 1)]
    const by = named.startsWith('binary:') ? 'binary' : 'source'
    const name = named.replace(/^binary:/, '')
    const sorted = rules.map(ruleOf).toSorted((a, b) => (a.vuln < b.vuln ? -1 : a.vuln > b.vuln ? 1 : 0))
    affected.set(`${release} ${by} ${name}`, {
      release,
      package: name,
      by,
      digest: JSON.stringify(sorted),
      rules: sorted,
    })
  }
  const releases = more.releases ?? []
  const vulnerabilities = new Map((more.vulnerabilities ?? []).map(each => [each.id, vulnerabilityOf(each)]))
  const distros = new Set([...affected.values()].map(each => each.release.split(':')[0]!).concat(more.distros ?? []))
  return {
    version: more.version ?? 2026010100,
    release: id => releases.find(each => each.id === id),
    releases: () => releases,
    coversDistro: distro => distros.has(distro),
    hasRows: id => [...affected.values()].some(each => each.release === id),
    affected: (release, name, by) => affected.get(`${release} ${by} ${name}`),
    vulnerability: id => vulnerabilities.get(id),
  }
}

const vulnerabilityOf = (words: Partial<Vulnerability> & { readonly id: string }): Vulnerability => ({
  aliases: [],
  severity: '',
  cvss_vector: '',
  cvss_score: null,
  score_source: '',
  published_ms: null,
  modified_ms: null,
  title: '',
  references: [],
  kev: false,
  kev_due_date: '',
  epss: null,
  ...words,
})

/**
 * A package in words: `name version`, then what differs from a package that is its own source:
 * `arch=`, `source=`, `sv=` (version of the source), `module=`, `vendor=`.
 */
type PackageWords = string

type Made = {
  readonly system: 'dpkg' | 'rpm' | 'apk'
  readonly arch: string
  readonly os: Partial<Report['os']>
}

const SYSTEMS = {
  debian: { system: 'dpkg', arch: 'amd64', os: { version_id: '12', codename: 'bookworm' } },
  raspbian: { system: 'dpkg', arch: 'armhf', os: { version_id: '12', codename: 'bookworm', id_like: ['debian'] } },
  ubuntu: { system: 'dpkg', arch: 'amd64', os: { version_id: '22.04', codename: 'jammy', id_like: ['debian'] } },
  linuxmint: { system: 'dpkg', arch: 'amd64', os: { version_id: '21.3', ubuntu_codename: 'jammy' } },
  alpine: { system: 'apk', arch: 'x86_64', os: { version_id: '3.20.3' } },
  rhel: { system: 'rpm', arch: 'x86_64', os: { version_id: '9.4', id_like: ['fedora'] } },
  almalinux: { system: 'rpm', arch: 'x86_64', os: { version_id: '9.4' } },
  rocky: { system: 'rpm', arch: 'x86_64', os: { version_id: '9.4' } },
  centos: { system: 'rpm', arch: 'x86_64', os: { version_id: '7', pretty_name: 'CentOS Linux 7 (Core)' } },
  sles: {
    system: 'rpm',
    arch: 'x86_64',
    os: { version_id: '15.6', pretty_name: 'SUSE Linux Enterprise Server 15 SP6' },
  },
  'opensuse-leap': { system: 'rpm', arch: 'x86_64', os: { version_id: '15.6', pretty_name: 'openSUSE Leap 15.6' } },
  arch: { system: 'rpm', arch: 'x86_64', os: {} },
} satisfies Readonly<Record<string, Made>>

type MadeOs = keyof typeof SYSTEMS

export function reportOf(
  id: MadeOs,
  packages: readonly PackageWords[],
  more: Partial<Omit<Report, 'os' | 'packages'>> & {
    readonly os?: Partial<Report['os']>
    readonly running?: string
  } = {},
): Report {
  const { system, arch, os }: Made = SYSTEMS[id]
  const { running, os: osWords, ...rest } = more
  const columns: PackageColumns = {
    name: [],
    version: [],
    arch: [],
    source: [],
    source_version: [],
    module: [],
    vendor: [],
  }
  const report: Report = {
    schema: 1,
    collected_at_ms: 1_767_225_600_000,
    scanner_version: '0.1.0',
    machine_id_hash: '',
    os: { id, version_id: '', codename: '', id_like: [], cpe_name: '', ...os, ...osWords },
    kernel: { running: running ?? '', build: '', booted_at_ms: 0 },
    reboot_required: false,
    livepatch_active: false,
    esm: { attached: false, infra: false, apps: false },
    elts: false,
    modules: {},
    system,
    error_codes: [],
    ...rest,
    packages: columns,
  }
  for (const words of packages) {
    const [name, version, ...differences] = words.split(' ')
    const given = new Map(
      differences.map(each => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
    )
    columns.name.push(name!)
    columns.version.push(version!)
    columns.arch.push(given.get('arch') ?? arch)
    columns.source.push(given.get('source') ?? name!)
    columns.source_version.push(given.get('sv') ?? version!)
    columns.module.push(given.get('module') ?? '')
    columns.vendor.push((given.get('vendor') ?? '').replaceAll('_', ' '))
  }
  return report
}
