// GET /servers/{server_id}/series (document 3 "Series response").
import { isObject } from '../json-object.ts'
import { dataOf, labelsOf } from './envelope.ts'

/** Parameters besides company_id, as the query string has them. */
export const seriesParameters = ['metric', 'from', 'to', 'step', 'agg'] as const
type SeriesQuery = { readonly [K in (typeof seriesParameters)[number]]?: string | null | undefined }

type SeriesOfServer = {
  readonly labels: Readonly<Record<string, string>>
  /** Time in milliseconds and value, oldest first. */
  readonly points: readonly (readonly [tsMs: number, value: number])[]
}

export type SeriesResponse = {
  readonly server_id: string
  readonly company_id: string
  readonly metric: string
  readonly agg: string
  readonly from: string
  readonly to: string
  readonly step_seconds: number
  /** Present when the plan limits reading; the members below are present during a grace only. */
  readonly retention_days?: number
  readonly retention_previous_days?: number
  readonly retention_grace_until?: string
  readonly retention_locked_before?: string
  readonly series: readonly SeriesOfServer[]
}

/** Path and query of the request. Absent and empty parameters are left out. */
export function seriesPath(companyId: string, serverId: string, query: SeriesQuery): string {
  const search = new URLSearchParams({ company_id: companyId })
  for (const name of seriesParameters) {
    const value = query[name]
    if (value) search.set(name, value)
  }
  return `/servers/${serverId}/series?${search}`
}

function toPoint(raw: unknown): readonly [number, number][] {
  const [tsMs, value]: readonly unknown[] = Array.isArray(raw) ? raw : []
  return typeof tsMs === 'number' && typeof value === 'number' ? [[tsMs, value]] : []
}

/** The series in the data of a response; malformed ones are left out. */
export function seriesOf(data: { readonly series: readonly unknown[] }): SeriesOfServer[] {
  return data.series.flatMap(raw =>
    isObject(raw) && Array.isArray(raw.points)
      ? [{ labels: labelsOf(raw.labels), points: raw.points.flatMap(toPoint) }]
      : [],
  )
}

/** The data of a response, with unknown members kept; null when the response is malformed. */
export function parseSeriesResponse(
  body: unknown,
): (Readonly<Record<string, unknown>> & { readonly series: readonly unknown[] }) | null {
  const data = dataOf(body)
  return data && Array.isArray(data.series) ? { ...data, series: data.series } : null
}
