// What is kept of resources for a time: the trash 30 days, runs and ended conditions 90 days.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { allowLongStatements, inTransaction } from '../platform/db/transaction.ts'

const TRASH_DAYS = 30
const RUN_DAYS = 90

export async function purgeResources(hub: Hub): Promise<void> {
  const { db } = hub.database
  for (const { kind, table, isResource } of hub.kinds.values()) {
    if (!isResource) continue
    await inTransaction(db, async tx => {
      await allowLongStatements(tx)
      await tx.db.execute(sql`
        with gone as (delete from ${sql.identifier(table)}
          where deleted_at < now() - make_interval(days => ${TRASH_DAYS}) returning id)
        delete from resource_conditions c using gone where c.kind = ${kind} and c.resource_id = gone.id`)
    })
  }
  await db.execute(sql`delete from resource_runs where queued_at < now() - make_interval(days => ${RUN_DAYS})`)
  await db.execute(sql`delete from resource_conditions where resolved_at < now() - make_interval(days => ${RUN_DAYS})`)
}
