// What happened in a run, as people are told it: written in the transaction of what it tells.
import { iacRunEvents } from '../platform/db/schema-iac.ts'
import type { Tx } from '../platform/db/transaction.ts'

type RunEventType = 'submitted' | 'planned' | 'queued' | 'item_applied' | 'item_failed' | 'cancelled' | 'finished'

type Actor = { readonly id: string; readonly name: string }

export async function addRunEvent(
  tx: Tx,
  runId: string,
  type: RunEventType,
  actor: Actor | null,
  message: string,
  itemId: string | null = null,
): Promise<void> {
  await tx.db
    .insert(iacRunEvents)
    .values({ runId, type, itemId, actorId: actor?.id ?? null, actorName: actor?.name ?? null, message })
}
