// What holds of a server before any package is looked at: match_status, release_support and what follows from the day
// (MAT-111, MAT-127, MAT-128).
import type { AdvisoryReader, Release } from './advisory.ts'
import { dayOf, knownRelease, releaseSupport, supportEnd, supportedSuccessors } from './end-of-life.ts'
import type { FindingColumns, MatchStatus, ReleaseSupport } from './finding-event.ts'
import type { MatchOptions } from './match-options.ts'
import type { Report } from './report-schema.ts'
import { baseRelease, type HostRelease, releaseOf } from './whose-advisories.ts'

/** What of a report matching needs beside the packages. */
export type HostInfo = Pick<Report, 'os' | 'esm' | 'elts' | 'error_codes'> & {
  readonly kernel: Pick<Report['kernel'], 'running'>
}

export type HostMatch = {
  readonly status: MatchStatus
  readonly support: ReleaseSupport
  /** Undefined for a distribution that is unknown here. */
  readonly release: HostRelease | undefined
  /** The day on which the support ended that the server has; empty while it lasts or when no end is known. */
  readonly endedOn: string
  /** Whether a paid extension is attached. */
  readonly isExtended: boolean
  readonly upgradeTo: readonly string[]
}

/** Depends on the operating system, the attached extension, the database and the day; not on packages. */
export function hostMatch(
  host: Pick<HostInfo, 'os' | 'esm' | 'elts'>,
  reader: AdvisoryReader,
  nowMs: number,
  options: Pick<MatchOptions, 'centosAsRedhat'>,
): HostMatch {
  const release = releaseOf(host.os, options)
  const isExtended = host.esm.attached || host.elts
  if (!release) return { status: 'unsupported_os', support: '', release, endedOn: '', isExtended, upgradeTo: [] }
  const day = dayOf(nowMs)
  const releaseById = (id: string): Release | undefined => reader.release(id) ?? knownRelease(id)
  const own = releaseById(release.support)
  const supported = own ?? releaseById(release.database)
  const end = supportEnd(supported, isExtended)
  const endedOn = end !== '' && day > end ? end : ''
  return {
    status: statusOf(release, reader, endedOn),
    support: releaseSupport(supported, day),
    release,
    endedOn,
    isExtended,
    // A derivative has other releases than what it is built on.
    upgradeTo: endedOn !== '' && own ? supportedSuccessors(own, day, releaseById) : [],
  }
}

function statusOf(release: HostRelease, reader: AdvisoryReader, endedOn: string): MatchStatus {
  if (reader.version === 0 || !reader.coversDistro(release.databaseDistro)) return 'no_db'
  if (endedOn !== '') return 'release_eol'
  const base = baseRelease(release.database)
  const hasRows = reader.hasRows(release.database) || (base !== undefined && reader.hasRows(base))
  return hasRows ? 'ok' : 'unsupported_release'
}

/** The one finding of a release past its end (MAT-127); undefined while it is supported. */
export function releaseEndFinding(match: HostMatch): FindingColumns | undefined {
  if (match.status !== 'release_eol' || !match.release) return undefined
  return {
    kind: 'release_eol',
    vuln_id: `SVC-EOL-${match.release.ecosystem.replace(/[^a-z0-9.]+/g, '-').toUpperCase()}`,
    aliases: [],
    advisory_ids: [],
    ecosystem: match.release.ecosystem,
    package_key: '',
    packages: [],
    installed_version: '',
    fixed_version: '',
    fix_status: 'upgrade_release',
    fix_channel: 'standard',
    severity_label: 'high',
    minor: false,
    kernel: false,
    reboot_required: false,
    no_distro_fix: false,
    eol_date: match.endedOn,
    upgrade_to: match.upgradeTo,
  }
}
