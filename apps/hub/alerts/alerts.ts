// Alerts as people handle them: acknowledged, closed, commented (document 1 "Alerts"; decisions G-95, G-96). Only
// events create them.
import { randomUUID } from 'node:crypto'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { closeGroup } from '../../../core/lifecycle/alerts-of-incident.ts'
import { auditRequest } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { alertComments, alerts } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type AlertRow, activeStates, findAlert } from './alert-list.ts'
import { storeAlerts, toAlert } from './alert-rows.ts'

const COMMENTS_SHOWN = 200

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

/**
 * Closes an alert by hand. The collector is not notified; the next opened event makes a new alert. Children of a closed
 * group become alerts of their own again.
 */
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

/** The children of an incident that ended become alerts of their own again, or go to another one that has them. */
export async function releaseGroup(tx: Tx, group: AlertRow['alert']): Promise<void> {
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
