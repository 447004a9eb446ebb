// What becomes of the alerts of a server that is deleted, for now or for good (decision G-107).
import { and, eq, inArray } from 'drizzle-orm'
import { alerts } from '../platform/db/schema.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { activeStates } from './alert-list.ts'
import { releaseGroup } from './alerts.ts'

/** Ends those that are active. An incident that was reported on the server gives its children back. */
export async function resolveServerAlerts(tx: Tx, serverId: string, nowMs: number): Promise<void> {
  const ended = await tx.db
    .update(alerts)
    .set({ state: 'resolved', resolvedAt: new Date(nowMs), resolvedReason: 'server_removed', groupId: null })
    .where(and(eq(alerts.serverId, serverId), inArray(alerts.state, [...activeStates, 'grouped'])))
    .returning()
  for (const alert of ended) if (alert.type === 'group_down') await releaseGroup(tx, alert)
}
