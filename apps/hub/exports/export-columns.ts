// The columns of an export, and rows with some of them only.
import { Type } from '@sinclair/typebox'
import type { Caller } from '../platform/http/caller.ts'
import { columnsOf } from '../platform/http/response-columns.ts'
import type { Exported, ExportResource } from './export-resources.ts'

/** The value of a column; null where an object on its way is missing. */
export function valueAt(row: Exported, column: string): unknown {
  let value: unknown = row
  for (const name of column.split('.')) {
    if (typeof value !== 'object' || value === null) return null
    value = (value as Exported)[name]
  }
  return value ?? null
}

/** The columns of a resource that this person may have: those of a member that they may not ask for are left out. */
export function columnsFor(
  { asked, response }: ExportResource,
  caller: Caller,
  wanted: readonly string[] = columnsOf(response),
): readonly string[] {
  return !asked || caller.permissions.has(asked.permission)
    ? wanted
    : wanted.filter(column => !isOf(asked.member, column))
}

export const isOf = (member: string, column: string): boolean => column.startsWith(`${member}.`)

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
