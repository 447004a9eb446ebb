// The hub's HTTP application: the API below /api/v1 (and the frozen paths without v1), its document, and pages.
import { randomUUID } from 'node:crypto'
import { Elysia } from 'elysia'
import { assert } from '../../../core/assert.ts'
import type { HttpRequest, IncomingRequest } from '../../http/http-request.ts'
import type { AnyResponse } from '../../http/http-response.ts'
import type { Hub } from '../hub-context.ts'
import { type DecodedParams, type RequestMeta, runRoute, runUnknown } from './http/pipeline.ts'
import type { Method, Route } from './http/route.ts'
import { secureResponse } from './http/security-headers.ts'
import { chooseSessionCookie } from './http/session-cookie.ts'
import { isSecure } from './http/speaks-https.ts'
import { docsResponse } from './openapi/docs-page.ts'
import { openApiDocument, RouteDetails } from './openapi/openapi.ts'

/**
 * A page or file outside the API, provided by the web interface. The page with path `*` answers paths that nothing else
 * answers.
 */
export type Page = {
  readonly method: Method
  readonly path: string
  readonly handle: (hub: Hub, request: Request, requestMeta: RequestMeta) => Promise<Response> | Response
}

type App = { handle(request: HttpRequest, peer: string): Promise<AnyResponse> }

/** Returns the methods that a path has, so that a wrong method is answered with 405 and not 404. */
function methodTable(routes: readonly Route[]): (path: string) => string[] {
  const table = routes.map(route => {
    const source = route.path.replace(/:[a-z_]+/g, '[^/]+')
    const prefix = route.legacy ? '/api(?:/v1)?' : '/api/v1'
    return { method: route.method, pattern: new RegExp(`^${prefix}${source}/?$`) }
  })
  return path => [...new Set(table.filter(entry => entry.pattern.test(path)).map(entry => entry.method))].sort()
}

const requestIdOf = (request: IncomingRequest): string => {
  const given = request.headers.get('x-request-id')
  return given !== null && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID()
}

type Handle = (route: Route, request: object, params: DecodedParams, isLegacy: boolean) => unknown

/** The paths of a route: below /api/v1, and for a frozen one without it too. */
const pathsOf = ({ path, legacy }: Route): readonly (readonly [path: string, isLegacy: boolean])[] =>
  legacy
    ? [
        [`/api/v1${path}`, false],
        [`/api${path}`, true],
      ]
    : [[`/api/v1${path}`, false]]

function createApi(routes: readonly Route[], handle: Handle) {
  const app = new Elysia()
  for (const route of routes)
    for (const [path, isLegacy] of pathsOf(route))
      app.route(route.method, path, ({ request, params }) => handle(route, request, { ...params }, isLegacy), {
        parse: 'none',
      } as object)
  return app
}

/** The OpenAPI document of the routes. They are described on an application of their own, which is let go of again. */
export function apiDocument(routes: readonly Route[], version: string) {
  const app = new Elysia()
  const details = new RouteDetails()
  for (const route of routes)
    for (const [path, isLegacy] of pathsOf(route))
      app.route(route.method, path, () => '', { parse: 'none', detail: details.of(route, isLegacy) } as object)
  return openApiDocument(app, details, version)
}

/** A request under way, and what the API answers to it: the router carries nothing but a Response. */
type Exchange = { readonly request: HttpRequest; readonly meta: RequestMeta; response: AnyResponse | null }

/** What the router gets where the response stands in the exchange. */
const PLACED = new Response(null)

/** The router reads no more of a request than method, URL and headers, and to make a Request is dear. */
const routable = (request: IncomingRequest): Request => request as Request

/** Builds the application of a hub from its routes and pages. */
export function createApp(hub: Hub, routes: readonly Route[], pages: readonly Page[], version: string): App {
  const exchanges = new WeakMap<object, Exchange>()
  const exchangeOf = (request: object): Exchange => {
    const exchange = exchanges.get(request)
    assert(exchange, 'the router gives the request that it got')
    return exchange
  }
  const app = createApi(routes, async (route, given, params, isLegacy) => {
    const exchange = exchangeOf(given)
    const { request, meta } = exchange
    exchange.response = await runRoute(hub, route, request, params, meta, isLegacy)
    return PLACED
  })
  // Made when it is asked for: to describe all routes takes 10 MB, and most hubs are never asked.
  let document: string | null = null
  app.get('/openapi.json', () => {
    document ??= JSON.stringify(apiDocument(routes, version))
    return new Response(document, { headers: { 'Content-Type': 'application/json' } })
  })
  app.get('/docs', docsResponse)
  const show = async (page: Page, { request, meta }: Exchange): Promise<Response> =>
    page.handle(hub, await request.standard(), meta)
  const unknownPage = pages.find(page => page.path === '*')
  for (const page of pages.filter(each => each !== unknownPage))
    app.route(page.method, page.path, ({ request }) => show(page, exchangeOf(request)), { parse: 'none' } as object)

  const methodsOf = methodTable(routes)
  app.all(
    '*',
    async given => {
      const exchange = exchangeOf(given.request)
      const { request, meta } = exchange
      const path = new URL(request.url).pathname
      if (!path.startsWith('/api'))
        return unknownPage ? show(unknownPage, exchange) : new Response('not found', { status: 404 })
      exchange.response = await runUnknown(hub, request, path, methodsOf(path), meta)
      return PLACED
    },
    { parse: 'none' } as object,
  )
  app.onError(({ error }) => {
    hub.log.error({ err: error }, 'unexpected error outside a route')
    return Response.json({ message: 'An unexpected error happened.' }, { status: 500 })
  })

  return {
    async handle(request, peer) {
      const secure = isSecure(hub.config, request, peer)
      chooseSessionCookie(request, secure)
      const meta = { peer, requestId: requestIdOf(request), secure, startedAtMs: performance.now() }
      const exchange: Exchange = { request, meta, response: null }
      exchanges.set(request, exchange)
      const ofRouter = await app.fetch(routable(request))
      return secureResponse(hub.config, exchange.response ?? ofRouter, secure)
    },
  }
}
