// What is free in a subnet, for who asks before taking it: addresses, or blocks of a size.
import { sql } from 'drizzle-orm'
import { blocksIn, gapsIn, jsonNumber, numberAddress, rangeOfCidr } from '../../../core/network/address-range.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { Found } from '../resources/resource-rows.ts'
import { freeAddresses, freeTotal, OBSERVED_DAYS } from './free-addresses.ts'
import type { Subnet } from './subnet.ts'
import { reservedRanges } from './subnet-usage.ts'

/** Free addresses, or free blocks of a prefix length. */
export async function freeIn(
  { hub, companyId }: RouteContext,
  subnet: Found<Subnet>,
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
