// Exceptions: who asked for what to be accepted or called no fault, and what becomes of it.
import './findings-kit.ts'
import { useState } from 'preact/hooks'
import type { ExceptionRow, ExceptionsView } from '../../../views/exceptions.ts'
import { findingsWords } from '../../../words/findings.ts'
import { param, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { count, NOTHING } from '../../format.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf, user } from '../../session.ts'
import { usePageView } from '../../view.ts'

const t = textsOf(findingsWords)

const marks: Readonly<Record<ExceptionRow['state'], MarkedState>> = {
  pending: 'info',
  approved: 'ok',
  rejected: 'decommissioned',
  expired: 'unknown',
  withdrawn: 'decommissioned',
}

type Act = 'approve' | 'reject' | 'withdraw'
type OnAct = (act: Act, row: ExceptionRow) => void

/** Nobody approves what was asked for by oneself. */
const actsOf = ({ state, requesterId }: ExceptionRow): readonly Act[] => {
  if (!may('security.manage')) return []
  if (state === 'approved') return ['withdraw']
  if (state !== 'pending') return []
  return requesterId === user.id ? ['reject', 'withdraw'] : ['approve', 'reject', 'withdraw']
}

function StateOf({ row }: { readonly row: ExceptionRow }) {
  const state = t(`exception_${row.state}`)
  return <StateMark state={marks[row.state]} text={row.isChanging ? t('changing', { state }) : state} />
}

const columnsOf = (onAct: OnAct): readonly Column<ExceptionRow>[] => [
  { key: 'state', title: t('state'), cell: row => <StateOf row={row} /> },
  { key: 'reason', title: t('reason'), isName: true, cell: row => <span class="text">{row.reason}</span> },
  { key: 'kind', title: t('kind'), from: 'medium', cell: row => t(`type_${row.type}`) },
  {
    key: 'findings',
    title: t('title'),
    cell: row => (
      <span class="text">
        {row.names.length === 0
          ? count(row.findings)
          : t('findings_of', { count: row.findings, names: row.names.join(', ') })}
      </span>
    ),
  },
  { key: 'by', title: t('by'), cell: row => <span class="text">{row.requester ?? NOTHING}</span> },
  { key: 'requested', title: t('requested'), from: 'wide', cell: row => <Time atMs={row.requestedAtMs} form="when" /> },
  {
    key: 'expires',
    title: t('expires'),
    cell: row => (row.expiresAtMs === null ? t('no_end') : <Time atMs={row.expiresAtMs} form="when" />),
  },
  {
    key: 'acts',
    title: t('acts'),
    cell: row => (
      <span class="row-acts">
        {actsOf(row).map(act => (
          <button
            type="button"
            key={act}
            aria-label={t(`${act}_of`, { reason: row.reason })}
            onClick={() => onAct(act, row)}
          >
            {t(act)}
          </button>
        ))}
      </span>
    ),
  },
]

export function ExceptionsPage() {
  const { data, fault, reload } = usePageView<ExceptionsView>('exceptions')
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const isPast = param('past') !== ''
  const onAct: OnAct = async (act, { id }) => {
    const path = `/security/exceptions/${id}`
    const result = await (act === 'withdraw' ? send('DELETE', path) : send('POST', `${path}/${act}`))
    setRefused(result.ok ? null : result.fault)
    reload()
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('exceptions')}</h1>
        <span class="muted">{count(data.total)}</span>
      </div>
      <div class="toolbar">
        <button type="button" aria-pressed={!isPast} onClick={() => setParams({ past: null, offset: null })}>
          {t('current')}
        </button>
        <button type="button" aria-pressed={isPast} onClick={() => setParams({ past: '1', offset: null })}>
          {t('past')}
        </button>
      </div>
      <ActFault fault={refused} />
      {data.total === 0 ? (
        <p class="muted">{t(isPast ? 'no_past_exceptions' : 'no_exceptions')}</p>
      ) : (
        <Table
          isTall
          label={t('exceptions')}
          columns={columnsOf(onAct)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.reason}
          total={data.total}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
        />
      )}
    </>
  )
}
