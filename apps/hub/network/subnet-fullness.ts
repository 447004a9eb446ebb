// When a subnet is filling, and when it is full: counted anew where addresses changed. What counts as used:
// subnet-usage.ts.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import { subnetKind } from './subnet.ts'
import { lockTreeShared } from './subnet-tree.ts'
import { usagesOf } from './subnet-usage.ts'

const SUBNETS_AT_ONCE = 500

type Stale = {
  id: string
  company_id: string
  cidr: string
  vrf: string
  kind: string
  warn_percent: number
  critical_percent: number
}

/** Counts subnets anew in which addresses changed, and those around them; tells of full ones (RES-242). */
export async function refreshUsage(hub: Hub): Promise<void> {
  const companies = await hub.database.db.execute<{ company_id: string }>(
    sql`select distinct company_id from subnets where usage_stale and deleted_at is null`,
  )
  for (const { company_id } of companies) await inTransaction(hub.database.db, tx => refreshOf(tx, company_id))
}

async function refreshOf(tx: Tx, companyId: string): Promise<void> {
  await lockTreeShared(tx, companyId)
  const subnets = await tx.db.execute<Stale>(sql`
    with stale as (select id, cidr, vrf from subnets where company_id = ${companyId} and usage_stale
      and deleted_at is null limit ${SUBNETS_AT_ONCE} for update skip locked),
    fresh as (update subnets s set usage_stale = false from stale where s.id = stale.id)
    select distinct s.id, s.company_id, s.cidr, s.vrf, s.kind, s.warn_percent, s.critical_percent from subnets s
    join stale on s.company_id = ${companyId} and s.vrf = stale.vrf and s.cidr = any(blocks_around(stale.cidr)) and s.deleted_at is null`)
  const usages = await usagesOf(tx.db, companyId, subnets)
  const values = subnets.map(({ id }) => ({ id, percent: usages.get(id)?.used_percent ?? 0 }))
  await tx.db.execute(sql`
    update subnets s set used_percent = x.percent
    from jsonb_to_recordset(${JSON.stringify(values)}::jsonb) as x (id uuid, percent real)
    where s.company_id = ${companyId} and s.id = x.id and s.used_percent <> x.percent`)
  const found = new Map(
    subnets.flatMap(({ id, cidr, kind, warn_percent, critical_percent }) => {
      const percent = usages.get(id)?.used_percent ?? 0
      const code = percent > critical_percent ? 'subnet_full' : percent > warn_percent ? 'subnet_filling' : null
      // A container is for ordering: its children are what gets full.
      if (code === null || kind === 'container') return []
      return [[id, [{ code, detail: { cidr, used_percent: percent } }]] as const]
    }),
  )
  const ids = subnets.map(subnet => subnet.id)
  await setConditions(tx, subnetKind.info, companyId, ids, ['subnet_filling', 'subnet_full'], found)
}
