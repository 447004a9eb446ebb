// Somebody new: an address and roles; the link by which a password is set is shown once.
import { useState } from 'preact/hooks'
import type { Named } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { type ApiFault, send } from '../../api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { TextField } from '../../parts/field.tsx'
import { language, textsOf } from '../../session.ts'
import { CheckList } from './check-list.tsx'

const t = textsOf(administrationWords)

type Props = { readonly roles: readonly Named[]; readonly onClose: () => void; readonly onDone: () => void }
type Made = { readonly link: string; readonly mailed: boolean }

export function InviteDialog({ roles, onClose, onDone }: Props) {
  const [draft, setDraft] = useState({ email: '', name: '', roleIds: new Set<string>() as ReadonlySet<string> })
  const [made, setMade] = useState<Made | null>(null)
  const change = (changed: Partial<typeof draft>): void => setDraft(before => ({ ...before, ...changed }))
  if (made !== null)
    return (
      <Dialog title={t('invited', { email: draft.email })} onClose={onClose}>
        <p>{t(made.mailed ? 'link_mailed' : 'link_shown')}</p>
        <CopyText text={made.link} />
      </Dialog>
    )
  const invite = async (): Promise<ApiFault | null> => {
    const { email, name, roleIds } = draft
    const result = await send<Made>('POST', '/invitations', {
      ...{ email, name: name.trim() === '' ? null : name, role_ids: [...roleIds], language },
    })
    if (!result.ok) return result.fault
    onDone()
    setMade(result.body)
    return null
  }
  return (
    <Dialog title={t('invite')} onClose={onClose}>
      <DialogForm act={t('invite')} onSend={invite} onCancel={onClose}>
        {errorsOf => (
          <>
            <p class="muted">{t('invite_text')}</p>
            <TextField
              label={t('email')}
              type="email"
              isRequired
              maxLength={255}
              value={draft.email}
              onInput={email => change({ email })}
              errors={errorsOf('email')}
            />
            <TextField
              label={t('name')}
              maxLength={255}
              value={draft.name}
              onInput={name => change({ name })}
              errors={errorsOf('name')}
            />
            <CheckList
              label={t('roles')}
              choices={roles.map(({ id, name }) => ({ value: id, text: name }))}
              chosen={draft.roleIds}
              onChange={roleIds => change({ roleIds })}
              errors={errorsOf('role_ids')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
