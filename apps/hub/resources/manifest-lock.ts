// What a manifest made is changed by its manifest alone, where a company wants it so (`iac.lock_managed`, R-007).
import { sql } from 'drizzle-orm'
import { uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'

/**
 * Throws 422 on `origin` for a resource that a manifest is bound to, or the first such one of many, while the company
 * locks these. For its parts `list` is their name in the manifest: one that does not list them has no say in them.
 */
export async function refuseManaged(
  { hub, companyId }: RouteContext,
  kind: string,
  id: string | readonly string[],
  list: string | null = null,
): Promise<void> {
  const { db } = hub.database
  const ids = uuidList(typeof id === 'string' ? [id] : id)
  const [bound] = await db.execute<{ manifest: string }>(sql`
    select b.kind || '/' || b.slug as manifest
    from unnest(${ids}::uuid[]) with ordinality as x (id, place) join iac_bindings b on b.resource_id = x.id
    where b.company_id = ${companyId} and b.resource_kind = ${kind}
      and (${list}::text is null or b.applied_spec -> ${list}::text is not null)
    order by x.place limit 1`)
  if (!bound || (await hub.state.valueIn(db, companyId, 'iac.lock_managed')) !== true) return
  throw invalidField('origin', 'managed_by_manifest', { manifest: bound.manifest })
}
