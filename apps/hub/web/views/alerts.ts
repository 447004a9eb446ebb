// The alerts of a company: those that match, as rows or in groups, and what an act on all of them is about.

import { type SQL, sql } from 'drizzle-orm'
import { type RuleScope, type Severity, severities } from '../../../../core/alerting/rules/rule.ts'
import type { AlertState, AlertType } from '../../../../core/lifecycle/alert.ts'
import { limits } from '../../../../core/limits.ts'
import { metricByName } from '../../../../core/series/catalogue.ts'
import { parseSeriesKey } from '../../../../core/series/series-key.ts'
import type { Hub } from '../../hub-context.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { type Filtered, matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { type AlertRow, alertColumns, alertJoins } from '../live/active-alerts.ts'
import { alertWeeks, type DayCounts, isWeekKey } from '../live/alert-weeks.ts'
import { scopeOfFilter } from './filter-scope.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

/** Some screens, so that the next rows are there before one has scrolled to them. */
const WINDOW = 120
const GROUPS_MAX = 200
const INNER_GROUPS_MAX = 10
const IDS_MAX = 10_000
const NAMES_SHOWN = 10

/** What an alert is about, as every page shows it. */
export type AlertFace = {
  readonly id: string
  readonly type: AlertType
  readonly severity: Severity
  readonly state: AlertState
  readonly serverId: string
  readonly serverName: string
  readonly ruleId: string | null
  readonly ruleName: string | null
  readonly metric: string | null
  /** Of the metric, as the catalogue has it. */
  readonly unit: string | null
  /** The series without the name of its metric: `mount=/ device=sda1`. */
  readonly series: string
  readonly openedAtMs: number
  readonly endedAtMs: number | null
  readonly lastValue: number | null
  readonly threshold: number | null
  readonly acknowledgedBy: string | null
  readonly isSuppressed: boolean
  readonly isFlapping: boolean
  /** Of an incident: how many servers are in it. */
  readonly groupSize: number | null
  /** Null: it was not looked up, or the viewer may not see who is told. */
  readonly told: Told | null
}

/** Messages by what became of them, and the people in whose inbox it stands. */
type Told = { readonly arrived: number; readonly failed: number; readonly waiting: number; readonly people: number }

export type AlertGroup = {
  readonly key: string
  /** The key of the group that it stands in; null: in none. */
  readonly within: string | null
  /** Groups within it that found no place. */
  readonly leftOut: number
  readonly name: string
  readonly count: number
  readonly unacknowledged: number
  readonly worst: Severity
  readonly oldestAtMs: number
  readonly servers: number
  /** How many of it opened on each of the last seven days; null: that is not counted. */
  readonly week: readonly DayCounts[] | null
  /** Where the group is one incident: how many servers it has. */
  readonly incidentSize: number | null
}

export type AlertsView = {
  readonly total: number
  readonly matching: number
  readonly severities: Readonly<Record<Severity, number>>
  readonly unacknowledged: number
  readonly offset: number
  readonly rows: readonly AlertFace[]
  readonly groups: readonly AlertGroup[] | null
  /** All that opened in the last seven days, today last; days of UTC as `2026-11-22`. */
  readonly week: { readonly days: readonly string[]; readonly counts: readonly DayCounts[] }
  readonly facets: Readonly<Record<string, readonly (readonly [string, number])[]>>
}

/** False for a label that only repeats another one. */
const isTelling = (name: string, labels: Readonly<Record<string, string>>): boolean =>
  labels.mount === undefined || (name !== 'device' && name !== 'fstype')

/** Metric and telling labels of a series key; a shortened key is shown as it is, as is the group of an incident. */
export function partsOfSeries(
  type: AlertType,
  key: string,
): { metric: string | null; unit: string | null; series: string } {
  if (type === 'agent_down') return { metric: null, unit: null, series: '' }
  if (type === 'group_down') return { metric: null, unit: null, series: key }
  try {
    const { metric, labels } = parseSeriesKey(key)
    const telling = Object.entries(labels).filter(([name]) => isTelling(name, labels))
    const series = telling.map(([name, value]) => `${name}=${value}`).join(' ')
    return { metric, unit: metricByName(metric)?.unit ?? null, series }
  } catch {
    return { metric: null, unit: null, series: key }
  }
}

const toFace = (row: AlertRow): AlertFace => ({
  id: row.id,
  type: row.type,
  severity: row.severity,
  state: row.state,
  serverId: row.server_id,
  serverName: row.server_name,
  ruleId: row.rule_id,
  ruleName: row.rule_name,
  ...partsOfSeries(row.type, row.series_key),
  openedAtMs: new Date(row.opened_at).getTime(),
  endedAtMs: row.ended_at === null ? null : new Date(row.ended_at).getTime(),
  lastValue: row.last_value,
  threshold: row.threshold,
  acknowledgedBy: row.acknowledged_by,
  isSuppressed: row.suppressed,
  isFlapping: row.flapping,
  groupSize: row.type === 'group_down' ? (row.group_size ?? 0) : null,
  told: null,
})

/** The rows with who was told of them, where the viewer may see that. */
async function withTold({ hub, companyId, may }: ViewContext, faces: readonly AlertFace[]): Promise<AlertFace[]> {
  if (!may('notifications.view') || faces.length === 0) return [...faces]
  const rows = await hub.database.db.execute<Told & { id: string }>(sql`
    select asked.id, d.arrived, d.failed, d.waiting, n.people
    from unnest(${uuidList(faces.map(({ id }) => id))}::uuid[]) as asked (id)
      cross join lateral (select (count(*) filter (where state = 'delivered'))::int as arrived,
          (count(*) filter (where state = 'failed'))::int as failed,
          (count(*) filter (where state not in ('delivered', 'failed')))::int as waiting
        from notification_deliveries where company_id = ${companyId} and alert_id = asked.id) d
      cross join lateral (select count(distinct user_id)::int as people
        from notifications where company_id = ${companyId} and alert_id = asked.id) n`)
  const byId = new Map(rows.map(({ id, ...told }) => [id, told]))
  return faces.map(face => ({ ...face, told: byId.get(face.id) ?? null }))
}

/** Alerts of a company that meet a condition on `x`, the newest first. */
export async function facesWhere(hub: Hub, companyId: string, where: SQL, limit: number): Promise<AlertFace[]> {
  const rows = await hub.database.db.execute<AlertRow>(sql`
    select ${alertColumns} from monitoring_alerts x ${alertJoins}
    where x.company_id = ${companyId} and ${where} order by x.opened_at desc, x.id limit ${limit}`)
  return rows.map(toFace)
}

/** Of what is over the newest. */
async function pastAlerts({ hub, companyId }: ViewContext): Promise<readonly AlertRow[]> {
  return hub.database.db.execute<AlertRow>(sql`
    select ${alertColumns} from monitoring_alerts x ${alertJoins}
    where x.company_id = ${companyId} and x.state in ('resolved', 'closed')
    order by x.opened_at desc, x.id limit ${IDS_MAX}`)
}

/** The incident that an alert is, or is a part of. */
const incidentOf = (row: AlertRow): string | null => row.group_id ?? (row.type === 'group_down' ? row.id : null)

/** What incidents hold besides themselves: lists leave it out, since it is told by its incident. */
async function partsOfIncidents({ hub, companyId }: ViewContext, ids: readonly string[]): Promise<readonly AlertRow[]> {
  return hub.database.db.execute<AlertRow>(sql`
    select ${alertColumns} from monitoring_alerts x ${alertJoins}
    where x.company_id = ${companyId} and x.state = 'grouped' and x.group_id = any(${uuidList(ids)}::uuid[])
    order by x.opened_at desc, x.id limit ${IDS_MAX}`)
}

const filteredAlert = (row: AlertRow, nowMs: number): Filtered => ({
  words: [row.server_name, row.rule_name, row.series_key],
  values: {
    severity: row.severity,
    state: [row.state, ...(row.suppressed ? ['silenced'] : []), ...(row.flapping ? ['flapping'] : [])],
    server: row.server_name,
    rule: row.rule_name,
    type: row.type,
    tag: row.tags,
    env: row.environment,
    role: row.role,
    dc: row.datacenter,
    metric: partsOfSeries(row.type, row.series_key).metric,
    by: row.acknowledged_by,
    value: row.last_value,
    minutes: Math.floor((nowMs - new Date(row.opened_at).getTime()) / 60_000),
    incident: incidentOf(row),
  },
})

const isAboutPast = (filter: string): boolean =>
  parseFilter(filter).some(
    ({ key, value, isExcluded }) => key === 'state' && !isExcluded && (value === 'resolved' || value === 'closed'),
  )

/** The alerts that a filter names: open and acknowledged ones, unless it asks for those that are over. */
async function matchingAlerts(context: ViewContext) {
  const { hub, companyId, param, alerts } = context
  const filter = param('q')
  const all = await (isAboutPast(filter) ? pastAlerts(context) : alerts.of(companyId))
  const terms = parseFilter(filter)
  const nowMs = hub.now()
  return {
    all,
    matching: terms.length === 0 ? all : all.filter(row => matchesFilter(filteredAlert(row, nowMs), terms)),
  }
}

const groupings: Readonly<Record<string, (row: AlertRow) => readonly (string | null)[]>> = {
  rule: row => [row.rule_name],
  server: row => [row.server_name],
  severity: row => [row.severity],
  tag: row => (row.tags.length === 0 ? [null] : row.tags),
  dc: row => [row.datacenter],
  type: row => [row.type],
  incident: row => [incidentOf(row)],
}

type Weeks = ReadonlyMap<string, readonly DayCounts[]> | null

type Grouped = { readonly group: AlertGroup; readonly members: readonly AlertRow[] }

function groupOf(key: string, members: readonly AlertRow[], weeks: Weeks): AlertGroup {
  const worst = severities.findLast(severity => members.some(row => row.severity === severity)) ?? 'info'
  return {
    ...{ key, within: null, leftOut: 0, name: key, worst, incidentSize: null },
    count: members.length,
    unacknowledged: members.filter(row => row.state === 'open').length,
    oldestAtMs: members.reduce(
      (oldest, row) => Math.min(oldest, new Date(row.opened_at).getTime()),
      Number.MAX_SAFE_INTEGER,
    ),
    servers: new Set(members.map(row => row.server_id)).size,
    week: weeks?.get(key) ?? null,
  }
}

/** The worst first, of those the greatest. */
function groupsOf(
  rows: readonly AlertRow[],
  keysOf: (row: AlertRow) => readonly (string | null)[],
  weeks: Weeks,
): Grouped[] {
  const byKey = new Map<string, AlertRow[]>()
  for (const row of rows)
    for (const key of keysOf(row)) {
      const known = byKey.get(key ?? '')
      if (known) known.push(row)
      else byKey.set(key ?? '', [row])
    }
  return [...byKey]
    .map(([key, members]) => ({ group: groupOf(key, members, weeks), members }))
    .sort(
      ({ group: one }, { group: other }) =>
        severities.indexOf(other.worst) - severities.indexOf(one.worst) || other.count - one.count,
    )
}

/** The alerts that match in groups of this kind. */
async function outerGroups(context: ViewContext, matching: readonly AlertRow[], kind: string): Promise<Grouped[]> {
  const keysOf = groupings[kind] ?? (() => [null])
  if (kind !== 'incident') {
    const weeks = isWeekKey(kind) ? (await alertWeeks(context.hub, context.companyId, kind)).byKey : null
    return groupsOf(matching, keysOf, weeks)
  }
  const incidents = new Map(matching.filter(row => row.type === 'group_down').map(row => [row.id, row]))
  const parts = incidents.size === 0 ? [] : await partsOfIncidents(context, [...incidents.keys()])
  return groupsOf([...matching, ...parts], keysOf, null).map(({ group, members }) => {
    const incident = incidents.get(group.key)
    if (incident === undefined) return { group, members }
    const size = incident.group_size ?? 0
    const servers = Math.max(group.servers, size)
    return { group: { ...group, name: incident.series_key, servers, incidentSize: size }, members }
  })
}

/** An incident is one cause: it stands in no other group. */
const isInner = (kind: string): boolean => Object.hasOwn(groupings, kind) && kind !== 'incident'

/** By `group=rule` or `group=rule,dc`: each group, then the groups within it. Null: there is no such grouping. */
async function groupsBy(context: ViewContext, matching: readonly AlertRow[]): Promise<AlertGroup[] | null> {
  const [outer = '', inner = ''] = context.param('group').split(',')
  if (!Object.hasOwn(groupings, outer)) return null
  const groups = (await outerGroups(context, matching, outer)).slice(0, GROUPS_MAX)
  const keysOf = isInner(inner) && inner !== outer ? groupings[inner] : undefined
  if (keysOf === undefined) return groups.map(({ group }) => group)
  return groups.flatMap(({ group, members }) => {
    const within = groupsOf(members, keysOf, null)
    const shown = within.slice(0, INNER_GROUPS_MAX)
    return [
      { ...group, leftOut: within.length - shown.length },
      ...shown.map(each => ({ ...each.group, within: group.key })),
    ]
  })
}

const FACETS_MAX = 20
function facet(rows: readonly AlertRow[], keyOf: (row: AlertRow) => string | null): [string, number][] {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const value = keyOf(row)
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).slice(0, FACETS_MAX)
}

export const alertsView: View<AlertsView> = {
  permissions: ['monitoring.view'],
  optional: ['notifications.view'],
  params: sitePages.alerts.takes,
  async make(context) {
    const { param } = context
    const { all, matching } = await matchingAlerts(context)
    const [{ days, byKey }, groups] = await Promise.all([
      alertWeeks(context.hub, context.companyId, 'severity'),
      groupsBy(context, matching),
    ])
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, matching.length - 1))
    const counts = { critical: 0, warning: 0, info: 0 }
    for (const row of all) counts[row.severity]++
    return {
      total: all.length,
      matching: matching.length,
      severities: counts,
      unacknowledged: all.filter(row => row.state === 'open').length,
      offset,
      rows: groups === null ? await withTold(context, matching.slice(offset, offset + WINDOW).map(toFace)) : [],
      groups,
      week: {
        days,
        counts: days.map((_, at) => ({
          critical: byKey.get('critical')?.[at]?.critical ?? 0,
          warning: byKey.get('warning')?.[at]?.warning ?? 0,
          info: byKey.get('info')?.[at]?.info ?? 0,
        })),
      },
      facets: {
        severity: facet(all, row => row.severity),
        state: facet(all, row => row.state),
        rule: facet(all, row => row.rule_name),
        server: facet(all, row => row.server_name),
        dc: facet(all, row => row.datacenter),
      },
    }
  },
}

/** All alerts that match, or those of some groups of them: their ids, and what the first ones are called. */
export type MatchingAlertsView = {
  readonly ids: readonly string[]
  readonly names: readonly string[]
  readonly serverIds: readonly string[]
  /** Where the scope of a silence can say what the filter does. */
  readonly scope: RuleScope | null
  /** Of each alert the place of its server in `serverIds`. */
  readonly serverAt: readonly number[]
}

/** The groups that are asked for: each by the key of the group that it stands in, or null, and its own. */
function keysAsked(text: string): readonly (readonly [within: string | null, key: string])[] {
  try {
    const asked: unknown = JSON.parse(text)
    const isKey = (each: unknown): each is [string | null, string] =>
      Array.isArray(each) && (each[0] === null || typeof each[0] === 'string') && typeof each[1] === 'string'
    return Array.isArray(asked) ? asked.filter(isKey) : []
  } catch {
    return []
  }
}

/** The alerts of the groups that are asked for; all, where no groups are. What names no group has no alerts. */
function ofGroups({ param }: ViewContext, rows: readonly AlertRow[]): readonly AlertRow[] {
  if (param('in') === '') return rows
  const asked = keysAsked(param('in'))
  const [outer = '', inner = ''] = param('group').split(',')
  const isOf = (kind: string, row: AlertRow, key: string): boolean =>
    Object.hasOwn(groupings, kind) && groupings[kind]?.(row).some(each => (each ?? '') === key) === true
  return rows.filter(row =>
    asked.some(([within, key]) =>
      within === null ? isOf(outer, row, key) : isOf(outer, row, within) && isOf(inner, row, key),
    ),
  )
}

export const matchingAlertsView: View<MatchingAlertsView> = {
  permissions: ['monitoring.view'],
  params: ['q', 'group', 'in'],
  async make(context) {
    const all = ofGroups(context, (await matchingAlerts(context)).matching)
    const matching = all.slice(0, IDS_MAX)
    const servers = [...new Set(all.map(row => row.server_id))]
    // One more than a silence names: the hub refuses it and says the limit.
    const serverIds = servers.slice(0, limits.scopeServerIdsMax + 1)
    const places = new Map(serverIds.map((id, at) => [id, at]))
    return {
      ids: matching.map(({ id }) => id),
      names: matching.slice(0, NAMES_SHOWN).map(row => `${row.rule_name ?? row.type} · ${row.server_name}`),
      serverIds,
      scope: scopeOfFilter(context.param('q'), all),
      serverAt: matching.map(row => places.get(row.server_id) ?? 0),
    }
  },
}
