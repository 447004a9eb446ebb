// When the agent scans and reports its packages (MAT-002, MAT-025, MAT-043, MAT-044). Instants are of the wall clock,
// since they are kept over restarts.
import { backoffMs } from '../backoff.ts'
import { DAY_MS } from '../limits.ts'
import type { ScanSettings } from '../matching/scan-protocol.ts'
import { agentHash, nextCycleAtMs } from './schedule.ts'

/** How often the package database is looked at between scans, and how long it must have rested. */
export const WATCH_MS = 300_000
const REST_MS = 120_000

/** Before a matcher has said anything. */
const INTERVAL_DEFAULT_MS = DAY_MS

const allowedIntervalMs = (settings: ScanSettings | null): number =>
  settings === null ? INTERVAL_DEFAULT_MS : settings.interval_seconds * 1000

/**
 * When the report after the one of `nowMs` is due. The matcher spreads its hosts by what it answers; an agent that is
 * to scan less often than that has its own place in its own interval.
 */
export function nextReportAtMs(
  nowMs: number,
  hostId: string,
  ownIntervalMs: number,
  settings: ScanSettings | null,
): number {
  if (settings !== null && ownIntervalMs <= allowedIntervalMs(settings))
    return nowMs + settings.next_after_seconds * 1000
  const offsetMs = agentHash(`scan:${hostId}`, ownIntervalMs)
  return nextCycleAtMs(nowMs + ownIntervalMs / 2, ownIntervalMs, offsetMs)
}

/** The wait after the nth failure in a row: 30 s doubling to an hour, a random share of it, and what is asked for. */
export const scanRetryMs = (failures: number, random: number, retryAfterMs: number | null): number =>
  Math.max(Math.round(random * backoffMs({ startMs: 30_000, capMs: 3_600_000 }, failures)), retryAfterMs ?? 0)

export type ScanHistory = {
  readonly lastReportAtMs: number | null
  /** When the last report was accepted that came before the interval had passed. */
  readonly earlyAtMs: number | null
  readonly nextAtMs: number | null
  readonly settings: ScanSettings | null
}

/** When the next regular report is due: at once for an agent that never reported, or not for an interval. */
export function regularReportAtMs(history: ScanHistory, ownIntervalMs: number, nowMs: number): number {
  const { lastReportAtMs, nextAtMs, settings } = history
  const intervalMs = Math.max(ownIntervalMs, allowedIntervalMs(settings))
  if (nextAtMs === null) return lastReportAtMs === null ? nowMs : lastReportAtMs + intervalMs
  // A clock that was set back must not hold the next report off for longer than any interval.
  return Math.min(nextAtMs, nowMs + 2 * intervalMs)
}

/**
 * When packages that changed at `changedAtMs` may be reported: once they rest, and once the matcher's interval has
 * passed, or at once where the one early report of the day was not used (MAT-040).
 */
export function changedReportAtMs(history: ScanHistory, changedAtMs: number, nowMs: number): number {
  const { lastReportAtMs, earlyAtMs, settings } = history
  const restedAtMs = changedAtMs > nowMs ? nowMs : changedAtMs + REST_MS
  const allowedAtMs = (lastReportAtMs ?? 0) + allowedIntervalMs(settings)
  const earlyAllowedAtMs = earlyAtMs === null ? 0 : earlyAtMs + DAY_MS
  return Math.max(restedAtMs, Math.min(allowedAtMs, earlyAllowedAtMs))
}

/** Whether a report now comes before the matcher's interval has passed, of which a share is taken as in time. */
export const isEarlyReport = ({ lastReportAtMs, settings }: ScanHistory, nowMs: number): boolean =>
  lastReportAtMs !== null && nowMs < lastReportAtMs + 0.9 * allowedIntervalMs(settings)
