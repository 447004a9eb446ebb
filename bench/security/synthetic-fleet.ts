// A fleet that was never there: hosts of three releases with 800 packages each, of 300,000 package instances in all,
// and a database in which some hundred findings hit each of them. All of it follows from a seed.
import type { AdvisoryReader, Release, Rule } from '../../core/matching/advisory.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { randomFrom } from '../../test/support/random.ts'

const RELEASES = ['11', '12', '13'] as const
const NAMES = 5_000
const VERSIONS = 20
/** Packages that every host has; the rest is its own choice. */
const COMMON = 400
/** The part of the packages of which the database says something. */
const ADVISED = 0.27

type FleetShape = { readonly hosts: number; readonly packages: number }

const nameOf = (number: number): string => `package-${number}`
const VERSION_TEXTS = Array.from({ length: VERSIONS }, (_, number) => `1.${number}-1`)
const versionOf = (number: number): string => VERSION_TEXTS[number]!

/** The numbers of all packages in the order of their names. */
const IN_ORDER = Array.from({ length: NAMES }, (_, number) => number).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
const RANKS = new Map(IN_ORDER.map((number, rank) => [number, rank]))

export const hostIdOf = (number: number): string => `00000000-0000-4000-8002-${number.toString(16).padStart(12, '0')}`
export const serverIdOf = (number: number): string => `00000000-0000-4000-8003-${number.toString(16).padStart(12, '0')}`
export const COMPANY = '00000000-0000-4000-8001-000000000001'

/** `changes` shifts the versions of that many of its packages: what an upgrade does. */
export function syntheticReport(host: number, shape: FleetShape, changes = 0): Report {
  const random = randomFrom(host + 1)
  const level = Math.floor(random() * VERSIONS)
  const numbers = new Set<number>(Array.from({ length: Math.min(COMMON, shape.packages) }, (_, number) => number))
  while (numbers.size < shape.packages) numbers.add(COMMON + Math.floor(random() ** 2 * (NAMES - COMMON)))
  const ranks = Int32Array.from(numbers, number => RANKS.get(number)!).sort()
  const sorted = Array.from(ranks, rank => IN_ORDER[rank]!)
  const step = Math.floor(sorted.length / Math.max(1, changes))
  const versions = sorted.map((_, at) => {
    const isLate = random() < 0.3 ? Math.floor(random() * 4) : 0
    const isChanged = changes > 0 && at % step === 0
    return versionOf((level + isLate + (isChanged ? 1 : 0)) % VERSIONS)
  })
  const name = sorted.map(nameOf)
  const of = (text: string): string[] => name.map(() => text)
  return {
    schema: 1,
    collected_at_ms: 0,
    scanner_version: '1.0.0',
    machine_id_hash: '',
    os: { id: 'debian', version_id: RELEASES[host % RELEASES.length]!, codename: '', id_like: [], cpe_name: '' },
    kernel: { running: '', build: '', booted_at_ms: 0 },
    reboot_required: false,
    livepatch_active: false,
    esm: { attached: false, infra: false, apps: false },
    elts: false,
    modules: {},
    system: 'dpkg',
    error_codes: [],
    packages: {
      name,
      version: versions,
      arch: of('amd64'),
      source: name,
      source_version: versions,
      module: of(''),
      vendor: of(''),
    },
  }
}

type SyntheticAdvisories = AdvisoryReader & { readonly keys: readonly string[] }

/** `changedKeys` of the rows say something else than those of the seed before. */
export function syntheticAdvisories(version: number, changedKeys: ReadonlySet<string>): SyntheticAdvisories {
  const rows = new Map<string, readonly Rule[]>()
  const random = randomFrom(7)
  for (const release of RELEASES)
    for (let number = 0; number < NAMES; number++) {
      if (random() > ADVISED) continue
      const key = `debian:${release} ${nameOf(number)}`
      const fixed = Math.floor(random() * VERSIONS)
      const rule = {
        vuln: `CVE-2026-${number}`,
        advisories: [`DSA-${number}-1`],
        fixed: versionOf(changedKeys.has(key) ? (fixed + 1) % VERSIONS : fixed),
        status: 'fixed',
        channel: 'standard',
        severity: 'medium',
        minor: false,
        no_distro_fix: false,
      } as const
      rows.set(key, [rule])
    }
  const releases = new Map(RELEASES.map(each => [`debian:${each}`, releaseOf(each)]))
  return {
    version,
    keys: [...rows.keys()],
    release: id => releases.get(id),
    releases: () => [...releases.values()],
    coversDistro: distro => distro === 'debian',
    hasRows: id => releases.has(id),
    affected: (release, name, by) => {
      const rules = by === 'source' ? rows.get(`${release} ${name}`) : undefined
      return rules && { release, package: name, by, digest: '', rules }
    },
    vulnerability: () => undefined,
  }
}

const releaseOf = (version: string): Release => ({
  id: `debian:${version}`,
  distro: 'debian',
  version,
  codename: '',
  standard_until: '2999-01-01',
  extended_until: '',
  eol_until: '2999-01-01',
  channel: 'standard',
  successors: [],
})
