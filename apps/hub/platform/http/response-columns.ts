// The rows of a list as a table: its columns are the members of what the list shows, those of nested objects with dots
// (decision R-078).
import type { TSchema } from '@sinclair/typebox'

const isObjectSchema = (schema: TSchema): boolean => schema.type === 'object' && schema.properties !== undefined

/** The schema of a value that may be null. */
export function withoutNull(schema: TSchema): TSchema {
  const forms: readonly TSchema[] = Array.isArray(schema.anyOf) ? schema.anyOf : []
  return forms.find(form => form.type !== 'null') ?? schema
}

/** The schemas of the columns, by their names. */
export function columnSchemas(object: TSchema): ReadonlyMap<string, TSchema> {
  const properties: Readonly<Record<string, TSchema>> = withoutNull(object).properties ?? {}
  return new Map(
    Object.entries(properties).flatMap(([name, property]): [string, TSchema][] => {
      const schema = withoutNull(property)
      if (!isObjectSchema(schema)) return [[name, schema]]
      return [...columnSchemas(schema)].map(([inner, each]) => [`${name}.${inner}`, each])
    }),
  )
}

export const columnsOf = (response: TSchema): string[] => [...columnSchemas(response).keys()]
