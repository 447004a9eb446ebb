// What is left of connections when what they name is deleted for good, by the clock.
import { sql } from 'drizzle-orm'
import { removeCheck } from '../checks/checks.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, lockCompany } from '../platform/db/transaction.ts'
import { deleteConnectionsOf } from '../purge/connection-rows.ts'
import { hubEditor } from '../resources/editor.ts'
import { nodeKinds } from './node.ts'

const CHECKS_AT_ONCE = 500

/** Deletes the checks of connections that are no more. */
export async function removeLeftChecks(hub: Hub): Promise<void> {
  const { db } = hub.database
  const left = await db.execute<{ id: string; company_id: string }>(sql`
    select c.id, c.company_id from monitoring_checks c
    where c.managed_by_kind = 'connection' and c.deleted_at is null
      and not exists (select 1 from connections x where x.id = c.managed_by_id) limit ${CHECKS_AT_ONCE}`)
  for (const { id, company_id } of left)
    await inTransaction(db, async tx => {
      await lockCompany(tx, company_id)
      await removeCheck(tx, hubEditor(hub, company_id), id)
    })
}

/** Deletes the connections of resources that are no more: those of the registry are purged by the clock. */
export async function forgetNodes(hub: Hub): Promise<void> {
  const { db } = hub.database
  for (const kind of nodeKinds) {
    const info = hub.kinds.get(kind)
    if (!info) continue
    const gone = await db.execute<{ company_id: string; id: string }>(sql`
      select distinct company_id, x.id from connections c,
        lateral (values (source_kind, source_id), (target_kind, target_id)) as x (kind, id)
      where x.kind = ${kind} and not exists (select 1 from ${sql.identifier(info.table)} t where t.id = x.id)`)
    for (const [companyId, rows] of Map.groupBy(gone, row => row.company_id))
      await inTransaction(db, tx =>
        deleteConnectionsOf(
          tx,
          companyId,
          kind,
          rows.map(row => row.id),
        ),
      )
  }
}
