// What the hub looks after by the clock: how full subnets are, addresses that agents report (address-conflicts.ts),
// reservations that end.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { setConditions } from '../resources/conditions.ts'
import { hubEditor } from '../resources/editor.ts'
import { updateResource } from '../resources/write-resource.ts'
import { defaultOf } from '../system-state/setting-definitions.ts'
import { judgeAddresses } from './address-conflicts.ts'
import { released } from './ip-acts.ts'
import { ipAddressKind } from './ip-address.ts'
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

/** Reservations whose time is over are released (RES-239). */
async function endReservations(hub: Hub): Promise<void> {
  const due = await hub.database.db.execute<{ id: string; company_id: string }>(sql`
    select id, company_id from ip_addresses where status = 'reserved' and reserved_until <= now() and deleted_at is null
    limit 1000`)
  await eachAlone(hub, 'cannot release an address', due, ({ id, company_id }) => {
    const columns = released(hub.now())
    return inTransaction(hub.database.db, tx =>
      updateResource(tx, ipAddressKind, hubEditor(hub, company_id), id, {}, { action: 'release', columns }),
    )
  })
}

export async function watchAddresses(hub: Hub): Promise<void> {
  await endReservations(hub)
  const companies = await hub.database.db.execute<{ company_id: string }>(
    sql`select distinct company_id from ip_observations`,
  )
  for (const { company_id } of companies) {
    const staleDays =
      (await hub.state.valueIn(hub.database.db, company_id, 'ips.stale_days')) ?? defaultOf('ips.stale_days')
    await inTransaction(hub.database.db, tx => judgeAddresses(tx, company_id, staleDays))
  }
  await hub.database.db.execute(sql`delete from ip_allocations where created_at < now() - interval '24 hours'`)
}
