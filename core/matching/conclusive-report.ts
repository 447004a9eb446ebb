// Which reports open and resolve findings, and which change nothing of them (MAT-152, MAT-153).
import type { MatchStatus } from './finding-event.ts'
import type { Report, ScanErrorCode } from './report-schema.ts'

const UNREAD: ReadonlySet<ScanErrorCode> = new Set([
  'packages_unreadable',
  'no_packages',
  'too_many_packages',
  'os_release_missing',
])

/**
 * Whether findings may be opened and resolved by a report: not when its packages are not known (MAT-152), and not
 * without a database (MAT-153).
 */
export function isConclusive(
  report: Pick<Report, 'error_codes'> & { readonly packages?: unknown },
  status: MatchStatus,
): boolean {
  return status !== 'no_db' && report.packages !== undefined && !report.error_codes.some(code => UNREAD.has(code))
}
