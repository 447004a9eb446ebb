// When a scan host has not reported for too long, a matcher is silent, and a vulnerability database is too old.
import { type SQL, sql } from 'drizzle-orm'

const STALE_HOURS = 48
/** Since the day that a version of the vulnerability database begins with. */
export const DB_STALE_DAYS = 7
/** A matcher tells of itself more often than this. */
export const MATCHER_SILENT_MINUTES = 10

/** A scan host that reports, but has not for two days; hosts that are not scanned are not stale. */
export const isStaleHost = (nowIso: string): SQL => sql`h.state = 'active' and h.inactive_at is null
  and coalesce(h.last_report_at, h.enrolled_at) < ${nowIso}::timestamptz - make_interval(hours => ${STALE_HOURS})`

/** The day that a version of the vulnerability database begins with (decision G-192); null for one that has none. */
export function databaseDay(dbVersion: number): string | null {
  const digits = String(dbVersion)
  const day = /^(\d{4})(\d{2})(\d{2})\d{2}$/.exec(digits)
  const text = day ? `${day[1]}-${day[2]}-${day[3]}` : ''
  return day && !Number.isNaN(Date.parse(`${text}T00:00:00Z`)) ? text : null
}

/** Since the day of a version began: more is not known of one that only its number is told of. */
export function dayAgeMs(dbVersion: number | null, nowMs: number): number | null {
  const day = dbVersion === null ? null : databaseDay(dbVersion)
  return day === null ? null : nowMs - Date.parse(day)
}
