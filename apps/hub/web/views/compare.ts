// One metric of several servers: of those that were chosen, else of those where it is highest now, among all that match
// a filter. A server that was chosen alone stands beside the highest others.

import { aggregates } from '../../../../core/query/series-request.ts'
import { metricByName, metrics, type Unit } from '../../../../core/series/catalogue.ts'
import { sitePages } from '../address/site-map.ts'
import { rangeOf } from '../address/time-range.ts'
import type { LiveServer } from '../live/live-servers.ts'
import { type SeriesView, seriesOfServer } from './server/series.ts'
import { type Facet, liveServers, matchingServers, serverFacets } from './servers.ts'
import type { View, ViewContext } from './view.ts'

const CHOSEN_MAX = 8
const SHOWN = 10
/** Of one server: its fullest mounts, its busiest cores. */
const SERIES_MAX = 12
const DEFAULT_METRIC = 'cpu_usage_percent'

type Compared = {
  readonly id: string
  readonly name: string
  readonly isChosen: boolean
  readonly view: SeriesView
  /** Series of the metric beyond those that are shown. */
  readonly leftOut: number
}

export type CompareView = {
  readonly metric: string
  readonly unit: Unit | null
  readonly metrics: readonly { readonly name: string; readonly unit: Unit }[]
  readonly servers: readonly Compared[]
  /** How many servers were chosen by the address; with two or more nobody else is shown. */
  readonly chosen: number
  readonly matching: number
  readonly total: number
  readonly facets: Readonly<Record<string, Facet>>
  readonly collector: SeriesView['collector']
}

/** The servers with the highest values of the metric now, the highest first; and whether they are known. */
async function highest(context: ViewContext, servers: readonly LiveServer[], metric: string, count: number) {
  const { values, collector } = await context.newest.ofMetric(context.companyId, metric)
  const found = servers
    .flatMap(server => {
      const value = values.valueOf(server.id)
      return value === null ? [] : [{ server, value }]
    })
    .sort((one, other) => other.value - one.value)
    .slice(0, count)
    .map(({ server }) => server)
  return { found, collector }
}

const highestOf = (values: readonly (number | null)[]): number =>
  values.reduce<number>((most, value) => (value !== null && value > most ? value : most), Number.NEGATIVE_INFINITY)

async function compared(
  context: ViewContext,
  server: LiveServer,
  metric: string,
  isChosen: boolean,
): Promise<Compared> {
  const { hub, param } = context
  const range = rangeOf(param('from'), param('to'), hub.now())
  const agg = aggregates.find(known => known === param('agg')) ?? 'avg'
  const view = await seriesOfServer(context, server.id, [metric], { ...range, agg })
  const all = view.metrics.flatMap(({ series }) => series)
  const shown = [...all].sort((one, other) => highestOf(other.values) - highestOf(one.values)).slice(0, SERIES_MAX)
  const { id, name } = server
  return {
    ...{ id, name, isChosen },
    view: { ...view, metrics: [{ metric, series: shown }] },
    leftOut: all.length - shown.length,
  }
}

export const compareView: View<CompareView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: sitePages.compare.takes,
  ageMs: 15_000,
  async make(context) {
    const { param } = context
    const metric = metricByName(param('metric'))?.name ?? DEFAULT_METRIC
    const { servers: all, collector } = await liveServers(context)
    const ids = [...new Set(param('servers').split(','))].slice(0, CHOSEN_MAX)
    const chosen = ids.flatMap(id => all.find(server => server.id === id) ?? [])
    const matching = matchingServers(all, param('q'))
    const others = matching.filter(server => !chosen.includes(server))
    const beside =
      chosen.length > 1 ? { found: [], collector } : await highest(context, others, metric, SHOWN - chosen.length)
    const servers = await Promise.all([
      ...chosen.map(server => compared(context, server, metric, true)),
      ...beside.found.map(server => compared(context, server, metric, false)),
    ])
    return {
      metric,
      unit: metricByName(metric)?.unit ?? null,
      metrics: metrics.map(({ name, unit }) => ({ name, unit })),
      servers,
      chosen: chosen.length,
      matching: matching.length,
      total: all.length,
      facets: serverFacets(all),
      collector: servers.find(({ view }) => view.collector !== 'ok')?.view.collector ?? beside.collector,
    }
  },
}
