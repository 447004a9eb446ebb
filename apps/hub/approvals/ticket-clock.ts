// The clock of tickets, looked at every minute: due soon, overdue, expired, and whether enough people are left
// (resources.md ).
import { sql } from 'drizzle-orm'
import { tick } from '../../../core/lifecycle/approval-clock.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { addEvent, lockTicket, type TicketRow } from './ticket-store.ts'
import { Notices, settle } from './who-is-told.ts'

const OVERDUE = 'overdue'

async function tickRun(hub: Hub, companyId: string, runId: string, which = sql`true`): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const rows = await tx.db.execute<{ id: string }>(sql`
      select id from approval_tickets
      where company_id = ${companyId} and run_id = ${runId} and state = 'pending' and ${which}
      order by created_at, id for update`)
    const notices = new Notices()
    for (const { id } of rows) {
      const loaded = await lockTicket(tx, companyId, id)
      if (!loaded) continue
      const moved = tick(loaded.ticket, hub.now())
      if (moved.effects.includes('rejected'))
        await addEvent(tx, id, { type: 'decided', step: loaded.row.step, decision: 'rejected', comment: OVERDUE })
      await settle(hub, tx, loaded, moved, notices)
    }
    await notices.tell(hub, tx, { name: 'hub', comment: OVERDUE })
  })
}

/**
 * Does what the next look of the clock would do to tickets of a run that are due, so that nobody decides on one that
 * time has ended. In a transaction of its own: it stays done when the decision is refused.
 */
export async function tickDue(hub: Hub, { companyId, runId, id }: TicketRow, isWholeRun: boolean): Promise<void> {
  const now = new Date(hub.now()).toISOString()
  const asked = isWholeRun ? sql`true` : sql`id = ${id}`
  await tickRun(hub, companyId, runId, sql`least(expires_at, sla_due_at) <= ${now} and ${asked}`)
}

/** Runs of which a ticket is pending; those of a run go together, so that people get one message. */
export async function tickTickets(hub: Hub): Promise<void> {
  const runs = await hub.database.db.execute<{ company_id: string; run_id: string }>(sql`
    select distinct company_id, run_id from approval_tickets where state = 'pending'`)
  for (const { company_id, run_id } of runs) await tickRun(hub, company_id, run_id)
}
