// The TypeBox schemas of responses: they type what handlers return, and the OpenAPI document shows them.
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** A schema with its own name in the document. */
export const named = <T extends TProperties>(name: string, properties: T) => Type.Object(properties, { $id: name })
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/** A time: a Date becomes RFC 3339 in UTC when the answer is written. */
export const time = () =>
  Type.Unsafe<Date | string>({ type: 'string', format: 'date-time', examples: ['2026-01-31T12:00:00.000Z'] })
export const id = () => Type.String({ format: 'uuid' })
export const string = () => Type.String()
export const amount = () => Type.Integer({ minimum: 0 })
/** One of a few texts, where the type of the column is any text. */
export const wordOf = (values: readonly string[]) => Type.Unsafe<string>({ type: 'string', enum: [...values] })
/** An object whose members are not fixed. */
export const anyObject = () => Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object' })
export const listed = <T extends TSchema>(item: T) => Type.Unsafe<readonly Static<T>[]>(Type.Array(item))
/** Labels of a series, or another map from names to texts. */
export const texts = () =>
  Type.Unsafe<Readonly<Record<string, string>>>({ type: 'object', additionalProperties: { type: 'string' } })

export const reference = named('Reference', { id: id(), name: string() })
export const serverReference = named('ServerReference', { id: id(), name: string(), hostname: nullable(string()) })
export const scopeResponse = named('Scope', {
  all: Type.Boolean(),
  server_ids: listed(id()),
  tags: listed(string()),
  environments: listed(string()),
  roles: listed(string()),
  datacenters: listed(string()),
})
/** Whether the collector answered; if it did not, or has no data, the reason. */
export const collectorNote = named('CollectorNote', {
  available: Type.Boolean(),
  reason: nullable(wordOf(['unavailable', 'not_configured', 'no_data'])),
})

const links = named('PageLinks', {
  first: string(),
  last: string(),
  prev: nullable(string()),
  next: nullable(string()),
})
const meta = named('PageMeta', {
  current_page: Type.Integer({ minimum: 1 }),
  per_page: Type.Integer({ minimum: 1 }),
  last_page: Type.Integer({ minimum: 1 }),
  total: amount(),
})

export const answer = <T extends TSchema>(data: T) => Type.Object({ data })
export const answerList = <T extends TSchema>(item: T) => Type.Object({ data: listed(item) })
export const answerPage = <T extends TSchema>(item: T) => Type.Object({ data: listed(item), links, meta })
