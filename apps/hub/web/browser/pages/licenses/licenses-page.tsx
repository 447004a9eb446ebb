// The licences of the company: how much of each is used, until when it is good, and what can be done with it.
import { useState } from 'preact/hooks'
import { toggledTerm } from '../../../address/filter-language.ts'
import type { LicenseRow, LicensesView } from '../../../views/licenses.ts'
import { licensesWords } from '../../../words/licenses.ts'
import { shellWords } from '../../../words/shell.ts'
import { sendEach } from '../../acts-on-many.ts'
import { hrefTo, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { NOTHING } from '../../format.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { NothingYet } from '../../parts/nothing-yet.tsx'
import { useSelection } from '../../parts/selection.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { EditLicence } from './edit-licence.tsx'

const t = textsOf(licensesWords)
const shell = textsOf(shellWords)

const STATES = ['active', 'exhausted', 'expired', 'revoked', 'superseded'] as const
const marks: Readonly<Record<LicenseRow['status'], MarkedState>> = {
  active: 'ok',
  exhausted: 'info',
  expired: 'unknown',
  revoked: 'decommissioned',
  superseded: 'decommissioned',
}
const isEditable = ({ status }: LicenseRow): boolean => status !== 'revoked' && status !== 'superseded'

type Act = { readonly kind: 'edit' | 'regenerate' | 'revoke'; readonly rows: readonly LicenseRow[] }

const Acts = ({ row, onAct }: { readonly row: LicenseRow; readonly onAct: (act: Act) => void }) => (
  <span class="row-acts">
    <a href={hrefTo('add_servers', {}, { license: row.id })}>{t('arrivals')}</a>
    {isEditable(row) ? (
      <>
        <button
          type="button"
          aria-label={t('edit_of', { name: row.name })}
          onClick={() => onAct({ kind: 'edit', rows: [row] })}
        >
          {t('edit')}
        </button>
        <button
          type="button"
          aria-label={t('regenerate_of', { name: row.name })}
          onClick={() => onAct({ kind: 'regenerate', rows: [row] })}
        >
          {t('regenerate')}
        </button>
        <button
          type="button"
          aria-label={t('revoke_of', { name: row.name })}
          onClick={() => onAct({ kind: 'revoke', rows: [row] })}
        >
          {t('revoke')}
        </button>
      </>
    ) : null}
  </span>
)

/** How often it was used, and by which agents. */
function Used({ hint, usedCount, maxUses }: LicenseRow) {
  const text = t('used_of', { used: usedCount, max: maxUses })
  if (usedCount === 0) return <>{text}</>
  const q = toggledTerm('', 'license', hint)
  return (
    <a href={hrefTo('agents', {}, { q })} title={t('agents_of')}>
      {text}
    </a>
  )
}

const columnsOf = (onAct: (act: Act) => void): readonly Column<LicenseRow>[] => [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  { key: 'state', title: t('state'), cell: row => <StateMark state={marks[row.status]} text={t(row.status)} /> },
  { key: 'key', title: t('key'), cell: row => <code>{row.hint}</code> },
  {
    key: 'used',
    title: t('used'),
    isNumber: true,
    cell: row => <Used {...row} />,
  },
  {
    key: 'expires',
    title: t('expires'),
    cell: row => (row.expiresAtMs === null ? t('no_end') : <Time atMs={row.expiresAtMs} form="until" />),
  },
  {
    key: 'migrate',
    title: t('migrate'),
    from: 'medium',
    cell: row => (row.migrateUntilMs === null ? NOTHING : <Time atMs={row.migrateUntilMs} form="until" />),
  },
  {
    key: 'server',
    title: t('server'),
    from: 'medium',
    isOnCards: true,
    cell: row => <span class="text">{row.serverName ?? NOTHING}</span>,
  },
  ...(may('monitoring.manage')
    ? [{ key: 'acts', title: t('acts'), cell: (row: LicenseRow) => <Acts row={row} onAct={onAct} /> }]
    : []),
]

async function revokeAll(rows: readonly LicenseRow[]): Promise<ApiFault | null> {
  const ids = rows.map(({ id }) => id)
  const { done, fault } = await sendEach(ids, id => send('POST', `/monitoring/licenses/${id}/revoke`))
  if (fault === null || rows.length === 1) return fault
  return { ...fault, message: t('refused_of', { done, refused: fault.message }) }
}

type ActProps = { readonly act: Act; readonly onClose: () => void; readonly onDone: () => void }

function ActDialogs({ act: { kind, rows }, onClose, onDone }: ActProps) {
  const [key, setKey] = useState<string | null>(null)
  const [first] = rows
  const name = first?.name ?? ''
  if (kind === 'edit' && first) return <EditLicence license={first} onClose={onClose} onDone={onDone} />
  if (key !== null)
    return (
      <Dialog title={t('regenerate_of', { name })} onClose={onClose}>
        <p>{t('new_key')}</p>
        <CopyText text={key} />
      </Dialog>
    )
  if (kind === 'regenerate') {
    const regenerate = async (): Promise<ApiFault | null> => {
      const result = await send<{ token: string }>('POST', `/monitoring/licenses/${rows[0]?.id}/regenerate`)
      if (!result.ok) return result.fault
      setKey(result.body.token)
      return null
    }
    return (
      <ConfirmDialog
        title={t('regenerate_of', { name })}
        typed={null}
        act={t('regenerate')}
        onConfirm={regenerate}
        onClose={onClose}
        onDone={onDone}
      >
        <p>{t('regenerate_text')}</p>
      </ConfirmDialog>
    )
  }
  const typed = rows.length === 1 ? name : String(rows.length)
  return (
    <ConfirmDialog
      title={rows.length === 1 ? t('revoke_of', { name }) : t('revoke_selected', { count: rows.length })}
      typed={{ text: typed, label: t('type_name', { name: typed }) }}
      act={t('revoke')}
      onConfirm={async () => {
        const fault = await revokeAll(rows)
        onDone()
        return fault
      }}
      onClose={onClose}
    >
      <p>{t('revoke_licence_text')}</p>
    </ConfirmDialog>
  )
}

export function LicensesPage() {
  const { data, fault, reload } = usePageView<LicensesView>('licenses')
  const selection = useSelection()
  const [act, setAct] = useState<Act | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const chosen = data.rows.filter(row => selection.has(row.id) && isEditable(row))
  const mayManage = may('monitoring.manage')
  return (
    <>
      <div class="page-head">
        <h1>{t('licenses')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        {data.quotaLeft === null ? null : <span class="muted">{t('quota', { count: data.quotaLeft })}</span>}
        <span class="grow" />
        {mayManage ? (
          <a class="button" href={hrefTo('add_servers')}>
            {t('add')}
          </a>
        ) : null}
      </div>
      <div class="toolbar">
        <FilterField facets={{ status: STATES.map(status => [status, -1] as const) }} />
        {chosen.length > 0 ? (
          <button type="button" class="danger" onClick={() => setAct({ kind: 'revoke', rows: chosen })}>
            {t('revoke_selected', { count: chosen.length })}
          </button>
        ) : null}
      </div>
      {data.total === 0 ? <NothingYet text={t('none')} /> : data.matching === 0 ? <NothingMatches /> : null}
      {data.matching === 0 ? null : (
        <Table
          label={t('licenses')}
          isTall
          columns={columnsOf(setAct)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.name}
          total={data.matching}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
          selection={mayManage ? selection : undefined}
        />
      )}
      {act === null ? null : (
        <ActDialogs
          act={act}
          onClose={() => setAct(null)}
          onDone={() => {
            selection.clear()
            reload()
          }}
        />
      )}
    </>
  )
}
