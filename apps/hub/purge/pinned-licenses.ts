// Licences that are pinned to a server or a collector, when that is deleted for good.
import { and, eq, isNull } from 'drizzle-orm'
import { HUB_ACTOR, writeAudits } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { licenses } from '../platform/db/schema.ts'
import type { Tx } from '../platform/db/transaction.ts'

/**
 * Revokes the licences that only the server or collector may be enrolled with, before it is deleted: the pin goes with
 * it, and without a pin they would enroll any host of their company.
 */
export async function revokePinnedLicenses(
  hub: Hub,
  tx: Tx,
  pin: 'serverId' | 'collectorId',
  id: string,
): Promise<void> {
  const revoked = await tx.db
    .update(licenses)
    .set({ revokedAt: new Date(hub.now()) })
    .where(and(eq(licenses[pin], id), isNull(licenses.revokedAt), isNull(licenses.supersededAt)))
    .returning({ id: licenses.id, companyId: licenses.companyId, name: licenses.name })
  await writeAudits(
    tx,
    revoked.map(license => ({
      companyId: license.companyId,
      actor: HUB_ACTOR,
      action: 'license.revoke',
      subject: { type: 'license', id: license.id, name: license.name },
    })),
  )
}
