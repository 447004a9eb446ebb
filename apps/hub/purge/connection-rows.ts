// Connections go with what they name, once that is deleted for good; while it is in the trash they stay (RES-056).
import { sql } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'

type Gone = { id: string; name: string; is_kept: boolean }

/** Deletes for good the connections from and to resources of a kind. Their checks follow by the clock. */
export async function deleteConnectionsOf(
  tx: Tx,
  companyId: string,
  kind: string,
  ids: readonly string[],
): Promise<void> {
  const gone = await tx.db.execute<Gone>(sql`
    delete from connections where company_id = ${companyId} and (
      (source_kind = ${kind} and source_id = any(${uuidList(ids)}::uuid[]))
      or (target_kind = ${kind} and target_id = any(${uuidList(ids)}::uuid[])))
    returning id, name, deleted_at is null as is_kept`)
  for (const { id, name, is_kept } of gone)
    if (is_kept) await auditByHub(tx, companyId, 'connection.delete', { type: 'connection', id, name })
  await tx.db.execute(sql`
    delete from resource_conditions where company_id = ${companyId} and kind = 'connection'
      and resource_id = any(${uuidList(gone.map(row => row.id))}::uuid[])`)
}
