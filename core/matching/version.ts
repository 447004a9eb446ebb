// The order of versions, by the package system that they are of (MAT section 5).
import type { PackageSystem } from './report-schema.ts'
import { compareApkVersions, isValidApkVersion } from './version-apk.ts'
import { compareDpkgVersions, isValidDpkgVersion } from './version-dpkg.ts'
import { compareRpmToBoundary, compareRpmVersions, isValidRpmVersion } from './version-rpm.ts'

/** Whether a version can be compared: others are never matched, and drop the rule whose boundary they are (MAT-098). */
export function isValidVersion(system: PackageSystem, version: string): boolean {
  switch (system) {
    case 'dpkg':
      return isValidDpkgVersion(version)
    case 'rpm':
      return isValidRpmVersion(version)
    case 'apk':
      return isValidApkVersion(version)
  }
}

/** Negative, 0 or positive: a total order on the valid versions of a system (MAT-099). */
export function compareVersions(system: PackageSystem, a: string, b: string): number {
  switch (system) {
    case 'dpkg':
      return compareDpkgVersions(a, b)
    case 'rpm':
      return compareRpmVersions(a, b)
    case 'apk':
      return compareApkVersions(a, b)
  }
}

/**
 * An installed version against `introduced`, `fixed` or `last_affected` of a rule: as `compareVersions`, but an rpm
 * release that one of them lacks is not compared (MAT-093).
 */
export function compareToBoundary(system: PackageSystem, version: string, boundary: string): number {
  return system === 'rpm' ? compareRpmToBoundary(version, boundary) : compareVersions(system, version, boundary)
}
