// The address of what is shown: the page, its parameters, and everything chosen on it. What one would undo with Back is
// pushed, typing replaces.
import { computed, signal } from '@preact/signals'
import { matchPage, type PageName, pathOf } from '../../address/site-map.ts'
import { company } from '../session.ts'

const BASE = `/c/${encodeURIComponent(company.slug)}`

const address = signal(new URL(location.href))

/** The page of the address with the parameters of its path; null: there is none. */
export const currentPage = computed(() => matchPage(address.value.pathname.slice(BASE.length) || '/'))

const search = computed(() => address.value.searchParams)

/** A parameter of the address; empty where it is missing. */
export const param = (name: string): string => search.value.get(name) ?? ''
/** A parameter of the path, as `server` of `/servers/:server`. */
export const pathParam = (name: string): string => currentPage.value?.params[name] ?? ''
export const currentSearch = (): URLSearchParams => new URLSearchParams(search.value)

type Params = Readonly<Record<string, string | number | null | undefined>>

function withParams(before: URLSearchParams, changes: Params): string {
  const next = new URLSearchParams(before)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') next.delete(name)
    else next.set(name, String(value))
  }
  const text = next.toString().replaceAll('%3A', ':').replaceAll('%2C', ',')
  return text === '' ? '' : `?${text}`
}

const noParams: Params = {}

/** The address of a page: `hrefTo('server', { server: id }, { from: 'now-6h' })`. */
export const hrefTo = (name: PageName, path: Readonly<Record<string, string>> = {}, query: Params = noParams): string =>
  // Each row of a list has a link: nothing is made that is not needed.
  BASE + pathOf(name, path) + (query === noParams ? '' : withParams(new URLSearchParams(), query))

const listeners = new Set<() => void>()
/** Called before the page changes, as to ask about what was typed and not saved. */
export const beforeLeaving = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Pages of this document that Back leads to. */
let pushed = 0

function show(url: URL, how: 'push' | 'replace'): void {
  if (url.href === address.value.href) return
  const isOtherPage = url.pathname !== address.value.pathname
  if (isOtherPage) for (const listener of listeners) listener()
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', url)
  if (how === 'push') pushed++
  address.value = url
  if (isOtherPage) {
    scrollTo(0, 0)
    document.getElementById('content')?.focus({ preventScroll: true })
  }
}

/** Goes to an address of this company without loading the document again. */
export const goTo = (href: string, how: 'push' | 'replace' = 'push'): void => show(new URL(href, location.href), how)

/** Changes parameters of the address; null and empty take one away. */
export const setParams = (changes: Params, how: 'push' | 'replace' = 'push'): void =>
  goTo(address.value.pathname + withParams(search.value, changes), how)

/** Back to where one came from within the interface; to `href` where this is the first page. */
export function goBack(href: string): void {
  if (pushed > 0) history.back()
  else goTo(href)
}

/** Makes links within the company and the Back button change the page, not the document. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    pushed = Math.max(0, pushed - 1)
    address.value = new URL(location.href)
  })
  document.addEventListener('click', event => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const url = new URL(link.href)
    const isOwn = url.origin === location.origin && (url.pathname === BASE || url.pathname.startsWith(`${BASE}/`))
    if (!isOwn || (url.hash !== '' && url.pathname === location.pathname)) return
    event.preventDefault()
    show(url, 'push')
  })
}
