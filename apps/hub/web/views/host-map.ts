// The host map: every server that matches as a cell, in groups by one or two keys, filled by the newest value of a
// metric and marked by its worst alert. A hundred thousand cells go as two characters each; who they are is asked for
// in windows, for what is pointed at and for the rows of the table that says the same.
import { metricByName, metrics, type Unit } from '../../../../core/series/catalogue.ts'
import { cellLevel } from '../cell-characters.ts'
import type { LiveServer } from '../live/live-servers.ts'
import type { CollectorState, MetricValues } from '../live/newest-values.ts'
import {
  compareKeys,
  type Facet,
  liveServers,
  matchingServers,
  type ServerRow,
  serverFacets,
  toServerRow,
} from './servers.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const GROUPS_MAX = 500
const WINDOW = 60
const DEFAULT_FILL = 'cpu_usage_percent'
/** A step of the scale above all but so many of a hundred values: one runaway does not make all others look alike. */
const SCALE_SHARE = 0.98

export type MapGroup = {
  /** One value for each key that is grouped by, empty where a server has none; null: the groups that found no place. */
  readonly keys: readonly string[] | null
  readonly levels: string
  /**
   * `c` `w` `i` the worst open alert, `d` down, `m` out of service on purpose, `.` nothing; upper case: silenced.
   */
  readonly marks: string
}

export type HostMapView = {
  readonly total: number
  readonly matching: number
  readonly facets: Readonly<Record<string, Facet>>
  /** Changes when other servers stand in the cells: windows of another order say nothing about these cells. */
  readonly order: string
  readonly groups: readonly MapGroup[]
  readonly groupedBy: readonly string[]
  readonly metric: string
  readonly unit: Unit | null
  /** The value of the last level; greater ones have it too. */
  readonly scaleMax: number
  readonly metrics: readonly { readonly name: string; readonly unit: Unit }[]
  readonly collector: CollectorState
}

export type MapCell = ServerRow & {
  readonly keys: readonly string[]
  readonly value: number | null
  /** Of the series whose value it is, as the mount of the fullest disk. */
  readonly labels: Readonly<Record<string, string>>
}

export type MapCellsView = {
  readonly order: string
  readonly matching: number
  readonly offset: number
  readonly cells: readonly MapCell[]
}

const groupKeys: Readonly<Record<string, (server: LiveServer) => string | null>> = {
  dc: server => server.datacenter,
  env: server => server.environment,
  role: server => server.role,
  version: server => server.agentVersion,
  state: server => (server.status === 'active' ? server.connectivity : server.status),
}

/** The keys of `group`, at most two: `dc,role`. */
const keysIn = (group: string): readonly string[] =>
  [...new Set(group.split(','))].filter(key => Object.hasOwn(groupKeys, key)).slice(0, 2)

type Arranged = {
  readonly servers: readonly LiveServer[]
  readonly groups: readonly { readonly keys: readonly string[] | null; readonly from: number; readonly to: number }[]
  readonly order: string
}

const compareTexts = (one: string, other: string): number => compareKeys(one || null, other || null)

/** Servers of the same keys together, groups in the order of their keys, servers by name as the fleet has them. */
function arrange(servers: readonly LiveServer[], keys: readonly string[]): Arranged {
  const members = new Map<string, { readonly keys: readonly string[]; readonly servers: LiveServer[] }>()
  for (const server of servers) {
    const values = keys.map(key => groupKeys[key]?.(server) ?? '')
    const name = JSON.stringify(values)
    const known = members.get(name)
    if (known) known.servers.push(server)
    else members.set(name, { keys: values, servers: [server] })
  }
  const all = [...members.values()].sort(
    (one, other) =>
      compareTexts(one.keys[0] ?? '', other.keys[0] ?? '') || compareTexts(one.keys[1] ?? '', other.keys[1] ?? ''),
  )
  const others = all.slice(GROUPS_MAX).flatMap(group => group.servers)
  const rest = others.length > 0 ? [{ keys: null, servers: others }] : []
  const ordered: LiveServer[] = []
  const groups = [...all.slice(0, GROUPS_MAX), ...rest].map(group => {
    const from = ordered.length
    for (const server of group.servers) ordered.push(server)
    return { keys: group.keys, from, to: ordered.length }
  })
  const order = Bun.hash(ordered.map(({ id }) => id).join()).toString(36)
  return { servers: ordered, groups, order }
}

/** Arrangements of the same servers are shared: the map, and windows into it, ask for the same one. */
const arranged = new WeakMap<readonly LiveServer[], Map<string, Arranged>>()
const ARRANGED_MAX = 50

function arrangementOf(servers: readonly LiveServer[], filter: string, keys: readonly string[]): Arranged {
  const known = arranged.get(servers) ?? new Map<string, Arranged>()
  arranged.set(servers, known)
  const name = JSON.stringify([filter, keys])
  const found = known.get(name) ?? arrange(matchingServers(servers, filter), keys)
  if (known.size >= ARRANGED_MAX) known.clear()
  known.set(name, found)
  return found
}

function markOf(server: LiveServer): string {
  const mark = bareMark(server)
  return server.isSilenced ? mark.toUpperCase() : mark
}

function bareMark({ status, worst, connectivity }: LiveServer): string {
  if (status !== 'active') return 'm'
  if (worst === 'critical') return 'c'
  if (connectivity === 'down') return 'd'
  return worst === 'warning' ? 'w' : worst === 'info' ? 'i' : '.'
}

/** The next of 1, 2, 5, 10, …; of bytes the next power of two. */
function niceAbove(value: number, isBytes: boolean): number {
  if (!(value > 0)) return 1
  if (isBytes) return 2 ** Math.ceil(Math.log2(value))
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5].find(step => step * power >= value) ?? 10) * power
}

function scaleOf(unit: Unit | null, values: MetricValues): number {
  if (unit === 'percent') return 100
  if (unit === 'bool') return 1
  const sorted = values.sorted()
  const high = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * SCALE_SHARE))] ?? 0
  return niceAbove(high, unit === 'bytes' || unit === 'bytes/s')
}

const fillOf = (param: ViewContext['param']): string => metricByName(param('fill'))?.name ?? DEFAULT_FILL

async function shownMap(context: ViewContext) {
  const { companyId, newest, param } = context
  const metric = fillOf(param)
  const [{ servers, collector }, filled] = await Promise.all([liveServers(context), newest.ofMetric(companyId, metric)])
  const keys = keysIn(param('group'))
  return { servers, collector, metric, keys, values: filled.values, shown: arrangementOf(servers, param('q'), keys) }
}

export const hostMapView: View<HostMapView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['q', 'group', 'fill'],
  ageMs: 4_000,
  async make(context) {
    const { servers, collector, metric, keys, values, shown } = await shownMap(context)
    const unit = metricByName(metric)?.unit ?? null
    const scaleMax = scaleOf(unit, values)
    return {
      total: servers.length,
      matching: shown.servers.length,
      facets: serverFacets(servers),
      order: shown.order,
      groups: shown.groups.map(group => {
        const own = shown.servers.slice(group.from, group.to)
        return {
          keys: group.keys,
          levels: own.map(server => cellLevel(values.valueOf(server.id), scaleMax)).join(''),
          marks: own.map(markOf).join(''),
        }
      }),
      groupedBy: keys,
      metric,
      unit,
      scaleMax,
      metrics: metrics.map(({ name, unit: own }) => ({ name, unit: own })),
      collector,
    }
  },
}

/** Who stands in a window of the map's cells. */
export const mapCellsView: View<MapCellsView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['q', 'group', 'fill', 'offset'],
  async make(context) {
    const { keys, values, shown } = await shownMap(context)
    const wanted = askedOffset(context.param('offset'))
    const offset = Math.min(wanted, Math.max(0, shown.servers.length - 1))
    return {
      order: shown.order,
      matching: shown.servers.length,
      offset,
      cells: shown.servers.slice(offset, offset + WINDOW).map(server => {
        const value = values.valueOf(server.id)
        return {
          ...toServerRow(server),
          keys: keys.map(key => groupKeys[key]?.(server) ?? ''),
          value: value === null ? null : Number(value.toPrecision(6)),
          labels: values.labelsOf(server.id),
        }
      }),
    }
  },
}
