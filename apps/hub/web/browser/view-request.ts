// The data of a page, asked for once: under which key, when others may share the answer, and what is done about a
// session that is over and about too many requests.
import { type ApiFault, changeCount, faultOf, signedInAgain, unreachable, waitFor } from './api.ts'
import { nowMs } from './hub-clock.ts'
import { company, isSignedOut, language } from './session.ts'

export type Params = Readonly<Record<string, string | number | null | undefined>>

/** `slug`: of another company than the one that is shown. */
export function keyOf(name: string, params: URLSearchParams, slug = company.slug): string {
  params.set('company', slug)
  params.sort()
  return `${name}?${params}`
}

export function searchOf(params: Params): URLSearchParams {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value))
  return search
}

export type Fetched = { readonly version: string; readonly madeAtMs: number; readonly value: unknown }

/** How long the hub may share an answer: for as long after a change of its own the page asks for new ones. */
const SHARED_MAX_MS = 10_000
let changedAtMs = Number.NEGATIVE_INFINITY
/** Views that were asked for since the last change. */
const askedSince = new Set<string>()
changeCount.subscribe(changes => {
  if (changes === 0) return
  changedAtMs = performance.now()
  askedSince.clear()
})

/** Whether an answer that others share might lack what this page has changed. */
function mustBeFresh(key: string): boolean {
  if (performance.now() - changedAtMs > SHARED_MAX_MS || askedSince.has(key)) return false
  askedSince.add(key)
  return true
}

/** Asks for a view once. Throws an ApiFault. A session that is over is renewed first. */
export async function fetchView(key: string, signal: AbortSignal): Promise<Fetched> {
  const fresh: Readonly<Record<string, string>> = mustBeFresh(key) ? { 'X-View-Fresh': '1' } : {}
  for (;;) {
    const response = await fetch(`/web/view/${key}`, {
      headers: { 'Accept-Language': language, ...fresh },
      cache: 'no-store',
      signal,
    }).catch(() => null)
    if (response === null) throw unreachable
    if (response.status === 401) {
      isSignedOut.value = true
      await signedInAgain()
      continue
    }
    if (response.status === 429) {
      await waitFor(Number(response.headers.get('retry-after') ?? 10))
      continue
    }
    if (!response.ok) throw await faultOf(response)
    const version = response.headers.get('x-view-version') ?? ''
    const madeAtMs = Number(response.headers.get('x-view-made-at') ?? nowMs())
    return { version, madeAtMs, value: await response.json() }
  }
}

/** A view once, without following it: `abort` ends the request. Throws an ApiFault. */
export async function readView<T>(name: string, params: Params, abort: AbortSignal): Promise<T> {
  return (await fetchView(keyOf(name, searchOf(params)), abort)).value as T
}

/** What is said of an error of a view that was asked for once. */
export const faultFrom = (error: unknown): ApiFault => (isFault(error) ? error : unreachable)

const isFault = (error: unknown): error is ApiFault => typeof error === 'object' && error !== null && 'errors' in error

/** A view once, for an act on what it says. Throws an ApiFault. */
export const askView = async <T>(name: string, params: Params = {}): Promise<T> =>
  (await fetchView(keyOf(name, searchOf(params)), new AbortController().signal)).value as T
