// The columns of every table of alerts.
import type { AlertFace } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo } from '../../address/router.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { notesOf, readingOf, titleOf, toldOf } from './alert-face.tsx'

const t = textsOf(alertsWords)

export const alertColumns: readonly Column<AlertFace>[] = [
  {
    key: 'severity',
    title: t('severity'),
    cell: alert => <StateMark state={alert.severity} isOutlined={alert.state !== 'open'} />,
  },
  {
    key: 'what',
    title: t('what'),
    isName: true,
    cell: alert => (
      <a class="text" href={hrefTo('alert', { alert: alert.id })}>
        {titleOf(alert)}
      </a>
    ),
  },
  {
    key: 'server',
    title: t('server'),
    cell: alert => <span class="text">{alert.serverName}</span>,
  },
  { key: 'series', title: t('series'), from: 'medium', cell: alert => <span class="text">{alert.series}</span> },
  { key: 'value', title: t('value'), cell: alert => <span class="reading">{readingOf(alert)}</span> },
  { key: 'since', title: t('since'), cell: alert => <Time atMs={alert.openedAtMs} form="when" /> },
  { key: 'notes', title: t('notes'), cell: notesOf },
]

/** The columns of the list, where it is looked up who was told. */
export const alertListColumns: readonly Column<AlertFace>[] = may('notifications.view')
  ? [...alertColumns, { key: 'told', title: t('told_short'), from: 'medium', cell: toldOf }]
  : alertColumns
