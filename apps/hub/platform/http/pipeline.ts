// The checks of every API request: the caller, its address, its rate, the company, the permission, and only then the
// resource and the data (decision G-08: 401, token IP 403, 429, company 403, permission 403, 404, 422).
import type { Logger } from 'pino'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { AnyResponse } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import { clientAddress, isInRanges } from './addresses.ts'
import { ApiError, notFound, permissionDenied, superAdminOnly } from './api-error.ts'
import { type Language, words } from './api-texts.ts'
import type { Caller } from './caller.ts'
import { readBody } from './json-body.ts'
import { refuseInMaintenance } from './maintenance-mode.ts'
import { acceptsJson, preferredLanguage } from './negotiation.ts'
import { checkRate } from './request-rate.ts'
import { type Family, type ResponseHeaders, respond, respondError, toApiError } from './respond.ts'
import type { Route, RouteContext } from './route.ts'

export const familyOf = (path: string): Family => {
  if (path === '/monitoring/collector' || path.startsWith('/monitoring/collector/')) return 'collector'
  return path === '/security/matcher' || path.startsWith('/security/matcher/') ? 'matcher' : 'user'
}

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

/** The parameters of a path as the router decodes them; null where the percent-encoding is malformed. */
export type DecodedParams = Readonly<Record<string, string | null>>

/** Facts about a request that only the server knows. */
export type RequestMeta = {
  readonly peer: string
  readonly requestId: string
  /** Whether the browser speaks https, with the hub or with a trusted proxy. */
  readonly secure: boolean
  readonly startedAtMs: number
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

async function admit(
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
async function companyAllowed(hub: Hub, route: Route, asked: string | null, caller: Caller): Promise<string> {
  const isUser = familyOf(route.path) === 'user'
  const companyId = isUser ? await hub.identity.companyOf(hub.database.db, caller, asked) : ''
  checkPermissions(route, caller)
  return companyId
}

/** While the hub is in maintenance, people change nothing; collectors and matchers report on (decision R-068). */
function checkMaintenance(hub: Hub, route: Route, caller: Caller, language: Language): void {
  if (route.method === 'GET' || familyOf(route.path) !== 'user') return
  refuseInMaintenance(hub, caller.actsAsSuperAdmin, language)
}

/**
 * Whether a caller that was admitted earlier would be admitted now. While the database does not answer, the caller
 * stays admitted; the next check asks again.
 */
async function isStillAdmitted(
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

/** The parameters of a path. A NUL, which the database cannot store, and invalid UTF-8 name no resource: 404. */
function readParams(decoded: DecodedParams): Record<string, string> {
  const params: Record<string, string> = {}
  for (const [name, value] of Object.entries(decoded)) {
    if (value === null || value.includes('\0')) throw notFound()
    params[name] = value
  }
  return params
}

/** Runs a route for a request. Never throws. */
export async function runRoute(
  hub: Hub,
  route: Route,
  request: IncomingRequest,
  decoded: DecodedParams,
  requestMeta: RequestMeta,
  isLegacy: boolean,
): Promise<AnyResponse> {
  const family = familyOf(route.path)
  const language = preferredLanguage(request.headers.get('accept-language'))
  const headers: ResponseHeaders = { 'X-Request-Id': requestMeta.requestId, 'Cache-Control': 'no-store' }
  if (isLegacy) headers.Deprecation = 'true'
  const forwardedFor = request.headers.get('x-forwarded-for')
  const ip = clientAddress(requestMeta.peer, forwardedFor, hub.config.trusted_proxies)
  const routeName = `${route.method} ${route.path}`
  // Most requests log nothing at the usual level, and to make a child logger costs a tenth of a short request.
  const requestLog = () => hub.log.child({ request_id: requestMeta.requestId, route: routeName })
  let response: AnyResponse
  try {
    const { caller, linkedCompanyId } = await admit(hub, request, family, ip, headers, route.byLink)
    const asked = linkedCompanyId ?? request.headers.get('x-company-id')
    const companyId = await companyAllowed(hub, route, asked, caller)
    checkMaintenance(hub, route, caller, language)
    // A matcher gives up what is refused with a status that it does not know, and reads JSON whatever it asks for.
    const accept = request.headers.get('accept')
    const isAccepted =
      acceptsJson(accept, route.answerType) || (route.otherType !== null && acceptsJson(accept, route.otherType))
    if (family !== 'matcher' && !isAccepted) throw new ApiError(406, 'not_acceptable', words('not_acceptable'))
    const url = hub.links.urlOf(request)
    const params = readParams(decoded)
    const context: RouteContext = {
      hub,
      caller,
      companyId,
      params,
      ip,
      forwardedFor,
      userAgent: request.headers.get('user-agent')?.slice(0, 512) ?? null,
      language,
      url,
      header: name => request.headers.get(name),
      signal: () => request.signal,
      isStillAdmitted: () => isStillAdmitted(hub, route, request, ip, requestLog()),
    }
    const result = await route.run(context, code => readBody(request, route, family, code))
    response = respond(result, route.status, family, headers, hub.now())
  } catch (error) {
    const refusal = error instanceof ApiError ? error : toApiError(error, requestLog())
    response = respondError(refusal, family, language, headers, hub.now())
  }
  const seconds = (performance.now() - requestMeta.startedAtMs) / 1000
  hub.metrics.requests.inc({ route: routeName, code: response.status })
  hub.metrics.requestSeconds.observe({ route: routeName }, seconds)
  if (hub.log.isLevelEnabled('debug')) requestLog().debug({ code: response.status, seconds }, 'request')
  return response
}

/** A path or method below /api that no route has: 401 first, then 404 or 405. Never throws. */
export async function runUnknown(
  hub: Hub,
  request: IncomingRequest,
  path: string,
  allowed: readonly string[],
  requestMeta: RequestMeta,
): Promise<AnyResponse> {
  const family = familyOf(path.replace(/^\/api\/v1/, ''))
  const language = preferredLanguage(request.headers.get('accept-language'))
  const headers: ResponseHeaders = { 'X-Request-Id': requestMeta.requestId, 'Cache-Control': 'no-store' }
  const ip = clientAddress(requestMeta.peer, request.headers.get('x-forwarded-for'), hub.config.trusted_proxies)
  let error: ApiError
  try {
    await admit(hub, request, family, ip, headers)
    error =
      allowed.length > 0
        ? new ApiError(405, 'method_not_allowed', words('method_not_allowed'), {
            headers: { Allow: allowed.join(', ') },
          })
        : new ApiError(404, 'not_found', words('not_found'))
  } catch (thrown) {
    error = toApiError(thrown, hub.log)
  }
  hub.metrics.requests.inc({ route: 'unknown', code: error.status })
  return respondError(error, family, language, headers, hub.now())
}
