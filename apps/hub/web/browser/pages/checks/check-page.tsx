// A check on its servers: the last day hour by hour, how long answers take, how long a certificate is good.
import type { CheckOfServer, CheckView } from '../../../views/check.ts'
import { checksWords } from '../../../words/checks.ts'
import { hrefTo } from '../../address/router.ts'
import { duration, NOTHING, valueText } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { CheckHours } from './check-hours.tsx'

const t = textsOf(checksWords)

const hasNone = ({ hours }: CheckOfServer): boolean => hours.every(hour => hour === null)

const columns: readonly Column<CheckOfServer>[] = [
  {
    key: 'server',
    title: t('server'),
    isName: true,
    cell: row => <a href={hrefTo('server', { server: row.id })}>{row.name}</a>,
  },
  { key: 'day', title: t('day'), cell: row => <CheckHours hours={row.hours} /> },
  {
    key: 'response',
    title: t('response'),
    isNumber: true,
    cell: row => (row.seconds === null ? NOTHING : valueText('s', row.seconds)),
  },
  {
    key: 'days',
    title: t('days_left'),
    isNumber: true,
    cell: row => (row.days === null ? NOTHING : valueText('days', row.days)),
  },
]

export function CheckPage() {
  const { data, fault, reload } = usePageView<CheckView>('check')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{data.name}</h1>
        <span class="muted">
          {t(`type_${data.type}`)} · {data.target}
        </span>
        {data.isEnabled ? null : <span class="muted">{t('off')}</span>}
        {data.rows.length < data.servers ? (
          <span class="muted">{t('shown_of', { shown: data.rows.length, count: data.servers })}</span>
        ) : null}
      </div>
      {data.isEnabled && data.rows.length > 0 && data.rows.some(row => row.isSilent) ? (
        <p class="banner" role="status">
          {t('collector_silent', { count: data.rows.filter(row => row.isSilent).length })}
        </p>
      ) : data.isEnabled && data.rows.length > 0 && data.rows.every(hasNone) ? (
        <p class="banner" role="status">
          {t('first_result', { time: duration(data.intervalSeconds * 1000) })}
        </p>
      ) : null}
      {data.rows.length === 0 ? (
        <p class="muted">{t('no_servers')}</p>
      ) : (
        <Table label={data.name} columns={columns} rows={data.rows} keyOf={row => row.id} nameOf={row => row.name} />
      )}
      <p>
        <a href={hrefTo('checks')}>{t('title')}</a>
      </p>
    </>
  )
}
