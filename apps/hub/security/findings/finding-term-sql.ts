// When the term of an open finding is over, and when it is so soon, for queries that count or tell: what is said of a
// finding on the overview, in a digest and in a notice is one thing (decision G-162). The terms themselves are set in
// core/lifecycle/finding-term.ts.
import { type SQL, sql } from 'drizzle-orm'
import { DUE_SOON_HOURS } from '../../../../core/lifecycle/finding-term.ts'

export type TermState = 'due_soon' | 'overdue'

const HOURS_MAX = Math.max(...Object.values(DUE_SOON_HOURS))
const hoursOfPriority = sql.join(
  Object.entries(DUE_SOON_HOURS).map(([priority, hours]) => sql.raw(`when '${priority}' then ${hours}`)),
  sql` `,
)

/** A condition on rows of security_findings; the index `security_findings_sla` has all that it asks. */
export function hasTermState(state: TermState, nowMs: number): SQL {
  const now = sql`${new Date(nowMs).toISOString()}::timestamptz`
  const open = sql`status = 'open' and sla_due_at is not null`
  if (state === 'overdue') return sql`${open} and sla_due_at <= ${now}`
  // The longest one first: it is a range of the index.
  return sql`${open} and sla_due_at > ${now} and sla_due_at <= ${now} + make_interval(hours => ${HOURS_MAX})
    and sla_due_at <= ${now} + make_interval(hours => case priority ${hoursOfPriority} end)`
}
