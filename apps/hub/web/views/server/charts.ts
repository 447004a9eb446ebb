// Which charts a server has: every metric that it has ever sent and the catalogue knows, in the catalogue's order, with
// the rules that cover it. A metric that is new to the catalogue appears by itself.
import { sql } from 'drizzle-orm'
import type { Operator, Severity } from '../../../../../core/alerting/rules/rule.ts'
import { metricByName, type Unit } from '../../../../../core/series/catalogue.ts'
import { metricOf } from '../../../../../core/series/series-key.ts'
import { askAlerting, askSeriesList } from '../../../servers/collector-questions.ts'
import type { View } from '../view.ts'
import { type CollectorState, shownServer } from './head.ts'

export type Labels = Readonly<Record<string, string>>

export type CoveringRule = {
  readonly id: string
  readonly name: string
  readonly severity: Severity
  readonly operator: Operator
  readonly threshold: number
  readonly recoverThreshold: number | null
}

export type ChartOfMetric = {
  readonly metric: string
  /** Null: the catalogue of this hub does not know it. */
  readonly unit: Unit | null
  readonly labels: readonly Labels[]
  readonly rules: readonly CoveringRule[]
}

export type ChartsView = {
  readonly charts: readonly ChartOfMetric[]
  /** Not all series are listed. */
  readonly isTruncated: boolean
  readonly collector: CollectorState
}

type RuleRow = {
  id: string
  name: string
  metric: string
  severity: Severity
  operator: Operator
  threshold: number
  recover_threshold: number | null
}

export const serverChartsView: View<ChartsView> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete'],
  params: ['server'],
  ageMs: 10_000,
  async make(context) {
    const { hub, companyId } = context
    const { server } = await shownServer(context)
    const ref = { id: server.id, companyId }
    const [list, alerting, rules] = await Promise.all([
      askSeriesList(hub, ref),
      askAlerting(hub, ref),
      hub.database.db.execute<RuleRow>(sql`
        select id, name, metric, severity, operator, threshold, recover_threshold from monitoring_rules
        where company_id = ${companyId} and deleted_at is null and enabled and metric is not null
          and operator is not null and threshold is not null
          and (coalesce((scope ->> 'all')::boolean, false) or ${server.id} = any(resolved_server_ids))
        order by lower(name), id limit 500`),
    ])
    // Labels may keep a rule from every series of the metric: only the collector knows.
    const covering =
      alerting.data && new Set(alerting.data.series.map(each => `${each.rule_id} ${metricOf(each.series_key)}`))
    const rulesOf = (metric: string): CoveringRule[] =>
      rules
        .filter(rule => rule.metric === metric && (covering === null || covering.has(`${rule.id} ${metric}`)))
        .map(({ id, name, severity, operator, threshold, recover_threshold }) => ({
          ...{ id, name, severity, operator, threshold },
          recoverThreshold: recover_threshold,
        }))
    return {
      charts: (list.data?.metrics ?? []).map(({ metric, labels }) => ({
        metric,
        unit: metricByName(metric)?.unit ?? null,
        labels,
        rules: rulesOf(metric),
      })),
      isTruncated: list.data?.truncated ?? false,
      collector: list.note.reason ?? 'ok',
    }
  },
}
