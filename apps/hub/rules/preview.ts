// POST /rules/preview: what a draft covers, and which of the latest values violate it now (decision G-66).

import { sql } from 'drizzle-orm'
import { compileMatchers, matchesLabels } from '../../../core/alerting/matchers.ts'
import { limits } from '../../../core/limits.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import { seriesKey } from '../../../core/series/series-key.ts'
import { isObject } from '../../../core/unchecked.ts'
import { uuidList } from '../db/transaction.ts'
import type { RouteContext } from '../http/route.ts'
import type { Hub } from '../hub-context.ts'
import { resolveScope } from '../scopes/scope.ts'
import { type RuleInput, validRule } from './rules.ts'

const SERVERS_SHOWN = 15
const SERIES_SHOWN = 100
/** Values are read of so many machines at most: a preview is a look, not a report. */
const SERVERS_READ = 15

type Latest = { readonly labels: Readonly<Record<string, string>>; readonly value: number }

/** The newest value of each series of a metric on a machine; null when the collector cannot answer. */
async function latestValues(hub: Hub, companyId: string, serverId: string, metric: string): Promise<Latest[] | null> {
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  if (!target) return null
  const fromSeconds = Math.floor((hub.now() - limits.statusValueAgeMs) / 1000)
  const query = new URLSearchParams({ company_id: companyId, metric, from: String(fromSeconds), agg: 'last' })
  const answer = await hub.collectors.query(target, 'series', `/servers/${serverId}/series?${query}`)
  const data = answer?.status === 200 && isObject(answer.body) ? answer.body.data : null
  if (!isObject(data) || !Array.isArray(data.series)) return null
  return data.series.flatMap((series: unknown) => {
    if (!isObject(series) || !Array.isArray(series.points)) return []
    const point: unknown = series.points.at(-1)
    const value: unknown = Array.isArray(point) ? point[1] : null
    const labels = isObject(series.labels) ? series.labels : {}
    if (typeof value !== 'number') return []
    return [{ labels: Object.fromEntries(Object.entries(labels).map(([key, each]) => [key, String(each)])), value }]
  })
}

function violates(operator: string | null, value: number, threshold: number | null): boolean {
  if (threshold === null) return false
  switch (operator) {
    case '>':
      return value > threshold
    case '>=':
      return value >= threshold
    case '<':
      return value < threshold
    case '<=':
      return value <= threshold
    case '==':
      return value === threshold
    case '!=':
      return value !== threshold
    default:
      return false
  }
}

export async function previewRule(context: RouteContext, input: RuleInput) {
  const { hub, companyId } = context
  const { db } = hub.database
  const rule = await validRule(db, companyId, input)
  const ids = await resolveScope(db, companyId, rule.scope)
  const servers = await db.execute<{ id: string; name: string }>(sql`
    select id, name from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
    order by lower(name), id limit ${SERVERS_SHOWN}`)
  const base = { matched_servers: ids.length, servers: [...servers] }
  if (rule.metric === null || rule.kind === 'agent_down')
    return { data: { ...base, series: [], violating: 0 }, collector: { available: true, reason: null } }

  const labels = metricByName(rule.metric)?.labels ?? []
  const { matchers } = compileMatchers(rule.matchers ?? {}, labels)
  const metric = rule.metric
  const perServer = await Promise.all(
    servers
      .slice(0, SERVERS_READ)
      .map(async ({ id }) => ({ id, values: await latestValues(hub, companyId, id, metric) })),
  )
  const isAvailable = perServer.every(item => item.values !== null)
  const series = perServer.flatMap(({ id, values }) =>
    (values ?? [])
      .filter(latest => matchesLabels(matchers, latest.labels))
      .map(latest => ({
        server_id: id,
        series_key: seriesKey(metric, latest.labels),
        value: latest.value,
        violating: violates(rule.operator, latest.value, rule.threshold),
      })),
  )
  const isConfigured = (await hub.collectors.targets()).length > 0
  const reason = isAvailable ? (series.length > 0 ? null : 'no_data') : isConfigured ? 'unavailable' : 'not_configured'
  return {
    data: {
      ...base,
      series: series.slice(0, SERIES_SHOWN),
      violating: series.filter(item => item.violating).length,
    },
    collector: { available: isAvailable, reason },
  }
}
