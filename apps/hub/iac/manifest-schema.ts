// The form of manifests as JSON Schema 2020-12: what a plan holds them to, and what editors are told.
import type { TObject, TSchema } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { ManifestKind } from './kinds/manifest-kind.ts'

export const API_VERSION = 'hub/v1'
const SLUG_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
const SCHEMA_DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** A schema without what only the validator of requests knows; objects with fixed members allow no others. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (!isObject(schema)) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  const isFixed = schema.type === 'object' && isObject(schema.properties) && schema.additionalProperties === undefined
  return isFixed ? { ...inner, additionalProperties: false } : inner
}

/** The schema of a whole manifest of a kind. */
export const manifestSchema = ({ kind, title, spec: { required, ...spec }, slugs }: ManifestKind): Unchecked => ({
  $schema: SCHEMA_DIALECT,
  $id: `urn:hub:iac:v1:${kind}`,
  title,
  type: 'object',
  required: ['apiVersion', 'kind', 'metadata'],
  additionalProperties: false,
  properties: {
    apiVersion: { const: API_VERSION },
    kind: { const: kind },
    metadata: {
      type: 'object',
      required: ['company', 'name'],
      additionalProperties: false,
      properties: {
        company: { type: 'string', minLength: 1, maxLength: 255 },
        name: { type: 'string', ...(slugs ? { enum: slugs.values } : { pattern: SLUG_PATTERN }) },
      },
    },
    ensure: { enum: ['present', 'absent'], default: 'present' },
    spec: closed(JSON.parse(JSON.stringify(spec))),
  },
  // What is to be absent needs no spec, and none of its members.
  if: { required: ['ensure'], properties: { ensure: { const: 'absent' } } },
  else: { required: ['spec'], properties: { spec: { required: required ?? [] } } },
})

/** The schema of the values of an optional member, without null. */
const formOf = (schema: TSchema): TSchema => {
  const forms: unknown = schema.anyOf
  return Array.isArray(forms) && isObject(forms[0]) ? (forms[0] as TSchema) : schema
}

/** The paths of members that a schema does not know. */
export function unknownMembers(
  schema: TSchema,
  value: unknown,
  path: readonly (string | number)[] = [],
): (string | number)[][] {
  const form = formOf(schema)
  if (Array.isArray(value))
    return isObject(form.items)
      ? value.flatMap((item, index) => unknownMembers(form.items as TSchema, item, [...path, index]))
      : []
  if (!isObject(value) || !isObject(form.properties)) return []
  const { properties } = form as TObject
  return Object.entries(value).flatMap(([name, member]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    return known === undefined ? [[...path, name]] : unknownMembers(known, member, [...path, name])
  })
}
