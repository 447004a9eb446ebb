// Whether a caller may call a route, and whether it still may: who it is, from which address, how often
// (request-rate.ts), for which company, with which permissions (decision G-08: 401, token IP 403, 429, company 403,
// permission 403).
import type { Logger } from 'pino'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { Hub } from '../../hub-context.ts'
import { ApiError, permissionDenied, superAdminOnly } from './api-error.ts'
import { type Language, words } from './api-texts.ts'
import type { Caller } from './caller.ts'
import { isInRanges } from './client-address.ts'
import { refuseInMaintenance } from './refuse-in-maintenance.ts'
import { checkRate } from './request-rate.ts'
import { type Family, familyOf, type ResponseHeaders } from './respond.ts'
import type { Route } from './route.ts'
import { toApiError } from './unexpected-error.ts'

function checkAddress(caller: Caller, ip: string): void {
  if (caller.ipRanges !== null && !isInRanges(ip, caller.ipRanges))
    throw new ApiError(403, 'forbidden', words('ip_not_allowed'), { reason: 'ip_not_allowed' })
}

function checkPermissions(route: Route, caller: Caller): void {
  for (const permission of route.permissions)
    if (!caller.permissions.has(permission)) throw permissionDenied(permission)
  if (route.superAdmin && !caller.actsAsSuperAdmin) throw superAdminOnly()
  const { accountPermission } = route
  if (accountPermission !== null && caller.accountPermissions?.has(accountPermission) === false)
    throw permissionDenied(accountPermission)
}

/**
 * A matcher is told that it may not call before its requests are counted (decision G-151), and a token that works from
 * everywhere is no matcher's.
 */
function checkMatcher(caller: Caller): void {
  if (!caller.permissions.has('security.matcher')) throw permissionDenied('security.matcher')
  if (caller.ipRanges === null)
    throw new ApiError(403, 'forbidden', words('ip_ranges_needed'), { reason: 'ip_not_allowed' })
}

/** The caller of a request, from an address and at a rate that it may call with; throws for any other. */
export async function admit(
  hub: Hub,
  request: IncomingRequest,
  family: Family,
  ip: string,
  headers: ResponseHeaders,
  byLink: Route['byLink'] = null,
): Promise<{ readonly caller: Caller; readonly linkedCompanyId: string | null }> {
  const linked = (await byLink?.(hub, request)) ?? null
  const caller = linked?.caller ?? (await hub.identity.authenticate(hub.database.db, request))
  checkAddress(caller, ip)
  if (family === 'matcher') checkMatcher(caller)
  checkRate(hub, family, caller, ip, headers)
  return { caller, linkedCompanyId: linked?.companyId ?? null }
}

/**
 * Returns the company to work in, and throws unless the caller has every permission that the route needs. Empty for
 * collectors and matchers.
 */
export async function companyAllowed(hub: Hub, route: Route, asked: string | null, caller: Caller): Promise<string> {
  const isUser = familyOf(route.path) === 'user'
  const companyId = isUser ? await hub.identity.companyOf(hub.database.db, caller, asked) : ''
  checkPermissions(route, caller)
  return companyId
}

/** While the hub is in maintenance, people change nothing; collectors and matchers report on (decision R-068). */
export function checkMaintenance(hub: Hub, route: Route, caller: Caller, language: Language): void {
  if (route.method === 'GET' || familyOf(route.path) !== 'user') return
  refuseInMaintenance(hub, caller.actsAsSuperAdmin, language)
}

/**
 * Whether a caller that was admitted earlier would be admitted now. While the database does not answer, the caller
 * stays admitted; the next check asks again.
 */
export async function isStillAdmitted(
  hub: Hub,
  route: Route,
  request: IncomingRequest,
  ip: string,
  log: Logger,
): Promise<boolean> {
  try {
    const caller = await hub.identity.authenticate(hub.database.db, request)
    checkAddress(caller, ip)
    await companyAllowed(hub, route, request.headers.get('x-company-id'), caller)
    return true
  } catch (error) {
    return toApiError(error, log).status >= 500
  }
}
