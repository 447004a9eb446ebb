// Splitting and merging subnets: into how many parts, and which fill one block.
import { sql } from 'drizzle-orm'
import { familyOf, numberAddress, rangeOfCidr, sizeOf, unionOf } from '../../../core/network/address-range.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { editorOf } from '../resources/editor.ts'
import { type Found, lockRow, rowsOfIds } from '../resources/resource-rows.ts'
import { deleteResource, insertResources, updateResource } from '../resources/write-resource.ts'
import { type Subnet, subnetKind } from './subnet.ts'
import { lockTree } from './subnet-tree.ts'

type Row = Found<Subnet>
const PARTS_MAX = 256

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
