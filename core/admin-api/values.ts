// GET /companies/{company_id}/values: the newest value of one metric on every server of a company, for pages that show
// or sort by it. Columns instead of rows: a company may have 100,000 servers.
import { isObject } from '../json-object.ts'
import { dataOf, labelsOf } from './envelope.ts'

export const companyValuesPath = (companyId: string, metric: string): string =>
  `/companies/${companyId}/values?${new URLSearchParams({ metric })}`

/** The values of a server stand at its place in each column. A server without a recent value is in none. */
export type ValueColumns = {
  readonly server_ids: readonly string[]
  /** Of a server with several series of the metric the largest: the fullest of its disks. */
  readonly values: readonly number[]
  readonly ts_ms: readonly number[]
  /** Of the series whose value it is. */
  readonly labels: readonly Readonly<Record<string, string>>[]
}

export type CompanyValuesResponse = ValueColumns & {
  readonly company_id: string
  readonly metric: string
  /** There are more series than are read for one answer: servers may be missing. */
  readonly truncated: boolean
}

const isColumn = <T>(column: unknown, length: number, isMember: (value: unknown) => value is T): column is T[] =>
  Array.isArray(column) && column.length === length && column.every(isMember)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'

/** The columns of a response; null when it is malformed. */
export function parseCompanyValues(body: unknown): (ValueColumns & { readonly truncated: boolean }) | null {
  const data = dataOf(body)
  if (!data || !Array.isArray(data.server_ids)) return null
  const { server_ids, values, ts_ms, labels } = data
  const { length } = data.server_ids
  if (!isColumn(server_ids, length, isText) || !isColumn(values, length, isNumber)) return null
  if (!isColumn(ts_ms, length, isNumber) || !isColumn(labels, length, isObject)) return null
  return { server_ids, values, ts_ms, labels: labels.map(labelsOf), truncated: data.truncated === true }
}

/** The columns of several collectors as one: of two values of a server the newer. */
export function mergeValues(parts: readonly ValueColumns[]): ValueColumns {
  const [only] = parts
  if (only && parts.length === 1) return only
  const newest = new Map<string, readonly [part: ValueColumns, at: number]>()
  for (const part of parts)
    for (const [at, serverId] of part.server_ids.entries()) {
      const [known, knownAt] = newest.get(serverId) ?? [null, 0]
      if (!known || part.ts_ms[at]! > known.ts_ms[knownAt]!) newest.set(serverId, [part, at])
    }
  const places = [...newest.values()]
  return {
    server_ids: [...newest.keys()],
    values: places.map(([part, at]) => part.values[at]!),
    ts_ms: places.map(([part, at]) => part.ts_ms[at]!),
    labels: places.map(([part, at]) => part.labels[at]!),
  }
}
