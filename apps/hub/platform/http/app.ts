// The hub's HTTP application: the API below /api/v1 (and the frozen paths without v1), its document, and pages.
import { randomUUID } from 'node:crypto'
import { Elysia } from 'elysia'
import type { Hub } from '../../hub-context.ts'
import { docsResponse } from '../openapi/docs-page.ts'
import { openApiDocument, RouteDetails } from '../openapi/openapi.ts'
import { type DecodedParams, type RequestMeta, runRoute, runUnknown } from './pipeline.ts'
import type { Route } from './route.ts'
import { chooseSessionCookie, isSecure, secureResponse } from './transport-security.ts'

/**
 * A page or file outside the API, provided by the web interface. The page with path `*` answers paths that nothing else
 * answers.
 */
export type Page = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly handle: (hub: Hub, request: Request, requestMeta: RequestMeta) => Promise<Response> | Response
}

type App = { fetch(request: Request, peer: string): Promise<Response> }

/** Returns the methods that a path has, so that a wrong method is answered with 405 and not 404. */
function methodTable(routes: readonly Route[]): (path: string) => string[] {
  const table = routes.map(route => {
    const source = route.path.replace(/:[a-z_]+/g, '[^/]+')
    const prefix = route.legacy ? '/api(?:/v1)?' : '/api/v1'
    return { method: route.method, pattern: new RegExp(`^${prefix}${source}/?$`) }
  })
  return path => [...new Set(table.filter(entry => entry.pattern.test(path)).map(entry => entry.method))].sort()
}

const requestIdOf = (request: Request): string => {
  const given = request.headers.get('x-request-id')
  return given !== null && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID()
}

type Handle = (route: Route, request: Request, params: DecodedParams, isLegacy: boolean) => unknown

/** The API routes, each below /api/v1 and the frozen ones without it too, and their OpenAPI document. */
export function createApi(routes: readonly Route[], version: string, handle: Handle) {
  const app = new Elysia()
  const details = new RouteDetails()
  const add = (path: string, route: Route, isLegacy: boolean) =>
    app.route(route.method, path, ({ request, params }) => handle(route, request, { ...params }, isLegacy), {
      parse: 'none',
      detail: details.of(route, isLegacy),
    } as object)
  for (const route of routes) {
    add(`/api/v1${route.path}`, route, false)
    if (route.legacy) add(`/api${route.path}`, route, true)
  }
  return { app, document: openApiDocument(app, details, version) }
}

/** Builds the application of a hub from its routes and pages. */
export function createApp(hub: Hub, routes: readonly Route[], pages: readonly Page[], version: string): App {
  const requestMetas = new WeakMap<Request, RequestMeta>()
  const requestMetaOf = (request: Request): RequestMeta =>
    requestMetas.get(request) ?? { peer: '', requestId: randomUUID(), secure: false, startedAtMs: performance.now() }
  const { app, document: apiDocument } = createApi(routes, version, (route, request, params, isLegacy) =>
    runRoute(hub, route, request, params, requestMetaOf(request), isLegacy),
  )
  const document = JSON.stringify(apiDocument)
  app.get('/openapi.json', () => new Response(document, { headers: { 'Content-Type': 'application/json' } }))
  app.get('/docs', docsResponse)
  const unknownPage = pages.find(page => page.path === '*')
  for (const page of pages.filter(each => each !== unknownPage))
    app.route(page.method, page.path, ({ request }) => page.handle(hub, request, requestMetaOf(request)), {
      parse: 'none',
    } as object)

  const methodsOf = methodTable(routes)
  app.all(
    '*',
    ({ request }) => {
      const path = new URL(request.url).pathname
      if (path.startsWith('/api')) return runUnknown(hub, request, path, methodsOf(path), requestMetaOf(request))
      return unknownPage?.handle(hub, request, requestMetaOf(request)) ?? new Response('not found', { status: 404 })
    },
    { parse: 'none' } as object,
  )
  app.onError(({ error }) => {
    hub.log.error({ err: error }, 'unexpected error outside a route')
    return Response.json({ message: 'An unexpected error happened.' }, { status: 500 })
  })

  return {
    async fetch(request, peer) {
      const requestId = requestIdOf(request)
      const secure = isSecure(hub.config, request, peer)
      chooseSessionCookie(request, secure)
      requestMetas.set(request, { peer, requestId, secure, startedAtMs: performance.now() })
      return secureResponse(hub.config, await app.fetch(request), secure)
    },
  }
}
