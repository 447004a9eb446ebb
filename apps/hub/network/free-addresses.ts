// Which addresses of a subnet are free: usable, not registered, not reserved, not the gateway, in no child
// block, not resting after release, and reported by no agent within 30 days.
import { sql } from 'drizzle-orm'
import {
  type AddressRange,
  addressNumber,
  type Family,
  gapsIn,
  numberAddress,
  rangeOfCidr,
  sizeOf,
} from '../../../core/network/address-range.ts'
import type { Executor } from '../platform/db/connect.ts'
import { reservedRanges, usableRange } from './subnet-usage.ts'

/** An address that an agent reported within this time is in use, whoever registered it. */
export const OBSERVED_DAYS = 30
const FIRST_CHUNK = 256
const CHUNK_MAX = 65_536

export type FreeOf = {
  readonly id: string
  readonly company_id: string
  readonly cidr: string
  readonly vrf: string
  readonly kind: string
  readonly gateway: string | null
  readonly reserved: readonly { readonly from: string; readonly to: string }[]
  readonly full: boolean
  readonly quarantine_hours: number
  readonly free_from: string | null
}

/** The blocks right inside a subnet. */
export async function childBlocks(db: Executor, companyId: string, subnetId: string): Promise<readonly string[]> {
  const children = await db.execute<{ cidr: string }>(sql`
    select cidr from subnets where company_id = ${companyId} and parent_id = ${subnetId} and deleted_at is null`)
  return children.map(({ cidr }) => cidr)
}

/** The parts of a subnet in which addresses may be given out, whoever has them now. */
function assignableRanges(subnet: FreeOf, children: readonly string[]): AddressRange[] {
  const gateway = subnet.gateway === null ? null : addressNumber(subnet.gateway)
  return gapsIn(usableRange(subnet), [
    ...reservedRanges(subnet),
    ...children.map(rangeOfCidr),
    ...(gateway === null ? [] : [{ from: gateway, to: gateway }]),
  ])
}

/** A free address, and its row where it was released before. */
export type FreeAddress = { readonly at: bigint; readonly releasedId: string | null }
/** One that is registered or was seen; with its row where it was released and is free again. */
type Known = FreeAddress

/** Known addresses of a range in order, at most so many: registered, resting, seen by agents, or released before. */
async function knownIn(
  db: Executor,
  subnet: FreeOf,
  range: AddressRange,
  family: Family,
  limit: number,
  down: boolean,
): Promise<Known[]> {
  const [from, to] = [numberAddress(range.from, family), numberAddress(range.to, family)]
  const order = sql.raw(down ? 'desc' : 'asc')
  // One that is in use in one way and not in another stands first as what is used.
  const rows = await db.execute<{ address: string; released_id: string | null }>(sql`
    (select address, case when status = 'released'
        and (released_at > now() - make_interval(hours => ${subnet.quarantine_hours})) is not true then id end as released_id
      from ip_addresses where company_id = ${subnet.company_id} and vrf = ${subnet.vrf}
        and deleted_at is null and address between ${from}::inet and ${to}::inet
      order by address ${order} limit ${limit})
    union
    (select address, null from ip_observations where company_id = ${subnet.company_id}
      and address between ${from}::inet and ${to}::inet
      and last_seen_at > now() - make_interval(days => ${OBSERVED_DAYS})
      order by address ${order} limit ${limit})
    order by address ${order}, released_id nulls first limit ${limit}`)
  return rows.flatMap(({ address, released_id }) => {
    const at = addressNumber(address)
    return at === null ? [] : [{ at, releasedId: released_id }]
  })
}

/**
 * The lowest (highest) free addresses of a subnet, at most so many. From below the search begins at `free_from`, under
 * which nothing is free.
 */
export async function freeAddresses(
  db: Executor,
  subnet: FreeOf,
  countMax: number,
  down: boolean,
  children?: readonly string[],
): Promise<FreeAddress[]> {
  const { family } = rangeOfCidr(subnet.cidr)
  const ranges = assignableRanges(subnet, children ?? (await childBlocks(db, subnet.company_id, subnet.id)))
  const begin = down || subnet.free_from === null ? null : addressNumber(subnet.free_from)
  const found: FreeAddress[] = []
  let chunk = Math.max(FIRST_CHUNK, countMax * 2)
  for (const whole of down ? ranges.toReversed() : ranges) {
    if (begin !== null && whole.to < begin) continue
    let rest: AddressRange | null = begin !== null && whole.from < begin ? { from: begin, to: whole.to } : whole
    while (rest && found.length < countMax) {
      const known: Known[] = await knownIn(db, subnet, rest, family, chunk, down)
      const edge = known.at(-1)?.at
      const isLast = known.length < chunk || edge === undefined
      const seen: AddressRange = isLast ? rest : down ? { from: edge, to: rest.to } : { from: rest.from, to: edge }
      take(found, seen, known, countMax, down)
      rest = isLast ? null : down ? { from: rest.from, to: seen.from - 1n } : { from: seen.to + 1n, to: rest.to }
      if (rest && rest.from > rest.to) rest = null
      chunk = Math.min(CHUNK_MAX, chunk * 4)
    }
    if (found.length >= countMax) break
  }
  return found
}

/** Adds the free addresses of a range, from the end that is asked for. */
function take(found: FreeAddress[], range: AddressRange, known: readonly Known[], countMax: number, down: boolean) {
  const taken = known.flatMap(({ at, releasedId }) => (releasedId === null ? [{ from: at, to: at }] : []))
  const released = new Map(known.map(({ at, releasedId }) => [at, releasedId]))
  const gaps = gapsIn(range, taken)
  for (const { from, to } of down ? gaps.reverse() : gaps)
    for (let at = down ? to : from; from <= at && at <= to && found.length < countMax; at += down ? -1n : 1n)
      found.push({ at, releasedId: released.get(at) ?? null })
}

/** The lowest run of free neighbours. Null when there is none. */
export async function freeRun(
  db: Executor,
  subnet: FreeOf,
  length: number,
  down: boolean,
): Promise<FreeAddress[] | null> {
  // Neighbours are looked for among more and more free addresses, until one search finds no more than it has.
  for (let asked = length * 4; ; asked *= 8) {
    const free = await freeAddresses(db, subnet, asked, down)
    let run: FreeAddress[] = []
    for (const each of free) {
      const last = run.at(-1)?.at
      run = last !== undefined && (down ? last - each.at : each.at - last) === 1n ? [...run, each] : [each]
      if (run.length === length) return run.sort((a, b) => (a.at < b.at ? -1 : 1))
    }
    if (free.length < asked) return null
  }
}

/** How many addresses of a subnet are free. */
export async function freeTotal(db: Executor, subnet: FreeOf): Promise<bigint> {
  const { family } = rangeOfCidr(subnet.cidr)
  const ranges = assignableRanges(subnet, await childBlocks(db, subnet.company_id, subnet.id))
  const texts = ranges.map(({ from, to }) => ({ f: numberAddress(from, family), t: numberAddress(to, family) }))
  const [row] = await db.execute<{ taken: string }>(sql`
    with r as materialized (select f, t from jsonb_to_recordset(${JSON.stringify(texts)}::jsonb) as x (f inet, t inet))
    select count(*) as taken from (
      select a.address from r join ip_addresses a on a.company_id = ${subnet.company_id} and a.vrf = ${subnet.vrf}
        and a.deleted_at is null and a.address between r.f and r.t
        and (a.status <> 'released' or a.released_at > now() - make_interval(hours => ${subnet.quarantine_hours}))
      union
      select o.address from r join ip_observations o on o.company_id = ${subnet.company_id}
        and o.address between r.f and r.t and o.last_seen_at > now() - make_interval(days => ${OBSERVED_DAYS})) x`)
  return ranges.reduce((sum, range) => sum + sizeOf(range), 0n) - BigInt(row?.taken ?? 0)
}
