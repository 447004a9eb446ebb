// When phones stay quiet: the hours that a person chose, on the days that they chose, and whether what is
// critical breaks them.
import type { Severity } from '../../../core/alerting/rules/rule.ts'

/** Where the person has not said it. */
export const CRITICAL_BREAKS_QUIET = true

export type QuietHours = {
  readonly from: string
  readonly to: string
  readonly time_zone: string
  /** Of the week, on which they begin; 1 is Monday. */
  readonly days: readonly number[]
}

const DAY_NAMES = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** Whether an instant lies within quiet hours. Those that end on the next day belong to the day on which they began. */
export function isQuiet({ from, to, time_zone: timeZone, days }: QuietHours, nowMs: number): boolean {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(nowMs)
  const of = (type: string) => parts.find(part => part.type === type)?.value ?? ''
  const now = `${of('hour')}:${of('minute')}`
  const today = DAY_NAMES.indexOf(of('weekday')) + 1
  const yesterday = today === 1 ? 7 : today - 1
  if (from <= to) return days.includes(today) && now >= from && now < to
  return (days.includes(today) && now >= from) || (days.includes(yesterday) && now < to)
}

type Held = {
  readonly severity: Severity
  readonly quiet_hours: QuietHours | null
  /** Whether what is critical is sent all the same; null: nothing was said. */
  readonly breaks_quiet: boolean | null
}

/** Whether a push is not sent because of the quiet hours of its person. */
export function isHeldByQuietHours(
  { severity, quiet_hours: hours, breaks_quiet: breaks }: Held,
  nowMs: number,
): boolean {
  if (severity === 'critical' && (breaks ?? CRITICAL_BREAKS_QUIET)) return false
  return hours !== null && isQuiet(hours, nowMs)
}
