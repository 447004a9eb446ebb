// Order of semantic versions (semver.org, 11), for min_agent_version and for updates (document 3 "Agent config
// semantics", "Versioning").
import { parse, type SemVer } from 'semver'

/** The version in a text that is one and nothing else; the library would also take a leading `v`, an `=` and blanks. */
const versionOf = (text: string): SemVer | null => (/^\d\S*$/.test(text) ? parse(text) : null)

/** Whether text is a semantic version: MAJOR.MINOR.PATCH with an optional pre-release and build part. */
export const isVersion = (text: string): boolean => versionOf(text) !== null

/** -1, 0 or 1 as left is older than, equal to or newer than right; null when one of them is no semantic version. */
export function compareVersions(left: string, right: string): number | null {
  const [a, b] = [versionOf(left), versionOf(right)]
  return a && b ? a.compare(b) : null
}

/** The newest of some versions; null when none of them is one. */
export function newestVersion(versions: Iterable<string | null>): string | null {
  let newest: string | null = null
  for (const version of new Set(versions))
    if (version !== null && isVersion(version) && (newest === null || compareVersions(version, newest) === 1))
      newest = version
  return newest
}

/** Whether both are versions and the first is the older one. */
export const isOlder = (version: string | null, than: string | null): boolean =>
  version !== null && than !== null && compareVersions(version, than) === -1
