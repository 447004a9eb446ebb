// Whether a report of a known host is taken, and why not (MAT-034, 040, 181): a revoked host, a report that is replayed
// or early, that was made on another host or before a purge, a full outbox. What is left of one that is taken:
// apply-report.ts.
import type { HostRow } from './host-rows.ts'
import type { ReportInput, ReportOutcome } from './state-types.ts'

const DAY_MS = 24 * 3_600_000
/** A report this much of the minimum interval after the last is no early one (MAT-040). */
const INTERVAL_SHARE = 0.9

/** What decides besides the host and its report. */
type AroundReport = {
  /** Scanning is switched off for the company of the host. */
  readonly isSwitchedOff: boolean
  /** When the company or the server of the host was purged last. */
  readonly purgedAtMs: () => number
  readonly isOutboxFull: boolean
}

export const dayNumber = (atMs: number): number => Math.floor(atMs / DAY_MS)

/** A clock that went back makes no report early. */
export function isEarly(host: HostRow, input: ReportInput): boolean {
  const passedMs = input.receivedAtMs - host.reported_ms
  return host.reported_ms > 0 && passedMs >= 0 && passedMs < input.minIntervalMs * INTERVAL_SHARE
}

const retryAfterMs = (host: HostRow, input: ReportInput): number =>
  Math.ceil(host.reported_ms + input.minIntervalMs * INTERVAL_SHARE - input.receivedAtMs)

/** Why a report is not taken; null: it is. A report that was taken already is answered as it was then. */
export function reportRefusal(host: HostRow, input: ReportInput, state: AroundReport): ReportOutcome | null {
  if (host.is_revoked === 1) return { outcome: 'host_revoked' }
  const isSameTime = input.requestTimeMs === host.last_time_ms
  if (isSameTime && input.signature === host.last_signature)
    return {
      outcome: 'kept',
      isRepeat: true,
      isUnchanged: true,
      match_status: host.last_status,
      open_findings: host.last_open,
    }
  const summary = { match_status: host.last_status, open_findings: host.finding_count }
  if (host.is_inactive === 1) return { outcome: 'inactive', ...summary }
  if (state.isSwitchedOff) return { outcome: 'disabled', ...summary }
  const madeAtMs = Math.min(input.requestTimeMs, input.report?.collected_at_ms ?? input.requestTimeMs)
  const purgedAtMs = Math.max(host.purged_ms, state.purgedAtMs())
  if (madeAtMs < purgedAtMs) return { outcome: 'purged' }
  if (input.requestTimeMs <= host.last_time_ms) return { outcome: 'replayed' }
  if (input.report && host.machine_hash !== '' && input.report.machine_id_hash !== host.machine_hash)
    return { outcome: 'machine_changed' }
  if (state.isOutboxFull) return { outcome: 'outbox_full' }
  if (isEarly(host, input) && host.early_day === dayNumber(input.receivedAtMs))
    return { outcome: 'too_soon', retryAfterMs: retryAfterMs(host, input) }
  // A hash tells nothing without the report that it is of.
  if (input.report === null && (input.contentHash !== host.content_hash || host.scan === null))
    return { outcome: 'need_report' }
  return null
}
