// What one may change of one's own record.
import { useState } from 'preact/hooks'
import { accountWords } from '../../../words/account.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(accountWords)
const shell = textsOf(shellWords)

/** As the API has it. */
export type Profile = {
  readonly name: string
  readonly email: string
  readonly language: string
  readonly time_zone: string
}

const LANGUAGES = ['en', 'vi'] as const

export function ProfileForm({ profile }: { readonly profile: Profile }) {
  const { name, language, time_zone } = profile
  const [draft, setDraft] = useState({ name, language, time_zone })
  const [isSaved, setSaved] = useState(false)
  const change = (changed: Partial<typeof draft>): void => {
    setSaved(false)
    setDraft(before => ({ ...before, ...changed }))
  }
  const save = async (): Promise<ApiFault | null> => {
    const result = await send('PATCH', '/me', draft)
    if (!result.ok) return result.fault
    setSaved(true)
    return null
  }
  return (
    <DialogForm act={shell('save')} class="account-form" onSend={save} onCancel={null}>
      {errorsOf => (
        <>
          <TextField
            label={t('name')}
            isRequired
            maxLength={255}
            value={draft.name}
            onInput={text => change({ name: text })}
            errors={errorsOf('name')}
          />
          <SelectField
            label={t('language')}
            hint={t('language_hint')}
            value={draft.language}
            choices={LANGUAGES.map(each => ({ value: each, text: t(`language_${each}`) }))}
            onChange={chosen => change({ language: chosen })}
            errors={errorsOf('language')}
          />
          <TextField
            label={t('time_zone')}
            hint={t('time_zone_hint')}
            isRequired
            maxLength={64}
            value={draft.time_zone}
            onInput={text => change({ time_zone: text })}
            errors={errorsOf('time_zone')}
          />
          <p role="status" class="muted">
            {isSaved ? t('saved') : ''}
          </p>
        </>
      )}
    </DialogForm>
  )
}
