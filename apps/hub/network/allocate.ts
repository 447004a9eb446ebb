// Giving out addresses: under the lock of the subnet's row, so that two callers never get the same one, and
// with a unique index as the second guard.
import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { addressNumber, familyOf, numberAddress } from '../../../core/network/address-range.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { type Found, findRow, lockRow } from '../resources/resource-rows.ts'
import { insertResource, updateResource } from '../resources/write-resource.ts'
import { type FreeOf, freeNumbers, freeRun } from './free-addresses.ts'
import { type IpAddressRow, ipAddressKind } from './ip-address.ts'
import { subnetKind } from './subnet.ts'
import { lockTreeShared } from './subnet-tree.ts'

type Allocation = {
  readonly subnet_id: string
  readonly count: number
  readonly isFromLast: boolean
  readonly isContiguous: boolean
  readonly address: string | null
  readonly requestId: string | null
  /** The fields of each address. */
  readonly values: Unchecked
}

type Allocated = { readonly rows: readonly Found<IpAddressRow>[]; readonly isRepeated: boolean }

async function rowsOf(tx: Tx, companyId: string, ids: readonly string[]): Promise<Found<IpAddressRow>[]> {
  const rows: Found<IpAddressRow>[] = []
  for (const id of ids) rows.push(await findRow(ipAddressKind, tx.db, companyId, id, 'any'))
  return rows
}

/** The addresses of an earlier call with the same request_id. */
async function repeated(tx: Tx, companyId: string, requestId: string): Promise<Allocated | null> {
  const [known] = await tx.db.execute<{ address_ids: string[] }>(sql`
    select address_ids from ip_allocations where company_id = ${companyId} and request_id = ${requestId}
      and created_at > now() - interval '24 hours'`)
  return known ? { rows: await rowsOf(tx, companyId, known.address_ids), isRepeated: true } : null
}

/** The free addresses to give out. Throws 422. */
async function chosen(tx: Tx, subnet: FreeOf, asked: Allocation): Promise<bigint[]> {
  if (asked.address !== null) {
    const wanted = addressNumber(asked.address)
    // An address of another family, or outside, is not among those that may be given out.
    const only = { ...subnet, free_from: asked.address }
    const [first] =
      wanted === null || familyOf(asked.address) !== familyOf(subnet.cidr)
        ? []
        : await freeNumbers(tx.db, only, 1, false)
    if (wanted === null || first !== wanted) throw invalidField('address', 'address_taken')
    return [wanted]
  }
  const found = asked.isContiguous
    ? await freeRun(tx.db, subnet, asked.count, asked.isFromLast)
    : await freeNumbers(tx.db, subnet, asked.count, asked.isFromLast)
  if (!found || found.length < asked.count) throw invalidField('subnet_id', 'no_free_address')
  return found
}

/** Registers the address, or takes the row of one that was released, with its history. */
async function register(tx: Tx, editor: Editor, subnet: FreeOf, address: string, values: Unchecked) {
  const { table } = ipAddressKind
  const [released] = await tx.db
    .select({ id: table.id })
    .from(table)
    .where(
      and(
        eq(table.company_id, editor.companyId),
        isNull(table.deleted_at),
        sql`vrf = ${subnet.vrf} and address = ${address}::inet`,
      ),
    )
  if (!released)
    return insertResource(tx, ipAddressKind, editor, { ...values, address, vrf: subnet.vrf }, { action: 'allocate' })
  const again = { status: 'active', ...values }
  return updateResource(tx, ipAddressKind, editor, released.id, again, {
    action: 'allocate',
    columns: { released_at: null },
  })
}

export async function allocate(tx: Tx, editor: Editor, asked: Allocation): Promise<Allocated> {
  const { companyId } = editor
  await lockTreeShared(tx, companyId)
  const subnet = await lockRow(subnetKind, tx, companyId, asked.subnet_id).catch(() => null)
  if (!subnet) throw invalidField('subnet_id', 'unknown_reference')
  if (asked.requestId !== null) {
    const known = await repeated(tx, companyId, asked.requestId)
    if (known) return known
  }
  if (subnet.kind === 'container') throw invalidField('subnet_id', 'gives_no_addresses')
  if (subnet.full) throw invalidField('subnet_id', 'no_free_address')
  const numbers = await chosen(tx, subnet, asked)
  const family = familyOf(subnet.cidr)
  const rows: Found<IpAddressRow>[] = []
  for (const each of numbers) rows.push(await register(tx, editor, subnet, numberAddress(each, family), asked.values))
  if (asked.requestId !== null)
    await tx.db.execute(sql`
      insert into ip_allocations (company_id, request_id, address_ids)
      values (${companyId}, ${asked.requestId}, ${uuidList(rows.map(row => row.id))}::uuid[])
      on conflict (company_id, request_id) do update set address_ids = excluded.address_ids, created_at = now()`)
  // From below, everything up to the last one was taken, and is now. Only what is registered counts: what agents saw
  // and what rests may be free one day.
  const last = numbers.at(-1)
  if (!asked.isFromLast && !asked.isContiguous && asked.address === null && last !== undefined)
    await moveFreeFrom(tx, subnet, numberAddress(last, family))
  return { rows, isRepeated: false }
}

/** Moves the point from which free addresses are looked for, unless an address below it may become free by itself. */
async function moveFreeFrom(tx: Tx, subnet: FreeOf, last: string): Promise<void> {
  await tx.db.execute(sql`
    update subnets s set free_from = ${last}::inet where s.id = ${subnet.id} and not exists (
        select 1 from ip_observations o where o.company_id = s.company_id
          and o.address between coalesce(s.free_from, host(network(s.cidr))::inet) and ${last}::inet)
      and not exists (
        select 1 from ip_addresses a where a.company_id = s.company_id and a.vrf = s.vrf and a.deleted_at is null
          and a.status = 'released' and a.address between coalesce(s.free_from, host(network(s.cidr))::inet) and ${last}::inet)`)
}
