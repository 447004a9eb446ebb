// Rows of an export as text: CSV by RFC 4180 without formulas (decision R-071), one JSON list, or JSON lines.
import { valueAt, withColumns } from './export-columns.ts'
import type { Exported } from './export-resources.ts'

export const exportFormats = ['csv', 'json', 'jsonl'] as const
export type ExportFormat = (typeof exportFormats)[number]
export const delimiters = [',', ';', '\t'] as const

export type ExportOptions = {
  readonly delimiter: string
  /** Whether a CSV begins with the mark by which spreadsheets know UTF-8. */
  readonly bom: boolean
  /** Whether texts that look like formulas stay as they are. */
  readonly raw: boolean
}

/** A table takes a text that begins so for a formula, and would run it. */
const FORMULA = /^[=+\-@\t\r]|^[\s\0]+[=+\-@]|^[\uFF1D\uFF0B\uFF0D\uFF20]/
const LIST_SEPARATOR = ';'

/** An item that could not be told apart from its neighbours. */
const isAmbiguous = (item: unknown): boolean =>
  typeof item === 'string'
    ? item.includes(LIST_SEPARATOR) || item.startsWith('[') || item !== item.trim()
    : typeof item === 'object' && item !== null

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value))
    return value.some(isAmbiguous) ? JSON.stringify(value) : value.map(textOf).join(LIST_SEPARATOR)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A value as a cell: quoted where it must be, and no formula unless `raw`. Numbers are no texts. */
export function cellOf(value: unknown, { delimiter, raw }: ExportOptions): string {
  const plain = textOf(value)
  const isText = typeof value !== 'number' && typeof value !== 'boolean'
  const text = isText && !raw && FORMULA.test(plain) ? `'${plain}` : plain
  const isQuoted = /["\r\n]/.test(text) || text.includes(delimiter) || text !== text.trim()
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text
}

/** Writes one export: what comes before the rows, each step of rows, and what comes after them. */
export class ExportText {
  private isFirst = true

  constructor(
    private readonly format: ExportFormat,
    private readonly columns: readonly string[],
    /** Null: all, as the list shows them. */
    private readonly chosen: readonly string[] | null,
    private readonly options: ExportOptions,
    private readonly listsWithUsual: ReadonlySet<string> = new Set(),
  ) {}

  /** An empty list as JSON where an empty cell would mean something else. */
  private cellValue(row: Exported, column: string): unknown {
    const value = valueAt(row, column)
    return Array.isArray(value) && value.length === 0 && this.listsWithUsual.has(column) ? '[]' : value
  }

  private line(cells: readonly unknown[]): string {
    return `${cells.map(cell => cellOf(cell, this.options)).join(this.options.delimiter)}\r\n`
  }

  head(): string {
    if (this.format === 'json') return '['
    return this.format === 'csv' ? `${this.options.bom ? '\ufeff' : ''}${this.line(this.columns)}` : ''
  }

  rows(rows: readonly Exported[]): string {
    return rows.map(row => this.row(row)).join('')
  }

  private row(row: Exported): string {
    if (this.format === 'csv') return this.line(this.columns.map(column => this.cellValue(row, column)))
    const json = JSON.stringify(withColumns(row, this.chosen))
    if (this.format === 'jsonl') return `${json}\n`
    const before = this.isFirst ? '\n' : ',\n'
    this.isFirst = false
    return `${before}${json}`
  }

  end(): string {
    return this.format === 'json' ? '\n]\n' : ''
  }
}

export const MEDIA_TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
  jsonl: 'application/jsonl; charset=utf-8',
}
