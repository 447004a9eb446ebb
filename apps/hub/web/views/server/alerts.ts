// The alerts of a server that lived in a range, and why each rule fires on it or does not.
import { sql } from 'drizzle-orm'
import type { RuleAlerting, SeriesAlerting } from '../../../../../core/admin-api/alerting.ts'
import type { Severity } from '../../../../../core/alerting/rules/rule.ts'
import type { AlertState, AlertType } from '../../../../../core/lifecycle/alert.ts'
import type { Hub } from '../../../hub-context.ts'
import { askAlerting } from '../../../servers/collector-questions.ts'
import { rangeOf, type TimeRange } from '../../address/time-range.ts'
import { partsOfSeries } from '../alerts.ts'
import { type Decision, decisionOfRule, decisionOfSeries } from '../decision.ts'
import type { View } from '../view.ts'
import { type CollectorState, shownServer } from './head.ts'

const ALERTS_MAX = 300

export type ServerAlert = {
  readonly id: string
  readonly type: AlertType
  readonly severity: Severity
  readonly state: AlertState
  readonly ruleId: string | null
  readonly ruleName: string | null
  /** `disk_used_percent{mount="/"}`; empty for an alert that is about no series. */
  readonly seriesKey: string
  /** The telling labels of it, and the unit of its metric. */
  readonly series: string
  readonly unit: string | null
  readonly openedAtMs: number
  readonly resolvedAtMs: number | null
  readonly lastValue: number | null
  readonly threshold: number | null
  readonly acknowledgedBy: string | null
  readonly isSuppressed: boolean
  readonly isFlapping: boolean
}

type Row = {
  id: string
  type: AlertType
  severity: Severity
  state: AlertState
  rule_id: string | null
  rule_name: string | null
  series_key: string
  opened_at: string
  resolved_at: string | null
  last_value: number | null
  threshold: number | null
  acknowledged_by: string | null
  suppressed: boolean
  flapping: boolean
}

const seriesOf = ({ type, series_key }: Row): Pick<ServerAlert, 'series' | 'unit'> => {
  const { series, unit } = partsOfSeries(type, series_key)
  return { series, unit: type === 'agent_down' ? 's' : unit }
}

async function alertsIn(
  hub: Hub,
  companyId: string,
  serverId: string,
  { fromMs, toMs }: TimeRange,
): Promise<ServerAlert[]> {
  const rows = await hub.database.db.execute<Row>(sql`
    select a.id, a.type, a.severity, a.state, a.rule_id, r.name as rule_name, a.series_key, a.opened_at, a.resolved_at,
      a.last_value, a.threshold, u.name as acknowledged_by, a.suppressed, a.flapping
    from monitoring_alerts a left join monitoring_rules r on r.id = a.rule_id left join users u on u.id = a.acknowledged_by
    where a.company_id = ${companyId} and a.server_id = ${serverId} and a.opened_at <= ${new Date(toMs).toISOString()}
      and (a.resolved_at is null or a.resolved_at >= ${new Date(fromMs).toISOString()})
    order by a.opened_at desc, a.id desc limit ${ALERTS_MAX}`)
  return rows.map(row => ({
    id: row.id,
    type: row.type,
    severity: row.severity,
    state: row.state,
    ruleId: row.rule_id,
    ruleName: row.rule_name,
    seriesKey: row.series_key,
    ...seriesOf(row),
    openedAtMs: new Date(row.opened_at).getTime(),
    resolvedAtMs: row.resolved_at === null ? null : new Date(row.resolved_at).getTime(),
    lastValue: row.last_value,
    threshold: row.threshold,
    acknowledgedBy: row.acknowledged_by,
    isSuppressed: row.suppressed,
    isFlapping: row.flapping,
  }))
}

export type AlertsView = { readonly alerts: readonly ServerAlert[]; readonly isTruncated: boolean }

export const serverAlertsView: View<AlertsView> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete'],
  params: ['server', 'from', 'to'],
  async make(context) {
    const { hub, companyId, param } = context
    const { server } = await shownServer(context)
    const alerts = await alertsIn(hub, companyId, server.id, rangeOf(param('from'), param('to'), hub.now()))
    return { alerts, isTruncated: alerts.length === ALERTS_MAX }
  },
}

type DecisionOnServer = Decision & {
  readonly ruleId: string
  /** Null for an invalid rule. */
  readonly ruleName: string | null
  /** Empty where the rule covers no series. */
  readonly seriesKey: string
  readonly unit: string | null
  readonly lastSampleAtMs: number | null
}

export type DecisionsView = { readonly rows: readonly DecisionOnServer[]; readonly collector: CollectorState }

const ofSeries = (series: SeriesAlerting): DecisionOnServer => ({
  ...{ ruleId: series.rule_id, ruleName: series.rule_name, seriesKey: series.series_key },
  unit: partsOfSeries('threshold', series.series_key).unit,
  lastSampleAtMs: series.last_sample_at === null ? null : Date.parse(series.last_sample_at),
  ...decisionOfSeries(series),
})

const ofRule = (rule: RuleAlerting): DecisionOnServer => ({
  ...{ ruleId: rule.rule_id, ruleName: rule.rule_name, seriesKey: '', unit: null, lastSampleAtMs: null },
  ...decisionOfRule(rule),
})

export const serverDecisionsView: View<DecisionsView> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete'],
  params: ['server'],
  ageMs: 5_000,
  async make(context) {
    const { server } = await shownServer(context)
    const { data, note } = await askAlerting(context.hub, { id: server.id, companyId: context.companyId })
    const rows = [...(data?.series ?? []).map(ofSeries), ...(data?.rules ?? []).map(ofRule)]
    return { rows, collector: note.reason ?? 'ok' }
  },
}
