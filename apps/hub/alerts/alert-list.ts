// Alerts as people see them (document 1 "Alerts"; decision G-94).
import { and, count, desc, eq, gte, inArray, lte, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { type AlertState, alertStates } from '../../../core/lifecycle/alert.ts'
import type { Executor } from '../platform/db/connect.ts'
import { alertEvents, alerts, rules, servers } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { isAnyOf } from '../platform/db/transaction.ts'
import { collection, collectionReadBy, equals, filter, ofCompany } from '../platform/http/collection.ts'
import { instant, oneOf, uuid } from '../platform/http/request-schema.ts'
import { alertEventResponse, alertResponse } from './alert-response.ts'

const acknowledger = alias(users, 'acknowledger')
const closer = alias(users, 'closer')
const groupAlert = alias(alerts, 'group_alert')

const selectAlerts = (db: Executor) =>
  db
    .select({
      alert: alerts,
      server: { id: servers.id, name: servers.name, hostname: servers.hostname },
      rule: { id: rules.id, name: rules.name, kind: rules.kind },
      acknowledger: { id: acknowledger.id, name: acknowledger.name },
      closer: { id: closer.id, name: closer.name },
      group: { key: groupAlert.seriesKey, total: groupAlert.groupTotal, memberIds: groupAlert.groupMemberIds },
    })
    .from(alerts)
    .innerJoin(servers, eq(servers.id, alerts.serverId))
    .leftJoin(rules, eq(rules.id, alerts.ruleId))
    .leftJoin(acknowledger, eq(acknowledger.id, alerts.acknowledgedBy))
    .leftJoin(closer, eq(closer.id, alerts.closedBy))
    .leftJoin(groupAlert, eq(groupAlert.id, alerts.groupId))

export type AlertRow = Awaited<ReturnType<typeof selectAlerts>>[number]

export function presentAlert({ alert, server, rule, acknowledger, closer, group }: AlertRow) {
  const own =
    alert.type === 'group_down'
      ? { key: alert.seriesKey, total: alert.groupTotal, member_server_ids: alert.groupMemberIds ?? [] }
      : null
  return {
    id: alert.id,
    company_id: alert.companyId,
    type: alert.type,
    server,
    server_id: alert.serverId,
    agent_id: alert.agentId,
    rule,
    rule_id: alert.ruleId,
    series_key: alert.seriesKey,
    labels: alert.labels,
    severity: alert.severity,
    state: alert.state,
    opened_at: alert.openedAt,
    resolved_at: alert.resolvedAt,
    resolved_reason: alert.resolvedReason,
    last_value: alert.lastValue,
    peak_value: alert.peakValue,
    threshold: alert.threshold,
    suppressed: alert.suppressed,
    suppress_reason: alert.suppressReason,
    flapping: alert.flapping,
    group_id: alert.groupId,
    group: own ?? (group && { key: group.key, total: group.total, member_server_ids: group.memberIds ?? [] }),
    acknowledged_by: acknowledger,
    acknowledged_at: alert.acknowledgedAt,
    closed_by: closer,
    closed_at: alert.closedAt,
    event_count: alert.eventCount,
    last_event_seq: alert.lastEventSeq,
  }
}

export const presentAlerts = (rows: readonly AlertRow[]) => rows.map(presentAlert)

export const activeStates: readonly AlertState[] = ['open', 'acknowledged']

type Counted = { readonly state?: AlertState | 'active' | undefined; readonly severity?: string | undefined }

/** The total of lists that filter by state and severity alone is summed from the kept counts; null for any other. */
function keptCount(db: Executor, companyId: string, { state, severity, ...others }: Counted): Promise<number> | null {
  if (Object.values(others).some(value => value !== undefined)) return null
  const states = state === 'active' ? activeStates : state ? [state] : alertStates
  return db
    .execute<{ total: number }>(sql`
      select coalesce(sum(count), 0)::int as total from monitoring_alert_counts
      where company_id = ${companyId} and state in ${states} and (${severity ?? null}::text is null
        or severity = ${severity ?? null})`)
    .then(rows => rows[0]?.total ?? 0)
}

const NEWEST_FIRST = [desc(alerts.openedAt), desc(alerts.id)]

export const alertCollection = collection({
  table: alerts,
  scope: ofCompany(alerts.companyId),
  filters: {
    state: filter(oneOf([...alertStates, 'active']), state =>
      state === 'active' ? inArray(alerts.state, [...activeStates]) : eq(alerts.state, state),
    ),
    severity: equals(alerts.severity, oneOf(severities)),
    server_id: equals(alerts.serverId, uuid()),
    agent_id: equals(alerts.agentId, uuid()),
    opened_from: filter(instant(), from => gte(alerts.openedAt, new Date(from))),
    opened_to: filter(instant(), to => lte(alerts.openedAt, new Date(to))),
  },
  within: { group_id: equals(alerts.groupId, uuid()) },
  select: selectAlerts,
  order: NEWEST_FIRST,
  // The joins must not lead the planner away from the index that has the page.
  pageBy: 'ids_first',
  count: ({ hub, companyId }, given) => keptCount(hub.database.db, companyId, given),
  response: alertResponse,
  present: presentAlert,
})

export const findAlert = alertCollection.find

/** The alerts of the ids, newest first. */
export async function alertsByIds(db: Executor, companyId: string, ids: readonly string[]): Promise<AlertRow[]> {
  if (ids.length === 0) return []
  return selectAlerts(db)
    .where(and(eq(alerts.companyId, companyId), isAnyOf(alerts.id, ids)))
    .orderBy(...NEWEST_FIRST)
}

/** Open and acknowledged alerts of a server, newest first. */
export async function openAlertsOf(db: Executor, companyId: string, serverId: string): Promise<AlertRow[]> {
  return selectAlerts(db)
    .where(
      and(eq(alerts.companyId, companyId), eq(alerts.serverId, serverId), inArray(alerts.state, [...activeStates])),
    )
    .orderBy(...NEWEST_FIRST)
    .limit(100)
}

/** The log of an alert, newest first. */
export const alertEventCollection = collectionReadBy({
  filters: {},
  within: { alert_id: uuid() },
  async read({ hub, companyId }, { alert_id: alertId = '' }, { limit, offset }) {
    const { db } = hub.database
    const where = and(eq(alertEvents.companyId, companyId), eq(alertEvents.alertId, alertId))
    // The page is found in the index alone, and its events by the key of that index: ids have none.
    const keys = sql`select occurred_at, seq, id from monitoring_alert_events
      where company_id = ${companyId} and alert_id = ${alertId}
      order by occurred_at desc, seq desc limit ${limit} offset ${offset}`
    const [rows, totals] = await Promise.all([
      db
        .select({
          id: alertEvents.id,
          alert_id: alertEvents.alertId,
          event_id: alertEvents.eventId,
          seq: alertEvents.seq,
          type: alertEvents.type,
          occurred_at: alertEvents.occurredAt,
          payload: alertEvents.payload,
        })
        .from(alertEvents)
        .where(and(where, sql`(${alertEvents.occurredAt}, ${alertEvents.seq}, ${alertEvents.id}) in (${keys})`))
        .orderBy(desc(alertEvents.occurredAt), desc(alertEvents.seq)),
      db.select({ total: count() }).from(alertEvents).where(where),
    ])
    return { rows, total: totals[0]?.total ?? 0 }
  },
  response: alertEventResponse,
  present: row => row,
})
