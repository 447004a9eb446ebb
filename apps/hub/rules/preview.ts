// POST /rules/preview: the servers that a draft covers, which of their latest values violate it (decision G-66), and
// when it would have fired over the last hours: the stored samples of its servers are run through the collectors' own
// evaluation.
import { setImmediate } from 'node:timers/promises'
import { type Firing, firingsOf, type ReplayedSeries, replayRule } from '../../../core/alerting/evaluate/backtest.ts'
import { evaluatedRule, violates } from '../../../core/alerting/evaluate/evaluate-sample.ts'
import { compileRule } from '../../../core/alerting/rules/compile-rule.ts'
import { compileMatchers } from '../../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../../core/alerting/rules/matches-labels.ts'
import type { RawRule } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import { seriesKey } from '../../../core/series/series-key.ts'
import { resolveScope } from '../scopes/scope.ts'
import {
  inTurns,
  type PreviewedServer,
  type Range,
  type Reading,
  serversToRead,
  startReading,
  type Tenant,
  type WholeSeries,
  wholeSeries,
} from './previewed-samples.ts'
import { presentCondition } from './rule-condition.ts'
import { type RuleInput, validRule } from './rules.ts'

/** A preview reads raw samples of at most a week. */
export const PREVIEW_HOURS_MAX = 168
const HOURS_DEFAULT = 24
const SERVERS_SHOWN = 15
const SERIES_SHOWN = 100
const FIRINGS_SHOWN = 20
const HOUR_MS = 3_600_000

const presentFiring = (firing: Firing) => ({
  series_key: firing.seriesKey,
  opened_at: new Date(firing.openedAtMs),
  resolved_at: firing.resolvedAtMs === null ? null : new Date(firing.resolvedAtMs),
  reason: firing.reason,
  value: firing.value,
  peak_value: firing.peakValue,
})

/** The newest values of a server, and whether they violate. */
function latestOf(server: PreviewedServer, series: readonly ReplayedSeries[], rule: RawRule, nowMs: number) {
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

function pastOf(server: PreviewedServer, { series, heardAtMs }: WholeSeries, rule: RawRule, { toMs }: Range) {
  const stepMs = limits.queryStepMinMs
  const firings = firingsOf(replayRule({ rule, serverId: server.id, series, heardAtMs, stepMs, toMs }))
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

/** The previews of the servers; null for one whose collector does not answer. */
function lookAt(
  reading: Reading,
  servers: readonly PreviewedServer[],
  rule: RawRule,
  range: Range,
): Promise<(Seen | null)[]> {
  const metric = rule.metric ?? ''
  const { matchers } = compileMatchers(rule.matchers ?? {}, metricByName(metric)?.labels ?? [])
  return inTurns(servers, async server => {
    const read = await wholeSeries(reading, server.id, metric, range)
    if (read === null) return null
    const series = read.series.filter(({ labels }) => matchesLabels(matchers, labels))
    // A replay takes milliseconds; this yields to other requests.
    await setImmediate()
    const past = pastOf(server, { ...read, series }, rule, range)
    return { latest: latestOf(server, series, rule, range.toMs), past }
  })
}

/** Servers that would have alerted most come first. */
function historyOf(seen: readonly Seen[], { fromMs, toMs }: Range) {
  const servers = seen.map(each => each.past).sort((a, b) => b.alerts - a.alerts || b.firing_seconds - a.firing_seconds)
  return {
    from: new Date(fromMs),
    to: new Date(toMs),
    step_seconds: limits.queryStepMinMs / 1000,
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
  const servers = await serversToRead(context, ids)
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
  const toMs = hub.now()
  const range = { fromMs: toMs - (input.hours ?? HOURS_DEFAULT) * HOUR_MS, toMs }
  const looked = await lookAt(startReading(context), servers, rule, range)
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
      history: seen.length > 0 ? historyOf(seen, range) : null,
    },
    collector: { available: isAvailable, reason },
  }
}
