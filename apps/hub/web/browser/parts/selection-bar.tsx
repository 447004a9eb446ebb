// What can be done with the selected rows. It has its place always, so that the list does not move under the pointer.
import type { ComponentChildren } from 'preact'
import { shellWords } from '../../words/shell.ts'
import { textsOf } from '../session.ts'

const t = textsOf(shellWords)

type Props = {
  readonly selected: number
  readonly matching: number
  /** What is selected, where it is not as many as `selected` of what matches. */
  readonly text?: string | undefined
  readonly onSelectMatching: () => void
  readonly onClear: () => void
  /** The acts, as buttons. */
  readonly children: ComponentChildren
}

export const SelectionBar = ({ selected, matching, text, onSelectMatching, onClear, children }: Props) => (
  <div class="selection-bar">
    {selected >= matching ? null : (
      <button type="button" onClick={onSelectMatching}>
        {t('select_matching', { count: matching })}
      </button>
    )}
    {selected === 0 ? null : (
      <>
        <strong>{text ?? t('selected', { count: selected })}</strong>
        {children}
        <button type="button" class="quiet" onClick={onClear}>
          {t('clear_selection')}
        </button>
      </>
    )}
  </div>
)
