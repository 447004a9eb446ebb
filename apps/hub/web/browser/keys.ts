// Keys: never while somebody types, all of them can be switched off (WCAG 2.1.4). A page brings its own, which hold
// while it is shown; `g` and a letter lead to a page.
import { useEffect } from 'preact/hooks'
import { savedPages } from '../address/saved-view.ts'
import { missingKey, type PageName, pageNames, sitePages } from '../address/site-map.ts'
import { currentPage, goBack, goTo, hrefTo } from './address/router.ts'
import { isPaused } from './connection/live.ts'
import { overlay } from './frame/overlay.ts'
import { shortcuts } from './frame/preferences.ts'
import { FILTER_ID } from './parts/filter-field.tsx'
import { may } from './session.ts'

type Keys = Readonly<Record<string, () => void>>

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
  const name = pageNames.find(each => sitePages[each].key === letter && missingKey(each, may) === undefined)
  if (name === undefined) return false
  goTo(hrefTo(name))
  return true
}

const HEAD_HEIGHT = 100

/** Moves a step through the rows of the table; the first step leads to the first row that is seen. */
function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main tbody tr[data-key]')]
  const at = rows.findIndex(row => row.classList.contains('cursor'))
  const seen = rows.findIndex(row => row.getBoundingClientRect().top >= HEAD_HEIGHT)
  const next = rows[at < 0 ? Math.max(0, seen) : Math.min(rows.length - 1, Math.max(0, at + step))]
  if (next === undefined) return
  rows[at]?.classList.remove('cursor')
  next.classList.add('cursor')
  next.scrollIntoView({ block: 'nearest' })
  const focusable = next.querySelector<HTMLElement>('th a') ?? next.querySelector<HTMLElement>('a, input, button')
  focusable?.focus({ preventScroll: true })
}

const currentRow = (): HTMLElement | null => document.querySelector('main tbody tr.cursor')

/** The page that another lies below, as the list of an object; null at the top. */
function parentOf(name: PageName): PageName | null {
  const { path } = sitePages[name]
  const above = path.slice(0, path.lastIndexOf('/'))
  return pageNames.find(each => sitePages[each].path === above) ?? null
}

/** Closes what is open, lets go of the row, else leads back from an object to where one came from, or to its list. */
function leave(): void {
  const menu = document.querySelector<HTMLDetailsElement>('details.menu[open], details.account[open]')
  const row = currentRow()
  if (menu !== null) {
    menu.open = false
    menu.querySelector('summary')?.focus()
  } else if (row !== null) row.classList.remove('cursor')
  else {
    const parent = currentPage.value && parentOf(currentPage.value.name)
    if (parent) goBack(hrefTo(parent))
  }
}

const general: Keys = {
  '/': () => document.getElementById(FILTER_ID)?.focus(),
  p: () => {
    isPaused.value = !isPaused.value
  },
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => currentRow()?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click(),
  Enter: () => currentRow()?.querySelector<HTMLAnchorElement>('th a')?.click(),
  Escape: leave,
  v: () => {
    if (currentPage.value !== null && savedPages.includes(currentPage.value.name)) overlay.value = 'views'
  },
  '?': () => {
    overlay.value = 'keys'
  },
}

/** Where Enter has a meaning of its own. */
const isPressable = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('a, button, summary, [role=application], [role=tab]') !== null

function take(event: KeyboardEvent): void {
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault()
    if (document.querySelector('dialog[open]') === null) overlay.value = 'palette'
    return
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  // Escape and Enter are no characters: they hold also while single keys are switched off.
  if (shortcuts.value === 'off' && event.key.length === 1) return
  if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return
  if (event.key === 'Enter' && (isPressable(event.target) || currentRow() === null)) return
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
  takeKey(event)
}

function takeKey(event: KeyboardEvent): void {
  const act =
    stack.findLast(keys => Object.hasOwn(keys, event.key))?.[event.key] ??
    (Object.hasOwn(general, event.key) ? general[event.key] : undefined)
  if (act === undefined) return
  event.preventDefault()
  act()
}

export const startKeys = (): void => document.addEventListener('keydown', take)
