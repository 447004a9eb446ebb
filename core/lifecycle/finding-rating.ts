// How pressing a security finding is: its risk, its priority, and the term in which it is to be mended (decisions
// G-155, G-162, G-173, G-187, G-188).

type Priority = 'p1' | 'p2' | 'p3' | 'p4'

const DAY_MS = 86_400_000
const KEV_RISK = 10
const RISK_MAX = 100
const LABEL_RISK: Readonly<Record<string, number>> = {
  critical: 95,
  high: 80,
  important: 80,
  medium: 50,
  moderate: 50,
  low: 20,
  negligible: 20,
  unimportant: 20,
}
const OTHER_RISK = 10
const SLA_DAYS: Readonly<Record<Priority, number>> = { p1: 7, p2: 30, p3: 90, p4: 180 }
const DUE_SOON_SHARE = 0.25
const dueSoonHours = (priority: Priority): number => SLA_DAYS[priority] * 24 * DUE_SOON_SHARE
/** Less left of the term of a priority than this is due soon (decision G-162). */
export const DUE_SOON_HOURS: Readonly<Record<Priority, number>> = {
  p1: dueSoonHours('p1'),
  p2: dueSoonHours('p2'),
  p3: dueSoonHours('p3'),
  p4: dueSoonHours('p4'),
}

/** What risk, priority and term are computed from. */
type Rated = {
  readonly cvssScore: number | null
  readonly severityLabel: string
  readonly minor: boolean
  readonly fixStatus: string
  readonly kev: boolean
  readonly firstSeenAtMs: number
  readonly reopenedAtMs: number | null
}

/** `risk` is 0 to 100; `slaDueAtMs` is null where the distribution has no fix. */
export type Rating = { readonly risk: number; readonly priority: Priority; readonly slaDueAtMs: number | null }

function priorityOf(risk: number, kev: boolean, minor: boolean): Priority {
  if (minor) return 'p4'
  if (kev || risk >= 90) return 'p1'
  return risk >= 70 ? 'p2' : risk >= 40 ? 'p3' : 'p4'
}

export function rate(finding: Rated): Rating {
  const { cvssScore, severityLabel, minor, fixStatus, kev, firstSeenAtMs, reopenedAtMs } = finding
  const ofLabel = Object.hasOwn(LABEL_RISK, severityLabel.toLowerCase())
    ? LABEL_RISK[severityLabel.toLowerCase()]
    : undefined
  const base = cvssScore === null ? (ofLabel ?? OTHER_RISK) : Math.round(cvssScore * 10)
  const risk = Math.min(RISK_MAX, Math.max(0, base) + (kev ? KEV_RISK : 0))
  const priority = priorityOf(risk, kev, minor)
  const hasTerm = fixStatus !== 'no_fix' && fixStatus !== 'wont_fix'
  return {
    risk,
    priority,
    slaDueAtMs: hasTerm ? (reopenedAtMs ?? firstSeenAtMs) + SLA_DAYS[priority] * DAY_MS : null,
  }
}
