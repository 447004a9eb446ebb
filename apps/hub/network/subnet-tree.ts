// The tree of subnets: inside a company and an address space the parent of a block is the narrowest one around
// it. Written in the transaction of each change, under one lock of the company, so that two changes never see half of
// each other.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'

type Block = { readonly company_id: string; readonly cidr: string; readonly vrf: string }

/** Changes of a company's tree go one after the other. */
export async function lockTree(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select pg_advisory_xact_lock(hashtextextended('subnets ' || ${companyId}::text, 0))`)
}

/**
 * For other writers of addresses and subnets, which may go beside each other but not beside a change of the tree. They
 * take it before any row, as a change of the tree does: else each would hold what the other waits for.
 */
export async function lockTreeShared(tx: Tx, companyId: string): Promise<void> {
  await tx.db.execute(sql`select pg_advisory_xact_lock_shared(hashtextextended('subnets ' || ${companyId}::text, 0))`)
}

const recordOf = (blocks: readonly Block[]) =>
  sql`jsonb_to_recordset(${JSON.stringify(blocks.map(({ cidr, vrf }) => ({ cidr, vrf })))}::jsonb) as b (cidr cidr, vrf text)`

/**
 * So many blocks at once may be more than PostgreSQL knows of: it counts rows of a table a minute after they came, and
 * without that it looks through all subnets of a company for each block (13 s for a thousand). They are counted first,
 * unless somebody else is at it.
 */
const MANY = 100

/** After subnets came, went or moved: what lies in their old and new blocks, of one company, gets its place. */
export async function arrangeTree(tx: Tx, blocks: readonly Block[]): Promise<void> {
  const [first] = blocks
  if (!first) return
  if (blocks.length >= MANY) await tx.db.execute(sql`analyze (skip_locked) subnets (company_id, vrf, cidr, deleted_at)`)
  await arrangeBlocks(tx, first.company_id, blocks)
  await arrangeAddresses(tx, first.company_id, blocks)
}

/** Subnets that are new, or lost or won a parent, get the narrowest one around them, and their depth. */
async function arrangeBlocks(tx: Tx, companyId: string, blocks: readonly Block[]): Promise<void> {
  await tx.db.execute(sql`
    update subnets c set parent_id = p.parent_id, depth = p.depth from (
      select s.id, around.parent_id, coalesce(around.depth, 0) as depth
      from (select distinct n.id, n.vrf, n.cidr from ${recordOf(blocks)}, lateral (select id, vrf, cidr from subnets
        where company_id = ${companyId} and vrf = b.vrf and deleted_at is null
          and cidr between b.cidr and host(broadcast(b.cidr))::inet offset 0) n) s
      left join lateral (select count(*)::int as depth, (array_agg(a.id order by masklen(a.cidr) desc))[1] as parent_id
        from subnets a where a.company_id = ${companyId} and a.vrf = s.vrf and a.deleted_at is null
          and a.id <> s.id and a.cidr = any(blocks_around(s.cidr))) around on true) p
    where c.company_id = ${companyId} and c.id = p.id
      and (c.parent_id is distinct from p.parent_id or c.depth <> p.depth)`)
  // What the blocks around may give out is another set now, and so is what is used of them.
  await tx.db.execute(sql`
    update subnets set usage_stale = true, free_from = null where company_id = ${companyId} and id in (
      select n.id from ${recordOf(blocks)} join subnets n on n.company_id = ${companyId} and n.vrf = b.vrf
        and n.deleted_at is null and n.cidr = any(blocks_around(b.cidr)) and (n.free_from is not null or not n.usage_stale))`)
}

/** Addresses belong to the narrowest subnet around them (RES-236). */
async function arrangeAddresses(tx: Tx, companyId: string, blocks: readonly Block[]): Promise<void> {
  // Between both ends: an index finds a range of addresses, and no other way to say that they lie in a block.
  await tx.db.execute(sql`
    update ip_addresses i set subnet_id = x.subnet_id from (
      select a.id, (select s.id from subnets s where s.company_id = ${companyId} and s.vrf = a.vrf
        and s.deleted_at is null and s.cidr = any(blocks_around(a.address)) order by masklen(s.cidr) desc limit 1) as subnet_id
      from (select distinct n.id, n.vrf, n.address from ${recordOf(blocks)} join ip_addresses n
        on n.company_id = ${companyId} and n.vrf = b.vrf and n.deleted_at is null
          and n.address between host(network(b.cidr))::inet and host(broadcast(b.cidr))::inet) a) x
    where i.company_id = ${companyId} and i.id = x.id and i.subnet_id is distinct from x.subnet_id`)
}
