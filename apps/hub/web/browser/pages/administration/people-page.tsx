// The people of the company, whom it has invited, and its teams.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import type { InvitationRow, PeopleView, PersonRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { setParams } from '../../address/router.ts'
import { send } from '../../api.ts'
import { NOTHING } from '../../format.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf, user } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { InviteDialog } from './invite-dialog.tsx'
import { EVERYTHING } from './permission-groups.ts'
import { PersonDialog } from './person-dialog.tsx'
import { Teams } from './teams.tsx'
import './administration.css'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

type Act = { readonly kind: 'edit' | 'enable' | 'disable' | 'delete'; readonly person: PersonRow }

const namesOf = (all: readonly { readonly name: string }[]): string => all.map(({ name }) => name).join(', ')

function Acts({ person, onAct }: { readonly person: PersonRow; readonly onAct: (act: Act) => void }) {
  const button = (kind: Act['kind']) => (
    <button type="button" aria-label={t(`${kind}_of`, { name: person.name })} onClick={() => onAct({ kind, person })}>
      {t(kind)}
    </button>
  )
  // Whoever shuts out themselves cannot mend it: the API lets them, the page does not.
  return (
    <span class="row-acts">
      {button('edit')}
      {person.id === user.id ? null : (
        <>
          {button(person.isEnabled ? 'disable' : 'enable')}
          {button('delete')}
        </>
      )}
    </span>
  )
}

/** What a person may do: by roles, by keys of their own. */
const Rights = ({ roles, permissions, isSuperAdmin }: PersonRow) => (
  <span class="text">
    {namesOf(roles) || (permissions.length > 0 || isSuperAdmin ? '' : NOTHING)}
    {permissions.includes(EVERYTHING) ? (
      <span class="muted"> {t('all_permissions')}</span>
    ) : permissions.length > 0 ? (
      <span class="muted"> {t('own_keys', { count: permissions.length })}</span>
    ) : null}
    {isSuperAdmin ? <span class="muted"> {t('super_admin')}</span> : null}
  </span>
)

const columnsOf = (onAct: (act: Act) => void): readonly Column<PersonRow>[] => [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  { key: 'email', title: t('email'), cell: row => <span class="text">{row.email}</span> },
  { key: 'roles', title: t('roles'), cell: row => <Rights {...row} /> },
  {
    key: 'teams',
    title: t('teams'),
    from: 'medium',
    cell: row => <span class="text">{namesOf(row.teams) || NOTHING}</span>,
  },
  {
    key: 'state',
    title: t('state'),
    cell: row => (
      <StateMark state={row.isEnabled ? 'ok' : 'decommissioned'} text={t(row.isEnabled ? 'enabled' : 'disabled')} />
    ),
  },
  {
    key: 'second_factor',
    title: t('second_factor'),
    from: 'medium',
    cell: row => t(row.hasSecondFactor ? 'on' : 'off'),
  },
  {
    key: 'last_seen',
    title: t('last_seen'),
    from: 'medium',
    cell: row => (row.lastSeenAtMs === null ? NOTHING : <Time atMs={row.lastSeenAtMs} />),
  },
  ...(may('identity.manage')
    ? [{ key: 'acts', title: t('acts'), cell: (row: PersonRow) => <Acts person={row} onAct={onAct} /> }]
    : []),
]

type ActProps = {
  readonly act: Act
  readonly view: PeopleView
  readonly onClose: () => void
  readonly onDone: () => void
}

function ActDialog({ act: { kind, person }, view, onClose, onDone }: ActProps) {
  if (kind === 'edit') return <PersonDialog person={person} view={view} onClose={onClose} onDone={onDone} />
  const { id, name } = person
  const act = async () => {
    const result = kind === 'delete' ? await send('DELETE', `/users/${id}`) : await send('POST', `/users/${id}/${kind}`)
    return result.ok ? null : result.fault
  }
  return (
    <ConfirmDialog
      title={t(`${kind}_of`, { name })}
      typed={kind === 'delete' ? { text: name, label: t('type_name', { name }) } : null}
      act={t(kind)}
      onConfirm={act}
      onClose={onClose}
      onDone={() => {
        onDone()
        onClose()
      }}
    >
      <p>{t(kind === 'delete' ? 'delete_person_text' : `${kind}_text`)}</p>
    </ConfirmDialog>
  )
}

const invitationColumns = (onWithdraw: (row: InvitationRow) => void): readonly Column<InvitationRow>[] => [
  { key: 'email', title: t('email'), isName: true, cell: row => <span class="text">{row.email}</span> },
  { key: 'roles', title: t('roles'), cell: row => <span class="text">{row.roles.join(', ') || NOTHING}</span> },
  {
    key: 'inviter',
    title: t('inviter'),
    from: 'medium',
    cell: row => <span class="text">{row.inviter ?? NOTHING}</span>,
  },
  {
    key: 'expires',
    title: t('expires'),
    cell: row => (row.isExpired ? t('expired') : <Time atMs={row.expiresAtMs} form="until" />),
  },
  ...(may('identity.manage')
    ? [
        {
          key: 'acts',
          title: t('acts'),
          cell: (row: InvitationRow) => (
            <span class="row-acts">
              <button type="button" aria-label={t('withdraw_of', { name: row.email })} onClick={() => onWithdraw(row)}>
                {t('withdraw')}
              </button>
            </span>
          ),
        },
      ]
    : []),
]

function Invitations({ rows, onDone }: { readonly rows: readonly InvitationRow[]; readonly onDone: () => void }) {
  const [withdrawn, setWithdrawn] = useState<InvitationRow | null>(null)
  if (rows.length === 0) return null
  const withdraw = async ({ id }: InvitationRow) => {
    const result = await send('DELETE', `/invitations/${id}`)
    if (result.ok) onDone()
    return result.ok ? null : result.fault
  }
  return (
    <section class="panel below-table">
      <h2>{t('invitations')}</h2>
      <Table
        label={t('invitations')}
        columns={invitationColumns(setWithdrawn)}
        rows={rows}
        keyOf={row => row.id}
        nameOf={row => row.email}
      />
      {withdrawn === null ? null : (
        <ConfirmDialog
          title={t('withdraw_of', { name: withdrawn.email })}
          typed={null}
          act={t('withdraw')}
          onConfirm={() => withdraw(withdrawn)}
          onClose={() => setWithdrawn(null)}
        >
          <p>{t('withdraw_text')}</p>
        </ConfirmDialog>
      )}
    </section>
  )
}

export function PeoplePage() {
  const { data, fault, reload } = usePageView<PeopleView>('people')
  const [act, setAct] = useState<Act | null>(null)
  const [isInviting, setInviting] = useState(false)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('people')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        <span class="grow" />
        {may('identity.manage') ? (
          <button type="button" class="primary" onClick={() => setInviting(true)}>
            {t('invite')}
          </button>
        ) : null}
      </div>
      <div class="toolbar">
        <FilterField
          facets={{
            status: [
              ['enabled', -1],
              ['disabled', -1],
            ],
            role: data.roles.map(({ name }) => [name, -1] as const),
            team: data.teams.map(({ name }) => [name, -1] as const),
          }}
        />
      </div>
      {data.matching === 0 ? (
        <NothingMatches />
      ) : (
        <Table
          isTall
          label={t('people')}
          columns={columnsOf(setAct)}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.name}
          total={data.matching}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
        />
      )}
      <Invitations rows={data.invitations} onDone={reload} />
      <Teams teams={data.teams} onDone={reload} />
      {act === null ? null : <ActDialog act={act} view={data} onClose={() => setAct(null)} onDone={reload} />}
      {isInviting ? <InviteDialog roles={data.roles} onClose={() => setInviting(false)} onDone={reload} /> : null}
    </>
  )
}
