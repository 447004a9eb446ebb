// When the support of releases ends (MAT-127, MAT-128): the table that stands in for the source `eol` where it was not
// fetched. What is free counts as standard (Debian's LTS, the whole life of the rebuilds); only what is paid for
// counts as extended. The days are those of Debian's package distro-info-data (Debian, Ubuntu) and of the product files
// of endoflife.date (all others), compared with both row by row.
import type { FixChannel, Release } from './advisory.ts'
import type { ReleaseSupport } from './finding-event.ts'

/** version, codename, standard_until, extended_until (`-`: none is sold). */
type Line = readonly [version: string, codename: string, standardUntil: string, extendedUntil: string]

const DEBIAN: readonly Line[] = [
  ['8', 'jessie', '2020-06-30', '2025-06-30'],
  ['9', 'stretch', '2022-06-30', '2027-06-30'],
  ['10', 'buster', '2024-06-30', '2029-06-30'],
  ['11', 'bullseye', '2026-08-31', '2031-06-30'],
  ['12', 'bookworm', '2028-06-30', '2033-06-30'],
  ['13', 'trixie', '2030-06-30', '2035-06-30'],
]

/** Extended: Ubuntu Pro's ten years. */
const UBUNTU_LTS: readonly Line[] = [
  ['14.04', 'trusty', '2019-04-25', '2024-04-25'],
  ['16.04', 'xenial', '2021-04-30', '2026-04-23'],
  ['18.04', 'bionic', '2023-05-31', '2028-04-26'],
  ['20.04', 'focal', '2025-05-29', '2030-04-23'],
  ['22.04', 'jammy', '2027-06-01', '2032-04-21'],
  ['24.04', 'noble', '2029-05-31', '2034-04-25'],
  ['26.04', 'resolute', '2031-05-29', '2036-04-23'],
]

/** Nine months each; what follows is the next release, or the next with long support. */
const UBUNTU_INTERIM: readonly Line[] = [
  ['16.10', 'yakkety', '2017-07-20', '-'],
  ['17.04', 'zesty', '2018-01-13', '-'],
  ['17.10', 'artful', '2018-07-19', '-'],
  ['18.10', 'cosmic', '2019-07-18', '-'],
  ['19.04', 'disco', '2020-01-23', '-'],
  ['19.10', 'eoan', '2020-07-17', '-'],
  ['20.10', 'groovy', '2021-07-22', '-'],
  ['21.04', 'hirsute', '2022-01-20', '-'],
  ['21.10', 'impish', '2022-07-14', '-'],
  ['22.10', 'kinetic', '2023-07-20', '-'],
  ['23.04', 'lunar', '2024-01-25', '-'],
  ['23.10', 'mantic', '2024-07-11', '-'],
  ['24.10', 'oracular', '2025-07-10', '-'],
  ['25.04', 'plucky', '2026-01-15', '-'],
  ['25.10', 'questing', '2026-07-09', '-'],
  ['26.10', 'stonking', '2027-07-15', '-'],
]

const ALPINE: readonly Line[] = [
  ['3.12', '', '2022-05-01', '-'],
  ['3.13', '', '2022-11-01', '-'],
  ['3.14', '', '2023-05-01', '-'],
  ['3.15', '', '2023-11-01', '-'],
  ['3.16', '', '2024-05-23', '-'],
  ['3.17', '', '2024-11-22', '-'],
  ['3.18', '', '2025-05-09', '-'],
  ['3.19', '', '2025-11-01', '-'],
  ['3.20', '', '2026-04-01', '-'],
  ['3.21', '', '2026-11-01', '-'],
  ['3.22', '', '2027-05-01', '-'],
  ['3.23', '', '2027-11-01', '-'],
  ['3.24', '', '2028-06-01', '-'],
]

/** Extended: the Extended Life Cycle Support add-on. */
const RHEL: readonly Line[] = [
  ['6', '', '2020-11-30', '2024-06-30'],
  ['7', '', '2024-06-30', '2029-05-31'],
  ['8', '', '2029-05-31', '2033-05-31'],
  ['9', '', '2032-05-31', '2036-05-31'],
  ['10', '', '2035-05-31', '2039-05-31'],
]

const CENTOS: readonly Line[] = [
  ['6', '', '2020-11-30', '-'],
  ['7', '', '2024-06-30', '-'],
  ['8', '', '2021-12-31', '-'],
]

const CENTOS_STREAM: readonly Line[] = [
  ['8', '', '2024-05-31', '-'],
  ['9', '', '2027-05-31', '-'],
  ['10', '', '2030-05-31', '-'],
]

const ALMALINUX: readonly Line[] = [
  ['8', '', '2029-05-31', '-'],
  ['9', '', '2032-05-31', '-'],
  ['10', '', '2035-05-31', '-'],
]

const ROCKY: readonly Line[] = [
  ['8', '', '2029-05-31', '-'],
  ['9', '', '2032-05-31', '-'],
  ['10', '', '2035-05-31', '-'],
]

/** Extended: Long Term Service Pack Support. */
const SUSE: readonly Line[] = [
  ['12.4', '', '2020-06-30', '2023-06-30'],
  ['12.5', '', '2024-10-31', '2027-10-31'],
  ['15', '', '2019-12-31', '2022-12-31'],
  ['15.1', '', '2021-01-31', '2024-01-31'],
  ['15.2', '', '2021-12-31', '2024-12-31'],
  ['15.3', '', '2022-12-31', '2025-12-31'],
  ['15.4', '', '2023-12-31', '2026-12-31'],
  ['15.5', '', '2024-12-31', '2027-12-31'],
  ['15.6', '', '2025-12-31', '2028-12-31'],
  ['15.7', '', '2031-07-31', '2034-07-31'],
  ['16.0', '', '2027-11-30', '2030-11-30'],
]

const OPENSUSE: readonly Line[] = [
  ['15.0', '', '2019-12-03', '-'],
  ['15.1', '', '2021-02-02', '-'],
  ['15.2', '', '2022-01-04', '-'],
  ['15.3', '', '2022-12-31', '-'],
  ['15.4', '', '2023-12-07', '-'],
  ['15.5', '', '2024-12-31', '-'],
  ['15.6', '', '2026-04-30', '-'],
  ['16.0', '', '2027-10-31', '-'],
]

/** Ids of the later lines, oldest first. */
const laterOf = (distro: string, lines: readonly Line[], version: string): string[] =>
  lines.filter(([each]) => byNumbers(each, version) > 0).map(([each]) => `${distro}:${each}`)

/** 15.4 before 15.10, 9 before 10. */
function byNumbers(a: string, b: string): number {
  const [aMajor = 0, aMinor = 0] = a.split('.').map(Number)
  const [bMajor = 0, bMinor = 0] = b.split('.').map(Number)
  return aMajor - bMajor || aMinor - bMinor
}

function releases(
  distro: string,
  lines: readonly Line[],
  channel: FixChannel = 'standard',
  successorsOf: (version: string) => readonly string[] = version => laterOf(distro, lines, version),
): Release[] {
  return lines.map(([version, codename, standardUntil, extended]) => {
    const extendedUntil = extended === '-' ? '' : extended
    return {
      id: `${distro}:${version}`,
      distro,
      version,
      codename,
      standard_until: standardUntil,
      extended_until: extendedUntil,
      eol_until: extendedUntil || standardUntil,
      channel,
      successors: successorsOf(version),
    }
  })
}

/** After an interim release come the ones behind it, of either kind. */
const ubuntuSuccessors = (version: string): string[] =>
  laterOf(
    'ubuntu',
    [...UBUNTU_LTS, ...UBUNTU_INTERIM].toSorted((a, b) => byNumbers(a[0], b[0])),
    version,
  )

/** All that the table knows; what the source `eol` says of a release replaces it. */
export const KNOWN_RELEASES: readonly Release[] = [
  ...releases('debian', DEBIAN, 'elts'),
  ...releases('ubuntu', UBUNTU_LTS, 'esm'),
  ...releases('ubuntu', UBUNTU_INTERIM, 'standard', ubuntuSuccessors),
  ...releases('alpine', ALPINE),
  ...releases('rhel', RHEL),
  ...releases('centos', CENTOS, 'standard', version => laterOf('centos-stream', CENTOS_STREAM, version)),
  ...releases('centos-stream', CENTOS_STREAM),
  ...releases('almalinux', ALMALINUX),
  ...releases('rocky', ROCKY),
  ...releases('suse', SUSE),
  ...releases('opensuse', OPENSUSE),
]

const knownById = new Map(KNOWN_RELEASES.map(release => [release.id, release]))

export const knownRelease = (id: string): Release | undefined => knownById.get(id)

/** The day of an instant as ends of support are written: `YYYY-MM-DD`, UTC. */
export function dayOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10)
}

/**
 * What a release is in on a day (MAT-128): support lasts through the day that is named. Empty when the table knows no
 * end of it.
 */
export function releaseSupport(release: Release | undefined, day: string): ReleaseSupport {
  if (!release?.standard_until) return ''
  if (day <= release.standard_until) return 'standard'
  return release.extended_until && day <= release.extended_until ? 'esm_only' : 'eol'
}

/** The day on which the support ends that a server has: the paid one when it is attached, where there is one. */
export function supportEnd(release: Release | undefined, isExtended: boolean): string {
  if (!release) return ''
  return (isExtended && release.extended_until) || release.standard_until
}

/** First days of young releases: nobody is sent to one before it is there. Older ones have always been. */
const RELEASED_ON: ReadonlyMap<string, string> = new Map([
  ['alpine:3.21', '2024-12-05'],
  ['ubuntu:25.04', '2025-04-17'],
  ['rhel:10', '2025-05-20'],
  ['almalinux:10', '2025-05-27'],
  ['alpine:3.22', '2025-05-30'],
  ['rocky:10', '2025-06-11'],
  ['suse:15.7', '2025-06-17'],
  ['debian:13', '2025-08-09'],
  ['opensuse:16.0', '2025-10-01'],
  ['ubuntu:25.10', '2025-10-09'],
  ['suse:16.0', '2025-11-04'],
  ['alpine:3.23', '2025-12-03'],
  ['ubuntu:26.04', '2026-04-23'],
  ['alpine:3.24', '2026-06-09'],
  ['ubuntu:26.10', '2026-10-15'],
])

/** The releases to upgrade to: successors with standard support on that day, oldest first (MAT-127). */
export function supportedSuccessors(
  release: Release,
  day: string,
  releaseById: (id: string) => Release | undefined,
): string[] {
  return release.successors.filter(
    id => releaseSupport(releaseById(id), day) === 'standard' && (RELEASED_ON.get(id) ?? '') <= day,
  )
}
