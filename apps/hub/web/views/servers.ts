// The servers of a company: a window of those that match, as a table, as cards or as a map shows them.

import type { RuleScope, Severity } from '../../../../core/alerting/rules/rule.ts'
import { limits } from '../../../../core/limits.ts'
import { metricByName, type Unit } from '../../../../core/series/catalogue.ts'
import { type FilterValue, matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { type CpuTrend, cpuTrends } from '../live/cpu-trends.ts'
import type { Connectivity, FleetServer } from '../live/fleet.ts'
import type { LiveServer } from '../live/live-servers.ts'
import type { CollectorState, ServerValues } from '../live/newest-values.ts'
import { scopeOfFilter } from './filter-scope.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

/** How many rows one answer has: some screens, so that the next ones are there before one has scrolled to them. */
const WINDOW = 120
const FACETS_MAX = 30

export type ServerRow = {
  readonly id: string
  readonly name: string
  readonly hostname: string | null
  readonly address: string | null
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
  readonly tags: readonly string[]
  readonly status: FleetServer['status']
  readonly connectivity: Connectivity
  readonly lastSeenAtMs: number | null
  readonly openAlerts: number
  readonly worst: Severity | null
  readonly isSilenced: boolean
  readonly agentVersion: string | null
  /** Null: not known. */
  readonly loadPerCore: number | null
  readonly values: Omit<ServerValues, 'sampledAtMs'> | null
  /** Newest values of the metrics that were chosen as columns, in their order; of several series the largest. */
  readonly metrics?: readonly (number | null)[]
  /** Where that column was chosen; null: not known. */
  readonly cpuTrend?: CpuTrend | null
}

/** Values that servers have for a key of the filter, the most frequent first. */
export type Facet = readonly (readonly [value: string, count: number])[]

export type ServerCounts = Readonly<Record<Connectivity | 'all' | 'maintenance' | 'draft' | 'alerts', number>>

export type ServersView = {
  readonly counts: ServerCounts
  readonly matching: number
  readonly offset: number
  readonly rows: readonly ServerRow[]
  /** The metrics among the columns that the address names. */
  readonly metrics: readonly { readonly name: string; readonly unit: Unit }[]
  readonly facets: Readonly<Record<string, Facet>>
  readonly collector: CollectorState
}

/** All servers of the company with their newest values: what lists filter and sort. */
export async function liveServers(context: ViewContext) {
  const { companyId, fleets, newest, live } = context
  const [fleet, values] = await Promise.all([fleets.of(companyId), newest.of(companyId)])
  const { collector } = values
  const servers = live.join(companyId, fleet, values)
  const isMissing = collector !== 'ok' && fleet.length > 0
  const state: CollectorState = isMissing ? collector : 'ok'
  return { servers, collector: state }
}

/** What a filter can ask of a server, by its keys. */
const filterValues: Readonly<Record<string, (server: LiveServer) => FilterValue>> = {
  state: server => [
    server.connectivity,
    server.status,
    ...(server.openAlerts > 0 ? ['alerts'] : []),
    ...(server.isSilenced ? ['silenced'] : []),
  ],
  tag: server => server.tags,
  env: server => server.environment,
  role: server => server.role,
  dc: server => server.datacenter,
  alerts: server => server.openAlerts,
  worst: server => server.worst,
  version: server => server.agentVersion,
  name: server => server.name,
  cpu: server => server.values?.cpu ?? null,
  memory: server => server.values?.memory ?? null,
  disk: server => server.values?.disk ?? null,
  load: server => server.values?.load ?? null,
}

/** The servers that match a filter, by name as the fleet has them. Of each only what the filter asks is looked up. */
export function matchingServers(servers: readonly LiveServer[], filter: string): readonly LiveServer[] {
  const terms = parseFilter(filter)
  if (terms.length === 0) return servers
  const hasWords = terms.some(({ key }) => key === null)
  const asked = Object.entries(filterValues).filter(([key]) => terms.some(term => term.key === key))
  return servers.filter(server => {
    const values: Record<string, FilterValue> = {}
    for (const [key, read] of asked) values[key] = read(server)
    const words = hasWords ? [server.name, server.hostname, server.address] : []
    return matchesFilter({ words, values }, terms)
  })
}

const rankOf = (server: FleetServer): number =>
  (server.connectivity === 'down' ? 100 : 0) +
  ['info', 'warning', 'critical'].indexOf(server.worst ?? '') * 10 +
  (server.connectivity === 'unknown' ? 5 : 0)

/** Null where the load or the number of cores is not known. */
function loadPerCore({ values, cpuCores }: LiveServer): number | null {
  const load = values?.load ?? null
  return load === null || !cpuCores ? null : Math.round((load / cpuCores) * 100) / 100
}

type SortKey = number | string | null

/** The greatest first: one sorts by a measured value to see who has most. */
const negated = (value: number | null | undefined): number | null => (value == null ? null : -value)

const sortKeys: Readonly<Record<string, (server: LiveServer) => SortKey>> = {
  state: server => -rankOf(server),
  address: server => server.address,
  env: server => server.environment,
  role: server => server.role,
  dc: server => server.datacenter,
  alerts: server => -server.openAlerts,
  seen: server => server.lastSeenAtMs,
  version: server => server.agentVersion,
  cpu: server => negated(server.values?.cpu),
  memory: server => negated(server.values?.memory),
  disk: server => negated(server.values?.disk),
  load: server => negated(server.values?.load),
  core_load: server => negated(loadPerCore(server)),
}

export function compareKeys(one: SortKey, other: SortKey): number {
  // What is not known stands last, whichever way one sorts.
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return String(one).localeCompare(String(other), 'en', { numeric: true })
}

/** Metrics as columns cost the collector a question each, once in a few seconds for all viewers. */
const METRIC_COLUMNS_MAX = 5

type MetricColumn = {
  readonly name: string
  readonly unit: Unit
  readonly newestOf: (server: LiveServer) => number | null
}

/** The metrics that `cols` names, with the newest value of each server. */
async function metricColumns({ companyId, param, newest }: ViewContext): Promise<readonly MetricColumn[]> {
  const names = [...new Set(param('cols').split(','))]
  const chosen = names.flatMap(name => metricByName(name) ?? []).slice(0, METRIC_COLUMNS_MAX)
  return Promise.all(
    chosen.map(async ({ name, unit }) => {
      const { values } = await newest.ofMetric(companyId, name)
      return { name, unit, newestOf: (server: LiveServer) => values.valueOf(server.id) }
    }),
  )
}

/** The servers that match, in the order that the address names. */
export async function listedServers(context: ViewContext) {
  const { param } = context
  const [{ servers, collector }, metrics] = await Promise.all([liveServers(context), metricColumns(context)])
  const matching = sortedServers(matchingServers(servers, param('q')), param('sort'), metrics)
  return { servers, collector, metrics, matching }
}

/** Sorted by `key`, or by `-key` the other way round; the fleet's own order is by name. */
export function sortedServers(
  servers: readonly LiveServer[],
  sort: string,
  metrics: readonly MetricColumn[] = [],
): readonly LiveServer[] {
  const isReversed = sort.startsWith('-')
  const name = isReversed ? sort.slice(1) : sort
  if (name === '' || name === 'name') return isReversed ? servers.toReversed() : servers
  const metric = metrics.find(each => each.name === name)
  const keyOf = metric
    ? (server: LiveServer) => negated(metric.newestOf(server))
    : Object.hasOwn(sortKeys, name)
      ? sortKeys[name]
      : undefined
  if (keyOf === undefined) return servers
  const keyed = servers.map(server => ({ server, key: keyOf(server) }))
  const sign = isReversed ? -1 : 1
  keyed.sort((one, other) =>
    one.key === null || other.key === null ? compareKeys(one.key, other.key) : sign * compareKeys(one.key, other.key),
  )
  return keyed.map(({ server }) => server)
}

/** Views of the same few seconds share their array of servers: who filters or scrolls does not count them again. */
const knownCounts = new WeakMap<readonly FleetServer[], ServerCounts>()

export function serverCounts(fleet: readonly FleetServer[]): ServerCounts {
  const known = knownCounts.get(fleet)
  if (known) return known
  const counts = { all: fleet.length, online: 0, down: 0, unknown: 0, maintenance: 0, draft: 0, alerts: 0 }
  for (const { connectivity, status, openAlerts } of fleet) {
    counts[connectivity]++
    if (status === 'maintenance' || status === 'draft') counts[status]++
    if (openAlerts > 0) counts.alerts++
  }
  knownCounts.set(fleet, counts)
  return counts
}

function facetOf(fleet: readonly FleetServer[], keyOf: (server: FleetServer) => string | null): Facet {
  const counts = new Map<string, number>()
  for (const server of fleet) count(counts, keyOf(server))
  return frequent(counts)
}

function count(counts: Map<string, number>, value: string | null): void {
  if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
}

const frequent = (counts: ReadonlyMap<string, number>): Facet =>
  [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).slice(0, FACETS_MAX)

function tagFacet(fleet: readonly FleetServer[]): Facet {
  const counts = new Map<string, number>()
  for (const server of fleet) for (const tag of server.tags) count(counts, tag)
  return frequent(counts)
}

type Facets = Readonly<Record<string, Facet>>
const knownFacets = new WeakMap<readonly FleetServer[], Facets>()

/** What the filter of servers can be completed with. */
export function serverFacets(fleet: readonly FleetServer[]): Facets {
  const known = knownFacets.get(fleet)
  if (known) return known
  const facets = {
    tag: tagFacet(fleet),
    env: facetOf(fleet, server => server.environment),
    role: facetOf(fleet, server => server.role),
    dc: facetOf(fleet, server => server.datacenter),
  }
  knownFacets.set(fleet, facets)
  return facets
}

/** A server as a row shows it: seen when it was last heard or sampled. */
export function toServerRow(server: LiveServer): ServerRow {
  const { id, name, hostname, address, environment, role, datacenter, tags, status, connectivity, values } = server
  const seen = [server.lastSeenAtMs, values?.sampledAtMs ?? null].filter(at => at !== null)
  return {
    ...{ id, name, hostname, address, environment, role, datacenter, tags, status, connectivity },
    lastSeenAtMs: seen.length > 0 ? Math.max(...seen) : null,
    openAlerts: server.openAlerts,
    worst: server.worst,
    isSilenced: server.isSilenced,
    agentVersion: server.agentVersion,
    loadPerCore: loadPerCore(server),
    values: values
      ? { cpu: values.cpu, memory: values.memory, disk: values.disk, mount: values.mount, load: values.load }
      : null,
  }
}

/** The column of lines, which costs the collector a question for each row. */
const TREND_COLUMN = 'trend'

/** The rows of a window, with what the columns that were chosen show besides. */
async function shownRows(
  { hub, companyId, param }: ViewContext,
  shown: readonly LiveServer[],
  metrics: readonly MetricColumn[],
): Promise<ServerRow[]> {
  const rows = shown.map(server =>
    metrics.length === 0
      ? toServerRow(server)
      : { ...toServerRow(server), metrics: metrics.map(({ newestOf }) => newestOf(server)) },
  )
  if (!param('cols').split(',').includes(TREND_COLUMN)) return rows
  const ids = rows.map(({ id }) => id)
  const trends = await cpuTrends(hub, companyId, ids)
  return rows.map((row, at) => ({ ...row, cpuTrend: trends[at] ?? null }))
}

export const serversView: View<ServersView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: sitePages.servers.takes,
  async make(context) {
    const { param } = context
    const { servers, collector, metrics, matching } = await listedServers(context)
    const wanted = askedOffset(param('offset'))
    const offset = Math.min(wanted, Math.max(0, matching.length - 1))
    return {
      counts: serverCounts(servers),
      matching: matching.length,
      offset,
      rows: await shownRows(context, matching.slice(offset, offset + WINDOW), metrics),
      metrics: metrics.map(({ name, unit }) => ({ name, unit })),
      facets: serverFacets(servers),
      collector,
    }
  },
}

/** Ids and names of all servers that match: what an act on all of them is about. */
export type MatchingServersView = {
  readonly ids: readonly string[]
  readonly names: readonly string[]
  /** Where the scope of a silence can say what the filter does. */
  readonly scope: RuleScope | null
}

/** One more than a silence names: the hub refuses it and says the limit, instead of leaving servers out unsaid. */
const IDS_MAX = limits.scopeServerIdsMax + 1
const NAMES_SHOWN = 10

export const matchingServersView: View<MatchingServersView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['q'],
  async make(context) {
    const { servers } = await liveServers(context)
    const filter = context.param('q')
    const matching = matchingServers(servers, filter)
    const ids = matching.slice(0, IDS_MAX).map(({ id }) => id)
    return {
      ids,
      names: matching.slice(0, NAMES_SHOWN).map(({ name }) => name),
      scope: scopeOfFilter(filter, matching),
    }
  },
}
