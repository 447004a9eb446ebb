// Saved views as this page knows them: read when they are first asked for, and kept up with what is done here.
import { signal } from '@preact/signals'
import type { SavedView } from '../saved-views/saved-views.ts'
import { hrefTo } from './address/router.ts'
import { type ApiFault, type ApiResult, sendOwn } from './api.ts'

/** Null until they have been read. */
export const savedViews = signal<readonly SavedView[] | null>(null)

/** Reads them anew. Resolves to what went wrong, or null. */
export async function loadSavedViews(): Promise<ApiFault | null> {
  const result = await sendOwn<{ readonly views: readonly SavedView[] }>('GET', '/saved-views')
  if (!result.ok) return result.fault
  savedViews.value = result.body.views
  return null
}

export const hrefOfView = ({ page, query }: SavedView): string =>
  hrefTo(page, {}, Object.fromEntries(new URLSearchParams(query)))

type Kept = Pick<SavedView, 'id' | 'page' | 'name' | 'query' | 'shared'>

/** Saves a view under its id: a new one, or one's own as it is now. */
export async function keepView({ id, page, name, query, shared }: Kept): Promise<ApiResult<SavedView>> {
  const result = await sendOwn<SavedView>('PUT', `/saved-views/${id}`, { page, name, query, shared })
  if (result.ok) {
    const others = savedViews.value?.filter(view => view.id !== id) ?? []
    savedViews.value = [result.body, ...others].sort(byName)
  }
  return result
}

/** One's own first, each part by name. */
const byName = (one: SavedView, other: SavedView): number =>
  Number(other.own) - Number(one.own) || one.name.localeCompare(other.name)

/** Resolves to what went wrong, or null. One that is gone already is no fault. */
export async function removeView(id: string): Promise<ApiFault | null> {
  const result = await sendOwn('DELETE', `/saved-views/${id}`)
  if (!result.ok && result.fault.status !== 404) return result.fault
  savedViews.value = savedViews.value?.filter(view => view.id !== id) ?? null
  return null
}
