// GET /companies/{company_id}/values: the newest value of one metric on every server of a company, for pages that show
// or sort by it. Columns instead of rows: a company may have 100,000 servers. With `packed=1` the ids are one text and
// labels that are alike stand once, so that who reads it has no object for each server.
import { isObject, type Unchecked } from '../json-object.ts'
import { dataOf, labelsOf } from './envelope.ts'

type Labels = Readonly<Record<string, string>>

export const packedParam = 'packed'

export const companyValuesPath = (companyId: string, metric: string): string =>
  `/companies/${companyId}/values?${new URLSearchParams({ metric, [packedParam]: '1' })}`

/** The values of a server stand at its place in each column. A server without a recent value is in none. */
export type ValueColumns = {
  readonly server_ids: readonly string[]
  /** Of a server with several series of the metric the largest: the fullest of its disks. */
  readonly values: readonly number[]
  readonly ts_ms: readonly number[]
  /** Of the series whose value it is. */
  readonly labels: readonly Labels[]
}

export type PackedValues = Pick<ValueColumns, 'values' | 'ts_ms'> & {
  /** Every id as 32 hexadecimal digits, without a separator. */
  readonly ids: string
  readonly label_sets: readonly Labels[]
  /** The place of the labels in `label_sets`. */
  readonly label_at: readonly number[]
}

export type CompanyValuesResponse = (ValueColumns | PackedValues) & {
  readonly company_id: string
  readonly metric: string
  /** There are more series than are read for one answer: servers may be missing. */
  readonly truncated: boolean
}

const ID_DIGITS = 32

export function packedId(ids: string, place: number): string {
  const hex = ids.slice(place * ID_DIGITS, (place + 1) * ID_DIGITS)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export function packValues({ server_ids, values, ts_ms, labels }: ValueColumns): PackedValues {
  const places = new Map<string, number>()
  const sets: Labels[] = []
  const labelAt = labels.map(own => {
    const key = JSON.stringify(own)
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, sets.length)
    return sets.push(own) - 1
  })
  return { ids: server_ids.join('').replaceAll('-', ''), values, ts_ms, label_sets: sets, label_at: labelAt }
}

const isColumn = <T>(column: unknown, length: number, isMember: (value: unknown) => value is T): column is T[] =>
  Array.isArray(column) && column.length === length && column.every(isMember)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'

function parsePacked({ ids, values, ts_ms, label_sets, label_at }: Unchecked): PackedValues | null {
  if (!isText(ids) || !/^[0-9a-f]*$/.test(ids) || ids.length % ID_DIGITS !== 0 || !Array.isArray(label_sets))
    return null
  const length = ids.length / ID_DIGITS
  if (!isColumn(values, length, isNumber) || !isColumn(ts_ms, length, isNumber)) return null
  if (!isColumn(label_sets, label_sets.length, isObject) || !isColumn(label_at, length, isNumber)) return null
  if (label_at.some(at => !Object.hasOwn(label_sets, at))) return null
  return { ids, values, ts_ms, label_sets: label_sets.map(labelsOf), label_at }
}

/** A collector that does not know the packed form answers with plain columns. */
function parsePlain({ server_ids, values, ts_ms, labels }: Unchecked): PackedValues | null {
  if (!Array.isArray(server_ids)) return null
  const { length } = server_ids
  if (!isColumn(server_ids, length, isText) || !isColumn(values, length, isNumber)) return null
  if (!isColumn(ts_ms, length, isNumber) || !isColumn(labels, length, isObject)) return null
  return packValues({ server_ids, values, ts_ms, labels: labels.map(labelsOf) })
}

/** The columns of a response; null when it is malformed. */
export function parseCompanyValues(body: unknown): (PackedValues & { readonly truncated: boolean }) | null {
  const data = dataOf(body)
  const columns = data && (data.ids === undefined ? parsePlain(data) : parsePacked(data))
  return columns && { ...columns, truncated: data.truncated === true }
}

/** The columns of several collectors as one: of two values of a server the newer. */
export function mergeValues(parts: readonly PackedValues[]): PackedValues {
  const [only] = parts
  if (only && parts.length === 1) return only
  const newest = new Map<string, readonly [part: PackedValues, at: number]>()
  for (const part of parts)
    for (let at = 0; at < part.values.length; at++) {
      const id = part.ids.slice(at * ID_DIGITS, (at + 1) * ID_DIGITS)
      const [known, knownAt] = newest.get(id) ?? [null, 0]
      if (!known || part.ts_ms[at]! > known.ts_ms[knownAt]!) newest.set(id, [part, at])
    }
  const places = [...newest.values()]
  return packValues({
    server_ids: [...newest.keys()],
    values: places.map(([part, at]) => part.values[at]!),
    ts_ms: places.map(([part, at]) => part.ts_ms[at]!),
    labels: places.map(([part, at]) => part.label_sets[part.label_at[at]!]!),
  })
}
