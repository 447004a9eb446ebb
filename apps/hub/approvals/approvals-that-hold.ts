// Which tickets of a run, and the approvals in them, still hold after it was planned again (R-038, RES-138): those of
// items that are what they were.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'

type FormerTicket = {
  id: string
  workflow_id: string
  kind: string
  name: string
  diff_hash: string
  state: string
  item_id: string
}

/** The tickets that a former plan of the run opened and that may stay: nobody has refused them. */
export async function formerTickets(tx: Tx, runId: string): Promise<FormerTicket[]> {
  return [
    ...(await tx.db.execute<FormerTicket>(sql`
      select id, workflow_id, kind, name, diff_hash, state, item_id from approval_tickets
      where run_id = ${runId} and state in ('pending', 'approved') for update`)),
  ]
}

type PlannedItem = { readonly kind: string; readonly name: string; readonly diffHash: string }

/** Whether a ticket is carried over to an item of the new plan: the same resource, of which the same is to change. */
export const stillHolds = (ticket: FormerTicket, item: PlannedItem): boolean =>
  ticket.kind === item.kind && ticket.name === item.name && ticket.diff_hash === item.diffHash
