// Whether a change is refused because the caller knows another version of the row: 412 or 409.
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { CommonRow } from './kind.ts'

/** The version that the caller changed: of the header (412 when it is another one) or of the body (409). */
export type Expected = { readonly ifMatch?: string | null; readonly version?: number | null }

/** True when If-Match names the version: `*` any, a list any of its members, a weak tag never. */
const matches = (ifMatch: string, version: number): boolean =>
  ifMatch.split(',').some(tag => tag.trim() === '*' || tag.trim() === `"${version}"`)

/** Throws 412 or 409 when the resource is another version than the caller knows. */
export function checkVersion({ version }: Pick<CommonRow, 'version'>, { ifMatch, version: given }: Expected): void {
  const conflict = (status: number) =>
    new ApiError(status, 'version_conflict', words('version_conflict', { version }), {
      reason: 'version_conflict',
      members: { current_version: version },
    })
  if (ifMatch !== null && ifMatch !== undefined && !matches(ifMatch, version)) throw conflict(412)
  if (given !== null && given !== undefined && given !== version) throw conflict(409)
}
