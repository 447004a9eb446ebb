// When a reservation of an address is over.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { hubEditor } from '../resources/editor.ts'
import { updateResource } from '../resources/write-resource.ts'
import { ipAddressKind } from './ip-address.ts'
import { released } from './release-and-reserve.ts'

/** Reservations whose time is over are released (RES-239). */
export async function endReservations(hub: Hub): Promise<void> {
  const due = await hub.database.db.execute<{ id: string; company_id: string }>(sql`
    select id, company_id from ip_addresses where status = 'reserved' and reserved_until <= now() and deleted_at is null
    limit 1000`)
  await eachAlone(hub, 'cannot release an address', due, ({ id, company_id }) => {
    const columns = released(hub.now())
    return inTransaction(hub.database.db, tx =>
      updateResource(tx, ipAddressKind, hubEditor(hub, company_id), id, {}, { action: 'release', columns }),
    )
  })
}
