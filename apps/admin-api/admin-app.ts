// The hub's way into a process behind it, /internal/v1: who may call, which paths there are, and how answers and faults
// look.
import { Elysia } from 'elysia'
import { adminPrefix } from '../../core/admin-api/envelope.ts'
import { AdminError, errorResponse, responseOf } from './admin-error.ts'
import { isKnownToken } from './authorize.ts'
import type { AdminCall } from './call.ts'

/** The data of a 200, or a whole response. */
type Answer = Readonly<Record<string, unknown>> | Response
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
export type AdminRoute = {
  readonly method: Method
  readonly path: string
  readonly act: (call: AdminCall) => Promise<Answer>
}

type AdminAppDeps = {
  readonly routes: readonly AdminRoute[]
  /** The tokens that open the API now; both while the token is being changed. */
  readonly tokens: () => readonly string[]
  /** `path` is that of the route, and `other` for one that no route has. */
  readonly onRequest: (method: string, path: string, status: number, seconds: number) => void
  readonly onError: (what: string, error: unknown) => void
  /** The response to an error that is expected here; null for others. */
  readonly faultOf?: (error: unknown) => Response | null
}

const isAuthorized = (deps: AdminAppDeps, request: Request): boolean =>
  isKnownToken(deps.tokens(), /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '')

/**
 * The methods of a path; empty for one that does not exist. A slash at the end is as good as none, as it is to the
 * router.
 */
function methodsOf(routes: readonly AdminRoute[], pathname: string): Method[] {
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

function refusal(deps: AdminAppDeps, routes: readonly AdminRoute[], request: Request): Response {
  const { pathname } = new URL(request.url)
  if (!`${pathname}/`.startsWith(`${adminPrefix}/`)) return errorResponse('not_found', 'no such path')
  if (!isAuthorized(deps, request)) return errorResponse('unauthorized', 'a valid admin token is required')
  const methods = methodsOf(routes, pathname)
  if (methods.length === 0) return errorResponse('not_found', 'no such path')
  const response = errorResponse('method_not_allowed', `this path takes ${methods.join(', ')}`)
  response.headers.set('allow', methods.join(', '))
  return response
}

async function perform(deps: AdminAppDeps, route: AdminRoute, call: AdminCall): Promise<Response> {
  try {
    const answer = await route.act(call)
    return answer instanceof Response ? answer : Response.json({ data: answer })
  } catch (error) {
    if (error instanceof AdminError) return responseOf(error)
    deps.onError(`cannot answer ${route.method} ${adminPrefix}${route.path}`, error)
    return deps.faultOf?.(error) ?? errorResponse('unavailable', 'unexpected fault', 500)
  }
}

/** An admin API as an application, for a listener. */
export function createAdminApp(deps: AdminAppDeps) {
  const { routes } = deps
  const app = new Elysia({ name: 'admin' })
  for (const route of routes) {
    app.route(
      route.method,
      adminPrefix + route.path,
      async ({ request, params = {} }: { request: Request; params?: Record<string, string> }) => {
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
