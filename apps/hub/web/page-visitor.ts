// The visitor of the live page: its session, company and permissions, by the same rules as in the API.

import type { Hub } from '../hub-context.ts'
import { authenticate, companyOf } from '../identity/authenticate.ts'
import { clientAddress } from '../platform/http/addresses.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { type Caller, sessionCookie } from '../platform/http/caller.ts'
import type { RequestMeta } from '../platform/http/pipeline.ts'
import type { Visitor } from './sessions.ts'

/** A person with a session; a bearer token opens the API, not the pages. */
export type Guest = { readonly caller: Caller; readonly csrfToken: string }

export function visitorOf(hub: Hub, request: Request, requestMeta: RequestMeta): Visitor {
  const ip = clientAddress(requestMeta.peer, request.headers.get('x-forwarded-for'), hub.config.trusted_proxies)
  return { ip, userAgent: request.headers.get('user-agent')?.slice(0, 512) ?? null }
}

/** The guest of a request that only reads; null without a session that still counts. */
export async function guestOf(hub: Hub, request: Request): Promise<Guest | null> {
  const cookie = request.headers.get('cookie')
  if (cookie === null || !cookie.includes(`${sessionCookie}=`)) return null
  try {
    // Authenticated by the cookie alone and as a read: handlers that change something check the token of the form
    // themselves.
    const caller = await authenticate(hub.database.db, new Request(request.url, { headers: { cookie } }))
    return caller.csrfToken === null ? null : { caller, csrfToken: caller.csrfToken }
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null
    throw error
  }
}

const NEEDED = ['monitoring.view', 'servers.view']

/** The company that the guest looks at; `asked` is the id of another than its own. Throws ApiError 403. */
export async function companyToShow(hub: Hub, { caller }: Guest, asked: string | null): Promise<string> {
  const companyId = await companyOf(hub.database.db, caller, asked)
  const missing = NEEDED.find(permission => !caller.permissions.has(permission))
  if (missing !== undefined)
    throw new ApiError(403, 'forbidden', words('permission_denied', { permission: missing }), {
      reason: 'permission_denied',
    })
  return companyId
}
