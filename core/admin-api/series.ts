// GET /servers/{server_id}/series (document 3 "Series response"). Pages of the hub ask /series/by-metric and /metrics
// beside it.
import { isObject } from '../json-object.ts'
import { dataOf, labelsOf } from './envelope.ts'

/** Parameters besides company_id, as the query string has them. */
export const seriesParameters = ['metric', 'from', 'to', 'step', 'agg'] as const
type SeriesQuery = { readonly [K in (typeof seriesParameters)[number]]?: string | null | undefined }

export type SeriesOfServer = {
  readonly labels: Readonly<Record<string, string>>
  /** Time in milliseconds and value, oldest first. */
  readonly points: readonly (readonly [tsMs: number, value: number])[]
}

type RangeResponse = {
  readonly server_id: string
  readonly company_id: string
  readonly agg: string
  readonly from: string
  readonly to: string
  readonly step_seconds: number
  /** Present when the plan limits reading; the members below are present during a grace only. */
  readonly retention_days?: number
  readonly retention_previous_days?: number
  readonly retention_grace_until?: string
  readonly retention_locked_before?: string
}
export type SeriesResponse = RangeResponse & { readonly metric: string; readonly series: readonly SeriesOfServer[] }

/** GET /servers/{server_id}/series/by-metric. */
export type MetricsResponse = RangeResponse & {
  /** In the order in which they were asked for; a metric without points in the range has no series. */
  readonly metrics: readonly { readonly metric: string; readonly series: readonly SeriesOfServer[] }[]
  /** Metrics that would have made the answer too large: to be asked for in a call of their own. */
  readonly left_out: readonly string[]
}

/** GET /servers/{server_id}/metrics: every series that is stored of a server, whenever it was sent last. */
export type SeriesListResponse = {
  readonly server_id: string
  readonly company_id: string
  /** In the order of the catalogue. */
  readonly metrics: readonly { readonly metric: string; readonly labels: readonly Readonly<Record<string, string>>[] }[]
  /** Not all series are listed. */
  readonly truncated: boolean
}

/** Path and query of the request. Absent and empty parameters are left out. */
export const seriesPath = (companyId: string, serverId: string, query: SeriesQuery): string =>
  `/servers/${serverId}/series?${searchOf(companyId, query)}`

/** The same for several metrics; null asks for all. */
export const metricsPath = (
  companyId: string,
  serverId: string,
  metrics: readonly string[] | null,
  query: Omit<SeriesQuery, 'metric'>,
): string => `/servers/${serverId}/series/by-metric?${searchOf(companyId, { ...query, metrics: metrics?.join(',') })}`

export const seriesListPath = (companyId: string, serverId: string): string =>
  `/servers/${serverId}/metrics?company_id=${companyId}`

function searchOf(companyId: string, query: Readonly<Record<string, string | null | undefined>>): URLSearchParams {
  const search = new URLSearchParams({ company_id: companyId })
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  return search
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

export type ParsedMetrics = Pick<
  MetricsResponse,
  'from' | 'to' | 'step_seconds' | 'retention_days' | 'retention_locked_before' | 'metrics' | 'left_out'
>
export type ParsedSeriesList = Pick<SeriesListResponse, 'metrics' | 'truncated'>

/** The metrics of a response, malformed ones left out; null when the response is malformed. */
export function parseMetricsResponse(body: unknown): ParsedMetrics | null {
  const data = dataOf(body)
  if (!data || !Array.isArray(data.metrics)) return null
  const { from, to, step_seconds, retention_days, retention_locked_before } = data
  if (typeof from !== 'string' || typeof to !== 'string' || typeof step_seconds !== 'number') return null
  return {
    from,
    to,
    step_seconds,
    ...(typeof retention_days === 'number' ? { retention_days } : {}),
    ...(typeof retention_locked_before === 'string' ? { retention_locked_before } : {}),
    metrics: data.metrics.flatMap((raw: unknown) =>
      isObject(raw) && typeof raw.metric === 'string' && Array.isArray(raw.series)
        ? [{ metric: raw.metric, series: seriesOf({ series: raw.series }) }]
        : [],
    ),
    left_out: Array.isArray(data.left_out) ? data.left_out.map(String) : [],
  }
}

/** The series of a list, malformed ones left out; null when the response is malformed. */
export function parseSeriesList(body: unknown): ParsedSeriesList | null {
  const data = dataOf(body)
  if (!data || !Array.isArray(data.metrics)) return null
  const metrics = data.metrics.flatMap((raw: unknown) =>
    isObject(raw) && typeof raw.metric === 'string' && Array.isArray(raw.labels)
      ? [{ metric: raw.metric, labels: raw.labels.map(labelsOf) }]
      : [],
  )
  return { metrics, truncated: data.truncated === true }
}
