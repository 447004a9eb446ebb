// One line that says what has just been done, read out to who does not see it, with a way back where there is one; gone
// with the next act, and when one leaves the page.
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import type { ApiResult } from '../api.ts'
import { textsOf } from '../session.ts'

const t = textsOf(shellWords)

type Notice = { readonly text: string; readonly undo: (() => Promise<ApiResult>) | null }

const nothing: Notice = { text: '', undo: null }
const notice = signal(nothing)

/** Says what has been done. `undo` takes it back. */
export function say(text: string, undo: Notice['undo'] = null): void {
  notice.value = { text, undo }
}

type Props = {
  /** Something was taken back, or some of it: the page asks for what is so now. */
  readonly onUndone: () => void
}

export function NoticeLine({ onUndone }: Props) {
  const [isBusy, setBusy] = useState(false)
  useEffect(() => () => say(''), [])
  const { text, undo } = notice.value
  const takeBack = async (): Promise<void> => {
    if (undo === null) return
    setBusy(true)
    const result = await undo()
    setBusy(false)
    say(result.ok ? t('undone') : t('not_undone', { message: result.fault.message }))
    // What failed may have been done in part.
    onUndone()
  }
  return (
    <span role="status">
      {text}{' '}
      {undo === null ? null : (
        <button type="button" disabled={isBusy} onClick={() => void takeBack()}>
          {t('undo')}
        </button>
      )}
    </span>
  )
}
