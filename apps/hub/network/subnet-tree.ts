// The tree of subnets: inside a company and an address space the parent of a block is the narrowest one around
// it. Written in the transaction of each change, under one lock of the company, so that two changes never see half of
// each other.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'

type Block = { readonly id: string; readonly company_id: string; readonly cidr: string; readonly vrf: string }
type Placed = Block & { readonly parent_id: string | null; readonly depth: number }

/** Changes of a company's tree go one after the other. */
export async function lockTree(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select pg_advisory_xact_lock(hashtextextended('subnets ' || ${companyId}::text, 0))`)
}

/** For writers of addresses, which may go beside each other but not beside a change of the tree. */
export async function lockTreeShared(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select pg_advisory_xact_lock_shared(hashtextextended('subnets ' || ${companyId}::text, 0))`)
}

/** Sets the parent and the depth of a row that is about to be stored. */
export async function placeInTree(tx: Tx, next: { -readonly [K in keyof Placed]: Placed[K] }): Promise<void> {
  const [parent] = await tx.db.execute<{ id: string; depth: number }>(sql`
    select id, depth from subnets where company_id = ${next.company_id} and vrf = ${next.vrf} and deleted_at is null
      and id <> ${next.id} and cidr >> ${next.cidr}::cidr order by masklen(cidr) desc limit 1`)
  next.parent_id = parent?.id ?? null
  next.depth = parent ? parent.depth + 1 : 0
}

/** Blocks that lost or won a parent get the narrowest one around them, and their depth. */
async function arrangeAround(tx: Tx, { company_id, cidr, vrf }: Block): Promise<void> {
  await tx.db.execute(sql`
    update subnets c set parent_id = p.id, depth = p.depth from (
      select s.id as child,
        (select a.id from subnets a where a.company_id = s.company_id and a.vrf = s.vrf and a.deleted_at is null
          and a.cidr >> s.cidr order by masklen(a.cidr) desc limit 1) as id,
        (select count(*)::int from subnets a where a.company_id = s.company_id and a.vrf = s.vrf and a.deleted_at is null
          and a.cidr >> s.cidr) as depth
      from subnets s where s.company_id = ${company_id} and s.vrf = ${vrf} and s.deleted_at is null
        and s.cidr << ${cidr}::cidr) p
    where c.company_id = ${company_id} and c.id = p.child
      and (c.parent_id is distinct from p.id or c.depth <> p.depth)`)
  // What the blocks around may give out is another set now, and so is what is used of them.
  await tx.db.execute(sql`
    update subnets set usage_stale = true, free_from = null where company_id = ${company_id} and vrf = ${vrf}
      and deleted_at is null and cidr >>= ${cidr}::cidr`)
}

/** After a change of a subnet: what lies in its old and in its new block. */
export async function arrangeTree(tx: Tx, before: Block | null, after: Block | null): Promise<void> {
  if (before && after && before.cidr === after.cidr && before.vrf === after.vrf) return
  if (!after && before) await lockTree(tx, before.company_id)
  for (const block of [before, after]) {
    if (!block) continue
    await arrangeAround(tx, block)
    await arrangeAddresses(tx, block)
  }
}

/** Addresses belong to the narrowest subnet around them (RES-236). */
async function arrangeAddresses(tx: Tx, { company_id, cidr, vrf }: Block): Promise<void> {
  await tx.db.execute(sql`
    update ip_addresses i set subnet_id = x.subnet_id from (
      select a.id, (select s.id from subnets s where s.company_id = a.company_id and s.vrf = a.vrf
        and s.deleted_at is null and s.cidr >>= a.address order by masklen(s.cidr) desc limit 1) as subnet_id
      from ip_addresses a where a.company_id = ${company_id} and a.vrf = ${vrf} and a.deleted_at is null
        and a.address <<= ${cidr}::cidr) x
    where i.company_id = ${company_id} and i.id = x.id and i.subnet_id is distinct from x.subnet_id`)
}
