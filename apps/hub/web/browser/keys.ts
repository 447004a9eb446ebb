// Keys: never while somebody types, all of them can be switched off (WCAG 2.1.4). A page brings its own, which hold
// while it is shown; `g` and a letter lead to a page.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { pageNames, sitePages } from '../address/site-map.ts'
import { goTo, hrefTo } from './address/router.ts'
import { isPaused } from './connection/live.ts'
import { FILTER_ID } from './parts/filter-field.tsx'
import { may } from './session.ts'

type Keys = Readonly<Record<string, () => void>>

export const areKeysOn = signal(true)

const G_WAIT_MS = 1_200
const stack: Keys[] = []
let gAtMs = 0

/** Keys that hold while the component is drawn. */
export function usePageKeys(keys: Keys): void {
  useEffect(() => {
    stack.push(keys)
    return () => {
      stack.splice(stack.indexOf(keys), 1)
    }
  })
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName)) &&
  !(target instanceof HTMLInputElement && target.type === 'checkbox')

function goByLetter(letter: string): boolean {
  const name = pageNames.find(each => sitePages[each].key === letter && sitePages[each].permissions.every(may))
  if (name === undefined) return false
  goTo(hrefTo(name))
  return true
}

/** Moves a step through the rows of the table. */
function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main tbody tr[data-key]')]
  const at = rows.findIndex(row => row.classList.contains('cursor'))
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))]
  if (next === undefined) return
  rows[at]?.classList.remove('cursor')
  next.classList.add('cursor')
  next.scrollIntoView({ block: 'nearest' })
  const focusable = next.querySelector<HTMLElement>('a, input, button')
  focusable?.focus({ preventScroll: true })
}

const currentRow = (): HTMLElement | null => document.querySelector('main tbody tr.cursor')

const general: Keys = {
  '/': () => document.getElementById(FILTER_ID)?.focus(),
  p: () => {
    isPaused.value = !isPaused.value
  },
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => currentRow()?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click(),
}

function take(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !areKeysOn.value) return
  if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return
  if (event.key === 'g') {
    gAtMs = event.timeStamp
    return
  }
  const isAfterG = event.timeStamp - gAtMs < G_WAIT_MS && gAtMs > 0
  gAtMs = 0
  if (isAfterG && goByLetter(event.key)) {
    event.preventDefault()
    return
  }
  const act =
    stack.findLast(keys => Object.hasOwn(keys, event.key))?.[event.key] ??
    (Object.hasOwn(general, event.key) ? general[event.key] : undefined)
  if (act === undefined) return
  event.preventDefault()
  act()
}

export const startKeys = (): void => document.addEventListener('keydown', take)
