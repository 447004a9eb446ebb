// The OpenAPI 3.1 document, built from the routes: the schemas that validate requests and type responses are the ones
// it shows.
import { toOpenAPISchema } from '@elysiajs/openapi'
import type { TObject, TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import type { Family } from '../http/respond.ts'
import { familyOf } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import { errorReference, errorResponses, errorSchemas } from './openapi-errors.ts'
import { exampleOf } from './openapi-example.ts'
import { operationId } from './openapi-names.ts'

type Json = Record<string, unknown>

// A nullable member is a union with the type "null", which is valid JSON Schema in 3.1 and not in 3.0.
const OPENAPI_VERSION = '3.1.0'

/** What the groups of the catalogue are; a kind of resource says it of its own. */
const TAGS: Readonly<Record<string, string>> = {
  'Monitoring licenses': 'Keys by which servers enroll.',
  Servers: 'The inventory of servers, their health, their time series.',
  'Monitoring agents': 'The agents that report for servers.',
  Alerts: 'What rules found. Only events of collectors create alerts.',
  'Active checks': 'What agents probe: services, ports, addresses, pages, certificates.',
  Rules: 'When an alert opens and when it recovers.',
  Silences: 'Windows in which alerts are kept and not told.',
  'Monitoring overview and settings': 'The company at a glance, its settings, the collectors.',
  'Collector endpoints': 'For service accounts of collectors only.',
  'Matcher endpoints': 'For service accounts of security matchers only.',
  Security: 'Findings of scan hosts, and what is done about them.',
  Notifications: "The caller's bell, and what a company sends.",
  'Option lists': 'One spelling of environments, roles, data centers and the like.',
  Webhooks: 'Signed calls of addresses of yours.',
  'Identity and permissions': 'Users, roles, companies, teams.',
  Queues: "The hub's own work: what waits, what failed, who does it.",
  Commands: 'What the hub can be told to do.',
  System: 'Settings, plans, maintenance and commands of the hub.',
  Exports: 'Data out, once or on a schedule.',
  'Mobile app': 'Devices that are pushed to, and the start screen.',
  'Search and files': 'Everything of a company by words, and what people keep beside their resources.',
  'IaC requests': 'Manifests: planned, approved, applied, and watched.',
  Approvals: 'Who must say yes, and who has.',
  'Audit log': 'Who did what.',
  'My account': 'The caller itself.',
}

const RATE_HEADERS = {
  'X-RateLimit-Limit': { $ref: '#/components/headers/RateLimit' },
  'X-RateLimit-Remaining': { $ref: '#/components/headers/RateRemaining' },
}
const REQUEST_ID = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }

const headers: Readonly<Record<string, Json>> = {
  RateLimit: { description: 'Requests that a minute allows.', schema: { type: 'integer' } },
  RateRemaining: { description: 'Requests that this minute still allows.', schema: { type: 'integer' } },
  RequestId: { description: 'Finds the request in the log of the hub.', schema: { type: 'string' } },
  RetryAfter: { description: 'Whole seconds to wait.', schema: { type: 'integer', minimum: 1 } },
}

const parameters: Readonly<Record<string, Json>> = {
  Language: {
    name: 'Accept-Language',
    in: 'header',
    description: 'The language of messages: the best match of `vi` and `en`, `en` by default.',
    schema: { type: 'string' },
    example: 'vi',
  },
  Company: {
    name: 'X-Company-Id',
    in: 'header',
    description: "A granted company below the caller's own to work in.",
    schema: { type: 'string', format: 'uuid' },
    example: '3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901234',
  },
}

/** Named schemas become components; everything else is written out. */
class Components {
  readonly schemas: Record<string, unknown> = { ...errorSchemas }

  reference(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map(item => this.reference(item))
    if (!isObject(schema)) return schema
    const { $id, ...rest } = schema
    if (typeof $id !== 'string') return this.members(rest)
    this.schemas[$id] ??= this.members(rest)
    return { $ref: `#/components/schemas/${$id}` }
  }

  private members(schema: Unchecked): Json {
    return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, this.reference(value)]))
  }
}

/** Descriptions of query parameters whose name does not explain them. */
const PARAMETER_TEXTS: Readonly<Record<string, string>> = {
  page: 'The page, from 1. One past the last is empty.',
  search: 'Only those whose name, hostname, address or e-mail holds this text; upper and lower case are the same.',
  include:
    'What answers have beside their usual members: `health` of servers (needs `monitoring.view`), `config` of load balancers and proxies, `unlisted` values of option lists.',
  state: 'Only those in this state; `active` is open or acknowledged.',
  since: 'Only what changed after this number; 0 for all.',
  limit: 'How many at most; more than the maximum counts as the maximum.',
  metric: 'A metric of the catalogue.',
  from: 'From this time, inclusive.',
  to: 'Until this time, inclusive.',
  opened_from: 'Opened at or after this time.',
  opened_to: 'Opened at or before this time.',
  step: 'The width of a bucket, in seconds or as a duration such as `5m`.',
  agg: 'What becomes of several samples in one bucket.',
  days: 'How many days, today included.',
  online: '`1`: only those seen within the threshold; `0`: only the others.',
  enabled: '`1`: only enabled ones; `0`: only disabled ones.',
  dry_run: '`1`: says what would be done, and does nothing.',
  attached: '`1`: only files that something refers to; `0`: only the others.',
  command: 'Only runs of this command.',
  started_by: 'Only those that this user started.',
  acknowledged: '`1`: only those that somebody acknowledged; `0`: only the others.',
  updated_since: 'What opened, changed or ended at or after this time, ended ones too.',
  unread: '`1`: only unread ones.',
  level: '`company`: what companies may set for themselves; `system`: what holds for all.',
  token_hash: 'SHA-256 of a token, in hex: answers the one agent, current or previous token, instead of a page.',
  subject: 'The type or the id of a subject.',
  actor: 'Only what this user did.',
  server_id: 'Only those of this server.',
  kev: '`1`: only vulnerabilities that are known to be exploited; `0`: only the others.',
  q: 'Only packages whose name holds this text.',
  name: 'The exact name of a binary or source package.',
  version_lt: 'Only versions before this one.',
  version_gte: 'Only this version and later ones.',
  expires_before: 'Only those that end at or before this time.',
  expires_after: 'Only those that end at or after this time.',
  hostname: 'Only those that are good for this host name or address; wildcards count.',
  endpoint: 'Only those that are served at this host, or host and port.',
  cursor: 'Where the page before ended: its `next_cursor`.',
}

const words = (name: string): string => name.replaceAll('_', ' ')

function parametersOf(route: Route, family: Family): Json[] {
  const path = [...route.path.matchAll(/:([a-z_]+)/g)].map(match => {
    const name = match[1] ?? ''
    const schema = route.pathParameters[name] ?? { type: 'string', format: 'uuid' }
    return {
      name,
      in: 'path',
      required: true,
      description: `The ${words(name)}.`,
      schema,
      example: exampleOf(schema as TSchema, name),
    }
  })
  const query = Object.entries<TSchema>(route.querySchema?.properties ?? {}).map(([name, property]) => ({
    name,
    in: 'query',
    required: route.querySchema?.required?.includes(name) ?? false,
    description: PARAMETER_TEXTS[name] ?? `Only those with this ${words(name)}.`,
    schema: property,
    example: exampleOf(property, name),
  }))
  const shared = family === 'user' ? ['Language', 'Company'] : ['Language']
  return [...path, ...query, ...shared.map(name => ({ $ref: `#/components/parameters/${name}` }))]
}

/** The error statuses that a route can answer with. */
function failuresOf(route: Route, family: Family): number[] {
  const hasBody = route.bodySchema !== null
  const isFound = route.path.includes(':') || route.may404
  if (family === 'matcher') return [401, 403, ...(isFound ? [404] : []), 422, 429, 500, 503]
  return [
    401,
    403,
    ...(isFound ? [404] : []),
    406,
    ...route.refusals,
    ...(hasBody ? [400, 413, 415] : []),
    ...(hasBody || route.querySchema !== null || route.method !== 'GET' ? [422] : []),
    429,
    500,
    503,
  ]
}

/** Collectors read the time of the hub in every answer. */
function withServerTime(schema: unknown): unknown {
  if (!isObject(schema) || !isObject(schema.properties)) return schema
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : []
  return {
    ...schema,
    required: [...required, 'server_time'],
    properties: { ...schema.properties, server_time: { type: 'string', format: 'date-time' } },
  }
}

function success(route: Route, family: Family, components: Components): Json {
  const all = { ...REQUEST_ID, ...RATE_HEADERS }
  if (route.answerSchema === null) return { description: 'Done; there is nothing to say.', headers: all }
  if (route.answerType !== 'application/json')
    return {
      description: route.answerType === 'text/event-stream' ? 'A stream that stays open.' : 'The content.',
      headers: all,
      content: contentOf(route),
    }
  const plain = components.reference(route.answerSchema)
  const example = exampleOf(route.answerSchema)
  const isService = family === 'collector'
  const timed = isService && isObject(example) ? { ...example, server_time: '2026-01-31T12:00:00.000Z' } : example
  return {
    description: route.status === 202 ? 'Taken; it is done in the background.' : 'Done.',
    headers: all,
    content: {
      'application/json': { schema: isService ? withServerTime(plain) : plain, example: timed },
      ...Object.fromEntries(route.otherTypes.map(type => [type, { schema: {} }])),
    },
  }
}

const WITHOUT_BODY: Readonly<Record<string, string>> = {
  304: 'Not modified.',
  416: 'The range that was asked for is none of the content.',
}

/** The media types of an answer that is no JSON, each with its form. */
const contentOf = ({ answerType, otherTypes }: Route): Json =>
  Object.fromEntries(
    [answerType, ...otherTypes].map(type => [
      type,
      type === 'application/json' ? { schema: {}, example: [] } : { schema: { type: 'string' } },
    ]),
  )

/** What the route answers with other statuses than its usual one. */
function otherSuccesses(route: Route, components: Components): Json {
  const all = { ...REQUEST_ID, ...RATE_HEADERS }
  return Object.fromEntries(
    Object.entries(route.otherResponses).map(([status, schema]) => [
      status,
      status === '206'
        ? { description: 'The range of the content that was asked for.', headers: all, content: contentOf(route) }
        : schema === null
          ? { description: WITHOUT_BODY[status] ?? 'Done; there is nothing to say.', headers: all }
          : {
              description: 'Done.',
              headers: all,
              content: { 'application/json': { schema: components.reference(schema), example: exampleOf(schema) } },
            },
    ]),
  )
}

function permissionText(route: Route): string {
  if (route.superAdmin) return 'For super administrators.'
  if (route.accountPermission !== null)
    return `For every authenticated caller; a token that is limited to some permissions needs \`${route.accountPermission}\`.`
  if (route.permissions.length === 0) return 'For every authenticated caller.'
  return `Needs ${route.permissions.map(permission => `\`${permission}\``).join(' and ')}.`
}

const FORM_BODY: Json = {
  schema: {
    type: 'object',
    required: ['file'],
    properties: {
      file: { type: 'string', contentMediaType: 'application/octet-stream' },
      name: { type: 'string' },
      description: { type: 'string' },
    },
  },
  example: { file: 'a,b', name: 'table.csv' },
}

function requestBody(route: Route, shown: TObject, components: Components): Json {
  const isOptional = (shown.required ?? []).length === 0
  const { textBody } = route
  const text = textBody && (textBody.example ?? exampleOf(shown.properties[textBody.member] ?? shown))
  return {
    required: !isOptional,
    content: {
      'application/json': { schema: components.reference(shown), example: exampleOf(shown) },
      ...(textBody ? { [textBody.type]: { schema: { type: 'string' }, example: text } } : {}),
      ...(route.formBody ? { 'multipart/form-data': FORM_BODY } : {}),
    },
  }
}

function operation(route: Route, isLegacy: boolean, components: Components): Json {
  const family = familyOf(route.path)
  const failures = failuresOf(route, family).map(status => [String(status), errorReference(status, family)])
  return {
    operationId: operationId(route, isLegacy),
    tags: [route.tag],
    summary: route.summary,
    description: permissionText(route),
    ...(isLegacy ? { deprecated: true } : {}),
    security: [{ bearer: [] }],
    parameters: parametersOf(route, family),
    ...(route.docBody ? { requestBody: requestBody(route, route.docBody, components) } : {}),
    responses: {
      [String(route.status)]: success(route, family, components),
      ...otherSuccesses(route, components),
      ...Object.fromEntries(failures),
    },
  }
}

/** The description of each route in the document; passed to Elysia with the route. */
export class RouteDetails {
  readonly components = new Components()
  private readonly tags = new Map<string, string>()
  private readonly operations = new Map<unknown, Json>()

  of(route: Route, isLegacy: boolean): Json {
    const text = TAGS[route.tag] ?? route.tagText
    if (text !== null || !this.tags.has(route.tag)) this.tags.set(route.tag, text ?? route.tag)
    const described = operation(route, isLegacy, this.components)
    this.operations.set(described.operationId, described)
    return described
  }

  /**
   * The paths as the library reads them from the application. It writes path parameters anew, without the descriptions
   * given here.
   */
  pathsOf(app: AnyElysia): Json {
    const { paths } = toOpenAPISchema(app, undefined, undefined, undefined, OPENAPI_VERSION)
    const restored = ([method, read]: [string, unknown]) => {
      const own = isObject(read) ? this.operations.get(read.operationId) : undefined
      return [method, isObject(read) && own ? { ...read, parameters: own.parameters } : read]
    }
    return Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [path, Object.fromEntries(Object.entries(item ?? {}).map(restored))]),
    )
  }

  tagTexts(): Json[] {
    return [...this.tags].map(([name, description]) => ({ name, description }))
  }
}

/** The whole document of an application whose routes carry `details`. */
export function openApiDocument(app: AnyElysia, details: RouteDetails, version: string): Json {
  return {
    openapi: OPENAPI_VERSION,
    info: {
      title: 'Monitoring Hub REST API',
      version,
      description:
        'REST API v1 and the endpoints of collectors. Lists have 15 rows a page. Paths without `v1` are frozen: use those with it.',
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: details.tagTexts(),
    paths: details.pathsOf(app),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API token: `hub_` and 40 characters.' },
      },
      parameters,
      headers,
      responses: errorResponses,
      schemas: details.components.schemas,
    },
  }
}
