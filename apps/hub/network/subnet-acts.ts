// Splitting and merging subnets, what is free in one, and which servers lie in one.
import { sql } from 'drizzle-orm'
import {
  blocksIn,
  familyOf,
  gapsIn,
  jsonNumber,
  numberAddress,
  rangeOfCidr,
  sizeOf,
  unionOf,
} from '../../../core/network/address-range.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { faultsError, uuid } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { editorOf } from '../resources/editor.ts'
import { type Found, lockRow, rowsOfIds } from '../resources/resource-rows.ts'
import { deleteResource, insertResources, updateResource } from '../resources/write-resource.ts'
import { freeAddresses, freeTotal, OBSERVED_DAYS } from './free-addresses.ts'
import { type Subnet, subnetKind } from './subnet.ts'
import { lockTree } from './subnet-tree.ts'
import { reservedRanges } from './subnet-usage.ts'

type Row = Found<Subnet>
const PARTS_MAX = 256

/** Free addresses, or free blocks of a prefix length. */
export async function freeIn(
  { hub, companyId }: RouteContext,
  subnet: Row,
  asked: { readonly count: number; readonly isFromLast: boolean; readonly prefix: number | undefined },
) {
  const { db } = hub.database
  const { family, prefix: own } = rangeOfCidr(subnet.cidr)
  if (asked.prefix !== undefined) {
    const bits = family === 4 ? 32 : 128
    if (asked.prefix < own || asked.prefix > bits) throw invalidField('prefix', 'prefix_range', { min: own, max: bits })
    const taken = await db.execute<{ cidr: string }>(sql`
      select cidr::text as cidr from subnets where company_id = ${companyId} and parent_id = ${subnet.id} and deleted_at is null
      union all select address::text from ip_addresses where subnet_id = ${subnet.id} and deleted_at is null
        and (status <> 'released' or released_at > now() - make_interval(hours => ${subnet.quarantine_hours}))
      union all select address::text from ip_observations where company_id = ${companyId}
        and address <<= ${subnet.cidr}::cidr and last_seen_at > now() - make_interval(days => ${OBSERVED_DAYS})
      union all select ${subnet.gateway}::inet::text where ${subnet.gateway}::inet is not null`)
    const gaps = gapsIn(rangeOfCidr(subnet.cidr), [
      ...reservedRanges(subnet),
      ...taken.map(({ cidr }) => rangeOfCidr(cidr)),
    ])
    const { blocks, total } = blocksIn(gaps, family, asked.prefix, asked.count, asked.isFromLast)
    return { data: blocks, total_free: jsonNumber(total) }
  }
  if (subnet.kind === 'container' || subnet.full) return { data: [], total_free: 0 }
  const free = await freeAddresses(db, subnet, asked.count, asked.isFromLast)
  const total = await freeTotal(db, subnet)
  return { data: free.map(({ at }) => numberAddress(at, family)), total_free: jsonNumber(total) }
}

/** The parts of a block, at most 256 of them. Throws 422. */
function partsOf(cidr: string, prefix: number, first: number | null): string[] {
  const { family, prefix: own, from } = rangeOfCidr(cidr)
  const bits = family === 4 ? 32 : 128
  if (prefix <= own || prefix > bits) throw invalidField('prefix', 'prefix_range', { min: own + 1, max: bits })
  const all = 1n << BigInt(prefix - own)
  const count = first === null ? all : BigInt(first) < all ? BigInt(first) : all
  if (count > BigInt(PARTS_MAX)) throw invalidField('prefix', 'list_max', { max: PARTS_MAX })
  const size = 1n << BigInt(bits - prefix)
  return Array.from(
    { length: Number(count) },
    (_, index) => `${numberAddress(from + BigInt(index) * size, family)}/${prefix}`,
  )
}

/** Makes the parts of a subnet that do not stand yet. */
export const splitSubnet = (
  context: RouteContext,
  { id: subnetId }: Row,
  prefix: number,
  first: number | null,
): Promise<Row[]> =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    await lockTree(tx, companyId)
    const subnet = await lockRow(subnetKind, tx, companyId, subnetId)
    const parts = partsOf(subnet.cidr, prefix, first)
    const children = await tx.db.execute<{ id: string; cidr: string }>(sql`
      select id, cidr from subnets where company_id = ${companyId} and parent_id = ${subnet.id} and deleted_at is null`)
    if (children.some(child => rangeOfCidr(child.cidr).prefix !== prefix)) throw invalidField('prefix', 'other_parts')
    const known = new Map(children.map(child => [child.cidr, child.id]))
    const editor = editorOf(context)
    const { vrf, kind, datacenter, environment } = subnet
    const made = await insertResources(
      tx,
      subnetKind,
      parts.flatMap(cidr => {
        const values = { cidr, vrf, kind, datacenter, environment }
        return known.has(cidr) ? [] : [{ editor, values, action: 'split' }]
      }),
    )
    const rows = new Map<string, Row>()
    for (const row of made) {
      if (row instanceof ApiError) throw row
      rows.set(row.cidr, row)
    }
    const standing = parts.flatMap(cidr => known.get(cidr) ?? [])
    for (const row of await rowsOfIds(subnetKind, tx.db, companyId, standing)) rows.set(row.cidr, row)
    return parts.flatMap(cidr => rows.get(cidr) ?? [])
  })

/** The one block that ranges fill exactly; null when there is none. */
function blockOf(cidrs: readonly string[]): string | null {
  const ranges = cidrs.map(rangeOfCidr)
  const [first] = ranges
  const union = unionOf(ranges)
  const [whole] = union
  const isExact = ranges.reduce((sum, range) => sum + sizeOf(range), 0n) === (whole ? sizeOf(whole) : 0n)
  if (!first || !whole || union.length !== 1 || !isExact || ranges.some(each => each.family !== first.family))
    return null
  const size = sizeOf(whole)
  if ((size & (size - 1n)) !== 0n || whole.from % size !== 0n) return null
  const bits = first.family === 4 ? 32 : 128
  return `${numberAddress(whole.from, first.family)}/${bits - (size.toString(2).length - 1)}`
}

/** The lowest of the subnets becomes the block that they fill together; the others go, and leave it their addresses. */
export const mergeSubnets = (context: RouteContext, ids: readonly string[]): Promise<Row> =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    await lockTree(tx, companyId)
    const unique = [...new Set(ids.map(each => each.toLowerCase()))].sort()
    const rows: Row[] = []
    for (const each of unique) {
      const row = await lockRow(subnetKind, tx, companyId, each).catch(() => null)
      const place = ids.findIndex(given => given.toLowerCase() === each)
      if (!row) throw faultsError(new Map([[`subnet_ids.${place}`, words('unknown_reference')]]))
      rows.push(row)
    }
    const [one] = rows
    const isAlike = rows.every(
      row => row.vrf === one?.vrf && row.kind === one.kind && familyOf(row.cidr) === familyOf(one.cidr),
    )
    const block = isAlike && rows.length > 1 ? blockOf(rows.map(row => row.cidr)) : null
    if (block === null) throw invalidField('subnet_ids', 'not_one_block')
    rows.sort((a, b) => (rangeOfCidr(a.cidr).from < rangeOfCidr(b.cidr).from ? -1 : 1))
    const [lowest, ...others] = rows
    const editor = editorOf(context)
    const merged = await updateResource(tx, subnetKind, editor, lowest?.id ?? '', { cidr: block }, { action: 'merge' })
    for (const other of others) await deleteResource(tx, subnetKind, editor, other.id)
    return lockRow(subnetKind, tx, companyId, merged.id)
  })

const sources = ['subnet_id', 'address', 'registered_address'] as const
const serverResponse = named('SubnetServer', {
  id: id(),
  name: string(),
  hostname: nullable(string()),
  ip_address: nullable(string()),
  status: string(),
  source: wordOf(sources),
})
type ServerRow = {
  id: string
  name: string
  hostname: string | null
  ip_address: string | null
  status: string
  source: string
}

/** Servers that name the subnet, or of which an address lies in it. */
export const subnetServers = collectionReadBy<
  ServerRow,
  typeof serverResponse,
  Record<never, never>,
  { subnet: ReturnType<typeof uuid> }
>({
  filters: {},
  within: { subnet: uuid() },
  response: serverResponse,
  present: row => row,
  async read({ hub, companyId }, given, { limit, offset }) {
    const rows = await hub.database.db.execute<ServerRow & { total: number }>(sql`
      select s.id, s.name, s.hostname, s.ip_address, s.status, f.source, (count(*) over ())::int as total from (
        select distinct on (id) id, source from (
          select id, 'subnet_id' as source, 1 as rank from servers
            where company_id = ${companyId} and subnet_id = ${given.subnet ?? null}::text and deleted_at is null
          union all
          select x.id, 'address', 2 from servers x join subnets n on n.id = ${given.subnet ?? null}
            where x.company_id = ${companyId} and x.deleted_at is null
              and case when x.ip_address ~ '^[0-9]+(\\.[0-9]+){3}$|^[0-9a-fA-F]*:[0-9a-fA-F:.]*$' then x.ip_address::inet <<= n.cidr end
          union all
          select a.server_id, 'registered_address', 3 from ip_addresses a join subnets n on n.id = ${given.subnet ?? null}
            where a.company_id = ${companyId} and a.vrf = n.vrf and a.address <<= n.cidr and a.deleted_at is null
              and a.server_id is not null) every
        order by id, rank) f
      join servers s on s.id = f.id and s.deleted_at is null
      order by lower(s.name), s.id limit ${limit} offset ${offset}`)
    return { rows: rows.map(({ total: _total, ...row }) => row), total: rows[0]?.total ?? 0 }
  },
})
