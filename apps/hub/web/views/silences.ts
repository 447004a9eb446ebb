// The silences of a company: which hold, which are to come, which are over, and what they hide now.
import { sql } from 'drizzle-orm'
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import type { Recurrence } from '../../../../core/lifecycle/silence-windows.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { statusOf } from '../../silences/silence-list.ts'
import type { SilenceStatus } from '../../silences/silence-response.ts'
import { type Filtered, matchesFilter, parseFilter } from '../address/filter.ts'
import type { View, ViewContext } from './view.ts'

const WINDOW = 60
/** Older ones are found over the API. */
const READ_MAX = 2_000

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

export type SilencesView = {
  /** Of those that are looked at, current or past. */
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly SilenceRow[]
}

/** What a filter looks at. */
type Stored = {
  id: string
  scope: RuleScope
  server_count: number
  /** Of the names that the filter asks for, those whose servers the silence covers. */
  asked_servers: string[]
  starts_at: string
  ends_at: string
  cancelled_at: string | null
  reason: string
  by: string | null
  rule_ids: string[]
  rule_names: string[] | null
  recurrence: Recurrence | null
}

type Details = { id: string; server_names: string[] | null; hidden: number }

/** Of what is over the last ones, of what holds or is to come the first. */
function storedSilences(
  { hub, companyId }: ViewContext,
  isPast: boolean,
  askedServers: readonly string[],
): Promise<readonly Stored[]> {
  const over = sql`(q.cancelled_at is not null or (q.ends_at <= now() and q.recurrence is null))`
  return hub.database.db.execute<Stored>(sql`
    with asked as (select s.id, lower(s.name) as name from servers s where s.company_id = ${companyId}
      and lower(s.name) in (select jsonb_array_elements_text(${JSON.stringify(askedServers)}::jsonb)))
    select q.id, q.scope, cardinality(q.resolved_server_ids) as server_count,
      array(select a.name from asked a
        where coalesce((q.scope ->> 'all')::boolean, false) or a.id = any(q.resolved_server_ids)) as asked_servers,
      q.starts_at, q.ends_at, q.cancelled_at, q.reason, u.name as by, q.rule_ids,
      (select array_agg(r.name order by r.name) from monitoring_rules r
        where r.company_id = ${companyId} and r.id = any(q.rule_ids)) as rule_names, q.recurrence
    from monitoring_silences q left join users u on u.id = q.created_by
    where q.company_id = ${companyId} and q.deleted_at is null and q.recurrence_of is null and ${isPast ? over : sql`not ${over}`}
    order by ${isPast ? sql`q.ends_at desc` : sql`q.starts_at, q.ends_at`}, q.id limit ${READ_MAX}`)
}

/** What costs a look at servers and alerts for each: of the silences that are shown. */
async function detailsOf(
  { hub, companyId }: ViewContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Details>> {
  const rows = await hub.database.db.execute<Details>(sql`
    select q.id,
      (select array_agg(n.name order by n.name) from (select s.name from servers s
        where s.company_id = ${companyId} and s.id = any(q.resolved_server_ids) order by lower(s.name) limit 3) n) as server_names,
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

const filtered = (row: Stored, status: SilenceStatus): Filtered => ({
  words: [row.reason, row.by, ...(row.rule_names ?? [])],
  values: {
    state: status,
    server: row.asked_servers,
    rule: row.rule_names,
    by: row.by,
    tag: row.scope.tags,
    env: row.scope.environments,
    role: row.scope.roles,
    dc: row.scope.datacenters,
    servers: row.scope.all ? null : row.server_count,
    repeat: row.recurrence?.frequency ?? null,
  },
})

const toRow = (row: Stored, status: SilenceStatus, details: Details | undefined): SilenceRow => ({
  ...{ id: row.id, status, scope: row.scope, reason: row.reason, by: row.by, recurrence: row.recurrence },
  serverCount: row.scope.all ? null : row.server_count,
  serverNames: details?.server_names ?? [],
  startsAtMs: new Date(row.starts_at).getTime(),
  endsAtMs: new Date(row.ends_at).getTime(),
  ruleIds: row.rule_ids,
  ruleNames: row.rule_names ?? [],
  hiddenAlerts: details?.hidden ?? 0,
})

export const silencesView: View<SilencesView> = {
  permissions: ['monitoring.manage'],
  params: ['past', 'q', 'offset'],
  async make(context) {
    const { hub, param } = context
    const terms = parseFilter(param('q'))
    const askedServers = terms.filter(({ key }) => key === 'server').map(({ value }) => value.toLowerCase())
    const stored = await storedSilences(context, param('past') !== '', askedServers)
    const nowMs = hub.now()
    const matching = stored
      .map(row => ({ row, status: toStatus(row, nowMs) }))
      .filter(({ row, status }) => matchesFilter(filtered(row, status), terms))
    const offset = Math.min(Math.max(0, Math.floor(Number(param('offset')) || 0)), Math.max(0, matching.length - 1))
    const shown = matching.slice(offset, offset + WINDOW)
    const details = await detailsOf(
      context,
      shown.map(({ row }) => row.id),
    )
    return {
      total: stored.length,
      matching: matching.length,
      offset,
      rows: shown.map(({ row, status }) => toRow(row, status, details.get(row.id))),
    }
  },
}
