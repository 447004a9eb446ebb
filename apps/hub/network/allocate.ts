// Giving out addresses: under the lock of the subnet's row, so that two callers never get the same one, and
// with a unique index as the second guard. Those who ask for addresses of one subnet side by side would wait for each
// other's commits: what waits is done in one transaction, each with its own outcome.
// Which addresses are free: free-addresses.ts.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { addressNumber, familyOf, numberAddress } from '../../../core/network/address-range.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx, together } from '../platform/db/transaction.ts'
import { Grouped } from '../platform/grouped.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { Editor } from '../resources/editor.ts'
import type { Values } from '../resources/field.ts'
import { type Found, lockRow, lockRowAlone, rowsOfIds } from '../resources/resource-rows.ts'
import { presentSome } from '../resources/resource-show.ts'
import { insertResources, updateResource } from '../resources/write-resource.ts'
import { childBlocks, type FreeAddress, type FreeOf, freeAddresses, freeRun } from './free-addresses.ts'
import { type IpAddressRow, ipAddressKind } from './ip-address.ts'
import { subnetKind } from './subnet.ts'
import { lockTreeShared } from './subnet-tree.ts'

/** Addresses that one transaction gives out at most. */
const TOGETHER_MAX = 256
/** Callers that were answered together and ask again come back within less time than this, and after each other. */
const GAPS = { firstMs: 8, nextMs: 2 }

type Row = Found<IpAddressRow>
type Allocation = {
  readonly editor: Editor
  readonly subnet_id: string
  readonly count: number
  readonly isFromLast: boolean
  readonly isContiguous: boolean
  readonly address: string | null
  readonly requestId: string | null
  /** The fields of each address. */
  readonly values: Unchecked
}
/** An address that is given out, and its row where it was released before. */
type Given = { readonly address: string; readonly releasedId: string | null }
type Done = { readonly rows: readonly Row[]; readonly isRepeated: boolean }
type Outcome = Done | ApiError

/** One ask on its way to its outcome. */
type Turn = {
  readonly asked: Allocation
  refusal: ApiError | null
  /** The addresses of an earlier call with the same request_id. */
  known: readonly string[] | null
  /** One before it in the group, with the same request_id. */
  same: Turn | null
  addresses: readonly Given[]
  rows: Row[]
}
const isOpen = ({ refusal, known, same }: Turn): boolean => refusal === null && known === null && same === null

/** The lowest free addresses, any of them: such asks follow each other without looking at each other's outcome. */
const isPlain = ({ isFromLast, isContiguous, address }: Allocation): boolean =>
  !isFromLast && !isContiguous && address === null

/** How many of those that wait are done together: those that are plain, else one. */
function groupSize(waiting: readonly Allocation[]): number {
  let total = 0
  const end = waiting.findIndex(asked => {
    total += asked.count
    return !isPlain(asked) || total > TOGETHER_MAX
  })
  return end === -1 ? waiting.length : end
}

/** Finds what an earlier call with the same request_id was given, within 24 hours. */
async function findRepeated(tx: Tx, companyId: string, turns: readonly Turn[]): Promise<void> {
  const named = turns.filter(({ asked }) => asked.requestId !== null)
  if (named.length === 0) return
  const known = await tx.db.execute<{ request_id: string; address_ids: string[] }>(sql`
    select request_id, address_ids from ip_allocations where company_id = ${companyId}
      and created_at > now() - interval '24 hours' and request_id in (
        select jsonb_array_elements_text(${JSON.stringify(named.map(({ asked }) => asked.requestId))}::jsonb))`)
  const earlier = new Map(known.map(row => [row.request_id, row.address_ids]))
  const first = new Map<string, Turn>()
  for (const turn of named) {
    const id = turn.asked.requestId ?? ''
    turn.known = earlier.get(id) ?? null
    turn.same = first.get(id) ?? null
    if (isOpen(turn)) first.set(id, turn)
  }
}

/** The free addresses of one that asks for certain ones. Throws 422. */
async function chosen(tx: Tx, subnet: FreeOf, asked: Allocation): Promise<readonly FreeAddress[]> {
  if (asked.address !== null) {
    const wanted = addressNumber(asked.address)
    // An address of another family, or outside, is not among those that may be given out.
    const only = { ...subnet, free_from: asked.address }
    const [first] =
      wanted === null || familyOf(asked.address) !== familyOf(subnet.cidr)
        ? []
        : await freeAddresses(tx.db, only, 1, false)
    if (!first || first.at !== wanted) throw invalidField('address', 'address_taken')
    return [first]
  }
  const found = asked.isContiguous
    ? await freeRun(tx.db, subnet, asked.count, asked.isFromLast)
    : await freeAddresses(tx.db, subnet, asked.count, asked.isFromLast)
  if (!found || found.length < asked.count) throw invalidField('subnet_id', 'no_free_address')
  return found
}

/** Gives each turn its addresses, the lowest to the first; one that does not get all it asks for gets none. */
async function choose(tx: Tx, subnet: FreeOf, children: readonly string[], turns: readonly Turn[]): Promise<void> {
  const family = familyOf(subnet.cidr)
  const named = ({ at, releasedId }: FreeAddress): Given => ({ address: numberAddress(at, family), releasedId })
  const open = turns.filter(isOpen)
  const [first] = open
  if (!first) return
  if (!isPlain(first.asked)) {
    first.addresses = (await chosen(tx, subnet, first.asked)).map(named)
    return
  }
  const total = open.reduce((sum, { asked }) => sum + asked.count, 0)
  const free = await freeAddresses(tx.db, subnet, total, false, children)
  let at = 0
  for (const turn of open) {
    const given = free.slice(at, at + turn.asked.count)
    if (given.length < turn.asked.count) turn.refusal = invalidField('subnet_id', 'no_free_address')
    else {
      turn.addresses = given.map(named)
      at += given.length
    }
  }
}

/** Registers the addresses, or takes the rows of those that were released, with their history. */
async function register(tx: Tx, { vrf }: FreeOf, turns: readonly Turn[]): Promise<void> {
  const wanted = turns.flatMap(turn => turn.addresses.map(given => ({ turn, ...given })))
  const fresh = wanted.filter(({ releasedId }) => releasedId === null)
  const made = await insertResources(
    tx,
    ipAddressKind,
    fresh.map(({ turn: { asked }, address }) => ({
      editor: asked.editor,
      values: { ...asked.values, address, vrf },
      action: 'allocate',
    })),
  )
  const rowOf = new Map(fresh.map(({ address }, at) => [address, made[at]]))
  for (const { turn, address, releasedId } of wanted) {
    const row = releasedId === null ? rowOf.get(address) : await takeReleased(tx, turn.asked, releasedId)
    if (row instanceof ApiError) throw row
    if (row) turn.rows.push(row)
  }
}

async function takeReleased(tx: Tx, { editor, values }: Allocation, id: string): Promise<Row> {
  const row = await lockRow(ipAddressKind, tx, editor.companyId, id).catch(orNone)
  // Somebody has taken it up again, or deleted it, since it was found.
  if (row?.status !== 'released') throw invalidField('address', 'address_taken')
  const again = { status: 'active', ...values }
  return updateResource(tx, ipAddressKind, editor, id, again, { action: 'allocate', columns: { released_at: null } })
}

/** Keeps what was given to calls with a request_id. */
async function noteRequests(tx: Tx, companyId: string, turns: readonly Turn[]): Promise<void> {
  const named = turns.flatMap(({ asked, rows }) =>
    asked.requestId === null || rows.length === 0
      ? []
      : [{ request_id: asked.requestId, address_ids: rows.map(({ id }) => id) }],
  )
  if (named.length === 0) return
  await tx.db.execute(sql`
    insert into ip_allocations (company_id, request_id, address_ids)
    select ${companyId}::uuid, x.request_id, x.address_ids
    from jsonb_to_recordset(${JSON.stringify(named)}::jsonb) as x (request_id text, address_ids uuid[])
    on conflict (company_id, request_id) do update set address_ids = excluded.address_ids, created_at = now()`)
}

/** The addresses that earlier calls were given, whatever became of them. */
async function fetchKnown(tx: Tx, companyId: string, turns: readonly Turn[]): Promise<void> {
  const ids = turns.flatMap(({ known }) => known ?? [])
  const rows = new Map((await rowsOfIds(ipAddressKind, tx.db, companyId, ids, 'any')).map(row => [row.id, row]))
  for (const turn of turns) if (turn.known) turn.rows = turn.known.flatMap(id => rows.get(id) ?? [])
}

const orNone = (error: unknown): null => {
  if (error instanceof ApiError) return null
  throw error
}

/** The outcome of each, all in one transaction. Throws what refuses one of them while it is written. */
async function allocateTogether(tx: Tx, asks: readonly Allocation[]): Promise<Outcome[]> {
  const [first] = asks
  if (!first) return []
  const { companyId } = first.editor
  // The tree first: statements of a transaction run in the order in which they are sent.
  const [, subnet, children] = await together([
    lockTreeShared(tx, companyId),
    lockRowAlone(subnetKind, tx, companyId, first.subnet_id).catch(orNone),
    childBlocks(tx.db, companyId, first.subnet_id),
  ])
  if (!subnet) return asks.map(() => invalidField('subnet_id', 'unknown_reference'))
  const turns = asks.map((asked): Turn => ({ asked, refusal: null, known: null, same: null, addresses: [], rows: [] }))
  await findRepeated(tx, companyId, turns)
  if (subnet.kind === 'container' || subnet.full) {
    const reason = subnet.kind === 'container' ? 'gives_no_addresses' : 'no_free_address'
    for (const turn of turns.filter(isOpen)) turn.refusal = invalidField('subnet_id', reason)
  }
  await choose(tx, subnet, children, turns)
  await together([moveFreeFrom(tx, subnet, turns), register(tx, subnet, turns)])
  await noteRequests(tx, companyId, turns)
  await fetchKnown(tx, companyId, turns)
  return turns.map(turn => {
    const { refusal, rows } = turn.same ?? turn
    return refusal ?? { rows, isRepeated: !isOpen(turn) }
  })
}

/**
 * Moves the point from which free addresses are looked for: from below, everything up to the last one was taken, and is
 * now, or will be with this transaction. Only what is registered counts: what agents saw and what rests may be free one
 * day. What was released counts as free until it is taken up, and is passed by the next move.
 */
async function moveFreeFrom(tx: Tx, subnet: FreeOf, turns: readonly Turn[]): Promise<void> {
  const last = turns
    .findLast(({ asked, addresses }) => isPlain(asked) && addresses.length > 0)
    ?.addresses.at(-1)?.address
  if (last === undefined) return
  await tx.db.execute(sql`
    update subnets s set free_from = ${last}::inet where s.id = ${subnet.id} and not exists (
        select 1 from ip_observations o where o.company_id = s.company_id
          and o.address between coalesce(s.free_from, host(network(s.cidr))::inet) and ${last}::inet)
      and not exists (
        select 1 from ip_addresses a where a.company_id = s.company_id and a.vrf = s.vrf and a.deleted_at is null
          and a.status = 'released' and a.address between coalesce(s.free_from, host(network(s.cidr))::inet) and ${last}::inet)`)
}

/** Each by itself, so that what refuses one does not touch the others. */
async function allocateEach(hub: Hub, asks: readonly Allocation[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const asked of asks) outcomes.push(...(await allocateGroup(hub, [asked])))
  return outcomes
}

/** How often one ask is tried in all, when others register the address that was found for it. */
const TRIES_MAX = 8
/** Others took up the address between the search and the write. One that nobody asked for by name: there are more. */
const isOvertaken = ({ more }: ApiError, { address }: Allocation): boolean =>
  address === null && more.errors?.address !== undefined

async function allocateGroup(hub: Hub, asks: readonly Allocation[]): Promise<Outcome[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await inTransaction(hub.database.db, tx => allocateTogether(tx, asks))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const [alone, other] = asks
      if (other) return allocateEach(hub, asks)
      if (tries === TRIES_MAX || !alone || !isOvertaken(error, alone)) return [error]
    }
  }
}

type Allocated = { readonly isRepeated: boolean; readonly shown: readonly Values[] }
/** How an ask ended, and the answer, which is read after the commit while others have the subnet. */
type Ended = ApiError | { readonly isRepeated: boolean; readonly show: () => Promise<readonly Values[]> }

/** The rows that did not stand before: one that was released and is taken again has another version. */
const newIds = (outcome: Outcome): string[] =>
  outcome instanceof ApiError || outcome.isRepeated
    ? []
    : outcome.rows.flatMap(({ id, version }) => (version === 1 ? [id] : []))

async function workOff(hub: Hub, asks: readonly Allocation[]): Promise<Ended[]> {
  const outcomes = await allocateGroup(hub, asks)
  const given = outcomes.flatMap(outcome => (outcome instanceof ApiError ? [] : outcome.rows))
  // Two with one request_id have the same addresses.
  const all = [...new Map(given.map(row => [row.id, row])).values()]
  const made = new Set(outcomes.flatMap(newIds))
  const shownIn = new Map<Language, Promise<Values[]>>()
  return asks.map(({ editor: { companyId, language } }, at): Ended => {
    const outcome = outcomes[at]!
    if (outcome instanceof ApiError) return outcome
    const known = shownIn.get(language) ?? presentSome(ipAddressKind, { hub, companyId, language }, all, made)
    shownIn.set(language, known)
    const ids = new Set(outcome.rows.map(({ id }) => id))
    const show = async () => (await known).filter(({ id }) => ids.has(String(id)))
    return { isRepeated: outcome.isRepeated, show }
  })
}

const groupsOf = new WeakMap<Hub, Grouped<Allocation, Ended>>()

/** Registers the next free addresses of a subnet. Throws 422. */
export async function allocate(asked: Allocation): Promise<Allocated> {
  const { hub, companyId } = asked.editor
  const groups = groupsOf.get(hub) ?? new Grouped((asks: readonly Allocation[]) => workOff(hub, asks), groupSize, GAPS)
  groupsOf.set(hub, groups)
  const ended = await groups.run(`${companyId} ${asked.subnet_id}`, asked)
  if (ended instanceof ApiError) throw ended
  return { isRepeated: ended.isRepeated, shown: await ended.show() }
}
