// The columns of groups of alerts: how many there are, how bad, and how the week was.
import { filterText, parseFilter } from '../../../address/filter-language.ts'
import type { AlertGroup } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo, param } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { WeekBars } from './alert-week.tsx'

const t = textsOf(alertsWords)
const shell = textsOf(shellWords)

const kindsShown = (): readonly string[] => param('group').split(',')

export function groupName({ name, incidentSize, within, worst }: AlertGroup): string {
  if (incidentSize !== null) return `${t('group_down', { count: incidentSize })} · ${name}`
  // All alerts of such a group are of the severity that it is called by.
  if (kindsShown()[within === null ? 0 : 1] === 'severity') return shell(`state_${worst}`)
  const isOfNoIncident = within === null && kindsShown()[0] === 'incident'
  return name === '' ? t(isOfNoIncident ? 'group_no_incident' : 'group_nothing') : name
}

/** What chooses the alerts of a group of this kind; none: the filter cannot say what they lack. */
function termOf(kind: string, key: string) {
  const isOfNone = kind === 'incident' && key === ''
  if (isOfNone) return [{ key: 'type', isExcluded: true, operator: '=' as const, value: 'group_down' }]
  return key === '' ? [] : [{ key: kind, isExcluded: false, operator: '=' as const, value: key }]
}

/** What a group stands for: an incident has a page of its own, all others are the list with a term more for each. */
function hrefOfGroup({ key, within, incidentSize }: AlertGroup): string {
  if (incidentSize !== null) return hrefTo('alert', { alert: key })
  const [outer = '', inner = ''] = kindsShown()
  const terms = within === null ? termOf(outer, key) : [...termOf(outer, within), ...termOf(inner, key)]
  return hrefTo('alerts', {}, { q: filterText([...parseFilter(param('q')), ...terms]) })
}

const GroupLink = ({ group }: { readonly group: AlertGroup }) => (
  <span class={group.within === null ? undefined : 'inner-group'}>
    <a class="text" href={hrefOfGroup(group)}>
      {groupName(group)}
    </a>{' '}
    {group.leftOut > 0 ? <span class="muted">{t('group_more', { count: group.leftOut })}</span> : null}
  </span>
)

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
    cell: group => <GroupLink group={group} />,
  },
  { key: 'count', title: t('group_count'), isNumber: true, cell: group => count(group.count) },
  { key: 'open', title: t('group_unacknowledged'), isNumber: true, cell: group => count(group.unacknowledged) },
  { key: 'servers', title: t('group_servers'), isNumber: true, cell: group => count(group.servers) },
  { key: 'oldest', title: t('group_oldest'), cell: group => <Time atMs={group.oldestAtMs} /> },
  ...(kindsShown()[0] === 'incident' ? [] : [weekColumn]),
]
