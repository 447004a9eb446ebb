// The data of a page: asked for once, then kept up to date by the stream. While another part of it is asked for, the
// old picture stays.
import './kit.ts'
import { effect, type ReadonlySignal, signal, untracked } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { viewOf } from '../address/site-map.ts'
import { currentPage, currentSearch } from './address/router.ts'
import { type ApiFault, changeCount } from './api.ts'
import { follow, isPaused } from './connection/live.ts'
import { nowMs } from './hub-clock.ts'
import { firstView } from './session.ts'
import { type Fetched, faultFrom, fetchView, keyOf, type Params, searchOf } from './view-request.ts'

export type ViewState<T> = {
  /** Null until the first answer has come. */
  readonly data: T | null
  /** Of which request the data is; differs from what is asked for while that is on its way. */
  readonly isCurrent: boolean
  readonly fault: ApiFault | null
  /** When the data was made, by the hub's clock. */
  readonly madeAtMs: number
  /** Asks again, as after a change or a failure. */
  readonly reload: () => void
}

/** The answer that the document brought, once, for the page that it was made for. */
let first: { key: string; fetched: Fetched } | null = firstView && {
  key: keyOf(
    firstView.key.slice(0, firstView.key.indexOf('?')),
    new URLSearchParams(firstView.key.slice(firstView.key.indexOf('?') + 1)),
  ),
  fetched: firstView,
}

/** The last few answers, so that Back shows at once what was there. */
const recent = new Map<string, Fetched>()
const RECENT_MAX = 30
changeCount.subscribe(changes => {
  if (changes > 0) recent.clear()
})

function remember(key: string, fetched: Fetched): void {
  recent.delete(key)
  recent.set(key, fetched)
  const [oldest] = recent.keys()
  if (recent.size > RECENT_MAX && oldest !== undefined) recent.delete(oldest)
}

/**
 * Views that are followed and that the hub refuses by now: what they were of is deleted, or the viewer lost the right
 * to see it. The page keeps its picture, and what was typed on it.
 */
export const lostViews = signal<ReadonlySet<string>>(new Set())

function setLost(key: string, isLost: boolean): void {
  if (lostViews.value.has(key) === isLost) return
  const next = new Set(lostViews.value)
  if (isLost) next.add(key)
  else next.delete(key)
  lostViews.value = next
}

type Held = { readonly key: string; readonly fetched: Fetched | null; readonly fault: ApiFault | null }

class ViewHolder {
  readonly held = signal<Held>({ key: '', fetched: null, fault: null })
  readonly wanted = signal('')
  private readonly again = signal(0)
  private stop: () => void = () => {}

  start(): () => void {
    const end = effect(() => {
      const key = this.wanted.value
      void this.again.value
      if (key !== '') untracked(() => this.load(key))
    })
    return () => {
      end()
      this.stop()
    }
  }

  readonly reload = (): void => {
    recent.delete(this.wanted.value)
    this.again.value++
  }

  /** Shows what is at hand, asks for what is not, and follows it. */
  private load(key: string): void {
    this.stop()
    const control = new AbortController()
    let end: () => void = () => {}
    this.stop = () => {
      control.abort()
      end()
    }
    const known = first?.key === key ? first.fetched : recent.get(key)
    first = null
    if (known) {
      this.held.value = { key, fetched: known, fault: null }
      end = this.followed(key, known)
      return
    }
    fetchView(key, control.signal)
      .then(fetched => {
        if (control.signal.aborted) return
        remember(key, fetched)
        this.held.value = { key, fetched, fault: null }
        end = this.followed(key, fetched)
      })
      .catch((error: unknown) => {
        if (control.signal.aborted) return
        const fault = faultFrom(error)
        // Without a hub the old picture stays, and a banner says of when it is. What the hub refuses is no answer to
        // what is asked now: rows of another filter would be taken for one.
        const isKept = fault.status === 0 || this.held.value.key === key
        this.held.value = { key, fetched: isKept ? this.held.value.fetched : null, fault }
      })
  }

  /** What comes while live data is paused waits, the newest only. */
  private followed(key: string, from: Fetched): () => void {
    let waiting: Fetched | null = null
    const show = (fetched: Fetched) => {
      remember(key, fetched)
      this.held.value = { key, fetched, fault: null }
    }
    const stopFollowing = follow(key, from.version, from.value, message => {
      if (message.type === 'fault') setLost(key, message.status === 403 || message.status === 404)
      if (message.type === 'view' || message.type === 'same') setLost(key, false)
      if (message.type !== 'view') return
      const fetched = { version: message.version, madeAtMs: message.madeAtMs, value: message.value }
      if (isPaused.value) waiting = fetched
      else show(fetched)
    })
    const stopWaiting = isPaused.subscribe(isHeld => {
      if (isHeld || waiting === null) return
      show(waiting)
      waiting = null
    })
    return () => {
      stopFollowing()
      stopWaiting()
      setLost(key, false)
    }
  }
}

/**
 * A view by name, with its parameters. The type is what the view's maker says: `useView<ServersView>('servers', …)`.
 */
export function useView<T>(name: string, params: Params = {}): ViewState<T> {
  return useViewOf<T>(keyOf(name, searchOf(params)))
}

/** A view of another company, which the viewer may work in. */
export const useViewOfCompany = <T>(slug: string, name: string): ViewState<T> =>
  useViewOf<T>(keyOf(name, new URLSearchParams(), slug))

/** The view of the page that the address names, with the parameters that the site map says it takes. */
export function usePageView<T>(name: string): ViewState<T> {
  const page = currentPage.value
  return useViewOf<T>(keyOf(name, page === null ? new URLSearchParams() : viewOf(page, currentSearch()).params))
}

function useViewOf<T>(key: string): ViewState<T> {
  const holder = useMemo(() => new ViewHolder(), [])
  // Set while it is drawn, so that the document's own data is there in the first picture.
  if (untracked(() => holder.wanted.value) !== key) holder.wanted.value = key
  useMemo(() => takeFirst(holder, key), [holder])
  useEffect(() => holder.start(), [holder])
  const held: ReadonlySignal<Held> = holder.held
  const { fetched, fault, key: heldKey } = held.value
  return {
    data: (fetched?.value ?? null) as T | null,
    isCurrent: heldKey === key,
    fault: heldKey === key ? fault : null,
    madeAtMs: fetched?.madeAtMs ?? nowMs(),
    reload: holder.reload,
  }
}

function takeFirst(holder: ViewHolder, key: string): void {
  const known = first?.key === key ? first.fetched : recent.get(key)
  if (known === undefined) return
  remember(key, known)
  holder.held.value = { key, fetched: known, fault: null }
}
