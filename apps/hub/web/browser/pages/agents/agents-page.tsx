// The agents of the company: version against the newest, state, when they were seen; and moving, revoking, deleting.
import { useState } from 'preact/hooks'
import type { AgentRow, AgentsView } from '../../../views/agents.ts'
import { agentSaysWords } from '../../../words/agent-says.ts'
import { licensesWords } from '../../../words/licenses.ts'
import { shellWords } from '../../../words/shell.ts'
import { sendBulk } from '../../acts-on-many.ts'
import { hrefTo, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { NOTHING } from '../../format.ts'
import { Buffered, LastWarning } from '../../parts/agent-says.tsx'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { NothingYet } from '../../parts/nothing-yet.tsx'
import { useSelection } from '../../parts/selection.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { ReassignDialog } from './reassign-dialog.tsx'

const t = textsOf(licensesWords)
const shell = textsOf(shellWords)
const says = textsOf(agentSaysWords)

const STATES = ['online', 'down', 'unknown', 'outdated', 'buffering', 'warned', 'pending', 'active', 'revoked'] as const

function AgentState({ row }: { readonly row: AgentRow }) {
  if (row.state === 'revoked') return <StateMark state="decommissioned" text={t('revoked')} />
  if (row.state === 'pending') return <StateMark state="draft" text={t('pending')} />
  return <StateMark state={row.connectivity} />
}

type Act = { readonly kind: 'reassign' | 'revoke' | 'delete'; readonly rows: readonly AgentRow[] }

const NOTHING_HERE = <span>{NOTHING}</span>

function Acts({ row, onAct }: { readonly row: AgentRow; readonly onAct: (act: Act) => void }) {
  const button = (kind: Act['kind']) => (
    <button
      type="button"
      aria-label={t(`${kind}_of`, { name: row.hostname })}
      onClick={() => onAct({ kind, rows: [row] })}
    >
      {t(kind)}
    </button>
  )
  if (row.state === 'revoked') return may('monitoring.delete') ? button('delete') : NOTHING_HERE
  if (!may('monitoring.manage')) return NOTHING_HERE
  return (
    <span class="row-acts">
      {button('reassign')}
      {button('revoke')}
    </span>
  )
}

const columnsOf = (onAct: (act: Act) => void): readonly Column<AgentRow>[] => [
  { key: 'host', title: t('host'), isName: true, cell: row => <span class="text">{row.hostname}</span> },
  { key: 'state', title: t('state'), cell: row => <AgentState row={row} /> },
  {
    key: 'server',
    title: t('server'),
    cell: row =>
      row.serverId === null ? NOTHING : <a href={hrefTo('server', { server: row.serverId })}>{row.serverName}</a>,
  },
  {
    key: 'version',
    title: t('version'),
    cell: row =>
      row.version !== null && row.isOutdated ? (
        <StateMark state="warning" text={row.version} />
      ) : (
        (row.version ?? NOTHING)
      ),
  },
  {
    key: 'seen',
    title: t('seen'),
    cell: row => (row.lastSeenAtMs === null ? shell('never') : <Time atMs={row.lastSeenAtMs} />),
  },
  {
    key: 'buffer',
    title: says('buffer'),
    ...{ from: 'medium', isOnCards: true },
    cell: ({ buffer }) => (buffer === null ? null : <Buffered buffer={buffer} />),
  },
  {
    key: 'warning',
    title: says('last_warning'),
    ...{ from: 'medium', isOnCards: true },
    cell: ({ lastWarning }) => (lastWarning === null ? null : <LastWarning {...lastWarning} />),
  },
  { key: 'enrolled', title: t('enrolled'), from: 'wide', cell: row => <Time atMs={row.enrolledAtMs} /> },
  ...(may('monitoring.manage') || may('monitoring.delete')
    ? [{ key: 'acts', title: t('acts'), cell: (row: AgentRow) => <Acts row={row} onAct={onAct} /> }]
    : []),
]

async function revokeAll(rows: readonly AgentRow[]): Promise<ApiFault | null> {
  const ids = rows.map(row => row.id)
  const { done, refused, fault } = await sendBulk('/monitoring/agents/bulk/revoke', 'agent_ids', ids, {})
  if (fault !== null || refused.length === 0) return fault
  const texts = refused.flatMap(({ errors }) => Object.values(errors))
  const message = t('refused_of', { done, refused: [...new Set(texts)].join(' ') })
  return { status: 422, message, errors: {}, requestId: null }
}

async function deleteOne(row: AgentRow | undefined): Promise<ApiFault | null> {
  const result = await send('DELETE', `/monitoring/agents/${row?.id}`)
  return result.ok ? null : result.fault
}

type ActProps = { readonly act: Act; readonly onClose: () => void; readonly onDone: () => void }

function ActDialog({ act: { kind, rows }, onClose, onDone }: ActProps) {
  const [first] = rows
  const name = first?.hostname ?? ''
  if (kind === 'reassign' && first) return <ReassignDialog agent={first} onClose={onClose} onDone={onDone} />
  const typed = rows.length === 1 ? name : String(rows.length)
  const isDeletion = kind === 'delete'
  return (
    <ConfirmDialog
      title={
        rows.length > 1
          ? t('revoke_selected', { count: rows.length })
          : t(isDeletion ? 'delete_of' : 'revoke_of', { name })
      }
      typed={{ text: typed, label: t('type_name', { name: typed }) }}
      act={t(isDeletion ? 'delete' : 'revoke')}
      onConfirm={async () => {
        const fault = await (isDeletion ? deleteOne(first) : revokeAll(rows))
        onDone()
        return fault
      }}
      onClose={onClose}
    >
      <p>{t(isDeletion ? 'delete_agent_text' : 'revoke_agent_text')}</p>
    </ConfirmDialog>
  )
}

export function AgentsPage() {
  const { data, fault, reload } = usePageView<AgentsView>('agents')
  const selection = useSelection()
  const [act, setAct] = useState<Act | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const chosen = data.rows.filter(row => selection.has(row.id) && row.state !== 'revoked')
  return (
    <>
      <div class="page-head">
        <h1>{t('agents')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        {data.newestVersion === null ? null : (
          <span class="muted">
            {t('newest', { version: data.newestVersion })} · {t('outdated', { count: data.outdated })}
          </span>
        )}
      </div>
      <div class="toolbar">
        <FilterField facets={{ state: STATES.map(state => [state, -1] as const) }} />
        {chosen.length > 0 ? (
          <button type="button" class="danger" onClick={() => setAct({ kind: 'revoke', rows: chosen })}>
            {t('revoke_selected', { count: chosen.length })}
          </button>
        ) : null}
      </div>
      {data.total === 0 ? <NothingYet text={t('no_agents')} /> : data.matching === 0 ? <NothingMatches /> : null}
      {data.matching === 0 ? null : (
        <Table
          isTall
          label={t('agents')}
          columns={columnsOf(setAct)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.hostname}
          total={data.matching}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
          selection={may('monitoring.manage') ? selection : undefined}
        />
      )}
      {act === null ? null : (
        <ActDialog
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
