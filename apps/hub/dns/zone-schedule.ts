// Zones are verified by the clock: those whose interval has passed, oldest first.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { hubEditor } from '../resources/editor.ts'
import { findRow } from '../resources/resource-rows.ts'
import { startRun } from '../resources/runs.ts'
import { dnsZoneKind } from './dns-zone.ts'

const ZONES_AT_ONCE = 200

/** Starts a verification of every zone that is due and has a name server; one under way is left alone. */
export async function verifyDueZones(hub: Hub): Promise<void> {
  const { db } = hub.database
  const due = await db.execute<{ id: string; company_id: string }>(sql`
    select id, company_id from dns_zones where deleted_at is null and verify_interval_minutes > 0
      and status not in ('planned', 'retired') and cardinality(server_ids) > 0
      and (verified_at is null or verified_at <= now() - make_interval(mins => verify_interval_minutes)
        or (sync_state = 'unreachable' and verified_at <= now() - interval '60 seconds'))
    order by verified_at nulls first limit ${ZONES_AT_ONCE}`)
  for (const { id, company_id } of due)
    await inTransaction(db, async tx => {
      const zone = await findRow(dnsZoneKind, tx.db, company_id, id)
      await startRun(tx, hubEditor(hub, company_id), dnsZoneKind, zone, 'sync')
    })
}
