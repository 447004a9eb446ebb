// The teams of the company: who owns what is asked by them, and told first.
import { useState } from 'preact/hooks'
import type { Named, PeopleView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { NOTHING } from '../../format.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { NameField } from './name-field.tsx'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

type Team = PeopleView['teams'][number]
/** Null: a new one. */
type Act = { readonly kind: 'edit' | 'delete'; readonly team: Named | null }

const columnsOf = (onAct: (act: Act) => void): readonly Column<Team>[] => [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  {
    key: 'members',
    title: t('members'),
    cell: row => <span class="text">{row.members.map(({ name }) => name).join(', ') || NOTHING}</span>,
  },
  ...(may('identity.manage')
    ? [
        {
          key: 'acts',
          title: t('acts'),
          cell: (team: Team) => (
            <span class="row-acts">
              {(['edit', 'delete'] as const).map(kind => (
                <button
                  type="button"
                  key={kind}
                  aria-label={t(`${kind}_of`, { name: team.name })}
                  onClick={() => onAct({ kind, team })}
                >
                  {t(kind)}
                </button>
              ))}
            </span>
          ),
        },
      ]
    : []),
]

type ActProps = { readonly act: Act; readonly onClose: () => void; readonly onDone: () => void }

function ActDialog({ act: { kind, team }, onClose, onDone }: ActProps) {
  const [name, setName] = useState(team?.name ?? '')
  const done = (): void => {
    onDone()
    onClose()
  }
  const path = team === null ? '/teams' : `/teams/${team.id}`
  const act = async (): Promise<ApiFault | null> => {
    const result =
      kind === 'delete' ? await send('DELETE', path) : await send(team === null ? 'POST' : 'PATCH', path, { name })
    return result.ok ? null : result.fault
  }
  if (kind === 'delete' && team !== null)
    return (
      <ConfirmDialog
        title={t('delete_of', { name: team.name })}
        typed={{ text: team.name, label: t('type_name', { name: team.name }) }}
        act={t('delete')}
        onConfirm={act}
        onClose={onClose}
        onDone={done}
      >
        <p>{t('delete_team_text')}</p>
      </ConfirmDialog>
    )
  return (
    <Dialog title={team === null ? t('add_team') : t('edit_of', { name: team.name })} onClose={onClose}>
      <DialogForm act={shell('save')} onSend={act} onCancel={onClose} onDone={done}>
        {errorsOf => <NameField value={name} onInput={setName} errorsOf={errorsOf} />}
      </DialogForm>
    </Dialog>
  )
}

export function Teams({ teams, onDone }: { readonly teams: readonly Team[]; readonly onDone: () => void }) {
  const [act, setAct] = useState<Act | null>(null)
  return (
    <section class="panel below-table">
      <h2>{t('teams')}</h2>
      {teams.length === 0 ? <p class="muted">{t('no_teams')}</p> : null}
      {teams.length === 0 ? null : (
        <Table
          label={t('teams')}
          columns={columnsOf(setAct)}
          rows={teams}
          keyOf={row => row.id}
          nameOf={row => row.name}
        />
      )}
      {may('identity.manage') ? (
        <p class="below-table">
          <button type="button" onClick={() => setAct({ kind: 'edit', team: null })}>
            {t('add_team')}
          </button>
        </p>
      ) : null}
      {act === null ? null : <ActDialog act={act} onClose={() => setAct(null)} onDone={onDone} />}
    </section>
  )
}
