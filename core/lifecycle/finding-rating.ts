// How pressing a security finding is: its risk and its priority (decisions G-155, G-173, G-187, G-188), and by the
// priority its term (finding-term.ts).
import { type Priority, termEndMs } from './finding-term.ts'

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
  const { cvssScore, severityLabel, minor, kev } = finding
  const ofLabel = Object.hasOwn(LABEL_RISK, severityLabel.toLowerCase())
    ? LABEL_RISK[severityLabel.toLowerCase()]
    : undefined
  const base = cvssScore === null ? (ofLabel ?? OTHER_RISK) : Math.round(cvssScore * 10)
  const risk = Math.min(RISK_MAX, Math.max(0, base) + (kev ? KEV_RISK : 0))
  const priority = priorityOf(risk, kev, minor)
  return { risk, priority, slaDueAtMs: termEndMs(finding, priority) }
}
