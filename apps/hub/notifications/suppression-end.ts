// Notifications when a suppression ends (decision G-101): of an alert that opened suppressed and is still active, once,
// whatever its events said since; and of a recovery during a silence when people had been notified of the alert before.
// So is told what flapping opened and left open (decisions G-99, G-100).
import { inArray, sql } from 'drizzle-orm'
import { type Alert, isActive } from '../../../core/lifecycle/alert.ts'
import { toAlert } from '../alerts/alert-rows.ts'
import type { Hub } from '../hub-context.ts'
import { alerts } from '../platform/db/schema.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { enqueueNotifications, type Notification } from './outbox.ts'

const AT_ONCE = 200

/** Whether alert `a` is suppressed now, by its server's status or by a silence that covers it. */
const IS_SUPPRESSED_NOW = sql`(
  exists (select 1 from servers s where s.id = a.server_id and s.status in ('maintenance', 'decommissioned'))
  or exists (select 1 from monitoring_silences q where q.company_id = a.company_id and q.deleted_at is null
    and q.cancelled_at is null and q.starts_at <= now() and q.ends_at > now()
    and ((q.scope->>'all')::boolean or a.server_id = any(q.resolved_server_ids))
    and (cardinality(q.rule_ids) = 0 or a.rule_id = any(q.rule_ids))))`

// Without `held_back`: alerts that a hub of before it opened. The states stand in each part for its index.
const IS_HELD_BACK =
  sql.raw(`((a.suppressed and a.held_back is null and a.notified_at is null and a.state in ('open', 'acknowledged'))
  or (a.held_back is not null and a.notified_at is null and a.state in ('open', 'acknowledged')
    and not (a.held_back = 'flapping' and a.flapping))
  or a.recovery_untold)`)
/** The alerts of which suppressions hold something back. */
export const HELD_BACK = sql`monitoring_alerts a where ${IS_HELD_BACK}`

/** As people are told of it: that it opened suppressed stays so when its last event was not. */
function asHeldBack(alert: Alert): Alert {
  const { heldBack } = alert
  if (alert.suppressed || !isActive(alert) || heldBack === null || heldBack === 'flapping') return alert
  return { ...alert, suppressed: true, suppressReason: heldBack === 'suppressed' ? null : heldBack }
}

/** Sends the notifications that suppressions held back and that are due now that these have ended. */
export async function tellEndedSuppressions(hub: Hub): Promise<void> {
  while ((await tellSome(hub)) === AT_ONCE) {
    // Each round is a transaction of its own.
  }
}

/** Returns the number of alerts for which people were notified. */
async function tellSome(hub: Hub): Promise<number> {
  return inTransaction(hub.database.db, async tx => {
    const due = await tx.db.execute<{ id: string }>(sql`
      select a.id from monitoring_alerts a
      where ${IS_HELD_BACK} and not ${IS_SUPPRESSED_NOW}
      order by a.opened_at limit ${AT_ONCE} for update of a skip locked`)
    if (due.length === 0) return 0
    const ids = due.map(row => row.id)
    const rows = await tx.db.select().from(alerts).where(inArray(alerts.id, ids)).orderBy(alerts.openedAt, alerts.id)
    await tx.db.execute(sql`
      update monitoring_alerts set notified_at = coalesce(notified_at, now()), recovery_untold = false,
        suppressed = case when state in ('open', 'acknowledged') then false else suppressed end,
        suppress_reason = case when state in ('open', 'acknowledged') then null else suppress_reason end
      where id in ${ids}`)
    const told: Notification[] = rows.map(row => {
      const alert = asHeldBack(toAlert(row))
      const isOver = alert.state === 'resolved'
      if (alert.type === 'agent_down') return { type: isOver ? 'agent.up' : 'agent.down', alert }
      if (alert.type === 'group_down') return { type: isOver ? 'group_resolved' : 'group_down', alert }
      return { type: isOver ? 'alert.resolved' : 'alert.opened', alert }
    })
    await enqueueNotifications(hub, tx, told)
    return due.length
  })
}
