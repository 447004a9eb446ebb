// Certificates are judged by the clock on the days on which their dates change something; a setting may change them
// too.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'

/** Has the certificates that keep to the usual days judged by the next turn of the clock. */
export async function judgeSoon(tx: Tx, companyId: string | null): Promise<void> {
  await tx.db.execute(sql`
    update certificates set judge_at = now() where deleted_at is null and warn_days is null
      and (${companyId}::uuid is null or company_id = ${companyId}::uuid)`)
}
