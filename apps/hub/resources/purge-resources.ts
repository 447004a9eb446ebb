// What is kept of resources for a time: the trash as long as `trash.days` says, runs and ended conditions 90
// days.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { allowLongStatements, inTransaction } from '../platform/db/transaction.ts'
import type { KindInfo } from './kind-info.ts'

const RUN_DAYS = 90

/** Deletes for good what lies in the trash of a kind for so many days, of all companies or one. Returns how many. */
export async function purgeTrash(
  { database: { db } }: Hub,
  { kind, table }: KindInfo,
  days: number,
  companyId: string | null = null,
): Promise<number> {
  return inTransaction(db, async tx => {
    await allowLongStatements(tx)
    const [row] = await tx.db.execute<{ count: number }>(sql`
      with gone as (delete from ${sql.identifier(table)} where deleted_at <= now() - make_interval(days => ${days})
          and (${companyId}::uuid is null or company_id = ${companyId}::uuid) returning id),
        conditions as (delete from resource_conditions c using gone where c.kind = ${kind} and c.resource_id = gone.id)
      select count(*)::int as count from gone`)
    return row?.count ?? 0
  })
}

export async function purgeResources(hub: Hub): Promise<void> {
  const { db } = hub.database
  const days = hub.state.valueOf('trash.days')
  for (const info of hub.kinds.values()) if (info.isResource) await purgeTrash(hub, info, days)
  await db.execute(sql`delete from resource_runs where queued_at < now() - make_interval(days => ${RUN_DAYS})`)
  await db.execute(sql`delete from resource_conditions where resolved_at < now() - make_interval(days => ${RUN_DAYS})`)
}
