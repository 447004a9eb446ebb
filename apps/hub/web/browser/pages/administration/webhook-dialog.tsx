// A webhook, new or changed: where it is, what it is told of, and from which severity on. Its secret is shown once.
import { useState } from 'preact/hooks'
import type { WebhookRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'
import { CheckList } from './check-list.tsx'
import { NameField } from './name-field.tsx'
import { SeverityField } from './severity-field.tsx'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

type SecretProps = { readonly name: string; readonly secret: string; readonly onClose: () => void }

export const ShownSecret = ({ name, secret, onClose }: SecretProps) => (
  <Dialog title={name} onClose={onClose}>
    <p>{t('secret_once')}</p>
    <CopyText text={secret} />
  </Dialog>
)

type Props = {
  /** Null: a new one. */
  readonly webhook: WebhookRow | null
  readonly events: readonly string[]
  readonly onClose: () => void
  readonly onDone: () => void
}

export function WebhookDialog({ webhook, events, onClose, onDone }: Props) {
  const [draft, setDraft] = useState({
    ...{ name: webhook?.name ?? '', url: webhook?.url ?? '', severity: webhook?.minSeverity ?? 'info' },
    events: new Set(webhook?.events) as ReadonlySet<string>,
  })
  const [secret, setSecret] = useState<string | null>(null)
  const change = (changed: Partial<typeof draft>): void => setDraft(before => ({ ...before, ...changed }))
  if (secret !== null) return <ShownSecret name={draft.name} secret={secret} onClose={onClose} />
  const save = async (): Promise<ApiFault | null> => {
    const { name, url, severity } = draft
    const body = { name, url, min_severity: severity, events: [...draft.events] }
    const result =
      webhook === null
        ? await send<{ secret: string }>('POST', '/webhooks', body)
        : await send<{ secret?: string }>('PATCH', `/webhooks/${webhook.id}`, body)
    if (!result.ok) return result.fault
    onDone()
    if (result.body.secret === undefined) onClose()
    else setSecret(result.body.secret)
    return null
  }
  return (
    <Dialog title={webhook === null ? t('add_webhook') : t('edit_of', { name: webhook.name })} onClose={onClose}>
      <DialogForm act={shell('save')} onSend={save} onCancel={onClose}>
        {errorsOf => (
          <>
            <NameField value={draft.name} onInput={name => change({ name })} errorsOf={errorsOf} />
            <TextField
              label={t('url')}
              type="url"
              isRequired
              maxLength={2048}
              value={draft.url}
              onInput={url => change({ url })}
              errors={errorsOf('url')}
            />
            <SeverityField value={draft.severity} onChange={severity => change({ severity })} errorsOf={errorsOf} />
            <CheckList
              label={t('events')}
              hint={t('events_hint')}
              choices={events.map(each => ({ value: each, text: each }))}
              chosen={draft.events}
              onChange={chosen => change({ events: chosen })}
              errors={errorsOf('events')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
