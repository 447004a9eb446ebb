// What a page of a server asks of the server's collector beside its health: several metrics, which series there are,
// and why rules fire or do not. A collector that cannot answer is never an error of the request.
import { type AlertingResponse, alertingPath, parseAlerting } from '../../../core/admin-api/alerting.ts'
import {
  metricsPath,
  type ParsedMetrics,
  type ParsedSeriesList,
  parseMetricsResponse,
  parseSeriesList,
  seriesListPath,
} from '../../../core/admin-api/series.ts'
import type { Hub } from '../hub-context.ts'
import { type CollectorNote, NO_DATA, refusalOfSeries, UNAVAILABLE } from './health.ts'

type Server = { readonly id: string; readonly companyId: string }
type Asked<T> = { readonly data: T | null; readonly note: CollectorNote }

const ANSWERED: CollectorNote = { available: true, reason: null }

/** Throws 422 where the collector refuses a parameter, named after it. */
async function ask<T>(
  hub: Hub,
  server: Server,
  call: string,
  path: string,
  parse: (body: unknown) => T | null,
): Promise<Asked<T>> {
  const target = await hub.collectors.targetOfServer(server.companyId, server.id)
  if (!target) return { data: null, note: { available: false, reason: 'not_configured' } }
  const answer = await hub.collectors.query(target, call, path)
  if (!answer) return { data: null, note: UNAVAILABLE }
  if (answer.status === 404) return { data: null, note: NO_DATA }
  if (answer.status === 400) throw refusalOfSeries(answer)
  const data = answer.status === 200 ? parse(answer.body) : null
  return { data, note: data === null ? UNAVAILABLE : ANSWERED }
}

/** Series of metrics over a range, both ends in milliseconds. */
export const askMetrics = (
  hub: Hub,
  server: Server,
  metrics: readonly string[] | null,
  range: { readonly fromMs: number; readonly toMs: number; readonly agg: string; readonly stepSeconds?: number },
): Promise<Asked<ParsedMetrics>> => {
  const query = {
    from: new Date(range.fromMs).toISOString(),
    to: new Date(range.toMs).toISOString(),
    agg: range.agg,
    step: range.stepSeconds === undefined ? null : String(range.stepSeconds),
  }
  return ask(hub, server, 'series', metricsPath(server.companyId, server.id, metrics, query), parseMetricsResponse)
}

export const askSeriesList = (hub: Hub, server: Server): Promise<Asked<ParsedSeriesList>> =>
  ask(hub, server, 'metrics', seriesListPath(server.companyId, server.id), parseSeriesList)

export const askAlerting = (hub: Hub, server: Server): Promise<Asked<AlertingResponse>> =>
  ask(hub, server, 'alerting', alertingPath(server.companyId, server.id), parseAlerting)
