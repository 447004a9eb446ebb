// A group address, new or changed: where mail goes, from which severity on, and about which servers.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import { administrationWords } from '../../../words/administration.ts'
import { scopesWords } from '../../../words/scopes.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { TextField } from '../../parts/field.tsx'
import { type ChosenScope, chosenOf, isIncomplete, ScopeChoice, scopeOf } from '../../parts/scope-choice.tsx'
import { textsOf } from '../../session.ts'
import type { ChannelDialogProps } from './late-props.ts'
import { NameField } from './name-field.tsx'
import { SeverityField } from './severity-field.tsx'

const t = textsOf(administrationWords)
const scopes = textsOf(scopesWords)
const shell = textsOf(shellWords)

const everywhere: ChosenScope = { kind: 'all', value: '', named: [] }

export function ChannelDialog({ channel, onClose, onDone }: ChannelDialogProps) {
  const [draft, setDraft] = useState({
    ...{ name: channel?.name ?? '', address: channel?.address ?? '', severity: channel?.minSeverity ?? 'info' },
    ...{ isEnabled: channel?.isEnabled ?? true, scope: channel === null ? everywhere : chosenOf(channel.scope) },
  })
  const change = (changed: Partial<typeof draft>): void => setDraft(before => ({ ...before, ...changed }))
  const save = async (): Promise<ApiFault | null> => {
    const { name, address, severity, isEnabled, scope } = draft
    const body = {
      ...{ name, address, min_severity: severity, enabled: isEnabled },
      scope: scopeOf(scope, channel?.scope ?? {}),
    }
    const result =
      channel === null
        ? await send('POST', '/notifications/channels', body)
        : await send('PATCH', `/notifications/channels/${channel.id}`, body)
    return result.ok ? null : result.fault
  }
  return (
    <Dialog title={channel === null ? t('add_channel') : t('edit_of', { name: channel.name })} onClose={onClose}>
      <DialogForm
        act={shell('save')}
        isReady={!isIncomplete(draft.scope)}
        onSend={save}
        onDone={() => {
          onDone()
          onClose()
        }}
        onCancel={onClose}
      >
        {errorsOf => (
          <>
            <NameField value={draft.name} onInput={name => change({ name })} errorsOf={errorsOf} />
            <TextField
              label={t('email')}
              hint={t('channel_hint')}
              type="email"
              isRequired
              maxLength={255}
              value={draft.address}
              onInput={address => change({ address })}
              errors={errorsOf('address')}
            />
            <SeverityField value={draft.severity} onChange={severity => change({ severity })} errorsOf={errorsOf} />
            <ScopeChoice
              chosen={draft.scope}
              change={scope => setDraft(before => ({ ...before, scope: { ...before.scope, ...scope } }))}
              given={channel === null || chosenOf(channel.scope).kind !== 'given' ? null : scopes('before')}
              errors={errorsOf('scope')}
            />
            <label class="choice">
              <input
                type="checkbox"
                checked={draft.isEnabled}
                onChange={event => change({ isEnabled: event.currentTarget.checked })}
              />
              {t('is_told')}
            </label>
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
