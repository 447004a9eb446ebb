// Holds every answer of the hub to its OpenAPI document: the status is one that the operation names, the body has the
// form that stands there, and no member that does not.
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { apiDocument } from '../../apps/hub/platform/app.ts'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { isObject, type Unchecked } from '../../core/json-object.ts'

export type Operation = {
  readonly method: string
  /** With parameters as {name}, /api included. */
  readonly path: string
  readonly content: Unchecked
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** The document that the hub serves. */
export const document: Unchecked = JSON.parse(JSON.stringify(apiDocument(apiRoutes, 'test')))

const member = (value: unknown, ...names: readonly string[]): Unchecked => {
  let current: unknown = value
  for (const name of names) current = isObject(current) ? current[name] : undefined
  return isObject(current) ? current : {}
}

export const operations: readonly Operation[] = Object.entries(member(document, 'paths')).flatMap(([path, item]) =>
  METHODS.filter(method => isObject(item) && isObject(item[method])).map(method => ({
    method: method.toUpperCase(),
    path,
    content: member(item, method),
  })),
)

/** What a reference of the document points at; anything else as it is. */
export function resolved(value: unknown): Unchecked {
  const reference = isObject(value) ? value.$ref : undefined
  if (typeof reference !== 'string') return isObject(value) ? value : {}
  return member(document, ...reference.slice(2).split('/'))
}

/** An object schema that names its members allows no others, so that nothing undocumented passes. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict)
  if (!isObject(schema)) return schema
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, key === 'examples' ? value : strict(value)]),
  )
  const isClosed = isObject(schema.properties) && schema.type === 'object' && schema.additionalProperties === undefined
  return isClosed ? { ...inner, additionalProperties: false } : inner
}

const ajv = new Ajv2020({ strict: false, allErrors: false })
addFormats.default(ajv)
ajv.addFormat('time-zone', true)
ajv.addSchema({ $id: 'document', components: strict(member(document, 'components')) as object })

/** References inside a schema of the document, made absolute. */
const rooted = (schema: unknown): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'))

/** By the text of the schema: what refuses is described alike in every operation, and compiling takes its time. */
const validators = new Map<string, ValidateFunction>()
/** The same by the schema itself, which the document has once for each place. */
const validatorsOfPlaces = new WeakMap<object, ValidateFunction>()

function validatorOf(schema: Unchecked): ValidateFunction {
  const ofPlace = validatorsOfPlaces.get(schema)
  if (ofPlace) return ofPlace
  const text = JSON.stringify(schema)
  const made = validators.get(text) ?? ajv.compile(rooted(strict(schema)))
  validators.set(text, made)
  validatorsOfPlaces.set(schema, made)
  return made
}

const patterns = operations
  .map(operation => ({ operation, pattern: new RegExp(`^${operation.path.replace(/\{[^}]+\}/g, '[^/]+')}$`) }))
  // A path that names a word there comes before one that has a parameter there.
  .sort((a, b) => a.operation.path.split('{').length - b.operation.path.split('{').length)

export const operationFor = (method: string, pathname: string): Operation | null =>
  patterns.find(({ operation, pattern }) => operation.method === method && pattern.test(pathname))?.operation ?? null

const textOf = (error: ErrorObject | undefined): string =>
  error ? `${error.instancePath || 'the body'} ${error.message} ${JSON.stringify(error.params)}` : 'is not valid'

/** What an answer has that the document does not say; null when it agrees. */
export function disagreement(
  operation: Operation,
  status: number,
  contentType: string | null,
  body: unknown,
): string | null {
  const responses = member(operation.content, 'responses')
  if (responses[String(status)] === undefined) return `status ${status} is not documented`
  const content = member(resolved(responses[String(status)]), 'content')
  const types = Object.keys(content)
  if (types.length === 0) return body === null ? null : 'a body is not documented'
  const type = (contentType ?? '').split(';')[0] ?? ''
  if (!types.includes(type)) return `content type ${type} is not documented`
  if (type !== 'application/json') return null
  const validate = validatorOf(member(content, type, 'schema'))
  return validate(body) ? null : textOf(validate.errors?.[0])
}
