// Which addresses of a subnet are free (R-059): usable, not registered, not reserved, not the gateway, in no child
// block, not resting after release, and reported by no agent within 30 days.
import { sql } from 'drizzle-orm'
import {
  type AddressRange,
  addressNumber,
  familyOf,
  gapsIn,
  numberAddress,
  rangeOfCidr,
  sizeOf,
} from '../../../core/network/address-range.ts'
import type { Executor } from '../platform/db/connect.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
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
async function childBlocks(db: Executor, companyId: string, subnetId: string): Promise<readonly string[]> {
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

/** A free address, and its row where it was released before, with the time of that. */
export type FreeAddress = { readonly at: bigint; readonly released: Released | null }
export type Released = { readonly id: string; readonly atMs: number | null }
/** One that is registered or was seen; with its row where it was released and is free again. */
type Known = FreeAddress & {
  /** It is registered: nothing but a change of its row makes it free. */
  readonly isSettled: boolean
}

type Found = {
  readonly free: FreeAddress[]
  /** From below: the first address on the way that was not free, or was released, and may be free one day by itself. */
  readonly unsettledAt: bigint | null
}

/** What a search asks for, and what it is told: known addresses of a range in order, all of them or the first ones. */
type Search = Generator<AddressRange, Found, { readonly known: readonly Known[]; readonly isAll: boolean }>

/** Looks for the lowest (highest) free addresses of a subnet, at most so many. */
function* search(subnet: FreeOf, children: readonly string[], countMax: number, down: boolean): Search {
  const ranges = assignableRanges(subnet, children)
  const begin = down || subnet.free_from === null ? null : addressNumber(subnet.free_from)
  const found: FreeAddress[] = []
  let unsettledAt: bigint | null = null
  for (const whole of down ? ranges.toReversed() : ranges) {
    if (begin !== null && whole.to < begin) continue
    let rest: AddressRange | null = begin !== null && whole.from < begin ? { from: begin, to: whole.to } : whole
    while (rest && found.length < countMax) {
      const { known, isAll } = yield rest
      // One that is registered, and was seen too, stands first as what is registered.
      unsettledAt ??= known.find(({ at, isSettled }, place) => !isSettled && known[place - 1]?.at !== at)?.at ?? null
      const edge = isAll ? undefined : known.at(-1)?.at
      const seen: AddressRange =
        edge === undefined ? rest : down ? { from: edge, to: rest.to } : { from: rest.from, to: edge }
      take(found, seen, known, countMax, down)
      const left: AddressRange = down ? { from: rest.from, to: seen.from - 1n } : { from: seen.to + 1n, to: rest.to }
      rest = left.from > left.to ? null : left
    }
    if (found.length >= countMax) break
  }
  return { free: found, unsettledAt }
}

const knownStatement = (end: 'up' | 'down') =>
  // One that is in use in one way and not in another stands first as what is used.
  fixedStatement<'companyId' | 'ranges' | 'limit'>(
    value => sql`
      select r.place, x.address, x.released_id, x.released_at, x.is_settled
      from jsonb_to_recordset(${value('ranges')}::jsonb) as r (place int, vrf text, hours int, f inet, t inet)
      cross join lateral ${sql.raw(`known_addresses_${end}`)}(${value('companyId')}::uuid, r.vrf, r.f, r.t, r.hours,
        ${OBSERVED_DAYS}::int, ${value('limit')}::int) with ordinality as x
        (address, released_id, released_at, is_settled, at)
      order by r.place, x.at`,
  )
const [KNOWN_UP, KNOWN_DOWN] = [knownStatement('up'), knownStatement('down')]

type KnownRow = {
  place: number
  address: string
  released_id: string | null
  released_at: string | Date | null
  is_settled: boolean
}
type Place = { readonly subnet: FreeOf; readonly range: AddressRange }

/** Known addresses of each range in order, at most so many: registered, resting, seen by agents, or released before. */
async function knownIn(db: Executor, places: readonly Place[], limit: number, down: boolean): Promise<Known[][]> {
  const [first] = places
  if (!first) return []
  const ranges = places.map(({ subnet, range }, place) => {
    const family = familyOf(subnet.cidr)
    const [f, t] = [numberAddress(range.from, family), numberAddress(range.to, family)]
    return { place, vrf: subnet.vrf, hours: subnet.quarantine_hours, f, t }
  })
  const values = { companyId: first.subnet.company_id, ranges: JSON.stringify(ranges), limit }
  const rows = await db.execute<KnownRow>((down ? KNOWN_DOWN : KNOWN_UP)(values))
  const known = places.map((): Known[] => [])
  for (const { place, address, released_id, released_at, is_settled } of rows) {
    const at = addressNumber(address)
    const atMs = released_at === null ? null : new Date(released_at).getTime()
    const released = released_id === null ? null : { id: released_id, atMs }
    if (at !== null) known[place]?.push({ at, released, isSettled: is_settled })
  }
  return known
}

/** A subnet of which so many free addresses are wanted, and the blocks right inside it. */
type Wanted = { readonly subnet: FreeOf; readonly children: readonly string[]; readonly countMax: number }

/**
 * The lowest (highest) free addresses of each of some subnets of a company. From below the search begins at
 * `free_from`, under which nothing is free.
 */
export async function freeOfEach(db: Executor, wanted: readonly Wanted[], down: boolean): Promise<Found[]> {
  const found = wanted.map((): Found => ({ free: [], unsettledAt: null }))
  let limit = Math.max(FIRST_CHUNK, ...wanted.map(({ countMax }) => countMax * 2))
  let open = wanted.map(({ subnet, children, countMax }, place) => {
    const steps = search(subnet, children, countMax, down)
    return { subnet, steps, place, step: steps.next() }
  })
  for (;;) {
    const places: Place[] = []
    for (const { subnet, step, place } of open)
      if (step.done) found[place] = step.value
      else places.push({ subnet, range: step.value })
    open = open.filter(({ step }) => !step.done)
    if (open.length === 0) return found
    const known = await knownIn(db, places, limit, down)
    for (const [at, each] of open.entries()) {
      const of = known[at] ?? []
      each.step = each.steps.next({ known: of, isAll: of.length < limit })
    }
    limit = Math.min(CHUNK_MAX, limit * 4)
  }
}

/** The lowest (highest) free addresses of a subnet, at most so many. */
export async function freeAddresses(
  db: Executor,
  subnet: FreeOf,
  countMax: number,
  down: boolean,
): Promise<FreeAddress[]> {
  const children = await childBlocks(db, subnet.company_id, subnet.id)
  return (await freeOfEach(db, [{ subnet, children, countMax }], down))[0]?.free ?? []
}

/** Adds the free addresses of a range, from the end that is asked for. */
function take(found: FreeAddress[], range: AddressRange, known: readonly Known[], countMax: number, down: boolean) {
  const taken = known.flatMap(({ at, released }) => (released === null ? [{ from: at, to: at }] : []))
  const releasedAt = new Map(known.map(({ at, released }) => [at, released]))
  const gaps = gapsIn(range, taken)
  for (const { from, to } of down ? gaps.reverse() : gaps)
    for (let at = down ? to : from; from <= at && at <= to && found.length < countMax; at += down ? -1n : 1n)
      found.push({ at, released: releasedAt.get(at) ?? null })
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
