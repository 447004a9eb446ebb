// Who did what, newest first, with what it changed.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { AuditRow, AuditView } from '../../../views/administration-pages.ts'
import { auditWords } from '../../../words/audit.ts'
import { param, setParams } from '../../address/router.ts'
import { count, fieldText, instantOfField, NOTHING, shownZone } from '../../format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Fault } from '../../parts/fault.tsx'
import { TextField } from '../../parts/field.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { ChangedFields } from '../manifests/changed-fields.tsx'

const t = textsOf(auditWords)

const columnsOf = (onShow: (row: AuditRow) => void): readonly Column<AuditRow>[] => [
  { key: 'when', title: t('when'), cell: row => <Time atMs={row.atMs} form="when" /> },
  {
    key: 'actor',
    title: t('actor'),
    cell: row => <span class="text">{row.actor ?? (row.actorType === 'system' ? t('system') : row.actorType)}</span>,
  },
  { key: 'action', title: t('action'), isName: true, cell: row => <span class="text">{row.action}</span> },
  {
    key: 'subject',
    title: t('subject'),
    cell: row => (
      <span class="text">
        <span class="muted">{row.subjectType}</span> {row.subject}
      </span>
    ),
  },
  {
    key: 'changes',
    title: t('changes'),
    cell: row =>
      row.diff.length === 0 ? (
        NOTHING
      ) : (
        <span class="row-acts">
          <button type="button" aria-label={t('show_changes', { name: row.action })} onClick={() => onShow(row)}>
            {t('changes_of', { count: row.diff.length })}
          </button>
        </span>
      ),
  },
  { key: 'address', title: t('address'), from: 'medium', cell: row => <span class="text">{row.ip ?? NOTHING}</span> },
]

/** An instant of the address as a field shows it, and back. */
function InstantField({ label, name }: { readonly label: string; readonly name: 'from' | 'to' }) {
  const atMs = Date.parse(param(name))
  return (
    <TextField
      label={`${label} (${shownZone()})`}
      type="datetime-local"
      value={Number.isNaN(atMs) ? '' : fieldText(atMs)}
      onInput={text => {
        const at = text === '' ? null : new Date(instantOfField(text))
        if (at === null || !Number.isNaN(at.getTime()))
          setParams({ [name]: at?.toISOString() ?? null, offset: null }, 'replace')
      }}
    />
  )
}

export function AuditPage() {
  const { data, fault, reload } = usePageView<AuditView>('audit')
  const [shown, setShown] = useState<AuditRow | null>(null)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const isFiltered = ['q', 'from', 'to'].some(name => param(name) !== '')
  return (
    <>
      <div class="page-head">
        <h1>{t('audit')}</h1>
        <span class="muted">{count(data.total)}</span>
      </div>
      <div class="toolbar">
        <FilterField facets={{ action: [], subject: [], actor: [] }} />
        <InstantField label={t('from')} name="from" />
        <InstantField label={t('to')} name="to" />
      </div>
      {data.total === 0 ? isFiltered ? <NothingMatches /> : <p class="muted">{t('none')}</p> : null}
      {data.total === 0 ? null : (
        <Table
          isTall
          label={t('audit')}
          columns={columnsOf(setShown)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.action}
          total={data.total}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
        />
      )}
      {shown === null ? null : (
        <Dialog title={t('show_changes', { name: shown.action })} onClose={() => setShown(null)} isWide>
          <ChangedFields diff={shown.diff} />
        </Dialog>
      )}
    </>
  )
}
