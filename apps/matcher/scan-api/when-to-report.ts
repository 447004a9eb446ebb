// What a scan host is told of how to go on (MAT-031, MAT-044, MAT-221).
import type { ScanSettings } from '../../../core/matching/scan-protocol.ts'
import { sha256Words } from '../../../core/series/hash.ts'
import type { CompanySettings, ScanHost } from '../state/state-types.ts'

/** Of a company whose settings were never read (MAT-220). */
const INTERVAL_HOURS_DEFAULT = 24
/** A host comes to its place in the interval by reports that are this share of it early: more would be too soon. */
const EARLY_SHARE = 0.08

const HOUR_MS = 3_600_000

const intervalMsOf = (settings: CompanySettings | null): number =>
  Math.round((settings?.scanIntervalHours ?? INTERVAL_HOURS_DEFAULT) * HOUR_MS)

/** How soon after a report the plan lets the next one be kept (MAT-040). */
export const minIntervalMsOf = (settings: CompanySettings | null): number =>
  Math.round((settings?.minIntervalHours ?? INTERVAL_HOURS_DEFAULT) * HOUR_MS)

/**
 * How long from now until the next report is welcome. Every host has a place in the interval by its id; one that
 * reports elsewhere is drawn there a little with each report, so that many that came at one time part again.
 */
function nextAfterSeconds(hostId: string, intervalSeconds: number, nowMs: number): number {
  const place = sha256Words(hostId).lo % intervalSeconds
  const behind = (((Math.floor(nowMs / 1000) - place) % intervalSeconds) + intervalSeconds) % intervalSeconds
  return intervalSeconds - Math.min(behind, Math.floor(intervalSeconds * EARLY_SHARE))
}

/** The settings for a host that has reported; one that has just been enrolled reports at once. */
export function scanSettings(
  host: Pick<ScanHost, 'hostId' | 'isInactive'>,
  company: CompanySettings | null,
  nowMs: number,
  isEnrolling = false,
): ScanSettings {
  const isDisabled = company !== null && !company.isEnabled
  const seconds = Math.max(1, Math.round(intervalMsOf(company) / 1000))
  return {
    enabled: !host.isInactive && !isDisabled,
    reason: host.isInactive ? 'inactive' : isDisabled ? 'disabled' : '',
    interval_seconds: seconds,
    next_after_seconds: isEnrolling ? 0 : nextAfterSeconds(host.hostId, seconds, nowMs),
    version: company?.version ?? 0,
  }
}
