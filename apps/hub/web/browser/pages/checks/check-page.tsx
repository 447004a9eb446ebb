// A check on its servers: the last day hour by hour, how long answers take, how long a certificate is good.
import './checks.css'
import type { CheckOfServer, CheckView } from '../../../views/check.ts'
import { checksWords } from '../../../words/checks.ts'
import { hrefTo } from '../../address/router.ts'
import { NOTHING, valueText } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'

const t = textsOf(checksWords)

const stateOf = (share: number | null): 'good' | 'failed' | 'unknown' =>
  share === null ? 'unknown' : share < 1 ? 'failed' : 'good'

/** Shape, colour and a text that says the same. */
function Hours({ hours }: { readonly hours: CheckOfServer['hours'] }) {
  const states = hours.map(stateOf)
  const counted = (state: string) => states.filter(each => each === state).length
  const text = t('day_text', { good: counted('good'), failed: counted('failed'), unknown: counted('unknown') })
  return (
    <span class="hours" role="img" aria-label={text} title={text}>
      {states.map((state, hour) => (
        <i data-state={state} key={hour} />
      ))}
    </span>
  )
}

const columns: readonly Column<CheckOfServer>[] = [
  {
    key: 'server',
    title: t('server'),
    isName: true,
    cell: row => <a href={hrefTo('server', { server: row.id })}>{row.name}</a>,
  },
  { key: 'day', title: t('day'), cell: row => <Hours hours={row.hours} /> },
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
