// The owner of resources: a team that is deleted owns nothing any more, and each resource it owned says so (RES-024).
import { sql } from 'drizzle-orm'
import { auditMany } from '../audit/audit.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'

/** Call it before the team is deleted, in the same transaction. */
export async function disown(context: RouteContext, tx: Tx, team: { readonly id: string; readonly name: string }) {
  const { hub, companyId, caller } = context
  const owner = { old: { id: team.id, name: team.name }, new: null }
  for (const { kind, table, isResource } of hub.kinds.values()) {
    if (!isResource) continue
    const rows = await tx.db.execute<{ id: string; name: string }>(sql`
      update ${sql.identifier(table)} set owner_team_id = null, version = version + 1, updated_at = now(),
        updated_by = ${caller.user.id} where company_id = ${companyId} and owner_team_id = ${team.id} returning id, name`)
    const changed = rows.map(row => ({
      subject: { type: kind, id: row.id, name: row.name },
      changes: { owner_team: owner },
    }))
    await auditMany(tx, context, `${kind}.update`, changed)
  }
}
