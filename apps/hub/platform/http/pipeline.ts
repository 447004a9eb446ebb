// What every API request goes through, in order: whether its caller may call (may-call.ts), and only then the resource
// and the data (decision G-08: 401, token IP 403, 429, company 403, permission 403, 404, 422).
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { AnyResponse } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import { ApiError, notFound } from './api-error.ts'
import { words } from './api-texts.ts'
import { clientAddress } from './client-address.ts'
import { readBody } from './json-body.ts'
import { admit, checkMaintenance, companyAllowed, isStillAdmitted } from './may-call.ts'
import { accepts, preferredLanguage } from './negotiation.ts'
import { familyOf, type ResponseHeaders, respond, respondError } from './respond.ts'
import type { Route, RouteContext } from './route.ts'
import { toApiError } from './unexpected-error.ts'

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
    const isAccepted = accepts(accept, [route.answerType, ...route.otherTypes])
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
