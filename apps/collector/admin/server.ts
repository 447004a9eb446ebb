// The hub's way into the collector, /internal/v1: who may call, which paths there are, and how answers and faults look.
// What a call does stands in the file named after it.
import { Elysia } from 'elysia'
import { reloadFeeds, reloadPath } from '../../../core/admin-api/calls.ts'
import { adminPrefix } from '../../../core/admin-api/envelope.ts'
import { collectorStatusPath } from '../../../core/admin-api/status.ts'
import { SamplesUnavailable } from '../worker/samples/samples-client.ts'
import { AdminError, errorResponse, responseOf } from './admin-error.ts'
import { pushAgent, revokeAgent } from './agents.ts'
import { isKnownToken } from './authorize.ts'
import type { AdminCall } from './call.ts'
import type { AdminDeps } from './deps.ts'
import { purgeData } from './purge.ts'
import { reloadFeed } from './reload.ts'
import { serverSeries } from './series.ts'
import { collectorStatus, companySummary, serverAlerting, serverStatus } from './status.ts'

/** The data of a 200, or a whole response. */
type Answer = Readonly<Record<string, unknown>> | Response
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type Route = { readonly method: Method; readonly path: string; readonly act: (call: AdminCall) => Promise<Answer> }

const routesOf = (deps: AdminDeps): readonly Route[] => [
  { method: 'PUT', path: '/agents/:agent_id', act: call => pushAgent(deps, call) },
  { method: 'DELETE', path: '/agents/:agent_id', act: call => revokeAgent(deps, call) },
  ...reloadFeeds.map(feed => ({ method: 'POST' as const, path: reloadPath(feed), act: () => reloadFeed(deps, feed) })),
  { method: 'GET', path: '/servers/:server_id/status', act: call => serverStatus(deps, call) },
  { method: 'GET', path: '/servers/:server_id/series', act: call => serverSeries(deps, call) },
  { method: 'GET', path: '/servers/:server_id/alerting', act: call => serverAlerting(deps, call) },
  { method: 'GET', path: '/companies/:company_id/summary', act: call => companySummary(deps, call) },
  { method: 'DELETE', path: '/companies/:company_id/data', act: call => purgeData(deps, call, 'company') },
  { method: 'DELETE', path: '/servers/:server_id/data', act: call => purgeData(deps, call, 'server') },
  { method: 'GET', path: collectorStatusPath, act: () => collectorStatus(deps) },
]

const isAuthorized = (deps: AdminDeps, request: Request): boolean =>
  isKnownToken(deps.tokens(), /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '')

/**
 * The methods of a path; empty for one that does not exist. A slash at the end is as good as none, as it is to the
 * router.
 */
function methodsOf(routes: readonly Route[], pathname: string): Method[] {
  const segments = pathname.slice(adminPrefix.length).replace(/\/$/, '').split('/')
  return routes
    .filter(({ path }) => {
      const pattern = path.split('/')
      return (
        pattern.length === segments.length &&
        pattern.every((part, index) => (part.startsWith(':') ? segments[index] !== '' : part === segments[index]))
      )
    })
    .map(route => route.method)
}

function refusal(deps: AdminDeps, routes: readonly Route[], request: Request): Response {
  const { pathname } = new URL(request.url)
  if (!`${pathname}/`.startsWith(`${adminPrefix}/`)) return errorResponse('not_found', 'no such path')
  if (!isAuthorized(deps, request)) return errorResponse('unauthorized', 'a valid admin token is required')
  const methods = methodsOf(routes, pathname)
  if (methods.length === 0) return errorResponse('not_found', 'no such path')
  const response = errorResponse('method_not_allowed', `this path takes ${methods.join(', ')}`)
  response.headers.set('allow', methods.join(', '))
  return response
}

async function perform(deps: AdminDeps, route: Route, call: AdminCall): Promise<Response> {
  try {
    const answer = await route.act(call)
    return answer instanceof Response ? answer : Response.json({ data: answer })
  } catch (error) {
    if (error instanceof AdminError) return responseOf(error)
    deps.onError(`cannot answer ${route.method} ${adminPrefix}${route.path}`, error)
    if (error instanceof SamplesUnavailable) return errorResponse('unavailable', 'the samples store does not answer')
    return errorResponse('unavailable', 'unexpected fault', 500)
  }
}

/** The admin API as an application; main.ts gives it a listener. */
export function createAdminApp(deps: AdminDeps) {
  const routes = routesOf(deps)
  const app = new Elysia({ name: 'admin' })
  for (const route of routes) {
    app.route(
      route.method,
      adminPrefix + route.path,
      async ({ request, params }: { request: Request; params: Record<string, string> }) => {
        const startedMs = performance.now()
        const response = isAuthorized(deps, request)
          ? await perform(deps, route, { params, query: new URL(request.url).searchParams, request })
          : errorResponse('unauthorized', 'a valid admin token is required')
        deps.onRequest(route.method, adminPrefix + route.path, response.status, (performance.now() - startedMs) / 1000)
        return response
      },
      { parse: 'none' },
    )
  }
  const refuse = ({ request }: { request: Request }): Response => {
    const response = refusal(deps, routes, request)
    deps.onRequest(request.method, 'other', response.status, 0)
    return response
  }
  return app.all('/*', refuse, { parse: 'none' })
}
