// What of a person can be changed: the name, the roles, the teams. Each is its own request, and only what is changed
// is sent.
import { useState } from 'preact/hooks'
import type { PeopleView, PersonRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { textsOf } from '../../session.ts'
import { CheckList } from './check-list.tsx'
import { NameField } from './name-field.tsx'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

type Props = {
  readonly person: PersonRow
  readonly view: PeopleView
  readonly onClose: () => void
  readonly onDone: () => void
}

const idsOf = (all: readonly { readonly id: string }[]): ReadonlySet<string> => new Set(all.map(({ id }) => id))
const choicesOf = (all: readonly { readonly id: string; readonly name: string }[]) =>
  all.map(({ id, name }) => ({ value: id, text: name }))

export function PersonDialog({ person, view, onClose, onDone }: Props) {
  const [name, setName] = useState(person.name)
  const [roleIds, setRoleIds] = useState(idsOf(person.roles))
  const [teamIds, setTeamIds] = useState(idsOf(person.teams))
  const save = async (): Promise<ApiFault | null> => {
    const [heldRoles, joined] = [idsOf(person.roles), idsOf(person.teams)]
    const acts: (() => Promise<ApiResult>)[] = []
    if (name !== person.name) acts.push(() => send('PATCH', `/users/${person.id}`, { name }))
    if (heldRoles.symmetricDifference(roleIds).size > 0)
      acts.push(() => send('PUT', `/users/${person.id}/roles`, { role_ids: [...roleIds] }))
    for (const id of teamIds.difference(joined))
      acts.push(() => send('POST', `/teams/${id}/members`, { user_id: person.id }))
    for (const id of joined.difference(teamIds)) acts.push(() => send('DELETE', `/teams/${id}/members/${person.id}`))
    for (const act of acts) {
      const result = await act()
      if (!result.ok) return result.fault
    }
    return null
  }
  return (
    <Dialog title={t('edit_of', { name: person.name })} onClose={onClose}>
      <DialogForm
        act={shell('save')}
        onSend={save}
        onCancel={onClose}
        onDone={() => {
          onDone()
          onClose()
        }}
      >
        {errorsOf => (
          <>
            <NameField value={name} onInput={setName} errorsOf={errorsOf} />
            <CheckList
              label={t('roles')}
              choices={choicesOf(view.roles)}
              chosen={roleIds}
              onChange={setRoleIds}
              errors={errorsOf('role_ids')}
            />
            {view.teams.length === 0 ? null : (
              <CheckList
                label={t('teams')}
                choices={choicesOf(view.teams)}
                chosen={teamIds}
                onChange={setTeamIds}
                errors={errorsOf('user_id')}
              />
            )}
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
