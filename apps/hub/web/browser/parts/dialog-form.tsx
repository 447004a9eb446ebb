// The form of a dialog: what is filled in, what the API refused, and the two buttons. What was typed stays when it is
// refused.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { type ApiFault, abandonWaits, waitingSeconds } from '../api.ts'
import { textsOf } from '../session.ts'
import { ActFault, useFocusAtFault } from './fault.tsx'

const t = textsOf(shellWords)

/** What the API says of a field by that name, and of what it has within, as `scope.tags.0`. */
type ErrorsOf = (field: string) => readonly string[]

type Props = {
  /** The fields, given what was refused of them. */
  readonly children: (errorsOf: ErrorsOf) => ComponentChildren
  readonly act: string
  readonly isDanger?: boolean
  /** False: something is missing without which it cannot be sent. */
  readonly isReady?: boolean
  /** Resolves to what was refused, null when it was done. */
  readonly onSend: () => Promise<ApiFault | null>
  /** Once it was done. */
  readonly onDone?: () => void
  /** Null: there is nothing to leave. */
  readonly onCancel: (() => void) | null
  /** What is known to be refused before it is sent. */
  readonly before?: ApiFault | null
  readonly class?: string
}

export function DialogForm(props: Props) {
  const { isDanger = false, isReady = true, before = null } = props
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  // Known at once, before it is drawn: a second submit sends nothing.
  const isSending = useRef(false)
  // Left while it waits for a limit, it is not sent any more.
  useEffect(
    () => () => {
      if (isSending.current) abandonWaits()
    },
    [],
  )
  const form = useFocusAtFault(fault)
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (isSending.current || !isReady) return
    isSending.current = true
    setBusy(true)
    const refused = await props.onSend().finally(() => {
      isSending.current = false
      setBusy(false)
    })
    setFault(refused)
    if (refused === null) props.onDone?.()
  }
  const untold = new Map(Object.entries((fault ?? before)?.errors ?? {}))
  const errors = [...untold]
  const errorsOf: ErrorsOf = name => {
    const own = errors.filter(([field]) => field === name || field.startsWith(`${name}.`))
    for (const [field] of own) untold.delete(field)
    return own.flatMap(([, texts]) => texts)
  }
  const fields = props.children(errorsOf)
  return (
    <form ref={form} class={props.class} onSubmit={event => void onSubmit(event)}>
      {fields}
      {/* What stands at its field is not said once more. */}
      <ActFault fault={fault === null ? null : { ...fault, errors: Object.fromEntries(untold) }} />
      {waitingSeconds.value > 0 ? <p role="status">{t('too_many', { seconds: waitingSeconds.value })}</p> : null}
      <div class="dialog-acts">
        {props.onCancel === null ? null : (
          <button type="button" onClick={props.onCancel}>
            {t('cancel')}
          </button>
        )}
        {/* Busy it keeps the focus, which a disabled one loses. */}
        <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={!isReady} aria-disabled={isBusy}>
          {props.act}
        </button>
      </div>
    </form>
  )
}
