// Routes of the web interface's own below /web: a schema, a permission and one call as in the API, for a session alone,
// of the company in `?company={slug}`, and within the limit of views (decision G-123).
import { standard } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import { refuseForeign } from '../../identity/csrf.ts'
import type { Page } from '../../platform/app.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { readBody } from '../../platform/http/json-body.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { refuseInMaintenance } from '../../platform/http/refuse-in-maintenance.ts'
import { respond, respondError } from '../../platform/http/respond.ts'
import type { Route, RouteContext } from '../../platform/http/route.ts'
import { toApiError } from '../../platform/http/unexpected-error.ts'
import { paramsOf } from '../address/site-map.ts'
import { languageOf } from './login.ts'
import { checkWebRate, companyOfSlug, needKeys, signedIn, visitorOf } from './page-visitor.ts'

async function contextOf(hub: Hub, route: Route, request: Request, requestMeta: RequestMeta): Promise<RouteContext> {
  const guest = await signedIn(hub, request)
  checkWebRate(hub, guest)
  const language = languageOf(request)
  if (route.method !== 'GET') {
    refuseForeign(request.headers, guest)
    refuseInMaintenance(hub, guest.caller.actsAsSuperAdmin, language)
  }
  const url = new URL(request.url)
  const { companyId } = await companyOfSlug(hub, guest, url.searchParams.get('company') ?? '')
  needKeys(guest, route.permissions)
  const params = paramsOf(`/web${route.path}`, url.pathname)
  if (params === null) throw notFound()
  return {
    hub,
    caller: guest.caller,
    companyId,
    params,
    ...visitorOf(hub, request, requestMeta),
    forwardedFor: null,
    language,
    url,
    header: name => request.headers.get(name),
    signal: () => request.signal,
    isStillAdmitted: async () => (await signedIn(hub, request).catch(() => null)) !== null,
  }
}

/** The page of the application that answers a route. It never throws. */
export const webRoute = (route: Route): Page => ({
  method: route.method,
  path: `/web${route.path}`,
  async handle(hub, request, requestMeta) {
    const headers = { 'X-Request-Id': requestMeta.requestId, 'Cache-Control': 'no-store' }
    try {
      const context = await contextOf(hub, route, request, requestMeta)
      const result = await route.run(context, code => readBody(request, route, 'user', code))
      return standard(respond(result, route.status, 'user', headers, hub.now()))
    } catch (error) {
      return standard(respondError(toApiError(error, hub.log), 'user', languageOf(request), headers, hub.now()))
    }
  },
})
