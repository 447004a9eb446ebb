// The silences of a company: which hold, which are to come, which are over, and what they hide now.

import { sql } from 'drizzle-orm'
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import type { Recurrence } from '../../../../core/lifecycle/silence-windows.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { ofStatus, statusOf } from '../../silences/silence-list.ts'
import type { SilenceStatus } from '../../silences/silence-response.ts'
import { sitePages } from '../address/site-map.ts'
import { silencesMeeting } from './silence-filter.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60

/** The name is null where the rule is deleted. */
type SilencedRule = { readonly id: string; readonly name: string | null }

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
  /** Empty: all rules. In the order that they were given in. */
  readonly rules: readonly SilencedRule[]
  readonly recurrence: Recurrence | null
  readonly hiddenAlerts: number
}

export type SilencesView = {
  /** Of the current ones, or of the past ones. */
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly SilenceRow[]
}

type Stored = {
  id: string
  scope: RuleScope
  server_count: number
  starts_at: string
  ends_at: string
  cancelled_at: string | null
  reason: string
  by: string | null
  recurrence: Recurrence | null
}

type Details = { id: string; server_names: string[] | null; rules: SilencedRule[] | null; hidden: number }

const isOver = sql`(${ofStatus.cancelled} or ${ofStatus.expired})`

/** Those that are over, or those that hold or are to come, each in its order. */
function silencesOf({ companyId, param }: ViewContext) {
  const isPast = param('past') !== ''
  const from = sql`from monitoring_silences left join users u on u.id = monitoring_silences.created_by
    where monitoring_silences.company_id = ${companyId} and monitoring_silences.deleted_at is null
      and monitoring_silences.recurrence_of is null and ${isPast ? isOver : sql`not ${isOver}`}`
  const order = isPast ? sql`ends_at desc` : sql`starts_at, ends_at`
  return { from, order, meets: silencesMeeting(companyId, param('q')) }
}

async function countSilences(context: ViewContext): Promise<{ readonly total: number; readonly matching: number }> {
  const { from, meets } = silencesOf(context)
  const [row] = await context.hub.database.db.execute<{ total: number; matching: number }>(
    sql`select count(*)::int as total, (count(*) filter (where ${meets}))::int as matching ${from}`,
  )
  return row ?? { total: 0, matching: 0 }
}

function shownSilences(context: ViewContext, offset: number): Promise<readonly Stored[]> {
  const { from, order, meets } = silencesOf(context)
  return context.hub.database.db.execute<Stored>(sql`
    select monitoring_silences.id, scope, cardinality(resolved_server_ids) as server_count, starts_at, ends_at,
      cancelled_at, reason, u.name as by, recurrence
    ${from} and ${meets} order by ${order}, monitoring_silences.id limit ${WINDOW} offset ${offset}`)
}

/** What costs a look at servers, rules and alerts for each: of the silences that are shown. */
async function detailsOf(
  { hub, companyId }: ViewContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Details>> {
  const rows = await hub.database.db.execute<Details>(sql`
    select q.id,
      (select array_agg(n.name order by n.name) from (select s.name from servers s
        where s.company_id = ${companyId} and s.id = any(q.resolved_server_ids) order by lower(s.name) limit 3) n) as server_names,
      (select json_agg(json_build_object('id', given.id, 'name', r.name) order by given.position)
        from unnest(q.rule_ids) with ordinality as given (id, position)
        left join monitoring_rules r on r.company_id = ${companyId} and r.id = given.id and r.deleted_at is null) as rules,
      (select count(*)::int from monitoring_alerts x where x.company_id = ${companyId}
        and x.state in ('open', 'acknowledged') and x.suppressed
        and (coalesce((q.scope ->> 'all')::boolean, false) or x.server_id = any(q.resolved_server_ids))
        and (cardinality(q.rule_ids) = 0 or x.rule_id = any(q.rule_ids))) as hidden
    from monitoring_silences q where q.company_id = ${companyId} and q.id = any(${uuidList(ids)}::uuid[])`)
  return new Map(rows.map(row => [row.id, row]))
}

function toStatus({ cancelled_at, starts_at, ends_at, recurrence }: Stored, nowMs: number): SilenceStatus {
  const cancelledAt = cancelled_at === null ? null : new Date(cancelled_at)
  return statusOf({ cancelledAt, startsAt: new Date(starts_at), endsAt: new Date(ends_at), recurrence }, nowMs)
}

const toRow = (row: Stored, status: SilenceStatus, details: Details | undefined): SilenceRow => ({
  ...{ id: row.id, status, scope: row.scope, reason: row.reason, by: row.by, recurrence: row.recurrence },
  serverCount: row.scope.all ? null : row.server_count,
  serverNames: details?.server_names ?? [],
  startsAtMs: new Date(row.starts_at).getTime(),
  endsAtMs: new Date(row.ends_at).getTime(),
  rules: details?.rules ?? [],
  hiddenAlerts: details?.hidden ?? 0,
})

export const silencesView: View<SilencesView> = {
  permissions: ['monitoring.manage'],
  params: sitePages.silences.takes,
  async make(context) {
    const { hub, param } = context
    const { total, matching } = await countSilences(context)
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, matching - 1))
    const shown = await shownSilences(context, offset)
    const details = await detailsOf(
      context,
      shown.map(({ id }) => id),
    )
    const nowMs = hub.now()
    const rows = shown.map(row => toRow(row, toStatus(row, nowMs), details.get(row.id)))
    return { total, matching, offset, rows }
  },
}
