// The windows of a silence (decisions G-121, G-179): one, or one on each day that its recurrence names. A window begins
// and ends at the same local time whatever the clock of its zone does in between: the length of a night in which the
// clock changes differs by an hour.
import { DAY_MS } from '../limits.ts'

export const frequencies = ['daily', 'weekly'] as const
/** ISO 8601: Monday is 1. */
const MONDAY = 1

export type Recurrence = {
  readonly frequency: (typeof frequencies)[number]
  /**
   * On these days alone, 1 (Monday) to 7. Empty: each day; weekly, the first window's day of the week.
   */
  readonly weekdays: readonly number[]
  /** No window begins at this instant or later; null: it goes on until it is ended. */
  readonly until: string | null
  /** A name of the IANA time zone database. */
  readonly time_zone: string
}

/** From `startsAtMs` on, up to and without `endsAtMs`. */
export type SilenceWindow = { readonly startsAtMs: number; readonly endsAtMs: number }

/** A time of day on a day, both as a clock of the zone shows them, in ms as if they were UTC. */
type LocalMs = number

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  // There are some 600 zones; a caller that invents names is refused before it comes here.
  formats.set(timeZone, format)
  return format
}

function toLocal(timeZone: string, atMs: number): LocalMs {
  const parts: Record<string, number> = {}
  for (const { type, value } of formatOf(timeZone).formatToParts(atMs)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  const milliseconds = ((atMs % 1000) + 1000) % 1000
  return Date.UTC(year, month - 1, day, hour, minute, second) + milliseconds
}

/**
 * The instant at which a clock of the zone shows this time. Of two the earlier one; one that a change of the clock
 * leaves out is as much later as the clock jumps (RFC 5545, section 3.3.5).
 */
function toInstant(timeZone: string, local: LocalMs): number {
  const offsetAt = (atMs: number): number => toLocal(timeZone, atMs) - atMs
  const before = offsetAt(local - DAY_MS)
  const after = offsetAt(local + DAY_MS)
  const early = local - Math.max(before, after)
  const late = local - Math.min(before, after)
  if (toLocal(timeZone, early) === local) return early
  if (toLocal(timeZone, late) === local) return late
  return local - before
}

const weekdayOf = (local: LocalMs): number => ((Math.floor(local / DAY_MS) + 3) % 7) + MONDAY

/** Windows beyond this many are never asked for: a look of 8 days at windows of at most 7 days. */
const WINDOWS_MAX = 64

/**
 * The windows that end after `fromMs` and begin before `toMs`, in their order; the first one counts whatever day it is
 * on. Without a recurrence that is the first one at most.
 */
export function silenceWindows(
  first: SilenceWindow,
  recurrence: Recurrence | null,
  fromMs: number,
  toMs: number,
): SilenceWindow[] {
  const isAsked = ({ startsAtMs, endsAtMs }: SilenceWindow): boolean => endsAtMs > fromMs && startsAtMs < toMs
  const windows = isAsked(first) ? [first] : []
  if (recurrence === null) return windows
  const { time_zone: zone, frequency } = recurrence
  const untilMs = recurrence.until === null ? Number.POSITIVE_INFINITY : Date.parse(recurrence.until)
  const start = toLocal(zone, first.startsAtMs)
  const length = toLocal(zone, first.endsAtMs) - start
  const ownDay = frequency === 'weekly' ? [weekdayOf(start)] : []
  const days = new Set(recurrence.weekdays.length > 0 ? recurrence.weekdays : ownDay)
  // Two days earlier than needed, since offsets differ by up to a day.
  const skipped = Math.floor((fromMs - first.endsAtMs) / DAY_MS) - 2
  for (let day = Math.max(1, skipped); windows.length < WINDOWS_MAX; day++) {
    const local = start + day * DAY_MS
    const startsAtMs = toInstant(zone, local)
    if (startsAtMs >= toMs || startsAtMs >= untilMs) break
    if (days.size > 0 && !days.has(weekdayOf(local))) continue
    const endsAtMs = toInstant(zone, local + length)
    // A window within the hour that the clock leaves out keeps its length.
    const window = { startsAtMs, endsAtMs: endsAtMs > startsAtMs ? endsAtMs : startsAtMs + length }
    if (isAsked(window)) windows.push(window)
  }
  return windows
}

/** How far ahead collectors are given the windows of a recurrence. */
export const WINDOWS_AHEAD_MS = 8 * DAY_MS
export const WINDOW_LENGTH_MAX_MS = 7 * DAY_MS

/** The window that holds at `nowMs`, else the next one; null when all are over. */
export function currentWindow(
  first: SilenceWindow,
  recurrence: Recurrence | null,
  nowMs: number,
): SilenceWindow | null {
  const aheadMs = Math.max(nowMs, first.startsAtMs) + WINDOWS_AHEAD_MS
  return silenceWindows(first, recurrence, nowMs, aheadMs)[0] ?? null
}
