// GET /subnets/{subnet}/usage: the counts, what is used by status and role, and the subnet range by range.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import {
  type AddressRange,
  addressNumber,
  gapsIn,
  numberAddress,
  partsIn,
  rangeOfCidr,
  unionOf,
} from '../../../core/network/address-range.ts'
import { anyObject, id, listed, named, string, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { Found } from '../resources/resource-rows.ts'
import type { Subnet } from './subnet.ts'
import { reservedRanges, usableRange, usageResponse, usagesOf } from './subnet-usage.ts'

const RANGES_MAX = 1000

export const usageDetails = named('SubnetUsageDetails', {
  usage: usageResponse,
  by_status: anyObject(),
  by_role: anyObject(),
  ranges: listed(
    named('SubnetRange', { from: string(), to: string(), state: wordOf(['used', 'reserved', 'free', 'child']) }),
  ),
  conflicts: listed(named('AddressConflict', { id: id(), address: string(), code: string(), severity: Type.String() })),
})

type Stated = AddressRange & { readonly state: 'used' | 'reserved' | 'free' | 'child' }

/** Runs of registered addresses, the lowest first. */
const runsOf = (companyId: string, subnetId: string) => sql`
  select min(address)::text as "from", max(address)::text as "to" from (
    select address, address - (row_number() over (order by address))::bigint as run from ip_addresses
    where company_id = ${companyId} and subnet_id = ${subnetId} and deleted_at is null and status <> 'released') x
  group by run order by min(address) limit ${RANGES_MAX}`

const numbered = (rows: readonly { from: string; to: string }[]): AddressRange[] =>
  rows.flatMap(row => {
    const [from, to] = [addressNumber(row.from.split('/')[0] ?? ''), addressNumber(row.to.split('/')[0] ?? '')]
    return from === null || to === null ? [] : [{ from, to }]
  })

const counts = (rows: readonly { word: string; count: number }[]) =>
  Object.fromEntries(rows.map(({ word, count }) => [word, count]))

/** Each address of a subnet in one range, with the first state that says something of it; in order. */
function statedOnce(
  whole: AddressRange,
  said: readonly (readonly [state: Stated['state'], ranges: readonly AddressRange[]])[],
): Stated[] {
  const stated: Stated[] = []
  for (const [state, ranges] of said)
    stated.push(...partsIn(gapsIn(whole, stated), ranges).map(range => ({ ...range, state })))
  return stated.sort((a, b) => (a.from < b.from ? -1 : 1))
}

export async function subnetDetails({ hub, companyId }: RouteContext, subnet: Found<Subnet>) {
  const { db } = hub.database
  const inside = sql`company_id = ${companyId} and vrf = ${subnet.vrf} and address <<= ${subnet.cidr}::cidr and deleted_at is null`
  const [usages, statuses, roles, runs, children, conflicts] = await Promise.all([
    usagesOf(db, companyId, [subnet]),
    db.execute<{ word: string; count: number }>(
      sql`select status as word, count(*)::int as count from ip_addresses where ${inside} group by status`,
    ),
    db.execute<{ word: string; count: number }>(
      sql`select role as word, count(*)::int as count from ip_addresses where ${inside} group by role`,
    ),
    db.execute<{ from: string; to: string }>(runsOf(companyId, subnet.id)),
    db.execute<{ cidr: string }>(sql`
      select cidr from subnets where company_id = ${companyId} and parent_id = ${subnet.id} and deleted_at is null
      order by cidr limit ${RANGES_MAX}`),
    db.execute<{ id: string; address: string; code: string; severity: string }>(sql`
      select a.id, a.address, c.code, c.severity from ip_addresses a
      join resource_conditions c on c.company_id = a.company_id and c.kind = 'ip_address' and c.resource_id = a.id
        and c.since is not null and c.resolved_at is null
      where a.company_id = ${companyId} and a.subnet_id = ${subnet.id} and a.deleted_at is null order by a.address limit 100`),
  ])
  const gateway = subnet.gateway === null ? [] : [{ from: subnet.gateway, to: subnet.gateway }]
  const whole = rangeOfCidr(subnet.cidr)
  const ends = gapsIn(whole, [usableRange(subnet)])
  const ranges = statedOnce(whole, [
    ['child', children.map(({ cidr }) => rangeOfCidr(cidr))],
    ['used', unionOf(numbered([...runs, ...gateway]))],
    ['reserved', unionOf([...reservedRanges(subnet), ...ends])],
    ['free', [whole]],
  ]).slice(0, RANGES_MAX)
  return {
    usage: usages.get(subnet.id)!,
    by_status: counts(statuses),
    by_role: counts(roles),
    ranges: ranges.map(({ from, to, state }) => ({
      from: numberAddress(from, whole.family),
      to: numberAddress(to, whole.family),
      state,
    })),
    conflicts: [...conflicts],
  }
}
