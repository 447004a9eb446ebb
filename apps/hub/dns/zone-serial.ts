// When the serial of a zone is raised. By how much: core/dns/serial.ts.
import { sql } from 'drizzle-orm'
import { nextSerial } from '../../../core/dns/serial.ts'
import type { Tx } from '../platform/db/transaction.ts'

/** Whether what a zone publishes has not changed before in this transaction, which from now on it has. */
export async function isFirstChange(tx: Tx, zoneId: string): Promise<boolean> {
  const rows = await tx.db.execute(sql`
    insert into dns_zone_states (zone_id, serial_xact) values (${zoneId}, pg_current_xact_id()::text)
    on conflict (zone_id) do update set serial_xact = excluded.serial_xact
      where dns_zone_states.serial_xact is distinct from excluded.serial_xact returning zone_id`)
  return rows.length > 0
}

/**
 * Counts the records of a zone anew; raises its serial where what is published has changed, once in a transaction
 * (R-055).
 */
export async function touchZone(tx: Tx, zoneId: string, isPublished: boolean, now: Date): Promise<void> {
  const [zone] = await tx.db.execute<{ serial: string; policy: 'date' | 'increment' }>(sql`
    select serial::text, serial_policy as policy from dns_zones where id = ${zoneId} for no key update`)
  if (!zone) return
  const isRaised = isPublished && (await isFirstChange(tx, zoneId))
  const serial = isRaised ? nextSerial(zone.policy, Number(zone.serial), now) : Number(zone.serial)
  await tx.db.execute(sql`
    update dns_zones set serial = ${serial},
      records_count = (select count(*) from dns_records where zone_id = ${zoneId} and deleted_at is null)
    where id = ${zoneId}`)
}
