// The silences of a company: which hold, which are to come, which are over, and what they hide now.
import { sql } from 'drizzle-orm'
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import type { Recurrence } from '../../../../core/lifecycle/silence-windows.ts'
import { statusOf } from '../../silences/silence-list.ts'
import type { SilenceStatus } from '../../silences/silence-response.ts'
import type { View } from './view.ts'

const WINDOW = 200

export type SilenceRow = {
  readonly id: string
  readonly status: SilenceStatus
  readonly scope: RuleScope
  /** Null: all servers. */
  readonly serverCount: number | null
  readonly serverNames: readonly string[]
  readonly startsAtMs: number
  readonly endsAtMs: number
  readonly reason: string
  readonly by: string | null
  readonly ruleNames: readonly string[]
  readonly ruleIds: readonly string[]
  readonly recurrence: Recurrence | null
  readonly hiddenAlerts: number
}

export type SilencesView = { readonly rows: readonly SilenceRow[]; readonly total: number }

type Row = {
  id: string
  scope: RuleScope
  server_count: number
  server_names: string[] | null
  starts_at: string
  ends_at: string
  cancelled_at: string | null
  reason: string
  by: string | null
  rule_ids: string[]
  rule_names: string[] | null
  recurrence: Recurrence | null
  hidden: number
  total: number
}

export const silencesView: View<SilencesView> = {
  permissions: ['monitoring.manage'],
  params: ['past'],
  async make({ hub, companyId, param }) {
    // Of what is over the last ones; of what holds or is to come all that there may be on a page.
    const isPast = param('past') !== ''
    const over = sql`(q.cancelled_at is not null or (q.ends_at <= now() and q.recurrence is null))`
    const rows = await hub.database.db.execute<Row>(sql`
      select q.id, q.scope, cardinality(q.resolved_server_ids) as server_count,
        (select array_agg(n.name order by n.name) from (select s.name from servers s
          where s.company_id = ${companyId} and s.id = any(q.resolved_server_ids) order by lower(s.name) limit 3) n) as server_names,
        q.starts_at, q.ends_at, q.cancelled_at, q.reason, u.name as by, q.rule_ids,
        (select array_agg(r.name order by r.name) from monitoring_rules r
          where r.company_id = ${companyId} and r.id = any(q.rule_ids)) as rule_names, q.recurrence,
        (select count(*)::int from monitoring_alerts x where x.company_id = ${companyId}
          and x.state in ('open', 'acknowledged') and x.suppressed
          and (coalesce((q.scope ->> 'all')::boolean, false) or x.server_id = any(q.resolved_server_ids))
          and (cardinality(q.rule_ids) = 0 or x.rule_id = any(q.rule_ids))) as hidden,
        (count(*) over ())::int as total
      from monitoring_silences q left join users u on u.id = q.created_by
      where q.company_id = ${companyId} and q.deleted_at is null and q.recurrence_of is null and ${isPast ? over : sql`not ${over}`}
      order by ${isPast ? sql`q.ends_at desc` : sql`q.starts_at, q.ends_at`}, q.id limit ${WINDOW}`)
    const nowMs = hub.now()
    return {
      total: rows[0]?.total ?? 0,
      rows: rows.map(row => {
        const [startsAt, endsAt] = [new Date(row.starts_at), new Date(row.ends_at)]
        const cancelledAt = row.cancelled_at === null ? null : new Date(row.cancelled_at)
        return {
          id: row.id,
          status: statusOf({ cancelledAt, startsAt, endsAt, recurrence: row.recurrence }, nowMs),
          scope: row.scope,
          serverCount: row.scope.all ? null : row.server_count,
          serverNames: row.server_names ?? [],
          startsAtMs: startsAt.getTime(),
          endsAtMs: endsAt.getTime(),
          reason: row.reason,
          by: row.by,
          ruleIds: row.rule_ids,
          ruleNames: row.rule_names ?? [],
          recurrence: row.recurrence,
          hiddenAlerts: row.hidden,
        }
      }),
    }
  },
}
