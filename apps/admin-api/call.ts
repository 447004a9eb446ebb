// A call of the admin API as its handlers see it.
import { isUuid } from '../../core/series/uuid.ts'
import { badField } from './admin-error.ts'

/** The ids of the path, the query string, the request. */
export type AdminCall = {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly request: Request
}

/** The id that a path or query names, in canonical form. */
export function uuidOf(field: string, value: string | null | undefined): string {
  if (value === null || value === undefined || value === '') throw badField(field, 'is required')
  const id = value.toLowerCase()
  if (!isUuid(id)) throw badField(field, 'must be a UUID')
  return id
}
