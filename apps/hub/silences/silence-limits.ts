// How long a window of a silence may be, and what else is wrong with one.
import { currentWindow, type Recurrence, WINDOW_LENGTH_MAX_MS } from '../../../core/lifecycle/silence-windows.ts'
import { DAY_MS } from '../../../core/limits.ts'
import { type Words, words } from '../platform/http/api-texts.ts'

const DAYS_MAX = 366

type Windows = { readonly startsAt: Date; readonly endsAt: Date; readonly recurrence: Recurrence | null }

/** What is wrong with the windows of a silence, by field. */
export function windowFaults(
  { startsAt, endsAt, recurrence }: Windows,
  nowMs: number,
): [field: string, fault: Words][] {
  const [startMs, endMs] = [startsAt.getTime(), endsAt.getTime()]
  const days = recurrence === null ? DAYS_MAX : WINDOW_LENGTH_MAX_MS / DAY_MS
  if (endMs <= startMs) return [['ends_at', words('after_start')]]
  if (endMs - startMs > days * DAY_MS) return [['ends_at', words('at_most_days', { days })]]
  if (recurrence === null) return endMs <= nowMs ? [['ends_at', words('future')]] : []
  if (recurrence.until !== null && Date.parse(recurrence.until) <= startMs)
    return [['recurrence.until', words('after_start')]]
  const isOver = currentWindow({ startsAtMs: startMs, endsAtMs: endMs }, recurrence, nowMs) === null
  return isOver ? [['recurrence.until', words('future')]] : []
}
