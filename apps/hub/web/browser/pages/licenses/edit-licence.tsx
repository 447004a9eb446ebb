// What of a licence can be changed while it is good: its name, how many servers may use it, until when.
import { useState } from 'preact/hooks'
import type { LicenseRow } from '../../../views/licenses.ts'
import { licensesWords } from '../../../words/licenses.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { fieldText, instantOfField, shownZone } from '../../format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(licensesWords)
const shell = textsOf(shellWords)

type Props = { readonly license: LicenseRow; readonly onClose: () => void; readonly onDone: () => void }

export function EditLicence({ license, onClose, onDone }: Props) {
  const expires = license.expiresAtMs === null ? '' : fieldText(license.expiresAtMs)
  const [draft, setDraft] = useState({ name: license.name, uses: String(license.maxUses), expires })
  const change = (changed: Partial<typeof draft>): void => setDraft(before => ({ ...before, ...changed }))
  const save = async (): Promise<ApiFault | null> => {
    // A time that was not touched keeps its seconds.
    const until = draft.expires === '' ? null : new Date(instantOfField(draft.expires)).toISOString()
    const result = await send('PATCH', `/monitoring/licenses/${license.id}`, {
      ...{ name: draft.name, max_uses: Number(draft.uses) },
      ...(draft.expires === expires ? {} : { expires_at: until }),
    })
    if (!result.ok) return result.fault
    onDone()
    onClose()
    return null
  }
  return (
    <Dialog title={t('edit_of', { name: license.name })} onClose={onClose}>
      <DialogForm act={shell('save')} onSend={save} onCancel={onClose}>
        {errorsOf => (
          <>
            <TextField
              label={t('name')}
              isRequired
              maxLength={255}
              value={draft.name}
              onInput={name => change({ name })}
              errors={errorsOf('name')}
            />
            <TextField
              label={t('max_uses')}
              hint={t('used_so_far', { used: license.usedCount })}
              type="number"
              isRequired
              value={draft.uses}
              onInput={uses => change({ uses })}
              errors={errorsOf('max_uses')}
            />
            <TextField
              label={t('expires_or_never')}
              hint={shownZone()}
              type="datetime-local"
              value={draft.expires}
              onInput={value => change({ expires: value })}
              errors={errorsOf('expires_at')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
