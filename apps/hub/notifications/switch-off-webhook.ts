// After how many deliveries that were given up a webhook is switched off (decision G-105).
import { sql } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import type { JobPayload } from '../platform/jobs/jobs.ts'

const FAILURES_TO_DISABLE = 50
const REASON = 'too many failed deliveries'

type Counted = { id: string; company_id: string; name: string; enabled: boolean }

/**
 * Called after the last attempt. A webhook is disabled after this many failed deliveries in a row (decision G-105). A
 * webhook that is already disabled was not called, so nothing is counted against it. The audit log has what the hub
 * did.
 */
export async function giveUpDelivery(hub: Hub, payload: JobPayload): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const counted = await tx.db.execute<Counted>(sql`
    with ended as (update notification_deliveries set state = 'failed', finished_at = now()
      where id = ${String(payload.delivery_id)} and state = 'waiting' returning webhook_id)
    update webhooks w set failures_in_a_row = w.failures_in_a_row + 1,
      enabled = w.failures_in_a_row + 1 < ${FAILURES_TO_DISABLE},
      disabled_reason = case when w.failures_in_a_row + 1 < ${FAILURES_TO_DISABLE} then w.disabled_reason
        else ${REASON} end
    from ended e where w.id = e.webhook_id and w.enabled returning w.id, w.company_id, w.name, w.enabled`)
    for (const { id, company_id, name, enabled } of counted)
      if (!enabled)
        await auditByHub(
          tx,
          company_id,
          'webhook.update',
          { type: 'webhook', id, name },
          { enabled: { old: true, new: false }, disabled_reason: { old: null, new: REASON } },
        )
  })
}
