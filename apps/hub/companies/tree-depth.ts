// How deep a tree of companies may be.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'

/**
 * The most levels that a tree may have. Walks up or down a tree stop after that many levels: a company further down
 * would outlive the deletion of those above it, and would have a separate agent quota.
 */
const LEVELS_MAX = 32

/** Refuses a tree that is too deep with the company in its present place. Throws 422. */
export async function checkLevels(tx: Tx, companyId: string): Promise<void> {
  const [row] = await tx.db.execute<{ levels: number }>(sql`
    with recursive above as (
      select parent_id, 1 as level from companies where id = ${companyId}
      union all select c.parent_id, a.level + 1 from companies c join above a on c.id = a.parent_id
        where a.level <= ${LEVELS_MAX}),
    below as (
      select id, 0 as level from companies where id = ${companyId}
      union all select c.id, b.level + 1 from companies c join below b on c.parent_id = b.id
        where c.deleted_at is null and b.level <= ${LEVELS_MAX})
    select (select max(level) from above) + (select max(level) from below) as levels`)
  if ((row?.levels ?? 0) > LEVELS_MAX) throw invalidField('parent_id', 'company_levels', { max: LEVELS_MAX })
}
