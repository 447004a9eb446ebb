// The filter of a list: one field with the filter language, completed from values that there are, and a chip for each
// term so that one can be taken away with a press.
import { useEffect, useRef, useState } from 'preact/hooks'
import { filterText, parseFilter, termText } from '../../address/filter-language.ts'
import { shellWords } from '../../words/shell.ts'
import { param, setParams } from '../address/router.ts'
import { count } from '../format.ts'
import { overlay } from '../frame/overlay.ts'
import { textsOf } from '../session.ts'
import { Combobox, type ComboboxOption } from './combobox.tsx'
import { Icon } from './icons.tsx'

const t = textsOf(shellWords)

/** The field that `/` leads to. */
export const FILTER_ID = 'filter'
/** Keys in a burst are one question; who types slower has an answer for each. */
const TYPING_MS = 60
const OPTIONS_MAX = 12

/** Values by key of the filter, each with how many have it; -1: not counted. */
type Facets = Readonly<Record<string, readonly (readonly [value: string, count: number])[]>>

/** What the last word of the text can be completed to. */
function completions(text: string, facets: Facets): ComboboxOption[] {
  const last = text.slice(text.lastIndexOf(' ') + 1)
  const minus = last.startsWith('-') ? '-' : ''
  const typed = last.slice(minus.length).toLowerCase()
  if (typed === '') return []
  const found: ComboboxOption[] = []
  for (const [key, values] of Object.entries(facets)) {
    const isOfKey = typed.startsWith(`${key}:`)
    const part = isOfKey ? typed.slice(key.length + 1) : typed
    if (!isOfKey && typed.includes(':')) continue
    for (const [value, frequency] of values) {
      if (!isOfKey && !value.toLowerCase().includes(part) && !key.startsWith(part)) continue
      if (isOfKey && !value.toLowerCase().includes(part)) continue
      const term = minus + termText({ key, isExcluded: false, operator: '=', value })
      found.push({
        id: term,
        text: term,
        content: (
          <>
            <span>{term}</span>
            {frequency < 0 ? null : <span class="muted">{count(frequency)}</span>}
          </>
        ),
      })
    }
  }
  return found.slice(0, OPTIONS_MAX)
}

const withLast = (text: string, term: string): string => `${text.slice(0, text.lastIndexOf(' ') + 1)}${term} `

type ChipsProps = { readonly shown: string; readonly onChange: (text: string) => void }

/** A chip for each term of the filter that is shown; pressed, it takes its term away. */
function Chips({ shown, onChange }: ChipsProps) {
  const terms = parseFilter(shown)
  const chosen = terms.filter(term => term.key !== null).map(termText)
  if (chosen.length === 0) return null
  return (
    <span class="chips">
      {chosen.map(text => (
        <button
          type="button"
          class="chip"
          key={text}
          aria-label={t('remove_term', { term: text })}
          onClick={() => onChange(filterText(terms.filter(each => termText(each) !== text)))}
        >
          {text}
          <Icon name="close" />
        </button>
      ))}
    </span>
  )
}

const ViewsButton = () => (
  <button
    type="button"
    class="views-button"
    title={`${t('saved_views')} (v)`}
    onClick={() => {
      overlay.value = 'views'
    }}
  >
    <Icon name="views" />
    <span>{t('saved_views')}</span>
  </button>
)

/**
 * The filter of the address: `q`. What is typed replaces the address, what is taken away is a step that Back undoes.
 */
export function FilterField({ facets }: { readonly facets: Facets }) {
  const shown = param('q')
  const [text, setText] = useState(shown)
  const [isTyping, setTyping] = useState(false)
  // What this field put into the address: it takes over only what comes from elsewhere, so that neither a key that
  // is pressed meanwhile nor the space after a word is lost.
  const own = useRef(shown)
  useEffect(() => {
    if (isTyping || shown === own.current) return
    own.current = shown
    setText(shown)
  }, [shown, isTyping])
  const ask = (filter: string, how: 'push' | 'replace'): void => {
    setTyping(false)
    own.current = filter.trim()
    setParams({ q: own.current, offset: null }, how)
  }
  useEffect(() => {
    if (!isTyping) return
    const timer = setTimeout(() => ask(text, 'replace'), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text, isTyping])
  const change = (next: string, how: 'push' | 'replace'): void => {
    setText(next)
    ask(next, how)
  }
  return (
    <search class="filter">
      <span class="filter-text">
        <Icon name="search" />
        <Combobox
          label={t('filter')}
          inputId={FILTER_ID}
          placeholder={t('filter')}
          title={t('filter_hint')}
          value={text}
          options={completions(text, facets)}
          onInput={value => {
            setTyping(true)
            setText(value)
          }}
          onChoose={option => change(withLast(text, option.text), 'push')}
          onEnter={() => change(text, 'push')}
          onEscape={() => document.getElementById(FILTER_ID)?.blur()}
        />
      </span>
      {text === '' ? null : (
        <button type="button" class="quiet" aria-label={t('clear_filter')} onClick={() => change('', 'push')}>
          <Icon name="close" />
        </button>
      )}
      <ViewsButton />
      <Chips shown={shown} onChange={next => change(next, 'push')} />
    </search>
  )
}

/** What a list says when its filter leaves nothing. */
export const NothingMatches = () => (
  <div class="notice">
    <p>{t('nothing_matches')}</p>
    <button type="button" onClick={() => setParams({ q: null, offset: null })}>
      {t('clear_filter')}
    </button>
  </div>
)
