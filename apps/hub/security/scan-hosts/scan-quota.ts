// How many scan hosts a plan allows: which of them are over it, and may not be scanned (decision G-163). A number
// belongs to the company with the plan; all companies below it without a plan of their own share it.
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { effectivePlan } from '../../plans/effective-plan.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { lockCompanies, type Tx, uuidList } from '../../platform/db/transaction.ts'

type ScanQuota = {
  /** null: no limit. */
  readonly max: number | null
  readonly companyIds: readonly string[]
}

async function scanQuota(db: Executor, companyId: string): Promise<ScanQuota> {
  const { scanHosts, planCompanyId } = await effectivePlan(db, companyId)
  const rows = await db.execute<{ id: string }>(sql`
    with recursive sharing as (
      select id, 0 as depth from companies where id = ${planCompanyId}
      union all select c.id, s.depth + 1 from companies c join sharing s on c.parent_id = s.id
        where s.depth < 32 and c.deleted_at is null
          and not (coalesce(c.plan_expires_at > now(), true) and c.plan_code is not null))
    select id from sharing`)
  return { max: scanHosts, companyIds: rows.map(row => row.id) }
}

/** Locks the company and the one whose plan it uses: nobody else takes from that number until the commit. */
export async function lockScanQuota(tx: Tx, companyId: string): Promise<ScanQuota> {
  const { planCompanyId } = await effectivePlan(tx.db, companyId)
  await lockCompanies(tx, [companyId, planCompanyId])
  return scanQuota(tx.db, companyId)
}

/** Scan hosts that count: all that are not revoked. */
export async function countedHosts(db: Executor, { companyIds }: ScanQuota): Promise<number> {
  const [row] = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from scan_hosts
    where company_id = any(${uuidList(companyIds)}::uuid[]) and state = 'active'`)
  return row?.count ?? 0
}

/** Marks the most recently enrolled hosts over the number as inactive, and clears the marks of the others. */
export async function markInactive(hub: Hub, tx: Tx, { max, companyIds }: ScanQuota): Promise<void> {
  const rows = await tx.db.execute<{ host_id: string }>(sql`
    with ranked as (
      select host_id, row_number() over (order by enrolled_at, host_id) > ${max}::bigint is true as is_over from scan_hosts
      where company_id = any(${uuidList(companyIds)}::uuid[]) and state = 'active')
    update scan_hosts h set inactive_at = case when r.is_over then ${new Date(hub.now()).toISOString()}::timestamptz end
    from ranked r where h.host_id = r.host_id and (h.inactive_at is not null) <> r.is_over returning h.host_id`)
  tx.touch(
    'scan_hosts',
    rows.map(row => row.host_id),
  )
}

/**
 * Applies the numbers of the plans to a company, everything below it, and the company above whose number it may have
 * shared: after a change of plan, its expiry, or a move.
 */
export async function applyScanQuotas(hub: Hub, tx: Tx, companyId: string): Promise<void> {
  const companies = await tx.db.execute<{ id: string }>(sql`
    with recursive tree as (
      select id, 0 as depth from companies where id = ${companyId}
      union all select c.id, t.depth + 1 from companies c join tree t on c.parent_id = t.id where t.depth < 32)
    select id from tree union select parent_id from companies where id = ${companyId} and parent_id is not null`)
  const done = new Set<string>()
  for (const { id } of companies) {
    const quota = await scanQuota(tx.db, id)
    const key = quota.companyIds.join()
    if (!done.has(key)) await markInactive(hub, tx, quota)
    done.add(key)
  }
}
