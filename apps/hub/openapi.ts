// The OpenAPI 3 document, made from the routes' own schemas, and a page to read it that loads nothing from elsewhere.
import { toOpenAPISchema } from '@elysiajs/openapi'
import type { TObject, TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { familyOf } from './http/pipeline.ts'
import type { Route } from './http/route.ts'

const ERROR = {
  type: 'object',
  required: ['message'],
  properties: {
    message: { type: 'string' },
    reason: { type: 'string' },
    errors: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
}
const SERVICE_ERROR = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' } },
    },
    server_time: { type: 'string', format: 'date-time' },
  },
}

function queryParameters(schema: TObject) {
  return Object.entries<TSchema>(schema.properties).map(([name, property]) => ({
    name,
    in: 'query',
    required: schema.required?.includes(name) ?? false,
    schema: property,
  }))
}

const content = (schema: unknown) => ({ 'application/json': { schema } })

/** What the document says of a route; handed to Elysia with the route. */
export function routeDetail(route: Route, isLegacy: boolean) {
  const error = familyOf(route.path) === 'user' ? ERROR : SERVICE_ERROR
  const failures = route.bodySchema || route.querySchema ? [401, 403, 404, 422, 429] : [401, 403, 404, 429]
  const permissions = route.permissions.join(' + ') || (route.superAdmin ? 'super admin' : 'any authenticated caller')
  return {
    tags: [route.tag],
    summary: route.summary,
    description: `Permission: ${permissions}.`,
    deprecated: isLegacy,
    security: [{ bearer: [] }],
    ...(route.querySchema ? { parameters: queryParameters(route.querySchema) } : {}),
    ...(route.bodySchema ? { requestBody: { required: true, content: content(route.bodySchema) } } : {}),
    responses: {
      [String(route.method === 'DELETE' ? 204 : route.status)]: { description: 'Done.' },
      ...Object.fromEntries(failures.map(code => [String(code), { description: 'Error.', content: content(error) }])),
    },
  }
}

// The schemas are JSON Schema as it is (a member that may be null is a union with the type "null"), which is 3.1, not 3.0.
const OPENAPI_VERSION = '3.1.0'

/** The whole document. Only what stands below /api is in it. */
export function openApiDocument(app: AnyElysia, version: string): Record<string, unknown> {
  const { paths } = toOpenAPISchema(app, undefined, undefined, undefined, OPENAPI_VERSION)
  const apiPaths = Object.fromEntries(
    Object.entries(paths).filter(([path]) => path.startsWith('/api/') && !path.endsWith('*')),
  )
  return {
    openapi: OPENAPI_VERSION,
    info: { title: 'Monitoring Hub REST API', version, description: 'REST API v1 and the collector-facing endpoints.' },
    servers: [{ url: '/' }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    paths: apiPaths,
  }
}

/** Reads /openapi.json and shows it. */
export const docsPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Monitoring Hub REST API</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem;color:#1b1f24;background:#fff}
h2{margin-top:2rem;border-bottom:1px solid #d0d7de}details{border:1px solid #d0d7de;border-radius:6px;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}code{font:13px ui-monospace,monospace}b.m{display:inline-block;width:4.2rem}pre{overflow:auto;background:#f6f8fa;padding:.7rem}
input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}.gone{opacity:.6}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}details,h2{border-color:#30363d}input{background:#161b22;color:inherit;border:1px solid #30363d}}
</style></head><body>
<h1>Monitoring Hub REST API</h1><p><a href="/openapi.json">openapi.json</a></p>
<input id="find" type="search" placeholder="Find a path or a purpose" aria-label="Find"><main id="list"></main>
<script type="module">
const spec = await (await fetch('/openapi.json')).json()
const list = document.getElementById('list')
const make = (tag, text, parent) => { const e = document.createElement(tag); if (text) e.textContent = text; parent.append(e); return e }
const groups = new Map()
for (const [path, methods] of Object.entries(spec.paths)) for (const [method, op] of Object.entries(methods)) {
  const name = op.tags?.[0] ?? 'Other'
  if (!groups.has(name)) groups.set(name, [])
  groups.get(name).push({ path, method, op })
}
for (const [name, ops] of groups) {
  const section = make('section', '', list); make('h2', name, section)
  for (const { path, method, op } of ops) {
    const box = make('details', '', section); box.dataset.text = (path + ' ' + op.summary).toLowerCase()
    if (op.deprecated) box.className = 'gone'
    const head = make('summary', '', box); make('b', method.toUpperCase(), head).className = 'm'
    make('code', path, head); head.append(' — ' + op.summary)
    make('p', op.description, box)
    if (op.parameters?.length) make('pre', JSON.stringify(op.parameters, null, 2), box)
    if (op.requestBody) make('pre', JSON.stringify(op.requestBody.content['application/json'].schema, null, 2), box)
  }
}
document.getElementById('find').addEventListener('input', event => {
  const text = event.target.value.toLowerCase()
  for (const box of list.querySelectorAll('details')) box.hidden = !box.dataset.text.includes(text)
})
</script></body></html>`
