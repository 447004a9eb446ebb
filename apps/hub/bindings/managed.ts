// What a manifest made is changed by its manifest alone, where a company wants it so (`iac.lock_managed`, R-007).
import { sql } from 'drizzle-orm'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'

/**
 * Throws 422 on `origin` for a resource that a manifest is bound to, while the company locks these. For its parts
 * `list` is their name in the manifest: one that does not list them has no say in them.
 */
export async function refuseManaged(
  { hub, companyId }: RouteContext,
  kind: string,
  id: string,
  list: string | null = null,
): Promise<void> {
  const { db } = hub.database
  const [bound] = await db.execute<{ manifest: string }>(sql`
    select kind || '/' || slug as manifest from iac_bindings
    where company_id = ${companyId} and resource_kind = ${kind} and resource_id = ${id}
      and (${list}::text is null or applied_spec -> ${list}::text is not null)`)
  if (!bound || (await hub.state.valueIn(db, companyId, 'iac.lock_managed')) !== true) return
  throw invalidField('origin', 'managed_by_manifest', { manifest: bound.manifest })
}
