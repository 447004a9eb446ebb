// A CSV file of a kind as rows of values: its columns are fields, those of objects with dots, lists in
// one cell. What lists and exports show beside the fields is passed over, so that an export can be sent back.

import type { TSchema } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { parseForeignJson } from '../../../core/wire/json-depth.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { parseCsv } from '../platform/http/csv.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { columnSchemas, columnsOf, withoutNull } from '../platform/http/response-columns.ts'
import { bodyOf, type Kind } from './kind.ts'
import { listResponse } from './resource-response.ts'

const ROWS_MAX = 1_000
/** A text before which exports write an apostrophe, so that no table takes it for a formula. */
const GUARDED = /^'(?=[\s\0]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r])/

export type CsvRow = {
  /** Of the file, as it counts them. */
  readonly line: number
  /** What a request would give. */
  readonly input: Unchecked
  /** The same with every apostrophe of the file; only where that is something else. */
  readonly literal: Unchecked | null
}

/** The value of a cell, by the schema of its column; one that has not the form is left for the schema to refuse. */
function cellValue(schema: TSchema, cell: string): unknown {
  const text = cell.trim()
  if (text === '') return null
  if (schema.type === 'boolean') return /^(true|1)$/i.test(text) ? true : /^(false|0)$/i.test(text) ? false : text
  if (schema.type === 'integer' || schema.type === 'number')
    return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
  if (schema.type === 'array') {
    const items: TSchema = withoutNull(schema.items ?? {})
    return (
      jsonOf(text, '[') ??
      (items.type === 'object' ? text : text.split(';').flatMap(each => cellValue(items, each) ?? []))
    )
  }
  return schema.type === 'object' ? (jsonOf(text, '{') ?? text) : cell
}

function jsonOf(text: string, beginning: '[' | '{'): unknown {
  if (!text.startsWith(beginning)) return null
  try {
    return parseForeignJson(Buffer.from(text))
  } catch {
    return null
  }
}

/** Columns with their schemas: of each field, and of each member of one that is an object. */
function columnsOfFields(kind: Pick<Kind, 'fields'>): ReadonlyMap<string, TSchema> {
  const body = bodyOf(kind, true)
  const whole = Object.entries(body.properties).map(([name, schema]) => [name, withoutNull(schema)] as const)
  return new Map([...whole, ...columnSchemas(body)])
}

/** Puts a value where the dots of a column say; an object's member that has none is left out. */
function put(input: Record<string, unknown>, column: string, value: unknown): void {
  const names = column.split('.')
  let at = input
  for (const name of names.slice(0, -1)) {
    const inner = at[name]
    const next: Record<string, unknown> = typeof inner === 'object' && inner !== null ? { ...inner } : {}
    at[name] = next
    at = next
  }
  if (names.length === 1 || value !== null) at[names.at(-1) ?? column] = value
}

function inputOf(header: readonly (readonly [string, TSchema] | null)[], cells: readonly string[]): Unchecked {
  const input: Record<string, unknown> = {}
  for (const [index, column] of header.entries())
    if (column) put(input, column[0], cellValue(column[1], cells[index] ?? ''))
  return input
}

/** An object that may be absent, and whose cells are all empty, is absent. */
const withoutEmpty = ({ fields }: Kind, input: Unchecked): Unchecked =>
  Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const isEmpty = isObject(value) && Object.keys(value).length === 0
      return [name, isEmpty && fields[name]?.nullable ? null : value]
    }),
  )

/** The header as columns; null for one that is passed over. Throws 422 for one that there is not. */
function columnsOfHeader(kind: Kind, cells: readonly string[]): readonly (readonly [string, TSchema] | null)[] {
  const fields = columnsOfFields(kind)
  const shown = new Set(columnsOf(listResponse(kind)))
  const names = cells.map(cell => cell.replace(GUARDED, '').trim().toLowerCase().replaceAll(' ', '_'))
  const isWrong = names.some((name, at) => !(fields.has(name) || shown.has(name)) || names.indexOf(name) !== at)
  const isLacking = kind.csv?.key.some(key => kind.fields[key]?.required && !names.some(name => isOf(name, key)))
  if (isWrong || isLacking) throw invalidField('header', 'csv_columns', { values: [...fields.keys()].join(', ') })
  return names.map(name => {
    const schema = fields.get(name)
    return schema ? [name, schema] : null
  })
}

const isOf = (column: string, field: string): boolean => column === field || column.startsWith(`${field}.`)

/** The rows of a file. Throws 422 for what is wrong with the file as a file. */
export function rowsOfCsv(kind: Kind, csv: string): readonly CsvRow[] {
  const parsed = parseCsv(csv, ROWS_MAX + 1, true)
  if ('wrongQuoteLine' in parsed) throw faultsError(new Map([[`rows.${parsed.wrongQuoteLine}`, words('csv_quote')]]))
  const [header, ...lines] = parsed.rows
  const columns = columnsOfHeader(kind, header?.cells ?? [])
  if (lines.length === 0) throw invalidField('rows', 'list_min', { min: 1 })
  if (lines.length > ROWS_MAX) throw invalidField('rows', 'list_max', { max: ROWS_MAX })
  const faults = new Map<string, Words>()
  const rows = lines.flatMap(({ line, cells }): CsvRow[] => {
    if (cells.length !== columns.length) {
      faults.set(`rows.${line}`, words('csv_width', { found: cells.length, expected: columns.length }))
      return []
    }
    const input = inputOf(
      columns,
      cells.map(cell => cell.replace(GUARDED, '')),
    )
    const literal = cells.some(cell => GUARDED.test(cell)) ? inputOf(columns, cells) : null
    return [{ line, input: withoutEmpty(kind, input), literal: literal && withoutEmpty(kind, literal) }]
  })
  if (faults.size > 0) throw faultsError(faults)
  return rows
}
