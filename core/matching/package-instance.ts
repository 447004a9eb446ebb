// One package as it is installed on any server of the fleet: what a verdict depends on, and nothing of a tenant.
import type { MatchOptions } from './match-options.ts'
import type { PackageSystem, Report } from './report-schema.ts'
import { ecosystemOf, releaseOf } from './whose-advisories.ts'

/** (MAT, Words) system, release, name, version, arch, source, source version, module; vendor decides MAT-119. */
export type PackageInstance = {
  readonly system: PackageSystem
  /** Release of the vulnerability database whose rows are looked up, as `debian:12`. */
  readonly release: string
  readonly name: string
  /** As the report spells it; rpm `epoch:version-release`, epoch left out when 0. */
  readonly version: string
  readonly arch: string
  readonly source: string
  readonly sourceVersion: string
  /** Module label `name:stream:version:context`, or empty. */
  readonly module: string
  readonly vendor: string
}

/**
 * All packages of a report, in its order, whether they can be matched or not: packages of third parties and those with
 * invalid versions are stored and found too. None when the report has no list.
 */
export function instancesOfReport(
  report: Pick<Report, 'os' | 'system' | 'packages'>,
  options: Pick<MatchOptions, 'centosAsRedhat'>,
): PackageInstance[] {
  const { packages, system } = report
  if (!packages || system === '') return []
  const release = releaseOf(report.os, options)?.database ?? ecosystemOf(report.os, options)
  return packages.name.map((name, index) => ({
    system,
    release,
    name,
    version: packages.version[index]!,
    arch: packages.arch[index]!,
    source: packages.source[index]! || name,
    sourceVersion: packages.source_version[index]! || packages.version[index]!,
    module: packages.module[index]!,
    vendor: packages.vendor[index]!,
  }))
}
