// The health of a resource: from its open conditions, and from how old the newest probe is.
import { sql } from 'drizzle-orm'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import type { KindInfo } from './kind-info.ts'
import type { Found } from './resource-rows.ts'

/** The health of resources anew: the worst open condition, unknown while planned or retired. */
export async function refreshHealth(tx: Tx, info: KindInfo, companyId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const some = uuidList(ids)
  await tx.db.execute(sql`
    update ${sql.identifier(info.table)} t set health = h.health from (
      select r.id, case
        when r.status in ('planned', 'retired') then 'unknown'
        when bool_or(c.severity = 'critical') then 'critical'
        when bool_or(c.severity = 'warning') then 'warning'
        else 'ok' end as health
      from ${sql.identifier(info.table)} r
      left join resource_conditions c on c.company_id = r.company_id and c.resource_id = r.id and c.kind = ${info.kind}
        and c.since is not null and c.resolved_at is null
      where r.company_id = ${companyId} and r.id = any(${some}::uuid[]) group by r.id, r.status) h
    where t.company_id = ${companyId} and t.id = any(${some}::uuid[]) and t.id = h.id and t.health is distinct from h.health`)
}

/** The health that is answered: what no probe speaks for any more is unknown. */
export const healthShown = (row: Pick<Found, 'is_probe_old' | 'health'>): string =>
  row.is_probe_old ? 'unknown' : row.health
