// The columns of groups of alerts: how many there are, how bad, and how the week was.
import { filterText, parseFilter } from '../../../address/filter.ts'
import type { AlertGroup } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo, param } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { WeekBars } from './alert-week.tsx'

const t = textsOf(alertsWords)

export function groupName({ name, incidentSize }: AlertGroup): string {
  if (incidentSize !== null) return `${t('group_down', { count: incidentSize })} · ${name}`
  return name === '' ? t(param('group') === 'incident' ? 'group_no_incident' : 'group_nothing') : name
}

/** What a group stands for: an incident has a page of its own, all others are the list with one term more. */
function hrefOfGroup({ key, incidentSize }: AlertGroup): string {
  if (incidentSize !== null) return hrefTo('alert', { alert: key })
  const isOfNone = param('group') === 'incident'
  const term = isOfNone
    ? { key: 'type', isExcluded: true, operator: '=' as const, value: 'group_down' }
    : { key: param('group'), isExcluded: false, operator: '=' as const, value: key }
  const q = key === '' && !isOfNone ? param('q') : filterText([...parseFilter(param('q')), term])
  return hrefTo('alerts', {}, { q })
}

const weekColumn: Column<AlertGroup> = {
  key: 'week',
  title: t('week_short'),
  from: 'medium',
  cell: ({ week }) => (week === null ? NOTHING : <WeekBars week={week} />),
}

export const groupColumns = (): readonly Column<AlertGroup>[] => [
  { key: 'worst', title: t('severity'), cell: group => <StateMark state={group.worst} /> },
  {
    key: 'name',
    title: t('group_name'),
    isName: true,
    cell: group => (
      <a class="text" href={hrefOfGroup(group)}>
        {groupName(group)}
      </a>
    ),
  },
  { key: 'count', title: t('group_count'), isNumber: true, cell: group => count(group.count) },
  { key: 'open', title: t('group_unacknowledged'), isNumber: true, cell: group => count(group.unacknowledged) },
  { key: 'servers', title: t('group_servers'), isNumber: true, cell: group => count(group.servers) },
  { key: 'oldest', title: t('group_oldest'), cell: group => <Time atMs={group.oldestAtMs} /> },
  ...(param('group') === 'incident' ? [] : [weekColumn]),
]
