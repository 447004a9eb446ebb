// Vulnerability databases in memory, for tests of the state: what the rows say is written out, the rest is as in a
// file.

import type { AdvisoryKey } from '../../../apps/matcher/state/state-types.ts'
import type { AdvisoryReader, Affected, Release, Rule, Vulnerability } from '../../../core/matching/advisory.ts'

/** `debian:12 openssl` → rules; by source. */
type Rows = Readonly<Record<string, readonly Rule[]>>

type Advisories = AdvisoryReader & { readonly rows: Rows }

export const rule = (vuln: string, fixed: string | null, more: Partial<Rule> = {}): Rule => ({
  vuln,
  advisories: [],
  ...(fixed === null ? {} : { fixed }),
  status: fixed === null ? 'no_fix' : 'fixed',
  channel: 'standard',
  severity: 'medium',
  minor: false,
  no_distro_fix: false,
  ...more,
})

const release = (id: string, until: string): Release => ({
  id,
  distro: id.split(':')[0]!,
  version: id.split(':')[1]!,
  codename: '',
  standard_until: until,
  extended_until: '',
  eol_until: until,
  channel: 'standard',
  successors: [],
})

type AdvisoryOptions = {
  /** Ends of support: `debian:12` → day. */
  readonly ends?: Readonly<Record<string, string>>
  readonly vulns?: Readonly<Record<string, Partial<Vulnerability>>>
}

export function advisories(version: number, rows: Rows, options: AdvisoryOptions = {}): Advisories {
  const ends = new Map(Object.entries({ 'debian:12': '2999-01-01', 'debian:11': '2999-01-01', ...options.ends }))
  const releases = new Map([...ends].map(([id, until]) => [id, release(id, until)]))
  const ids = new Set(Object.keys(rows).map(key => key.split(' ')[0]!))
  return {
    version,
    rows,
    release: id => releases.get(id),
    releases: () => [...releases.values()],
    coversDistro: distro => [...ids].some(id => id.startsWith(`${distro}:`)),
    hasRows: id => ids.has(id),
    affected: (releaseId, name, by) => {
      const rules = by === 'source' ? rows[`${releaseId} ${name}`] : undefined
      return rules && { release: releaseId, package: name, by, digest: JSON.stringify(rules), rules }
    },
    vulnerability: id => ({
      id,
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
      ...options.vulns?.[id],
    }),
  }
}

/** The keys in which two databases differ, as `changedKeys` of two files gives them. */
export function differingKeys(before: Rows, after: Rows): AdvisoryKey[] {
  const by: Affected['by'] = 'source'
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter(key => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    .map(key => ({ release: key.split(' ')[0]!, package: key.split(' ')[1]!, by }))
}
