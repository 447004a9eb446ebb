// What cannot be undone is asked for by its name: revocation and deletion.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiFault } from '../api.ts'
import { Dialog } from './dialog.tsx'
import { DialogForm } from './dialog-form.tsx'
import { TextField } from './field.tsx'

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
  return (
    <Dialog title={title} onClose={onClose}>
      <DialogForm
        act={act}
        isDanger
        isReady={typed === null || text.trim() === typed.text}
        onSend={onConfirm}
        onDone={onDone}
        onCancel={onClose}
      >
        {() => (
          <>
            {children}
            {typed === null ? null : (
              <TextField label={typed.label} value={text} onInput={setText} autoComplete="off" />
            )}
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
