// What waits for somebody's yes, the most urgent first: decided here, with a word about why.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { ApprovalRow, ApprovalsView } from '../../../views/manifest-pages.ts'
import { manifestsWords } from '../../../words/manifests.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { count, NOTHING } from '../../format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf, user } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { ChangedFields } from './changed-fields.tsx'
import './manifests.css'

const t = textsOf(manifestsWords)

const marks: Readonly<Record<ApprovalRow['state'], MarkedState>> = {
  pending: 'info',
  approved: 'ok',
  rejected: 'decommissioned',
  cancelled: 'decommissioned',
  expired: 'unknown',
}

const mayDecide = ({ deciderIds }: ApprovalRow): boolean => may('approvals.decide') && deciderIds.includes(user.id)
const subjectOf = ({ kind, name }: ApprovalRow): string => `${kind} ${name}`

const columnsOf = (onDecide: (row: ApprovalRow) => void): readonly Column<ApprovalRow>[] => [
  {
    key: 'state',
    title: t('state'),
    cell: row => <StateMark state={marks[row.state]} text={t(`ticket_${row.state}`)} />,
  },
  {
    key: 'subject',
    title: t('subject'),
    isName: true,
    cell: row => (
      <a class="text" href={hrefTo('iac_run', { run: row.runId })}>
        {row.action} {subjectOf(row)}
      </a>
    ),
  },
  {
    key: 'workflow',
    title: t('workflow'),
    cell: row => (
      <span class="text">
        {t('step_of', { flow: row.workflow, step: row.step })}{' '}
        <span class="muted">{t('approvals_of', { given: row.given, required: row.required })}</span>
      </span>
    ),
  },
  { key: 'by', title: t('by'), from: 'medium', cell: row => <span class="text">{row.requester ?? NOTHING}</span> },
  { key: 'due', title: t('due'), cell: row => <Time atMs={row.closedAtMs ?? row.dueAtMs} form="when" /> },
  {
    key: 'acts',
    title: t('acts'),
    cell: row =>
      mayDecide(row) ? (
        <span class="row-acts">
          <button type="button" aria-label={t('decide_of', { name: subjectOf(row) })} onClick={() => onDecide(row)}>
            {t('decide')}
          </button>
        </span>
      ) : (
        <span class="muted">{row.state === 'pending' ? t('not_yours') : NOTHING}</span>
      ),
  },
]

type DecideProps = { readonly row: ApprovalRow; readonly onClose: () => void; readonly onDone: () => void }

function Decide({ row, onClose, onDone }: DecideProps) {
  const [decision, setDecision] = useState<'approve' | 'reject'>('approve')
  const [comment, setComment] = useState('')
  const decide = async (): Promise<ApiFault | null> => {
    const body = comment.trim() === '' && decision === 'approve' ? {} : { comment }
    const result = await send('POST', `/approvals/tickets/${row.id}/${decision}`, body)
    return result.ok ? null : result.fault
  }
  return (
    <Dialog title={t('decide_of', { name: subjectOf(row) })} onClose={onClose} isWide>
      <ChangedFields diff={row.diff} />
      <DialogForm
        act={t(decision)}
        isDanger={decision === 'reject'}
        onSend={decide}
        onCancel={onClose}
        onDone={() => {
          onDone()
          onClose()
        }}
      >
        {errorsOf => (
          <>
            <SelectField
              label={t('decision')}
              value={decision}
              choices={(['approve', 'reject'] as const).map(each => ({ value: each, text: t(each) }))}
              onChange={chosen => setDecision(chosen === 'reject' ? 'reject' : 'approve')}
            />
            <TextField
              label={t('comment')}
              hint={t('comment_hint')}
              lines={3}
              maxLength={2000}
              value={comment}
              onInput={setComment}
              errors={errorsOf('comment')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}

export function ApprovalsPage() {
  const { data, fault, reload } = usePageView<ApprovalsView>('approvals')
  const [deciding, setDeciding] = useState<ApprovalRow | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const isPast = param('past') !== ''
  return (
    <>
      <div class="page-head">
        <h1>{t('approvals')}</h1>
        <span class="muted">{count(data.total)}</span>
      </div>
      <div class="toolbar">
        <button type="button" aria-pressed={!isPast} onClick={() => setParams({ past: null, offset: null })}>
          {t('waiting')}
        </button>
        <button type="button" aria-pressed={isPast} onClick={() => setParams({ past: '1', offset: null })}>
          {t('closed')}
        </button>
      </div>
      {data.total === 0 ? (
        <p class="muted">{t(isPast ? 'no_past_tickets' : 'no_tickets')}</p>
      ) : (
        <Table
          isTall
          label={t('approvals')}
          columns={columnsOf(setDeciding)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={subjectOf}
          total={data.total}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
        />
      )}
      {deciding === null ? null : <Decide row={deciding} onClose={() => setDeciding(null)} onDone={reload} />}
    </>
  )
}
