// POST /rules/preview: the servers that a draft covers, which of their latest values violate it (decision G-66), and
// when it would have fired over the last hours: the stored samples of its servers are run through the collectors' own
// evaluation.
import { setImmediate } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { parseSeriesResponse, seriesOf, seriesPath } from '../../../core/admin-api/series.ts'
import { type Firing, firingsOf, type ReplayedSeries, replayRule } from '../../../core/alerting/evaluate/backtest.ts'
import { evaluatedRule, violates } from '../../../core/alerting/evaluate/evaluate-sample.ts'
import { compileRule } from '../../../core/alerting/rules/compile-rule.ts'
import { compileMatchers } from '../../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../../core/alerting/rules/matches-labels.ts'
import type { RawRule } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import { seriesKey } from '../../../core/series/series-key.ts'
import type { Hub } from '../hub-context.ts'
import { uuidList } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { resolveScope } from '../scopes/scope.ts'
import { presentCondition } from './rule-condition.ts'
import { type RuleInput, validRule } from './rules.ts'

/** A preview reads raw samples of at most a week. */
export const PREVIEW_HOURS_MAX = 168
const HOURS_DEFAULT = 24
const SERVERS_SHOWN = 15
/** A preview reads samples of at most this many servers, since a user waits for it. */
const SERVERS_READ = 25
const READ_AT_ONCE = 5
const SERIES_SHOWN = 100
const FIRINGS_SHOWN = 20
const HOUR_MS = 3_600_000

type Server = { readonly id: string; readonly name: string }
type Tenant = Pick<RouteContext, 'hub' | 'companyId'>
type Window = { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }

/** The window in whole steps, so that the collector's response stays within its bound. */
function windowOf(hours: number, nowMs: number): Window {
  const rangeMs = hours * HOUR_MS
  const steps = Math.ceil(rangeMs / limits.queryStepMinMs / (limits.queryPointsMax - 1))
  return { fromMs: nowMs - rangeMs, toMs: nowMs, stepMs: steps * limits.queryStepMinMs }
}

/** The stored series of a metric on a server; null when the collector cannot answer. */
async function readSeries(
  hub: Hub,
  companyId: string,
  serverId: string,
  metric: string,
  window: Window,
): Promise<ReplayedSeries[] | null> {
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  if (!target) return null
  const path = seriesPath(companyId, serverId, {
    metric,
    from: String(window.fromMs / 1000),
    to: String(window.toMs / 1000),
    step: String(window.stepMs / 1000),
    agg: 'last',
  })
  const answer = await hub.collectors.query(target, 'series', path)
  const data = answer?.status === 200 ? parseSeriesResponse(answer.body) : null
  return data && seriesOf(data)
}

const presentFiring = (firing: Firing) => ({
  series_key: firing.seriesKey,
  opened_at: new Date(firing.openedAtMs),
  resolved_at: firing.resolvedAtMs === null ? null : new Date(firing.resolvedAtMs),
  reason: firing.reason,
  value: firing.value,
  peak_value: firing.peakValue,
})

/** The newest values of a server, and whether they violate. */
function latestOf(server: Server, series: readonly ReplayedSeries[], rule: RawRule, nowMs: number) {
  const compiled = compileRule(rule)
  if (compiled.kind !== 'compiled') return []
  const { operatorCode, threshold } = evaluatedRule(compiled.rule)
  return series.flatMap(({ labels, points }) => {
    const [tsMs, value] = points.at(-1) ?? [0, 0]
    if (tsMs < nowMs - limits.statusValueAgeMs) return []
    const key = seriesKey(rule.metric ?? '', labels)
    const violating = violates(operatorCode, value, threshold)
    return [{ server_id: server.id, series_key: key, value, violating }]
  })
}

function pastOf(server: Server, series: readonly ReplayedSeries[], rule: RawRule, { stepMs, toMs }: Window) {
  const firings = firingsOf(replayRule({ rule, serverId: server.id, series, stepMs, toMs }))
  const durationsMs = firings.map(firing => (firing.resolvedAtMs ?? toMs) - firing.openedAtMs)
  const firingMs = durationsMs.reduce((sum, ms) => sum + ms, 0)
  return {
    server: server,
    series_count: series.length,
    alerts: firings.length,
    firing_seconds: Math.round(firingMs / 1000),
    longest_seconds: Math.round(Math.max(0, ...durationsMs) / 1000),
    firing_now: firings.some(firing => firing.resolvedAtMs === null),
    firings: firings.slice(-FIRINGS_SHOWN).map(presentFiring),
  }
}

type Seen = { readonly latest: ReturnType<typeof latestOf>; readonly past: ReturnType<typeof pastOf> }

/**
 * The previews of a few servers at a time: their samples are released before those of the next ones are read. Null when
 * the collector does not answer.
 */
async function lookAt(
  { hub, companyId }: Tenant,
  servers: readonly Server[],
  rule: RawRule,
  window: Window,
): Promise<(Seen | null)[]> {
  const metric = rule.metric ?? ''
  const { matchers } = compileMatchers(rule.matchers ?? {}, metricByName(metric)?.labels ?? [])
  const seen: (Seen | null)[] = []
  for (let at = 0; at < servers.length; at += READ_AT_ONCE) {
    const some = servers.slice(at, at + READ_AT_ONCE)
    const reads = await Promise.all(some.map(({ id }) => readSeries(hub, companyId, id, metric, window)))
    for (const [index, server] of some.entries()) {
      const series = reads[index]?.filter(({ labels }) => matchesLabels(matchers, labels))
      seen.push(
        series
          ? { latest: latestOf(server, series, rule, window.toMs), past: pastOf(server, series, rule, window) }
          : null,
      )
      // A replay takes milliseconds; this yields to other requests.
      await setImmediate()
    }
  }
  return seen
}

/** Servers that would have alerted most come first. */
function historyOf(seen: readonly Seen[], { fromMs, toMs, stepMs }: Window) {
  const servers = seen.map(each => each.past).sort((a, b) => b.alerts - a.alerts || b.firing_seconds - a.firing_seconds)
  return {
    from: new Date(fromMs),
    to: new Date(toMs),
    step_seconds: stepMs / 1000,
    servers_read: servers.length,
    servers_fired: servers.filter(each => each.alerts > 0).length,
    alerts: servers.reduce((sum, each) => sum + each.alerts, 0),
    servers,
  }
}

export async function previewRule(context: Tenant, input: RuleInput & { readonly hours?: number | null }) {
  const { hub, companyId } = context
  const { db } = hub.database
  const columns = await validRule(db, companyId, input)
  const ids = await resolveScope(db, companyId, columns.scope)
  const servers = await db.execute<Server>(sql`
    select id, name from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
    order by lower(name), id limit ${SERVERS_READ}`)
  const base = { matched_servers: ids.length, servers: servers.slice(0, SERVERS_SHOWN) }
  if (columns.metric === null || columns.kind === 'agent_down')
    return { data: { ...base, series: [], violating: 0, history: null }, collector: { available: true, reason: null } }

  const rule: RawRule = {
    ...presentCondition(columns),
    // A preview sends no reminders.
    renotify_seconds: 0,
    name: columns.name,
    kind: columns.kind,
    scope: columns.scope,
    severity: columns.severity,
    id: companyId,
    version: 1,
    sync_version: 0,
    company_id: companyId,
    resolved_server_ids: [],
    enabled: true,
    deleted: false,
  }
  const window = windowOf(input.hours ?? HOURS_DEFAULT, hub.now())
  const looked = await lookAt(context, servers, rule, window)
  const seen = looked.filter(each => each !== null)
  const series = seen.flatMap(each => each.latest)
  const isAvailable = seen.length === looked.length
  const isConfigured = (await hub.collectors.targets()).length > 0
  const hasData = seen.some(each => each.past.series_count > 0)
  const reason = isAvailable ? (hasData ? null : 'no_data') : isConfigured ? 'unavailable' : 'not_configured'
  return {
    data: {
      ...base,
      series: series.slice(0, SERIES_SHOWN),
      violating: series.filter(item => item.violating).length,
      history: seen.length > 0 ? historyOf(seen, window) : null,
    },
    collector: { available: isAvailable, reason },
  }
}
