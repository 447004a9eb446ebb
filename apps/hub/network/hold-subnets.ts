// The subnets of which addresses are given out, as they stand under the lock of their rows. Call it after the lock of
// the tree, which keeps the blocks inside them.
import { sql } from 'drizzle-orm'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import type { FreeOf } from './free-addresses.ts'

/** A subnet, and the blocks right inside it. */
export type HeldSubnet = FreeOf & { readonly children: readonly string[] }

const holdStatement = (whenHeld: string) =>
  fixedStatement<'companyId' | 'ids'>(
    value => sql`
      select s.id, s.company_id, s.cidr, s.vrf, s.kind, s.gateway, s.reserved, s."full", s.quarantine_hours, s.free_from,
        array(select c.cidr::text from subnets c where c.company_id = s.company_id and c.parent_id = s.id
          and c.deleted_at is null) as children
      from subnets s where s.company_id = ${value('companyId')}::uuid and s.id = any(${value('ids')}::uuid[])
        and s.deleted_at is null
      order by s.id for no key update of s ${sql.raw(whenHeld)}`,
  )
const WAITING = holdStatement('')
const WHAT_IS_FREE = holdStatement('skip locked')

/**
 * Locks subnets of a company until the transaction ends: all that are there, or those that nobody else holds. By id.
 */
export async function holdSubnets(
  tx: Tx,
  companyId: string,
  ids: Iterable<string>,
  waits: boolean,
): Promise<ReadonlyMap<string, HeldSubnet>> {
  const statement = waits ? WAITING : WHAT_IS_FREE
  const rows = await tx.db.execute<HeldSubnet>(statement({ companyId, ids: uuidList(ids) }))
  return new Map(rows.map(row => [row.id, row]))
}
