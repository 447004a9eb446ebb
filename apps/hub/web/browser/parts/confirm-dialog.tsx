// What cannot be undone is asked for by its name: revocation and deletion.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import type { ApiFault } from '../api.ts'
import { textsOf } from '../session.ts'
import { Dialog } from './dialog.tsx'
import { ActFault } from './fault.tsx'
import { TextField } from './field.tsx'

const t = textsOf(shellWords)

type Props = {
  readonly title: string
  readonly children: ComponentChildren
  /** What is to be typed, and the label that says so; null: a press is enough. */
  readonly typed: { readonly text: string; readonly label: string } | null
  readonly act: string
  /** Null when it was done. */
  readonly onConfirm: () => Promise<ApiFault | null>
  readonly onClose: () => void
  /** Once it was done; missing: the dialog is closed. */
  readonly onDone?: () => void
}

export function ConfirmDialog({ title, children, typed, act, onConfirm, onClose, onDone = onClose }: Props) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    const refused = await onConfirm()
    setBusy(false)
    setFault(refused)
    if (refused === null) onDone()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={event => void onSubmit(event)}>
        {children}
        {typed === null ? null : <TextField label={typed.label} value={text} onInput={setText} autoComplete="off" />}
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button type="submit" class="danger" disabled={isBusy || (typed !== null && text.trim() !== typed.text)}>
            {act}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
