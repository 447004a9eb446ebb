// A finding as lists and its page show it: how pressing it is, its state, when it is due.
import type { FindingRow } from '../../../views/findings.ts'
import { findingsWords } from '../../../words/findings.ts'
import { clockMs } from '../../connection/live.ts'
import { duration, NOTHING } from '../../format.ts'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(findingsWords)

const priorityMarks: Readonly<Record<FindingRow['priority'], MarkedState>> = {
  p1: 'critical',
  p2: 'warning',
  p3: 'info',
  p4: 'unknown',
}

export const priorityText = (priority: FindingRow['priority']): string => priority.toUpperCase()

export const PriorityMark = ({ priority, state }: Pick<FindingRow, 'priority' | 'state'>) => (
  <StateMark state={priorityMarks[priority]} isOutlined={state !== 'open'} text={priorityText(priority)} />
)

/** Empty for one that is open: most are. */
export const stateText = ({ state }: Pick<FindingRow, 'state'>): string => (state === 'open' ? '' : t(`state_${state}`))

const HOUR_MS = 3_600_000

/** How old the database is that findings are made with; null: there is none. */
export function databaseText(hours: number | null): string {
  if (hours === null) return t('no_database')
  return hours === 0 ? t('database_new') : t('database', { age: duration(hours * HOUR_MS) })
}

/** When an open one has to be mended. What is late is said to be so, and not by colour alone. */
export function Due({ state, dueAtMs }: Pick<FindingRow, 'state' | 'dueAtMs'>) {
  if (dueAtMs === null || state !== 'open') return <>{NOTHING}</>
  if (dueAtMs > clockMs.value) return <Time atMs={dueAtMs} form="until" />
  return (
    <span class="fault">
      {t('overdue')} <Time atMs={dueAtMs} />
    </span>
  )
}
