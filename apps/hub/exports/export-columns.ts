// The columns of an export: the members of what a list shows, those of nested objects with dots (decision R-078).
import { type TSchema, Type } from '@sinclair/typebox'
import type { Exported } from './export-resources.ts'

const isObjectSchema = (schema: TSchema): boolean => schema.type === 'object' && schema.properties !== undefined

/** The schema of a value that may be null. */
function withoutNull(schema: TSchema): TSchema {
  const forms: readonly TSchema[] = Array.isArray(schema.anyOf) ? schema.anyOf : []
  return forms.find(form => form.type !== 'null') ?? schema
}

export function columnsOf(response: TSchema): string[] {
  const properties: Readonly<Record<string, TSchema>> = withoutNull(response).properties ?? {}
  return Object.entries(properties).flatMap(([name, property]) => {
    const schema = withoutNull(property)
    return isObjectSchema(schema) ? columnsOf(schema).map(inner => `${name}.${inner}`) : [name]
  })
}

/** The value of a column; null where an object on its way is missing. */
export function valueAt(row: Exported, column: string): unknown {
  let value: unknown = row
  for (const name of column.split('.')) {
    if (typeof value !== 'object' || value === null) return null
    value = (value as Exported)[name]
  }
  return value ?? null
}

/** A row with some columns only, nested as before. */
export function withColumns(row: Exported, columns: readonly string[] | null): Exported {
  if (columns === null) return row
  const chosen: Record<string, unknown> = {}
  for (const column of columns) {
    const names = column.split('.')
    let at = chosen
    for (const name of names.slice(0, -1)) {
      const inner = at[name]
      const next: Record<string, unknown> = typeof inner === 'object' && inner !== null ? { ...inner } : {}
      at[name] = next
      at = next
    }
    at[names.at(-1) ?? column] = valueAt(row, column)
  }
  return chosen
}

export const columnList = () =>
  Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { minItems: 1, maxItems: 200 })
