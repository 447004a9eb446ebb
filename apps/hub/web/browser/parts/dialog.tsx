// A dialog of the platform: modal, closed by Escape, focus kept inside and given back.
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { textsOf } from '../session.ts'
import { Icon } from './icons.tsx'

const t = textsOf(shellWords)

type Props = {
  readonly title: string
  readonly children: ComponentChildren
  /** Null: it cannot be closed by hand. */
  readonly onClose: (() => void) | null
  readonly isWide?: boolean
}

/** Open as long as it is drawn. */
export function Dialog({ title, children, onClose, isWide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    // What one came for, and not the button that closes it.
    dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus()
    return () => {
      // What it was opened from may be gone, as the row of what was deleted.
      const isThere = before instanceof HTMLElement && before.isConnected
      const to = isThere ? before : document.getElementById('content')
      to?.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'dialog wide' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        onClose?.()
      }}
    >
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        {onClose === null ? null : (
          <button type="button" class="quiet" aria-label={t('close')} onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  )
}
