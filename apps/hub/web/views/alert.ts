// One alert: what it is about, why it is as it is, what happened to it, who was told, and what else happened then.
import { and, desc, eq, sql } from 'drizzle-orm'
import { alertingPath, parseAlerting } from '../../../../core/admin-api/alerting.ts'
import type { Operator } from '../../../../core/alerting/rules/rule.ts'
import { alertsByIds } from '../../alerts/alert-list.ts'
import { commentsOf } from '../../alerts/alerts.ts'
import type { Hub } from '../../hub-context.ts'
import { shownTarget } from '../../notifications/deliveries.ts'
import { alertEvents } from '../../platform/db/schema.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { type AlertFace, facesWhere } from './alerts.ts'
import { type Decision, decisionOfRule, decisionOfSeries } from './decision.ts'
import type { View } from './view.ts'

const EVENTS_SHOWN = 100
const DELIVERIES_SHOWN = 50
const OTHERS_SHOWN = 20
const MEMBERS_SHOWN = 200
const AROUND_MINUTES = 15
/** Names of more servers would be most of the page. */
const MAP_SERVERS_MAX = 1_000

export type AlertView = {
  readonly alert: AlertFace
  readonly labels: Readonly<Record<string, string>>
  readonly seriesKey: string
  readonly peakValue: number | null
  /** The value that opened it. */
  readonly openedValue: number | null
  readonly suppressReason: string | null
  readonly resolvedReason: string | null
  readonly groupId: string | null
  readonly rule: {
    readonly id: string
    readonly operator: Operator | null
    readonly forSeconds: number | null
    readonly recoverThreshold: number | null
    readonly recoverForSeconds: number | null
  } | null
  readonly comments: readonly {
    readonly id: string
    readonly by: string | null
    readonly action: string
    readonly text: string
    readonly atMs: number
  }[]
  readonly events: readonly {
    readonly id: string
    readonly type: string
    readonly atMs: number
    readonly value: number | null
  }[]
  /** Null: the viewer may not see who is told. */
  readonly deliveries:
    | readonly {
        readonly id: string
        readonly channel: string
        readonly target: string
        readonly type: string
        readonly state: string
        readonly tries: number
        readonly error: string | null
        readonly atMs: number
      }[]
    | null
  /** In how many people's inboxes it stands, and how many have read it there. */
  readonly inboxes: { readonly people: number; readonly read: number }
  /** What the collector does with the series now; null: it does not say. */
  readonly why: Decision | null
  /** Of the same server within a quarter of an hour, and the same alert before. */
  readonly around: readonly AlertFace[]
  readonly before: readonly AlertFace[]
  /** Of an incident: the alerts of its servers, the newest. */
  readonly members: readonly AlertFace[]
  /** All its servers, as a map shows them; null: it is no incident. */
  readonly map: IncidentMap | null
}

/** Servers of an incident by data centre; the marks are those of the host map, one for each server. */
export type IncidentMap = {
  readonly groups: readonly { readonly datacenter: string; readonly marks: string }[]
  /** In the order of the marks. */
  readonly servers: readonly { readonly id: string; readonly name: string }[]
  readonly down: number
  /** Servers that found no place. */
  readonly leftOut: number
}

type DeliveryRow = {
  id: string
  channel: string
  target: string
  type: string
  state: string
  tries: number
  last_error: string | null
  created_at: string
}

async function whyOf(
  hub: Hub,
  companyId: string,
  serverId: string,
  ruleId: string | null,
  seriesKey: string,
): Promise<AlertView['why']> {
  if (ruleId === null) return null
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  if (target === null) return null
  const answer = await hub.collectors.query(target, 'alerting', alertingPath(companyId, serverId))
  const alerting = answer?.status === 200 ? parseAlerting(answer.body) : null
  const series = alerting?.series.find(each => each.rule_id === ruleId && each.series_key === seriesKey)
  if (series) return decisionOfSeries(series)
  const rule = alerting?.rules.find(each => each.rule_id === ruleId)
  return rule === undefined ? null : decisionOfRule(rule)
}

async function eventsOf(hub: Hub, companyId: string, alertId: string): Promise<AlertView['events']> {
  const rows = await hub.database.db
    .select({ id: alertEvents.id, type: alertEvents.type, at: alertEvents.occurredAt, payload: alertEvents.payload })
    .from(alertEvents)
    .where(and(eq(alertEvents.companyId, companyId), eq(alertEvents.alertId, alertId)))
    .orderBy(desc(alertEvents.occurredAt), desc(alertEvents.seq))
    .limit(EVENTS_SHOWN)
  return rows.map(({ id, type, at, payload }) => {
    const value = payload.value
    return { id, type, atMs: at.getTime(), value: typeof value === 'number' ? value : null }
  })
}

async function deliveriesOf(
  hub: Hub,
  companyId: string,
  alertId: string,
  maySeeWebhooks: boolean,
): Promise<NonNullable<AlertView['deliveries']>> {
  const rows = await hub.database.db.execute<DeliveryRow>(sql`
    select id, channel, target, type, state, tries, last_error, created_at from notification_deliveries
    where company_id = ${companyId} and alert_id = ${alertId} order by position desc limit ${DELIVERIES_SHOWN}`)
  return rows.map(({ created_at, last_error, ...row }) => ({
    ...row,
    target: shownTarget(row, maySeeWebhooks),
    error: last_error,
    atMs: new Date(created_at).getTime(),
  }))
}

async function openedValueOf(hub: Hub, companyId: string, alertId: string): Promise<number | null> {
  const [row] = await hub.database.db.execute<{ value: number | null }>(sql`
    select (payload ->> 'value')::float8 as value from monitoring_alert_events
    where company_id = ${companyId} and alert_id = ${alertId} order by occurred_at, seq limit 1`)
  return row?.value ?? null
}

async function inboxesOf(hub: Hub, companyId: string, alertId: string): Promise<AlertView['inboxes']> {
  const [row] = await hub.database.db.execute<{ people: number; read: number }>(sql`
    select count(distinct user_id)::int as people, (count(distinct user_id) filter (where read_at is not null))::int as read
    from notifications where company_id = ${companyId} and alert_id = ${alertId}`)
  return row ?? { people: 0, read: 0 }
}

async function incidentMap(hub: Hub, companyId: string, alertId: string): Promise<IncidentMap> {
  const rows = await hub.database.db.execute<{
    id: string
    name: string
    dc: string
    is_down: boolean
    count: number
  }>(sql`
    select s.id, s.name, coalesce(s.datacenter, '') as dc, x.is_down, (count(*) over ())::int as count
    from (select server_id, bool_or(state in ('open', 'acknowledged', 'grouped')) as is_down from monitoring_alerts
      where company_id = ${companyId} and group_id = ${alertId} group by server_id) x
      join servers s on s.company_id = ${companyId} and s.id = x.server_id
    order by s.datacenter nulls last, lower(s.name), s.id limit ${MAP_SERVERS_MAX}`)
  const groups = new Map<string, string>()
  for (const { dc, is_down } of rows) groups.set(dc, (groups.get(dc) ?? '') + (is_down ? 'd' : '.'))
  return {
    groups: [...groups].map(([datacenter, marks]) => ({ datacenter, marks })),
    servers: rows.map(({ id, name }) => ({ id, name })),
    down: rows.filter(row => row.is_down).length,
    leftOut: (rows[0]?.count ?? 0) - rows.length,
  }
}

export const alertView: View<AlertView> = {
  permissions: ['monitoring.view'],
  optional: ['notifications.view', 'webhooks.view'],
  params: ['alert'],
  async make({ hub, companyId, param, may }) {
    const id = param('alert')
    if (!isUuid(id)) throw notFound()
    const { db } = hub.database
    const [row] = await alertsByIds(db, companyId, [id])
    const [face] = await facesWhere(hub, companyId, sql`x.id = ${id}`, 1)
    if (!row || !face) throw notFound()
    const { alert } = row
    const opened = sql`${alert.openedAt.toISOString()}::timestamptz`
    const around = sql`make_interval(mins => ${AROUND_MINUTES})`
    const [rule, comments, events, deliveries, inboxes, why, others, before, members, map] = await Promise.all([
      ruleOf(hub, companyId, alert.ruleId),
      commentsOf(db, id),
      eventsOf(hub, companyId, id),
      may('notifications.view') ? deliveriesOf(hub, companyId, id, may('webhooks.view')) : null,
      inboxesOf(hub, companyId, id),
      whyOf(hub, companyId, alert.serverId, alert.ruleId, alert.seriesKey),
      facesWhere(
        hub,
        companyId,
        sql`x.server_id = ${alert.serverId} and x.id <> ${id} and x.opened_at between ${opened} - ${around} and ${opened} + ${around}`,
        OTHERS_SHOWN,
      ),
      facesWhere(
        hub,
        companyId,
        sql`x.server_id = ${alert.serverId} and x.rule_key = ${alert.ruleKey} and x.series_key = ${alert.seriesKey} and x.opened_at < ${opened}`,
        OTHERS_SHOWN,
      ),
      alert.type === 'group_down' ? facesWhere(hub, companyId, sql`x.group_id = ${id}`, MEMBERS_SHOWN) : [],
      alert.type === 'group_down' ? incidentMap(hub, companyId, id) : null,
    ])
    return {
      alert: face,
      labels: alert.labels,
      seriesKey: alert.seriesKey,
      peakValue: alert.peakValue,
      openedValue: await openedValueOf(hub, companyId, id),
      suppressReason: alert.suppressReason,
      resolvedReason: alert.resolvedReason,
      groupId: alert.groupId,
      rule,
      comments: comments.map(({ id, user, action, comment, created_at }) => ({
        id,
        by: user?.name ?? null,
        action,
        text: comment,
        atMs: created_at.getTime(),
      })),
      events,
      deliveries,
      inboxes,
      why,
      around: others,
      before,
      members,
      map,
    }
  },
}

async function ruleOf(hub: Hub, companyId: string, ruleId: string | null): Promise<AlertView['rule']> {
  if (ruleId === null) return null
  const [row] = await hub.database.db.execute<{
    id: string
    operator: Operator | null
    for_seconds: number | null
    recover_threshold: number | null
    recover_for_seconds: number | null
  }>(sql`select id, operator, for_seconds, recover_threshold, recover_for_seconds from monitoring_rules
    where company_id = ${companyId} and id = ${ruleId} and deleted_at is null`)
  if (row === undefined) return null
  return {
    ...{ id: row.id, operator: row.operator, forSeconds: row.for_seconds },
    ...{ recoverThreshold: row.recover_threshold, recoverForSeconds: row.recover_for_seconds },
  }
}
