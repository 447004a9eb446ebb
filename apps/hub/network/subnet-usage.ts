// What is used of subnets: distinct addresses that are registered, gateways and reserved ranges at any depth,
// and the whole of subnets that are marked full. Registered addresses are counted by the database where they lie
// (`direct_used`), so that a subnet's own count is a sum over the subnets below.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import {
  type AddressRange,
  addressNumber,
  type Family,
  gapsIn,
  jsonNumber,
  numberAddress,
  rangeOfCidr,
  sizeOf,
} from '../../../core/network/address-range.ts'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { named } from '../platform/http/response-schema.ts'
import type { Values } from '../resources/field.ts'

const size = () => Type.Union([Type.Integer(), Type.String()])
export const usageResponse = named('SubnetUsage', {
  size: size(),
  usable: size(),
  used: size(),
  used_percent: Type.Number(),
  delegated_percent: Type.Number(),
  free: size(),
  discovered: Type.Integer(),
})

type Reserved = { readonly from: string; readonly to: string; readonly note?: string }
type Block = {
  readonly id: string
  readonly company_id: string
  readonly cidr: string
  readonly vrf: string
  readonly kind: string
}
type Below = {
  root: string
  id: string
  parent_id: string | null
  cidr: string
  gateway: string | null
  reserved: readonly Reserved[]
  full: boolean
  direct_used: string
}

/** Network and broadcast address of an IPv4 network are given to nobody; a pool and a container have none. */
export function usableRange({ cidr, kind }: Pick<Block, 'cidr' | 'kind'>): AddressRange & { readonly family: Family } {
  const { from, to, family, prefix } = rangeOfCidr(cidr)
  const hasEnds = kind === 'network' && family === 4 && prefix <= 30
  return hasEnds ? { family, from: from + 1n, to: to - 1n } : { family, from, to }
}

/** The ranges of a subnet that nobody gets: reserved ones, and all of it when it is full. */
export const reservedRanges = ({ cidr, reserved, full }: Pick<Below, 'cidr' | 'reserved' | 'full'>): AddressRange[] =>
  full
    ? [rangeOfCidr(cidr)]
    : reserved.flatMap(({ from, to }) => {
        const [first, last] = [addressNumber(from), addressNumber(to)]
        return first === null || last === null ? [] : [{ from: first, to: last }]
      })

const percentOf = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Math.min(100, Number((part * 1000n) / whole) / 10)

type Sparse = { readonly ranges: readonly AddressRange[]; readonly gateways: readonly bigint[] }

/** How many registered addresses lie in the ranges, and which of the gateways are registered, by subnet. */
async function registeredIn(db: Executor, block: Block, { ranges, gateways }: Sparse) {
  const { family } = rangeOfCidr(block.cidr)
  if (ranges.length === 0 && gateways.length === 0) return { inRanges: 0n, gateways: 0n }
  const texts = ranges.map(({ from, to }) => ({ f: numberAddress(from, family), t: numberAddress(to, family) }))
  const of = sql`company_id = ${block.company_id} and vrf = ${block.vrf} and deleted_at is null and status <> 'released'`
  const [row] = await db.execute<{ ranges: string; gateways: string }>(sql`
    select (select count(*) from jsonb_to_recordset(${JSON.stringify(texts)}::jsonb) as r (f inet, t inet)
        join ip_addresses on ${of} and address between r.f and r.t) as ranges,
      (select count(*) from ip_addresses where ${of} and address in (
        select jsonb_array_elements_text(${JSON.stringify(gateways.map(each => numberAddress(each, family)))}::jsonb)::inet
      )) as gateways`)
  return { inRanges: BigInt(row?.ranges ?? 0), gateways: BigInt(row?.gateways ?? 0) }
}

const isIn = (ranges: readonly AddressRange[], value: bigint): boolean =>
  ranges.some(({ from, to }) => from <= value && value <= to)

async function usageOf(db: Executor, block: Block, below: readonly Below[], discovered: number) {
  const whole = rangeOfCidr(block.cidr)
  // The gaps of the gaps: the union, cut to the block.
  const ranges = gapsIn(whole, gapsIn(whole, below.flatMap(reservedRanges)))
  const all = new Set(below.flatMap(({ gateway }) => (gateway === null ? [] : (addressNumber(gateway) ?? []))))
  const gateways = [...all].filter(each => !isIn(ranges, each))
  const registered = await registeredIn(db, block, { ranges, gateways })
  const direct = below.reduce((sum, each) => sum + BigInt(each.direct_used), 0n)
  const reserved = ranges.reduce((sum, range) => sum + sizeOf(range), 0n)
  const used = direct - registered.inRanges + reserved + BigInt(gateways.length) - registered.gateways
  const usable = sizeOf(usableRange(block))
  const children = below.filter(each => each.parent_id === block.id)
  const delegated = children.reduce((sum, child) => sum + sizeOf(rangeOfCidr(child.cidr)), 0n)
  return {
    size: jsonNumber(sizeOf(whole)),
    usable: jsonNumber(usable),
    used: jsonNumber(used),
    used_percent: percentOf(used, usable),
    delegated_percent: percentOf(delegated, sizeOf(whole)),
    free: jsonNumber(usable > used ? usable - used : 0n),
    discovered,
  }
}

type Usage = Awaited<ReturnType<typeof usageOf>>

/** The subnets in and below each of the given ones. */
const belowOf = (db: Executor, companyId: string, ids: string) =>
  db.execute<Below>(sql`
    select s.id as root, d.id, d.parent_id, d.cidr, d.gateway, d.reserved, d."full", d.direct_used from subnets s
    join subnets d on d.company_id = s.company_id and d.vrf = s.vrf and d.deleted_at is null
      and d.cidr between s.cidr and host(broadcast(s.cidr))::inet
    where s.company_id = ${companyId} and s.id = any(${ids}::uuid[])`)

/**
 * How many addresses agents report inside that are not registered, by subnet. Each subnet is looked up by itself: of a
 * join PostgreSQL compares every address with every subnet.
 */
const discoveredIn = (db: Executor, companyId: string, ids: string) =>
  db.execute<{ id: string; count: number }>(sql`
    select s.id, d.count from subnets s,
      lateral (select host(network(s.cidr))::inet as first, host(broadcast(s.cidr))::inet as last) r,
      lateral (select count(*)::int as count from (
        select o.address from ip_observations o where o.company_id = ${companyId}
          and o.address between r.first and r.last
        except select a.address from ip_addresses a where a.company_id = ${companyId} and a.vrf = s.vrf
          and a.address between r.first and r.last and a.deleted_at is null and a.status <> 'released') x) d
    where s.company_id = ${companyId} and s.id = any(${ids}::uuid[])`)

/** The usage of subnets, by id. */
export async function usagesOf(db: Executor, companyId: string, blocks: readonly Block[]): Promise<Map<string, Usage>> {
  const ids = uuidList(blocks.map(block => block.id))
  const [below, discovered] = await Promise.all([belowOf(db, companyId, ids), discoveredIn(db, companyId, ids)])
  const belowBy = Map.groupBy(below, row => row.root)
  const discoveredBy = new Map(discovered.map(row => [row.id, row.count]))
  const usages = await Promise.all(
    blocks.map(block => usageOf(db, block, belowBy.get(block.id) ?? [], discoveredBy.get(block.id) ?? 0)),
  )
  return new Map(blocks.map((block, index) => [block.id, usages[index]!]))
}

/** What answers add to rows of subnets. */
export async function deriveSubnets(
  db: Executor,
  { companyId }: { readonly companyId: string },
  rows: readonly Block[],
): Promise<Map<string, Values>> {
  const [counts, usages] = await Promise.all([
    db.execute<{ parent_id: string; count: number }>(sql`
      select parent_id, count(*)::int as count from subnets where company_id = ${companyId}
        and parent_id = any(${uuidList(rows.map(row => row.id))}::uuid[]) and deleted_at is null group by parent_id`),
    usagesOf(db, companyId, rows),
  ])
  const childrenOf = new Map(counts.map(row => [row.parent_id, row.count]))
  return new Map(
    rows.map(({ id, cidr }) => [
      id,
      { family: cidr.includes(':') ? 6 : 4, children_count: childrenOf.get(id) ?? 0, usage: usages.get(id) },
    ]),
  )
}
