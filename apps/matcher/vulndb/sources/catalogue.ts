// The sources: where each is fetched from, in which form, under which licence, and which distributions it covers
// (MAT section 4, MAT-087).
import type { Release } from '../../../../core/matching/advisory.ts'
import type { PackageSystem } from '../../../../core/matching/report-schema.ts'
import { parseAlpine } from './alpine.ts'
import { parseDebian } from './debian.ts'
import { EOL_PRODUCTS, parseEol } from './eol.ts'
import { parseOsv } from './osv.ts'
import { parseRedhat } from './redhat-vex.ts'
import { parseEpss, parseKev, parseScores } from './reference-data.ts'
import type { SourceParser } from './source.ts'

/** One address of a source. Rows are kept by part, so that one that is unchanged is not read again. */
export type SourcePart = { readonly part: string; readonly url: string; readonly isOptional?: boolean }

export type Source = {
  readonly name: string
  readonly licence: string
  /** Ids of os-release whose packages it lists; none for reference data and ends of support. */
  readonly distros: readonly string[]
  readonly system: PackageSystem | null
  readonly parser: (releases: readonly Release[]) => SourceParser
  readonly parts: (context: { readonly releases: readonly Release[]; readonly nowMs: number }) => readonly SourcePart[]
}

const OSV = 'https://osv-vulnerabilities.storage.googleapis.com'
const one = (url: string) => (): readonly SourcePart[] => [{ part: '', url }]
const osvZip = (ecosystem: string) => one(`${OSV}/${encodeURIComponent(ecosystem)}/all.zip`)
const NVD_FIRST_YEAR = 2002

const codenamesOf = (releases: readonly Release[]): ReadonlyMap<string, string> =>
  new Map(releases.filter(({ distro }) => distro === 'debian').map(({ codename, id }) => [codename.toLowerCase(), id]))

/** Branches that may have been published since this table was written: two a year. */
const ALPINE_BRANCHES_AHEAD = 6

function alpineParts(releases: readonly Release[]): SourcePart[] {
  const known = releases.filter(({ distro }) => distro === 'alpine').map(({ version }) => version)
  const newest = Math.max(...known.map(version => Number(version.split('.')[1])))
  const ahead = Array.from({ length: ALPINE_BRANCHES_AHEAD }, (_, index) => `3.${newest + 1 + index}`)
  return [...known, ...ahead, 'edge'].flatMap(branch =>
    ['main', 'community'].map(repository => {
      const part = `${branch === 'edge' ? 'edge' : `v${branch}`}/${repository}`
      // A branch may not be published yet, and old ones have no community.
      return { part, url: `https://secdb.alpinelinux.org/${part}.json`, isOptional: true }
    }),
  )
}

function yearParts(nowMs: number): SourcePart[] {
  const count = new Date(nowMs).getUTCFullYear() - NVD_FIRST_YEAR + 1
  return Array.from({ length: count }, (_, index) => String(NVD_FIRST_YEAR + index)).map(year => ({
    part: year,
    url: `https://nvd.nist.gov/feeds/json/cve/2.0/nvdcve-2.0-${year}.json.gz`,
  }))
}

const SOURCES: readonly Source[] = [
  {
    name: 'debian',
    licence: 'no stated licence; Debian security tracker',
    distros: ['debian', 'raspbian'],
    system: 'dpkg',
    parser: releases => parseDebian(codenamesOf(releases), 'standard'),
    parts: one('https://security-tracker.debian.org/tracker/data/json'),
  },
  {
    name: 'debian-elts',
    licence: 'no stated licence; Freexian ELTS tracker',
    distros: [],
    system: 'dpkg',
    parser: releases => parseDebian(codenamesOf(releases), 'elts'),
    parts: one('https://deb.freexian.com/extended-lts/tracker/data/json'),
  },
  {
    name: 'debian-advisories',
    licence: 'no stated licence; Debian security advisories, converted by OSV',
    distros: [],
    system: 'dpkg',
    parser: () => parseOsv('debian'),
    parts: osvZip('Debian'),
  },
  {
    name: 'ubuntu',
    licence: 'CC BY-SA 4.0, Canonical',
    distros: ['ubuntu'],
    system: 'dpkg',
    parser: () => parseOsv('ubuntu'),
    parts: osvZip('Ubuntu'),
  },
  {
    name: 'alpine',
    licence: 'no stated licence; Alpine Linux secdb',
    distros: ['alpine'],
    system: 'apk',
    parser: () => parseAlpine,
    parts: ({ releases }) => alpineParts(releases),
  },
  {
    name: 'almalinux',
    licence: 'MIT, AlmaLinux OS Foundation',
    distros: ['almalinux'],
    system: 'rpm',
    parser: () => parseOsv('almalinux'),
    parts: osvZip('AlmaLinux'),
  },
  {
    name: 'rocky',
    licence: 'BSD-3-Clause, Rocky Enterprise Software Foundation',
    distros: ['rocky'],
    system: 'rpm',
    parser: () => parseOsv('rocky'),
    parts: osvZip('Rocky Linux'),
  },
  {
    name: 'suse',
    licence: 'CC BY 4.0, SUSE',
    distros: ['suse'],
    system: 'rpm',
    parser: () => parseOsv('suse'),
    parts: osvZip('SUSE'),
  },
  {
    name: 'opensuse',
    licence: 'CC BY 4.0, SUSE',
    distros: ['opensuse'],
    system: 'rpm',
    parser: () => parseOsv('opensuse'),
    parts: osvZip('openSUSE'),
  },
  {
    name: 'redhat',
    licence: 'CC BY 4.0, Red Hat',
    distros: ['rhel', 'centos'],
    system: 'rpm',
    parser: () => parseRedhat,
    parts: one('https://security.access.redhat.com/data/csaf/v2/vex/'),
  },
  {
    name: 'scores',
    licence: 'public domain, NIST',
    distros: [],
    system: null,
    parser: () => parseScores,
    parts: ({ nowMs }) => yearParts(nowMs),
  },
  {
    name: 'kev',
    licence: 'CC0 1.0, CISA',
    distros: [],
    system: null,
    parser: () => parseKev,
    parts: one('https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json'),
  },
  {
    name: 'epss',
    licence: 'free to use with attribution, FIRST EPSS',
    distros: [],
    system: null,
    parser: () => parseEpss,
    parts: one('https://epss.empiricalsecurity.com/epss_scores-current.csv.gz'),
  },
  {
    name: 'eol',
    licence: 'MIT, endoflife.date',
    distros: [],
    system: null,
    parser: () => parseEol,
    parts: () => Object.keys(EOL_PRODUCTS).map(part => ({ part, url: `https://endoflife.date/api/${part}.json` })),
  },
]

export const SOURCE_NAMES: readonly string[] = SOURCES.map(({ name }) => name)

export const sourceNamed = (name: string): Source | undefined => SOURCES.find(source => source.name === name)

/** The source whose rows a distribution is matched with. */
export const sourceOfDistro = (distro: string): string | undefined =>
  SOURCES.find(({ distros }) => distros.includes(distro))?.name

/** Where a source stands in the order that decides whose word counts first. */
export const sourceRank = (name: string): number => SOURCES.findIndex(source => source.name === name)
