// Which rows of the database can concern a package instance (MAT-113, MAT-131): by its source, of rpm also by its name,
// of its release and of those whose rows count beside; or why it is not looked up at all (MAT-119, MAT-120).
import type { AdvisoryReader, Affected, Rule } from './advisory.ts'
import { isKernelImage, isKernelSource, sourceOf } from './kernel-names.ts'
import type { MatchOptions } from './match-options.ts'
import type { PackageInstance } from './package-instance.ts'
import { isThirdParty } from './third-party.ts'
import { isValidVersion } from './version.ts'
import { baseRelease } from './whose-advisories.ts'

/** Why an instance is not looked up at all. */
export type Unmatched = 'third_party' | 'no_code' | 'kernel_part' | 'version_invalid'

export type Matched = {
  readonly instance: PackageInstance
  readonly source: string
  readonly sourceVersion: string
  readonly isKernel: boolean
}

/** How an instance is looked up, or why it is not. */
export function lookUpOf(instance: PackageInstance): Matched | Unmatched {
  if (isThirdParty(instance)) return 'third_party'
  const matched = sourceOf(instance)
  if (!matched) return 'no_code'
  const isKernel = isKernelSource(instance.system, matched.source)
  if (isKernel && !isKernelImage(instance)) return 'kernel_part'
  const { system, version } = instance
  const isValid =
    isValidVersion(system, version) && (matched.version === version || isValidVersion(system, matched.version))
  if (!isValid) return 'version_invalid'
  return { instance, source: matched.source, sourceVersion: matched.version, isKernel }
}

/** The source package, or the kernel's canonical source, under which findings of an instance stand (MAT-141). */
export function packageKeyOf(instance: PackageInstance): string {
  return sourceOf(instance)?.source ?? instance.source
}

/** A row of the database that can concern an instance. */
type RowKey = Pick<Affected, 'release' | 'package' | 'by'>

/** Which rules of a row count: all, those of no vulnerability that the rows before name, of these what has no fix. */
type RowShare = 'own' | 'base' | 'unfixed'

/** A row that concerns an instance, with the version of it that the row's boundaries are compared with. */
export type Row = {
  readonly affected: Affected
  readonly version: string
  readonly share: RowShare
}

/** The releases whose rows can concern packages of a release, in the order in which they count. */
function releasesRead(release: string): { readonly release: string; readonly share: RowShare }[] {
  const own = { release, share: 'own' } as const
  const base = baseRelease(release)
  if (base) return [own, { release: base, share: 'base' }]
  const rebuild = /^(?:almalinux|rocky):(.+)$/.exec(release)
  return rebuild ? [own, { release: `rhel:${rebuild[1]}`, share: 'unfixed' }] : [own]
}

/** The rows by which a release's instances are found again when they change, whatever the options say (MAT-182). */
export function rowKeysOf({ instance, source }: Matched): RowKey[] {
  return releasesRead(instance.release).flatMap(({ release }) => keysWithin(release, source, instance))
}

/** By source, and by binary where the distribution's source names binary packages: those of rpm only. */
function keysWithin(release: string, source: string, { system, name }: PackageInstance): RowKey[] {
  const bySource: RowKey = { release, package: source, by: 'source' }
  return system === 'rpm' ? [bySource, { release, package: name, by: 'binary' }] : [bySource]
}

/** The rows of an instance; Red Hat's for its rebuilds when the options say so (MAT-131). */
export function rowsOf(
  matched: Matched,
  reader: Pick<AdvisoryReader, 'affected'>,
  options: Pick<MatchOptions, 'rebuildsUnfixed'>,
): Row[] {
  const { instance, source, sourceVersion } = matched
  const rows: Row[] = []
  for (const { release, share } of releasesRead(instance.release)) {
    if (share === 'unfixed' && !options.rebuildsUnfixed) continue
    for (const key of keysWithin(release, source, instance)) {
      const affected = reader.affected(key.release, key.package, key.by)
      if (affected) rows.push({ affected, version: key.by === 'source' ? sourceVersion : instance.version, share })
    }
  }
  return rows
}

/** Whether a rule of a row counts beside the rows of the release itself. */
export function isCounted(rule: Rule, share: RowShare, ownVulns: ReadonlySet<string>): boolean {
  switch (share) {
    case 'own':
      return true
    case 'base':
      return !ownVulns.has(rule.vuln)
    case 'unfixed':
      return !ownVulns.has(rule.vuln) && (rule.status === 'no_fix' || rule.status === 'wont_fix')
  }
}

/** The vulnerabilities that the rows of the release itself name. */
export function ownVulnsOf(rows: readonly Row[]): ReadonlySet<string> {
  const own = rows.filter(({ share }) => share === 'own')
  return new Set(own.flatMap(({ affected }) => affected.rules.map(rule => rule.vuln)))
}
