// What GET /internal/v1/servers/{id}/series and /series/by-metric may ask (document 3 "Series parameters", decisions
// G-133 and G-134): parses the parameters into a request, or returns every fault with its field.
import { parseDuration } from '../config/resolve.ts'
import { DAY_MS, limits } from '../limits.ts'
import { metrics as catalogue, metricByName } from '../series/catalogue.ts'
import { isUuid } from '../series/uuid.ts'

export const aggregates = ['avg', 'min', 'max', 'last'] as const
export type Aggregate = (typeof aggregates)[number]

/** The query string as it came, by name; absent is undefined. */
type RangeParams = Readonly<Record<'company_id' | 'from' | 'to' | 'step' | 'agg', string | undefined>>
export type SeriesParams = RangeParams & { readonly metric: string | undefined }

export type RangeRequest = {
  readonly companyId: string
  readonly agg: Aggregate
  readonly fromMs: number
  readonly toMs: number
  /** The step that was asked for, or null for the default. */
  readonly stepMs: number | null
}
export type SeriesRequest = RangeRequest & { readonly metric: string }
/** Metrics of the catalogue, each once, in the order in which they were named. */
type MetricsRequest = RangeRequest & { readonly metrics: readonly string[] }

export type SeriesFault = { readonly field: string; readonly message: string }

const HOUR_MS = 3_600_000
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/
const EPOCH_SECONDS = /^\d{1,11}(?:\.\d+)?$/

/** Milliseconds of an RFC 3339 time or of epoch seconds; null for anything else. */
export function parseInstant(text: string): number | null {
  if (EPOCH_SECONDS.test(text)) return Math.round(Number(text) * 1000)
  const parts = RFC_3339.exec(text)
  if (!parts) return null
  const part = (index: number): number => Number(parts[index])
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)]
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return null
  if (hour > 23 || minute > 59 || second > 59) return null
  const fractionMs = parts[7] === undefined ? 0 : Math.floor(Number(`0.${parts[7]}`) * 1000)
  const offsetHours = parts[9] === undefined ? 0 : part(9)
  const offsetMinutes = parts[10] === undefined ? 0 : part(10)
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offsetMs = (parts[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000
  return Date.UTC(year, month - 1, day, hour, minute, second) + fractionMs - offsetMs
}

const daysOf = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate()

/** Milliseconds of `5m` or of whole seconds; null for anything else. */
function parseStep(text: string): number | null {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : parseDuration(text)
  return ms === null ? null : Math.ceil(ms / 1000) * 1000
}

const isAggregate = (text: string): text is Aggregate => aggregates.some(aggregate => aggregate === text)

const INSTANT_EXPECTED =
  'must be an RFC 3339 time (2026-01-31T12:00:00Z; write a plus sign in a URL as %2B) or epoch seconds'

type TellFault = (field: string, message: string) => void
type Parsed<T> = { readonly request: T } | { readonly faults: readonly SeriesFault[] }

/** Reads the parameters of a series query. `planSeries` checks the number of points, since it chooses the step. */
export function parseSeriesRequest(params: SeriesParams, nowMs: number): Parsed<SeriesRequest> {
  const metric = params.metric ?? ''
  const parsed = parseRange(params, nowMs, fault => {
    if (metric === '') fault('metric', 'is required')
    else if (!metricByName(metric)) fault('metric', 'must be a metric of the catalogue')
  })
  return 'faults' in parsed ? parsed : { request: { ...parsed.request, metric } }
}

/** Reads the parameters of a query for several metrics, separated by commas; absent means every metric. */
export function parseMetricsRequest(
  params: RangeParams & { readonly metrics: string | undefined },
  nowMs: number,
): Parsed<MetricsRequest> {
  const named = params.metrics === undefined ? catalogue.map(({ name }) => name) : params.metrics.split(',')
  const metrics = [...new Set(named)]
  const parsed = parseRange(params, nowMs, fault => {
    const odd = metrics.find(name => !metricByName(name))
    if (odd !== undefined) fault('metrics', 'must be metrics of the catalogue, separated by commas')
  })
  return 'faults' in parsed ? parsed : { request: { ...parsed.request, metrics } }
}

function parseRange(params: RangeParams, nowMs: number, checkMetric: (fault: TellFault) => void): Parsed<RangeRequest> {
  const faults: SeriesFault[] = []
  const fault: TellFault = (field, message) => {
    faults.push({ field, message })
  }
  const companyId = params.company_id?.toLowerCase() ?? ''
  if (companyId === '') fault('company_id', 'is required')
  else if (!isUuid(companyId)) fault('company_id', 'must be a UUID')
  checkMetric(fault)
  const agg = params.agg ?? 'avg'
  if (!isAggregate(agg)) fault('agg', `must be one of ${aggregates.join(', ')}`)

  const toMs = params.to === undefined ? nowMs : parseInstant(params.to)
  if (toMs === null) fault('to', INSTANT_EXPECTED)
  const fromMs = params.from === undefined ? (toMs ?? nowMs) - HOUR_MS : parseInstant(params.from)
  if (fromMs === null) fault('from', INSTANT_EXPECTED)
  if (fromMs !== null && toMs !== null) checkRange(fromMs, toMs, fault)

  const stepMs = params.step === undefined ? null : parseStep(params.step)
  if (params.step !== undefined && stepMs === null)
    fault('step', 'must be a duration such as 5m, or a number of seconds')
  if (stepMs !== null && stepMs < limits.queryStepMinMs)
    fault('step', `must be at least ${limits.queryStepMinMs / 1000} seconds`)

  if (faults.length > 0 || fromMs === null || toMs === null || !isAggregate(agg)) return { faults }
  return { request: { companyId, agg, fromMs, toMs, stepMs } }
}

function checkRange(fromMs: number, toMs: number, fault: TellFault): void {
  const { queryRangeMaxMs: rangeMaxMs } = limits
  if (fromMs >= toMs) fault('from', 'must be before to')
  else if (toMs - fromMs > rangeMaxMs) fault('from', `must be at most ${rangeMaxMs / DAY_MS} days before to`)
}
