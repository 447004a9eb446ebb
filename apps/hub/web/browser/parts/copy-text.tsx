// A text that is to be taken elsewhere, as a command or a key, with the button that copies it.
import { useRef, useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { textsOf } from '../session.ts'
import { Icon } from './icons.tsx'

const t = textsOf(shellWords)

export function CopyText({ text }: { readonly text: string }) {
  const code = useRef<HTMLElement>(null)
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    // The clipboard is there on secure pages only; elsewhere the text is selected, to be copied by hand.
    if (code.current) getSelection()?.selectAllChildren(code.current)
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
    } catch {
      setCopied(false)
    }
  }
  return (
    <div class="copy-text">
      <pre>
        <code ref={code}>{text}</code>
      </pre>
      <button type="button" onClick={() => void copy()}>
        <Icon name="copy" />
        {isCopied ? t('copied') : t('copy')}
      </button>
      <span class="visually-hidden" role="status">
        {isCopied ? t('copied') : ''}
      </span>
    </div>
  )
}
