// Alerts as people see and handle them (document 1 "Alerts"; decisions G-94 to G-96). Only events create them.
import { randomUUID } from 'node:crypto'
import { and, count, desc, eq, gte, inArray, lte, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import { type AlertState, alertStates, closeGroup } from '../../../core/lifecycle/alert.ts'
import { auditRequest } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { alertComments, alertEvents, alerts, rules, servers } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction, isAnyOf, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import type { Page } from '../platform/http/paging.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { storeAlerts, toAlert } from './alert-rows.ts'

const COMMENTS_SHOWN = 200
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

export type AlertFilter = {
  readonly state?: AlertState | 'active' | undefined
  readonly severity?: Severity | undefined
  readonly serverId?: string | undefined
  readonly agentId?: string | undefined
  readonly groupId?: string | undefined
  readonly openedFrom?: Date | undefined
  readonly openedTo?: Date | undefined
}

export const activeStates: readonly AlertState[] = ['open', 'acknowledged']

function alertFilter(companyId: string, filter: AlertFilter) {
  return and(
    eq(alerts.companyId, companyId),
    filter.state === undefined
      ? undefined
      : filter.state === 'active'
        ? inArray(alerts.state, [...activeStates])
        : eq(alerts.state, filter.state),
    filter.severity ? eq(alerts.severity, filter.severity) : undefined,
    filter.serverId ? eq(alerts.serverId, filter.serverId) : undefined,
    filter.agentId ? eq(alerts.agentId, filter.agentId) : undefined,
    filter.groupId ? eq(alerts.groupId, filter.groupId) : undefined,
    filter.openedFrom ? gte(alerts.openedAt, filter.openedFrom) : undefined,
    filter.openedTo ? lte(alerts.openedAt, filter.openedTo) : undefined,
  )
}

/** The total of a list; filters by state and severity alone are summed from the kept counts. */
async function countAlerts(db: Executor, companyId: string, filter: AlertFilter): Promise<number> {
  const { serverId, agentId, groupId, openedFrom, openedTo } = filter
  if (serverId || agentId || groupId || openedFrom || openedTo) {
    const [row] = await db.select({ total: count() }).from(alerts).where(alertFilter(companyId, filter))
    return row?.total ?? 0
  }
  const states = filter.state === 'active' ? activeStates : filter.state ? [filter.state] : alertStates
  const [row] = await db.execute<{ total: number }>(sql`
    select coalesce(sum(count), 0)::int as total from monitoring_alert_counts
    where company_id = ${companyId} and state in ${states} and (${filter.severity ?? null}::text is null
      or severity = ${filter.severity ?? null})`)
  return row?.total ?? 0
}

/** Newest first. The page's ids are found in the index alone; the joins run for those rows only. */
export async function listAlerts(db: Executor, companyId: string, filter: AlertFilter, page: Page) {
  const where = alertFilter(companyId, filter)
  const [ids, total] = await Promise.all([
    db
      .select({ id: alerts.id })
      .from(alerts)
      .where(where)
      .orderBy(desc(alerts.openedAt), desc(alerts.id))
      .limit(page.limit)
      .offset(page.offset),
    countAlerts(db, companyId, filter),
  ])
  const rows = await alertsByIds(
    db,
    companyId,
    ids.map(row => row.id),
  )
  return { rows, total }
}

/** The alerts of the ids, newest first. */
export async function alertsByIds(db: Executor, companyId: string, ids: readonly string[]): Promise<AlertRow[]> {
  if (ids.length === 0) return []
  return selectAlerts(db)
    .where(and(eq(alerts.companyId, companyId), isAnyOf(alerts.id, ids)))
    .orderBy(desc(alerts.openedAt), desc(alerts.id))
}

export async function findAlert(db: Executor, companyId: string, id: string): Promise<AlertRow> {
  if (!isUuid(id)) throw notFound()
  const [row] = await selectAlerts(db).where(and(eq(alerts.companyId, companyId), eq(alerts.id, id)))
  if (!row) throw notFound()
  return row
}

/** Open and acknowledged alerts of a machine, newest first. */
export async function openAlertsOf(db: Executor, companyId: string, serverId: string): Promise<AlertRow[]> {
  return selectAlerts(db)
    .where(
      and(eq(alerts.companyId, companyId), eq(alerts.serverId, serverId), inArray(alerts.state, [...activeStates])),
    )
    .orderBy(desc(alerts.openedAt), desc(alerts.id))
    .limit(100)
}

async function lockAlert(tx: Tx, companyId: string, id: string): Promise<AlertRow> {
  await lockCompany(tx, companyId)
  await tx.db.execute(sql`select id from monitoring_alerts where company_id = ${companyId} and id = ${id} for update`)
  return findAlert(tx.db, companyId, id)
}

function refuseUnlessActive(row: AlertRow): void {
  const { state } = row.alert
  if (state !== 'open' && state !== 'acknowledged') throw invalidField('state', 'state_refused', { state })
}

async function addComment(tx: Tx, context: RouteContext, alertId: string, action: string, comment: string | null) {
  if (comment === null) return
  const userId = context.caller.user.id
  await tx.db.insert(alertComments).values({ id: randomUUID(), alertId, userId, action, comment })
}

/** The first acknowledgement is kept; it neither closes the alert nor stops its reminders. */
export async function acknowledgeAlert(context: RouteContext, id: string, comment: string | null): Promise<AlertRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const row = await lockAlert(tx, companyId, id)
    refuseUnlessActive(row)
    await addComment(tx, context, id, 'acknowledge', comment)
    if (row.alert.state === 'acknowledged') return row
    await tx.db
      .update(alerts)
      .set({ state: 'acknowledged', acknowledgedBy: context.caller.user.id, acknowledgedAt: new Date(hub.now()) })
      .where(eq(alerts.id, id))
    await auditRequest(
      tx,
      context,
      'alert.acknowledge',
      { type: 'alert', id, name: row.alert.seriesKey },
      {
        state: { old: 'open', new: 'acknowledged' },
      },
    )
    return findAlert(tx.db, companyId, id)
  })
}

/** Closes by hand. The collector is not told; the next opening makes a new alert. A group gives its children back. */
export async function closeAlert(context: RouteContext, id: string, comment: string | null): Promise<AlertRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const row = await lockAlert(tx, companyId, id)
    refuseUnlessActive(row)
    await tx.db
      .update(alerts)
      .set({ state: 'closed', closedBy: context.caller.user.id, closedAt: new Date(hub.now()), flapping: false })
      .where(eq(alerts.id, id))
    if (row.alert.type === 'group_down') await releaseGroup(tx, row.alert)
    await addComment(tx, context, id, 'close', comment)
    await auditRequest(
      tx,
      context,
      'alert.close',
      { type: 'alert', id, name: row.alert.seriesKey },
      {
        state: { old: row.alert.state, new: 'closed' },
      },
    )
    return findAlert(tx.db, companyId, id)
  })
}

async function releaseGroup(tx: Tx, group: AlertRow['alert']): Promise<void> {
  const { companyId } = group
  const children = await tx.db
    .select()
    .from(alerts)
    .where(and(eq(alerts.companyId, companyId), eq(alerts.groupId, group.id)))
  const groups = await tx.db
    .select()
    .from(alerts)
    .where(
      and(eq(alerts.companyId, companyId), eq(alerts.type, 'group_down'), inArray(alerts.state, [...activeStates])),
    )
    .orderBy(alerts.openedAt)
  const grouped = children.filter(child => child.state === 'grouped')
  await storeAlerts(tx, [], closeGroup(toAlert(group), grouped.map(toAlert), groups.map(toAlert)))
}

/** Ends the active alerts of a server that goes (decision G-107). An incident that was reported on it gives its children back. */
export async function resolveServerAlerts(tx: Tx, serverId: string, nowMs: number): Promise<void> {
  const ended = await tx.db
    .update(alerts)
    .set({ state: 'resolved', resolvedAt: new Date(nowMs), resolvedReason: 'server_removed', groupId: null })
    .where(and(eq(alerts.serverId, serverId), inArray(alerts.state, [...activeStates, 'grouped'])))
    .returning()
  for (const alert of ended) if (alert.type === 'group_down') await releaseGroup(tx, alert)
}

export async function commentAlert(context: RouteContext, id: string, comment: string) {
  const { hub } = context
  const commentId = randomUUID()
  await inTransaction(hub.database.db, async tx => {
    await tx.db
      .insert(alertComments)
      .values({ id: commentId, alertId: id, userId: context.caller.user.id, action: 'comment', comment })
    await auditRequest(tx, context, 'alert.comment', { type: 'alert', id, name: null })
  })
  const user = { id: context.caller.user.id, name: context.caller.user.name }
  return { id: commentId, alert_id: id, user, action: 'comment', comment, created_at: new Date(hub.now()) }
}

/** What people wrote to an alert, oldest first. */
export async function commentsOf(db: Executor, alertId: string) {
  const rows = await db
    .select({ comment: alertComments, user: { id: users.id, name: users.name } })
    .from(alertComments)
    .leftJoin(users, eq(users.id, alertComments.userId))
    .where(eq(alertComments.alertId, alertId))
    .orderBy(alertComments.createdAt, alertComments.id)
    .limit(COMMENTS_SHOWN)
  return rows.map(({ comment, user }) => ({
    id: comment.id,
    alert_id: comment.alertId,
    user,
    action: comment.action,
    comment: comment.comment,
    created_at: comment.createdAt,
  }))
}

/** The log of an alert, newest first. */
export async function listAlertEvents(db: Executor, companyId: string, alertId: string, page: Page) {
  const where = and(eq(alertEvents.companyId, companyId), eq(alertEvents.alertId, alertId))
  const order = [desc(alertEvents.occurredAt), desc(alertEvents.seq)]
  // The page is found in the index alone, and its events by the key of that index: ids have none.
  const keys = sql`select occurred_at, seq, id from monitoring_alert_events
    where company_id = ${companyId} and alert_id = ${alertId}
    order by occurred_at desc, seq desc limit ${page.limit} offset ${page.offset}`
  const [rows, totals] = await Promise.all([
    db
      .select()
      .from(alertEvents)
      .where(and(where, sql`(${alertEvents.occurredAt}, ${alertEvents.seq}, ${alertEvents.id}) in (${keys})`))
      .orderBy(...order),
    db.select({ total: count() }).from(alertEvents).where(where),
  ])
  const data = rows.map(row => ({
    id: row.id,
    alert_id: row.alertId,
    event_id: row.eventId,
    seq: row.seq,
    type: row.type,
    occurred_at: row.occurredAt,
    payload: row.payload,
  }))
  return { data, total: totals[0]?.total ?? 0 }
}

export async function alertStats(db: Executor, companyId: string) {
  const [rows, hidden] = await Promise.all([
    db.execute<{ state: string; severity: string; count: number }>(sql`
      select state, severity, count::int as count from monitoring_alert_counts where company_id = ${companyId}`),
    db.execute<{ count: number }>(sql`select count(*)::int as count from monitoring_alerts
      where company_id = ${companyId} and suppressed and state in ('open', 'acknowledged')`),
  ])
  const byState: Record<string, number> = { open: 0, acknowledged: 0, resolved: 0, closed: 0, grouped: 0 }
  const bySeverity: Record<string, number> = { info: 0, warning: 0, critical: 0 }
  for (const row of rows) {
    byState[row.state] = (byState[row.state] ?? 0) + row.count
    if (row.state !== 'open' && row.state !== 'acknowledged') continue
    bySeverity[row.severity] = (bySeverity[row.severity] ?? 0) + row.count
  }
  return {
    active: (byState.open ?? 0) + (byState.acknowledged ?? 0),
    acknowledged: byState.acknowledged ?? 0,
    suppressed: hidden[0]?.count ?? 0,
    by_state: byState,
    by_severity: bySeverity,
  }
}
