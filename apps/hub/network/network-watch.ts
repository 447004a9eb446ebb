// What the hub looks after by the clock: addresses that agents report (address-conflicts.ts), and reservations that end
// (end-reservations.ts). How full subnets are: subnet-fullness.ts.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { defaultOf } from '../system-state/setting-definitions.ts'
import { judgeAddresses } from './address-conflicts.ts'
import { endReservations } from './end-reservations.ts'

export async function watchAddresses(hub: Hub): Promise<void> {
  await endReservations(hub)
  const companies = await hub.database.db.execute<{ company_id: string }>(
    sql`select distinct company_id from ip_observations`,
  )
  for (const { company_id } of companies) {
    const staleDays =
      (await hub.state.valueIn(hub.database.db, company_id, 'ips.stale_days')) ?? defaultOf('ips.stale_days')
    await inTransaction(hub.database.db, tx => judgeAddresses(tx, company_id, staleDays))
  }
  await hub.database.db.execute(sql`delete from ip_allocations where created_at < now() - interval '24 hours'`)
}
