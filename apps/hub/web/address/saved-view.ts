// Which pages can be kept as a saved view, and what of their address is kept: known to the hub and to the browser.
import { type PageName, pageNames, sitePages } from './site-map.ts'

/** The lists that are filtered. */
export const savedPages: readonly PageName[] = pageNames.filter(name => sitePages[name].takes.includes('q'))

/** The key without which one keeps views for oneself alone: what is shared stands in everybody's list. */
export const SHARE_KEY = 'monitoring.manage'

export const VIEW_NAME_CHARS_MAX = 100
export const VIEW_QUERY_CHARS_MAX = 2_000
const PARAM_NAME = /^[a-z_]{1,30}$/
/** Where one stood in the list, which is no part of what one looks at. */
const PASSING = new Set(['offset', 'open'])

/** The parameters of an address that a view keeps, in one order, so that two that show the same are equal. */
export function viewQuery(search: string | URLSearchParams): string {
  const kept = new URLSearchParams(
    [...new URLSearchParams(search)].filter(
      ([name, value]) => PARAM_NAME.test(name) && !PASSING.has(name) && value !== '',
    ),
  )
  kept.sort()
  return kept.toString()
}
