// A check on its servers: the last day hour by hour, how long answers take, how long a certificate is good.
import { useState } from 'preact/hooks'
import type { CheckOfServer, CheckView } from '../../../views/check.ts'
import { checksWords } from '../../../words/checks.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import type { ApiFault } from '../../api.ts'
import { duration, NOTHING, valueText } from '../../format.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { LateCheckDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { DeleteCheck, turn } from './check-acts.tsx'
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

type ActsProps = { readonly data: CheckView; readonly reload: () => void }

/** Absent where who looks may not act. */
function Acts({ data, reload }: ActsProps) {
  const [asked, setAsked] = useState<'edit' | 'duplicate' | 'delete' | null>(null)
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (!may('monitoring.manage')) return null
  const close = (): void => setAsked(null)
  const act = data.isEnabled ? 'disable' : 'enable'
  return (
    <>
      <div class="toolbar">
        <button type="button" onClick={() => setAsked('edit')}>
          {t('edit')}
        </button>
        <button
          type="button"
          onClick={() =>
            void turn(data, act).then(refusal => {
              setRefused(refusal)
              reload()
            })
          }
        >
          {t(act)}
        </button>
        <button type="button" onClick={() => setAsked('duplicate')}>
          {t('duplicate')}
        </button>
        <button type="button" onClick={() => setAsked('delete')}>
          {t('delete')}
        </button>
      </div>
      <ActFault fault={refused} />
      {asked === 'delete' ? (
        <DeleteCheck check={data} onClose={close} onDone={() => goTo(hrefTo('checks'))} />
      ) : asked === null ? null : (
        <LateCheckDialog of={{ id: data.id, act: asked }} onClose={close} onDone={reload} />
      )}
    </>
  )
}

/** The rules that tell of it, for who may see rules. */
const Rules = ({ rules }: Pick<CheckView, 'rules'>) => (
  <p>
    {t('rules')}:{' '}
    {rules.length === 0
      ? t('no_rules')
      : rules.map(({ id, name }, at) => (
          <span key={id}>
            {at === 0 ? '' : ', '}
            {may('monitoring.manage') ? <a href={hrefTo('rule', { rule: id })}>{name}</a> : name}
          </span>
        ))}
  </p>
)

export function CheckPage() {
  const { data, fault, reload } = usePageView<CheckView>('check')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{data.name}</h1>
        <span class="muted text">
          {t(`type_${data.type}`)} · {data.target} · {t('every', { time: duration(data.intervalSeconds * 1000) })}
        </span>
        {data.isEnabled ? null : <span class="muted">{t('off')}</span>}
        {data.rows.length < data.servers ? (
          <span class="muted">{t('shown_of', { shown: data.rows.length, count: data.servers })}</span>
        ) : null}
        <NoticeLine onUndone={reload} />
      </div>
      <Acts data={data} reload={reload} />
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
      <Rules rules={data.rules} />
      <p>
        <a href={hrefTo('checks')}>{t('title')}</a>
      </p>
    </>
  )
}
