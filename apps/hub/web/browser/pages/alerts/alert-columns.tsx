// The columns of every table of alerts.
import type { AlertFace } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo } from '../../address/router.ts'
import { nowMs } from '../../hub-clock.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { notesOf, readingOf, titleOf, toldOf } from './alert-face.tsx'

const t = textsOf(alertsWords)

const HOUR_MS = 3_600_000
/** Of one that lasts longer its beginning is shown. */
const LONG_MS = 24 * HOUR_MS
const BEGINNING_MS = 6 * HOUR_MS

const iso = (atMs: number): string => new Date(atMs).toISOString()

/** The server over the time of the alert, for who may see servers. */
function ServerThen({ serverId, serverName, openedAtMs, endedAtMs }: AlertFace) {
  if (!may('servers.view')) return <span class="text">{serverName}</span>
  const isLong = (endedAtMs ?? nowMs()) - openedAtMs > LONG_MS
  const toMs = isLong ? openedAtMs + BEGINNING_MS : endedAtMs && endedAtMs + HOUR_MS
  const range = { from: iso(openedAtMs - HOUR_MS), to: toMs === null ? 'now' : iso(toMs) }
  return (
    <a class="text" href={hrefTo('server', { server: serverId }, range)}>
      {serverName}
    </a>
  )
}

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
    cell: alert => <ServerThen {...alert} />,
  },
  {
    key: 'series',
    title: t('series'),
    from: 'medium',
    isOnCards: true,
    cell: ({ series }) => (series === '' ? null : <span class="text">{series}</span>),
  },
  {
    key: 'value',
    title: t('value'),
    cell: alert => (
      <span class="reading" title={readingOf(alert)}>
        {readingOf(alert)}
      </span>
    ),
  },
  { key: 'since', title: t('since'), cell: alert => <Time atMs={alert.openedAtMs} form="when" /> },
  { key: 'notes', title: t('notes'), cell: notesOf },
]

/** The columns of the list, where it is looked up who was told. */
export const alertListColumns: readonly Column<AlertFace>[] = may('notifications.view')
  ? [...alertColumns, { key: 'told', title: t('told_short'), from: 'medium', cell: toldOf }]
  : alertColumns
