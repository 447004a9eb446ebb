// Lists: 15 rows a page under `data`, with links and counts (decision G-07).
import { Type } from '@sinclair/typebox'
import { limits } from '../../../../core/limits.ts'
import { originOf } from './link-origin.ts'

export const pageQuery = { page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })) }

export type Page = { readonly limit: number; readonly offset: number; readonly number: number }

export const pageOf = (query: { page?: number | undefined }): Page => {
  const number = query.page ?? 1
  return { limit: limits.pageSize, offset: (number - 1) * limits.pageSize, number }
}

/** The answer of a list. Links keep the filters of the request. */
export function paged<T>(url: URL, page: Page, total: number, data: readonly T[]) {
  const lastPage = Math.max(1, Math.ceil(total / limits.pageSize))
  const link = (number: number): string => {
    const search = new URLSearchParams(url.searchParams)
    search.set('page', String(number))
    return `${originOf(url)}${url.pathname}?${search}`
  }
  return {
    data,
    links: {
      first: link(1),
      last: link(lastPage),
      prev: page.number > 1 ? link(Math.min(page.number - 1, lastPage)) : null,
      next: page.number < lastPage ? link(page.number + 1) : null,
    },
    meta: { current_page: page.number, per_page: limits.pageSize, last_page: lastPage, total },
  }
}
