// Until when a security finding is to be mended, and when that is soon (decisions G-155, G-162).

export type Priority = 'p1' | 'p2' | 'p3' | 'p4'

const DAY_MS = 86_400_000
const TERM_DAYS: Readonly<Record<Priority, number>> = { p1: 7, p2: 30, p3: 90, p4: 180 }
const DUE_SOON_SHARE = 0.25
const dueSoonHours = (priority: Priority): number => TERM_DAYS[priority] * 24 * DUE_SOON_SHARE
/** Less left of the term of a priority than this is due soon. */
export const DUE_SOON_HOURS: Readonly<Record<Priority, number>> = {
  p1: dueSoonHours('p1'),
  p2: dueSoonHours('p2'),
  p3: dueSoonHours('p3'),
  p4: dueSoonHours('p4'),
}

type Dated = { readonly fixStatus: string; readonly firstSeenAtMs: number; readonly reopenedAtMs: number | null }

/** The end of the term; null where the distribution has no fix. A finding that came back has a new one. */
export function termEndMs({ fixStatus, firstSeenAtMs, reopenedAtMs }: Dated, priority: Priority): number | null {
  if (fixStatus === 'no_fix' || fixStatus === 'wont_fix') return null
  return (reopenedAtMs ?? firstSeenAtMs) + TERM_DAYS[priority] * DAY_MS
}
