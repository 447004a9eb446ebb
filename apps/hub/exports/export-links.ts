// Links by which one export is downloaded without a header, for 15 minutes (RES-275): sealed, so that nobody makes one.
import { isObject } from '../../../core/json-object.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import type { Hub } from '../hub-context.ts'
import { callerOfUser } from '../identity/authenticate.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { Asker } from '../platform/http/collection.ts'
import type { LinkedCaller } from '../platform/http/route.ts'

const VALID_MS = 15 * 60_000
const PURPOSE = 'export'

/** Where an export is downloaded by whoever has the link; it has the rights of the caller that it is shown to. */
export function linkOf({ hub, caller, companyId }: Asker, exportId: string): string {
  const token = hub.sealer.seal(
    JSON.stringify({
      for: PURPOSE,
      export: exportId,
      user: caller.user.id,
      company: companyId,
      keys: [...caller.permissions],
      until: hub.now() + VALID_MS,
    }),
  )
  return `/api/v1/exports/${exportId}/download?token=${encodeURIComponent(token)}`
}

const expired = (): ApiError => new ApiError(401, 'unauthorized', words('link_over'), { reason: 'token_expired' })

/** The caller that a link stands for; null for a request without one. Throws 401 for one that is over or of another. */
export async function callerOfLink(hub: Hub, request: IncomingRequest): Promise<LinkedCaller | null> {
  const url = new URL(request.url)
  const token = url.searchParams.get('token')
  if (token === null) return null
  const opened = hub.sealer.open(token)
  const given: unknown = opened === null ? null : JSON.parse(opened)
  if (!isObject(given) || given.for !== PURPOSE || typeof given.until !== 'number') throw expired()
  const isOfThis = url.pathname.split('/').includes(String(given.export))
  if (given.until <= hub.now() || !isOfThis) throw expired()
  const keys = Array.isArray(given.keys) ? given.keys.map(String) : []
  const caller = await callerOfUser(hub.database.db, String(given.user), keys)
  if (!caller) throw expired()
  return { caller, companyId: String(given.company) }
}
