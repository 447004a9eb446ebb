// What manifests and exports know of a kind, from its fields: the JSON Schema of a manifest's `spec`, and the columns
// of an export.
import type { TSchema } from '@sinclair/typebox'
import type { Unchecked } from '../../../core/json-object.ts'
import { type Kind, writableFields } from './kind.ts'

/** A schema as JSON: TypeBox keeps what only it understands under symbols. */
const plain = (schema: TSchema): Unchecked => JSON.parse(JSON.stringify(schema))

/** References are by name inside a company. */
const namedBy = (schema: Unchecked): Unchecked =>
  schema.type === 'array' ? { ...schema, items: { type: 'string' } } : { type: 'string', minLength: 1 }

/** The name of a field in a manifest: a reference is named, not identified (`owner_team`, `servers`). */
const specKeyOf = (field: string): string => field.replace(/_ids$/, 's').replace(/_id$/, '')

/** The fields that a manifest may have, by their names there. A secret is set with PATCH after applying. */
export const specFields = (kind: Pick<Kind, 'fields'>) =>
  writableFields(kind).flatMap(([name, field]) =>
    field.isSecret || field.manifest === false
      ? []
      : [[field.to === undefined ? name : specKeyOf(name), name, field] as const],
  )

/** A spec in which fields that were called as the API calls them (`server_ids`) have the names of manifests. */
export function inManifestNames(
  fields: readonly (readonly [key: string, name: string, ...unknown[]])[],
  spec: Unchecked,
): Unchecked {
  const keyOf = (name: string): string => {
    const key = fields.find(([, each]) => each === name)?.[0] ?? name
    return Object.hasOwn(spec, key) ? name : key
  }
  return Object.fromEntries(Object.entries(spec).map(([name, value]) => [keyOf(name), value]))
}

/** The place in a spec of a field of the API, or of a part of one. */
export function specPlace(
  fields: readonly (readonly [key: string, name: string, ...unknown[]])[],
  field: string,
): string {
  const [first = '', ...rest] = field.split('.')
  const key = fields.find(([, name]) => name === first)?.[0] ?? first
  return [key, ...rest].join('.')
}

/** JSON Schema 2020-12 of the `spec` of a manifest; the name has `metadata.name` as its default there. */
export function specSchemaOf(kind: Pick<Kind, 'fields'>): Unchecked {
  const properties: Record<string, Unchecked> = {}
  const required: string[] = []
  for (const [key, name, field] of specFields(kind)) {
    const schema = plain(field.value)
    const given = field.to === undefined ? schema : namedBy(schema)
    properties[key] = field.nullable ? { anyOf: [given, { type: 'null' }] } : given
    if (field.required && name !== 'name') required.push(key)
  }
  return { type: 'object', properties, required, additionalProperties: false }
}

/** The columns of an export, in the order of the fields: nothing of a secret, not even whether there is one. */
export const exportColumnsOf = ({ fields }: Pick<Kind, 'fields'>): readonly string[] => [
  'id',
  ...Object.entries(fields).flatMap(([name, { isSecret }]) => (isSecret ? [] : [name])),
  'origin',
  'health',
  'version',
  'created_at',
  'updated_at',
]
