// What matching costs without a disk: a comparison of versions, and one Debian server of 800 packages against all
// rules of its sources, as large as Debian 12's are (40,000 rules, 9,000 of them of the kernel). Prints one JSON line
// a question; times are of processor time.
import type { AdvisoryReader, Affected, Rule } from '../core/matching/advisory.ts'
import { findingsOfHost } from '../core/matching/findings-of-host.ts'
import { DEFAULT_MATCH_OPTIONS } from '../core/matching/match-options.ts'
import { matchReport } from '../core/matching/match-report.ts'
import { instancesOfReport } from '../core/matching/package-instance.ts'
import type { PackageSystem, Report } from '../core/matching/report-schema.ts'
import { evaluateInstance } from '../core/matching/verdict.ts'
import { compareVersions } from '../core/matching/version.ts'

const SOURCES = 400
const PACKAGES = 800
const KERNEL_RULES = 9000
const OTHER_RULES = 31_000
const SECONDS = Number(process.env.SVC_BENCH_SECONDS ?? 1)
const nowMs = Date.parse('2026-01-15T00:00:00Z')

/** Nanoseconds of processor time of one call, after a warm-up. */
function nanoseconds(run: (index: number) => void, batch: number): number {
  for (let index = 0; index < 5 * batch; index++) run(index)
  const before = process.cpuUsage()
  const startedAtMs = performance.now()
  let calls = 0
  while (performance.now() - startedAtMs < SECONDS * 1000) for (let index = 0; index < batch; index++) run(calls++)
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / calls
}

const versions: Readonly<Record<PackageSystem, readonly string[]>> = {
  dpkg: [
    '3.0.11-1~deb12u2',
    '3.0.14-1~deb12u2',
    '6.1.76-1',
    '6.1.90-1',
    '1:2.39.2-1.1',
    '7.88.1-10+deb12u5',
    '5.36.0-7',
  ],
  rpm: ['3.0.7-25.el9_3', '3.0.7-27.el9', '5.14.0-362.8.1.el9_3', '5.14.0-427.13.1.el9_4', '1:18.19.0-1.module+el9'],
  apk: ['3.3.1-r3', '3.3.2-r0', '1.36.1_git20240101-r2', '6.6.31-r0', '1.9.5p2-r0'],
}

/** Rules of a vulnerability each, most of them fixed long before what is installed. */
function rulesOf(name: string, count: number, installed: (index: number) => string): Affected {
  const rules = Array.from({ length: count }, (_, index): Rule => {
    const isOpen = index % 20 === 0
    return {
      vuln: `CVE-${2010 + Math.floor((index * 15) / count)}-${String(10_000 + index)}`,
      advisories: [],
      ...(!isOpen && { fixed: installed(index) }),
      status: isOpen ? 'no_fix' : 'fixed',
      channel: 'standard',
      severity: 'medium',
      minor: false,
      no_distro_fix: false,
    }
  })
  return { release: 'debian:12', package: name, by: 'source', digest: '', rules }
}

const rows = new Map<string, Affected>([
  ['linux', rulesOf('linux', KERNEL_RULES, index => `6.1.${index % 60}-1`)],
  ...Array.from({ length: SOURCES }, (_, index): [string, Affected] => {
    const name = `source-${index}`
    return [name, rulesOf(name, OTHER_RULES / SOURCES, rule => `2.${rule % 34}.1-${1 + (rule % 3)}+deb12u${rule % 5}`)]
  }),
])
const reader: AdvisoryReader = {
  version: 2026011500,
  release: () => undefined,
  releases: () => [],
  coversDistro: () => true,
  hasRows: () => true,
  affected: (_, name, by) => (by === 'source' ? rows.get(name) : undefined),
  vulnerability: () => undefined,
}

function madeReport(): Report {
  const names = Array.from({ length: PACKAGES }, (_, index) => `package-${index}`)
  const images = ['6.1.0-16', '6.1.0-18', '6.1.0-21'].map(release => `linux-image-${release}-amd64`)
  const all = [...names, ...images]
  const each = <T>(ofPackage: (index: number) => T, ofImage: (index: number) => T): T[] =>
    all.map((_, index) => (index < PACKAGES ? ofPackage(index) : ofImage(index - PACKAGES)))
  const version = each(
    index => `2.${34 + (index % 3)}.1-2+deb12u3`,
    index => `6.1.${67 + 9 * index}-1`,
  )
  return {
    schema: 1,
    collected_at_ms: nowMs,
    scanner_version: '0.1.0',
    machine_id_hash: '',
    os: { id: 'debian', version_id: '12', codename: 'bookworm', id_like: [], cpe_name: '' },
    kernel: { running: '6.1.0-16-amd64', build: '', booted_at_ms: 0 },
    reboot_required: false,
    livepatch_active: false,
    esm: { attached: false, infra: false, apps: false },
    elts: false,
    modules: {},
    system: 'dpkg',
    error_codes: [],
    packages: {
      name: all,
      version,
      arch: all.map(() => 'amd64'),
      source: each(
        index => `source-${index % SOURCES}`,
        () => 'linux-signed-amd64',
      ),
      source_version: version,
      module: all.map(() => ''),
      vendor: all.map(() => ''),
    },
  }
}

const say = (question: string, figures: Readonly<Record<string, number>>): void => {
  const rounded = Object.entries(figures).map(([name, value]) => [name, Math.round(value * 100) / 100])
  console.log(JSON.stringify({ bench: 'matching', question, ...Object.fromEntries(rounded) }))
}

for (const system of ['dpkg', 'rpm', 'apk'] as const) {
  const list = versions[system]
  const count = list.length
  const compare = (index: number) => compareVersions(system, list[index % count]!, list[(index * 3 + 1) % count]!)
  say(`one comparison of ${system}`, { ns: nanoseconds(compare, 10_000) })
}
const report = madeReport()
const instances = instancesOfReport(report, DEFAULT_MATCH_OPTIONS)
const verdicts = new Map(instances.map(each => [each, evaluateInstance(each, reader, DEFAULT_MATCH_OPTIONS)]))
const host = { host: report, instances, reader, nowMs, options: DEFAULT_MATCH_OPTIONS }
const { findings } = matchReport(report, reader, nowMs, DEFAULT_MATCH_OPTIONS)
say('one server of 800 packages, nothing known before', {
  ms: nanoseconds(() => matchReport(report, reader, nowMs, DEFAULT_MATCH_OPTIONS), 5) / 1e6,
  findings: findings.length,
})
say('verdicts of all its packages', {
  ms:
    nanoseconds(() => {
      for (const each of instances) evaluateInstance(each, reader, DEFAULT_MATCH_OPTIONS)
    }, 5) / 1e6,
})
say('its findings from verdicts that are known', {
  ms: nanoseconds(() => findingsOfHost({ ...host, verdictsOf: each => verdicts.get(each) ?? [] }), 5) / 1e6,
})
