// The active checks of the company.
import { useState } from 'preact/hooks'
import { FRESH_HOURS } from '../../../views/check-standing.ts'
import type { CheckDaysView, CheckListRow, ChecksView } from '../../../views/checks.ts'
import { checksWords } from '../../../words/checks.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import type { ApiFault } from '../../api.ts'
import { count, valueText } from '../../format.ts'
import { CollectorBanner } from '../../parts/collector-banner.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { LateCheckDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView, useView } from '../../view.ts'
import { DeleteCheck, turn } from './check-acts.tsx'
import { CheckHours } from './check-hours.tsx'
import { type CheckDialogProps, checkTypes } from './late-props.ts'

const t = textsOf(checksWords)
const shell = textsOf(shellWords)

/** A day of which nothing is known. */
const UNKNOWN: readonly null[] = Array.from({ length: 24 }, () => null)
const STATES = ['failing', 'enabled', 'disabled'] as const

type Days = CheckDaysView | null

function CheckState({ row, days }: { readonly row: CheckListRow; readonly days: Days }) {
  if (!row.isEnabled) return <StateMark state="decommissioned" text={t('off')} />
  if (row.failing > 0) return <StateMark state="critical" text={t('failing', { count: row.failing })} />
  if (days?.[row.id]?.isSilent) return <StateMark state="unknown" text={t('not_known')} />
  const isFresh = days?.[row.id]?.hours.slice(-FRESH_HOURS).some(share => share !== null) === true
  if (!isFresh) return <StateMark state="unknown" text={t('no_result')} />
  // Nobody is told of it: the rule waits, or there is none.
  const failed = days?.[row.id]?.failed ?? 0
  if (failed > 0) return <StateMark state="warning" text={t('failed_lately', { count: failed })} />
  return <StateMark state="ok" text={t('well')} />
}

type Kind = 'edit' | 'enable' | 'disable' | 'duplicate' | 'delete'
type OnAct = (kind: Kind, row: CheckListRow) => void

const Acts = ({ row, onAct }: { readonly row: CheckListRow; readonly onAct: OnAct }) => (
  <span class="row-acts">
    {(['edit', row.isEnabled ? 'disable' : 'enable', 'duplicate', 'delete'] as const).map(kind => (
      <button
        type="button"
        key={kind}
        aria-label={t(`${kind}_of`, { name: row.name })}
        onClick={() => onAct(kind, row)}
      >
        {t(kind)}
      </button>
    ))}
  </span>
)

/** How many of the servers that were looked at are well, and how many are not. */
function ServersOf({ row, days }: { readonly row: CheckListRow; readonly days: Days }) {
  const day = days?.[row.id]
  const all = row.servers === null ? t('all_servers') : count(row.servers)
  if (day === undefined || day.read === 0 || day.isSilent) return <>{all}</>
  const text = t('well_and_failed', { well: day.well, failed: day.failed })
  return (
    <span title={t('looked_at', { read: day.read, all })}>
      {all} <span class="muted">({text})</span>
    </span>
  )
}

const daysLeft = (row: CheckListRow, days: Days): number | null => days?.[row.id]?.days ?? null

/** Where there is no place for columns of their own the type and the days of a certificate stand before the target. */
function TargetOf({ row, days }: { readonly row: CheckListRow; readonly days: Days }) {
  const left = daysLeft(row, days)
  const about = [t(`type_${row.type}`), ...(left === null ? [] : [valueText('days', left)])].join(', ')
  return (
    <span title={row.target}>
      <span class="until-wide muted">{about}</span>
      <span class="text">{row.target}</span>
    </span>
  )
}

const columnsOf = (onAct: OnAct, days: Days): readonly Column<CheckListRow>[] => [
  {
    key: 'name',
    title: t('name'),
    isName: true,
    cell: row => <a href={hrefTo('check', { check: row.id })}>{row.name}</a>,
  },
  { key: 'state', title: t('state'), cell: row => <CheckState row={row} days={days} /> },
  { key: 'type', title: t('type'), from: 'wide', cell: row => t(`type_${row.type}`) },
  { key: 'target', title: t('target'), cell: row => <TargetOf row={row} days={days} /> },
  {
    key: 'servers',
    title: t('servers'),
    isNumber: true,
    cell: row => <ServersOf row={row} days={days} />,
  },
  {
    key: 'day',
    title: t('day'),
    cell: row => <CheckHours hours={row.isEnabled ? (days?.[row.id]?.hours ?? UNKNOWN) : UNKNOWN} />,
  },
  {
    key: 'response',
    title: t('response'),
    isNumber: true,
    from: 'medium',
    cell: row => valueText('s', days?.[row.id]?.seconds ?? null),
  },
  {
    key: 'days',
    title: t('days_left'),
    isNumber: true,
    from: 'wide',
    cell: row => valueText('days', daysLeft(row, days)),
  },
  ...(may('monitoring.manage')
    ? [{ key: 'acts', title: t('acts'), cell: (row: CheckListRow) => <Acts row={row} onAct={onAct} /> }]
    : []),
]

const NoChecks = () => (
  <div class="notice">
    <p>{t('none')}</p>
    <p class="muted">{t('none_about')}</p>
  </div>
)

export function ChecksPage() {
  const { data, fault, reload } = usePageView<ChecksView>('checks')
  const days = useView<CheckDaysView>('check-days', { q: param('q'), offset: param('offset') }).data
  const [asked, setAsked] = useState<CheckDialogProps['of'] | 'new'>(null)
  const [deleted, setDeleted] = useState<CheckListRow | null>(null)
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const onAct: OnAct = (kind, row) => {
    if (kind === 'delete') setDeleted(row)
    else if (kind === 'edit' || kind === 'duplicate') setAsked({ id: row.id, act: kind })
    else
      void turn(row, kind).then(refusal => {
        setRefused(refusal)
        reload()
      })
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        <NoticeLine onUndone={reload} />
        <span class="grow" />
        {may('monitoring.manage') ? (
          <button type="button" class="primary" onClick={() => setAsked('new')}>
            {t('new')}
          </button>
        ) : null}
      </div>
      <div class="toolbar">
        <FilterField facets={{ type: checkTypes.map(type => [type, -1]), state: STATES.map(state => [state, -1]) }} />
      </div>
      <ActFault fault={refused} />
      {data.total === 0 ? <NoChecks /> : data.matching === 0 ? <NothingMatches /> : null}
      {data.matching === 0 ? null : (
        <div class="checks-list">
          <Table
            label={t('title')}
            isTall
            columns={columnsOf(onAct, days)}
            rows={data.rows}
            keyOf={row => row.id}
            nameOf={row => row.name}
            total={data.matching}
            offset={data.offset}
            onOffset={offset => setParams({ offset: offset || null }, 'replace')}
          />
        </div>
      )}
      <CollectorBanner state={Object.values(days ?? {}).some(day => day.isSilent) ? 'unavailable' : 'ok'} />
      {asked === null ? null : (
        <LateCheckDialog of={asked === 'new' ? null : asked} onClose={() => setAsked(null)} onDone={reload} />
      )}
      {deleted === null ? null : <DeleteCheck check={deleted} onClose={() => setDeleted(null)} onDone={reload} />}
    </>
  )
}
