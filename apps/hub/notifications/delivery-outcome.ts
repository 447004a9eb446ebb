// What becomes of a delivery: delivered, refused for good, and sent again on request. When a failed one is tried again:
// apps/hub/platform/jobs/retries-and-concurrency.ts; when it is given up, and its webhook switched off:
// switch-off-webhook.ts.
import { eq, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { notificationDeliveries } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'
import { countAskedMail } from './asked-mail-rate.ts'
import { type Delivery, deliveryCollection, jobOf } from './deliveries.ts'

/** The delivery of a job; null when another attempt has delivered it meanwhile. */
export async function loadWaitingDelivery(hub: Hub, payload: JobPayload): Promise<Delivery | null> {
  const id = String(payload.delivery_id)
  const { db } = hub.database
  const [row] = await db.select().from(notificationDeliveries).where(eq(notificationDeliveries.id, id))
  if (!row) throw new PermanentJobFailure('the delivery is gone')
  return row.state === 'delivered' ? null : row
}

/**
 * Records the outcome of an attempt; `error` is the text that people may read. True while the delivery is still due:
 * this attempt failed, and no other has delivered it meanwhile.
 */
export async function recordTry(
  hub: Hub,
  delivery: Delivery,
  code: number | null,
  error: string | null,
): Promise<boolean> {
  const isDelivered = error === null
  hub.metrics.notifications.inc({ channel: delivery.channel, result: isDelivered ? 'delivered' : 'error' })
  const rows = await hub.database.db.execute(sql`
    update notification_deliveries set tries = tries + 1, response_code = ${code}, last_error = ${error},
      state = case when ${isDelivered} then 'delivered' else state end,
      finished_at = case when ${isDelivered} then now() else finished_at end
    where id = ${delivery.id} returning state`)
  return rows[0]?.state === 'waiting'
}

/** Ends a delivery that no further try would bring: what people read of it, and the end of its job. */
export async function refuseDelivery(hub: Hub, delivery: Delivery, reason: string): Promise<never> {
  await recordTry(hub, delivery, null, reason)
  throw new PermanentJobFailure(reason)
}

/**
 * Sends a delivery again: it waits as it first did, with all its attempts. Throws 404, and on request 422 for a
 * delivery that has arrived.
 */
export async function redeliver(
  { hub, caller, companyId }: RouteContext,
  id: string,
  { webhookId, refusesDelivered = false }: { readonly webhookId?: string; readonly refusesDelivered?: boolean },
): Promise<string> {
  return inTransaction(hub.database.db, async tx => {
    const row = await deliveryCollection.lock(tx, companyId, id)
    if (webhookId !== undefined && row.webhookId !== webhookId) throw notFound()
    if (refusesDelivered && row.state === 'delivered')
      throw invalidField('state', 'state_refused', { state: row.state })
    if (row.channel === 'email') countAskedMail(hub, caller, companyId)
    await tx.db
      .update(notificationDeliveries)
      .set({ state: 'waiting', finishedAt: null })
      .where(eq(notificationDeliveries.id, row.id))
    hub.jobs.enqueue(tx, [jobOf(row)])
    return row.id
  })
}
