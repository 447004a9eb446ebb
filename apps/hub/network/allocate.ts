// Giving out addresses: under the lock of the subnet's row, so that two callers never get the same one, and
// with a unique index as the second guard. Those who ask side by side would wait for each other's commits: what a
// company asks for is done in one transaction, each with its own outcome. It takes the subnets whose rows nobody
// holds, so that none waits for a subnet that it did not ask for; who asks for another one waits for it in a
// transaction of that subnet. Which addresses are free: free-addresses.ts.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { addressNumber, familyOf, numberAddress } from '../../../core/network/address-range.ts'
import type { Hub } from '../hub-context.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { inTransaction, type Tx, together, uuidList } from '../platform/db/transaction.ts'
import { Grouped } from '../platform/group-commit.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { Editor } from '../resources/editor.ts'
import type { Values } from '../resources/field.ts'
import { type Found, lockRow, rowsOfIds } from '../resources/resource-rows.ts'
import { presentSome } from '../resources/resource-show.ts'
import { insertResources, updateResource } from '../resources/write-resource.ts'
import { type FreeAddress, freeOfEach, freeRun, type Released } from './free-addresses.ts'
import { type HeldSubnet, holdSubnets } from './hold-subnets.ts'
import { type IpAddressRow, ipAddressKind } from './ip-address.ts'
import { lockTreeShared } from './subnet-tree.ts'

/** Addresses that one transaction gives out at most. */
const TOGETHER_MAX = 256
/** Callers that were answered together and ask again come back within less time than this, and after each other. */
const GAPS = { firstMs: 8, nextMs: 3, lastMs: 1 }

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
type Given = { readonly address: string; readonly released: Released | null }
type Done = { readonly rows: readonly Row[]; readonly isRepeated: boolean; readonly shown: Shown }
/** Rows as they are answered, by id. */
type Shown = ReadonlyMap<string, Values>
/** `held`: somebody else has the subnet, or nobody: who waits for it learns which. */
type Outcome = Done | ApiError | 'held'

/** One ask on its way to its outcome. */
type Turn = {
  readonly asked: Allocation
  readonly subnet: HeldSubnet
  refusal: ApiError | null
  /** The addresses of an earlier call with the same request_id. */
  known: readonly string[] | null
  /** One before it in the group, with the same request_id. */
  same: Turn | null
  addresses: readonly Given[]
  /** Below it nothing is free any more, once the addresses are registered. */
  freeFrom: string | null
  rows: Row[]
  /** Those of its rows that are new. */
  shown: Shown
}
const NONE: Shown = new Map()
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

/** What earlier calls with the same request_id were given, within 24 hours. */
type EarlierCalls = ReadonlyMap<string, readonly string[]>

async function earlierCalls(tx: Tx, companyId: string, asks: readonly Allocation[]): Promise<EarlierCalls> {
  const ids = asks.flatMap(({ requestId }) => requestId ?? [])
  if (ids.length === 0) return new Map()
  const known = await tx.db.execute<{ request_id: string; address_ids: string[] }>(sql`
    select request_id, address_ids from ip_allocations where company_id = ${companyId}
      and created_at > now() - interval '24 hours' and request_id in (
        select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`)
  return new Map(known.map(row => [row.request_id, row.address_ids]))
}

function findRepeated(turns: readonly Turn[], earlier: EarlierCalls): void {
  const first = new Map<string, Turn>()
  for (const turn of turns) {
    const { requestId } = turn.asked
    if (requestId === null) continue
    turn.known = earlier.get(requestId) ?? null
    turn.same = first.get(requestId) ?? null
    if (isOpen(turn)) first.set(requestId, turn)
  }
}

/** The free addresses of one that asks for certain ones. Throws 422. */
async function chosen(tx: Tx, { asked, subnet }: Turn): Promise<readonly FreeAddress[]> {
  const free = async (of: HeldSubnet, countMax: number): Promise<readonly FreeAddress[]> =>
    (await freeOfEach(tx.db, [{ subnet: of, children: of.children, countMax }], asked.isFromLast))[0]?.free ?? []
  if (asked.address !== null) {
    const wanted = addressNumber(asked.address)
    // An address of another family, or outside, is not among those that may be given out.
    const only = { ...subnet, free_from: asked.address }
    const [first] = wanted === null || familyOf(asked.address) !== familyOf(subnet.cidr) ? [] : await free(only, 1)
    if (!first || first.at !== wanted) throw invalidField('address', 'address_taken')
    return [first]
  }
  const found = asked.isContiguous
    ? await freeRun(tx.db, subnet, asked.count, asked.isFromLast)
    : await free(subnet, asked.count)
  if (!found || found.length < asked.count) throw invalidField('subnet_id', 'no_free_address')
  return found
}

const givenOf =
  ({ cidr }: HeldSubnet) =>
  ({ at, released }: FreeAddress): Given => ({ address: numberAddress(at, familyOf(cidr)), released })

/** Gives each turn its addresses, the lowest to the first; one that does not get all it asks for gets none. */
async function choose(tx: Tx, turns: readonly Turn[]): Promise<void> {
  const open = turns.filter(isOpen)
  const [first] = open
  if (!first) return
  if (!isPlain(first.asked)) {
    first.addresses = (await chosen(tx, first)).map(givenOf(first.subnet))
    return
  }
  const groups = [...Map.groupBy(open, ({ subnet }) => subnet)]
  const wanted = groups.map(([subnet, some]) => ({
    subnet,
    children: subnet.children,
    countMax: some.reduce((sum, { asked }) => sum + asked.count, 0),
  }))
  const found = await freeOfEach(tx.db, wanted, false)
  for (const [place, [subnet, some]] of groups.entries()) {
    const { free = [], unsettledAt = null } = found[place] ?? {}
    let at = 0
    for (const turn of some) {
      const given = free.slice(at, at + turn.asked.count)
      const last = given.at(-1)?.at
      if (given.length < turn.asked.count || last === undefined)
        turn.refusal = invalidField('subnet_id', 'no_free_address')
      else {
        turn.addresses = given.map(givenOf(subnet))
        turn.freeFrom = numberAddress(
          unsettledAt !== null && unsettledAt < last ? unsettledAt : last,
          familyOf(subnet.cidr),
        )
        at += given.length
      }
    }
  }
}

/** Registers the addresses, or takes the rows of those that were released, with their history. */
async function register(tx: Tx, turns: readonly Turn[]): Promise<void> {
  const wanted = turns.flatMap(turn => turn.addresses.map(given => ({ turn, ...given })))
  const fresh = wanted.filter(({ released }) => released === null)
  const made = await insertResources(
    tx,
    ipAddressKind,
    fresh.map(({ turn: { asked, subnet }, address }) => ({
      editor: asked.editor,
      values: { ...asked.values, address, vrf: subnet.vrf },
      action: 'allocate',
      // Blocks inside it give no addresses, and the tree stays as it is.
      columns: { subnet_id: subnet.id },
    })),
    rows => showNew(tx, turns, rows),
  )
  const rowOf = new Map(fresh.map((given, at) => [given, made[at]]))
  for (const given of wanted) {
    const { turn, released } = given
    const row = released === null ? rowOf.get(given) : await takeReleased(tx, turn.asked, released)
    if (row instanceof ApiError) throw row
    if (row) turn.rows.push(row)
  }
}

/** Reads what the answers say of new addresses before the commit, while the database has other work to do for it. */
async function showNew(tx: Tx, turns: readonly Turn[], rows: readonly Row[]): Promise<void> {
  const ids = new Set(rows.map(({ id }) => id))
  for (const [language, some] of Map.groupBy(turns, ({ asked }) => asked.editor.language)) {
    const [first] = some
    if (!first || rows.length === 0) continue
    const { hub, companyId } = first.asked.editor
    const shown = shownById(await presentSome(ipAddressKind, { hub, companyId, language, tx }, rows, ids))
    for (const turn of some) turn.shown = shown
  }
}

const shownById = (shown: readonly Values[]): Shown => new Map(shown.map(row => [String(row.id), row]))

async function takeReleased(tx: Tx, { editor, values }: Allocation, { id, atMs }: Released): Promise<Row> {
  const row = await lockRow(ipAddressKind, tx, editor.companyId, id).catch(orNone)
  // Somebody has taken it up again, or deleted it, since it was found; or released it anew, and it rests.
  if (row?.status !== 'released' || (row.released_at?.getTime() ?? null) !== atMs)
    throw invalidField('address', 'address_taken')
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

/**
 * The outcome of each, all in one transaction. Unless it `waits`, what others hold is left to who waits for it. Throws
 * what refuses one of them while it is written.
 */
async function allocateTogether(tx: Tx, asks: readonly Allocation[], waits: boolean): Promise<Outcome[]> {
  const [first] = asks
  if (!first) return []
  const { companyId } = first.editor
  // The tree first: statements of a transaction run in the order in which they are sent.
  const [, held, earlier] = await together([
    lockTreeShared(tx, companyId),
    holdSubnets(tx, companyId, new Set(asks.map(({ subnet_id }) => subnet_id)), waits),
    earlierCalls(tx, companyId, asks),
  ])
  const turns = new Map<Allocation, Turn>()
  for (const asked of asks) {
    const subnet = held.get(asked.subnet_id)
    if (subnet)
      turns.set(asked, {
        asked,
        subnet,
        refusal: null,
        known: null,
        same: null,
        addresses: [],
        freeFrom: null,
        rows: [],
        shown: NONE,
      })
  }
  await give(tx, companyId, [...turns.values()], earlier)
  return asks.map((asked): Outcome => {
    const turn = turns.get(asked)
    if (!turn) return waits ? invalidField('subnet_id', 'unknown_reference') : 'held'
    const { refusal, rows, shown } = turn.same ?? turn
    return refusal ?? { rows, shown, isRepeated: !isOpen(turn) }
  })
}

async function give(tx: Tx, companyId: string, turns: readonly Turn[], earlier: EarlierCalls): Promise<void> {
  findRepeated(turns, earlier)
  for (const turn of turns.filter(isOpen))
    if (turn.subnet.kind === 'container') turn.refusal = invalidField('subnet_id', 'gives_no_addresses')
    else if (turn.subnet.full) turn.refusal = invalidField('subnet_id', 'no_free_address')
  await choose(tx, turns)
  await together([moveFreeFrom(tx, turns), register(tx, turns)])
  await noteRequests(tx, companyId, turns)
  await fetchKnown(tx, companyId, turns)
}

/** By the ids too: of rows of JSON the planner expects so many that it would read all subnets there are. */
const MOVE_FREE_FROM = fixedStatement<'ids' | 'moved'>(
  value => sql`
    update subnets s set free_from = m.free_from
    from jsonb_to_recordset(${value('moved')}::jsonb) as m (id uuid, free_from inet)
    where s.id = any(${value('ids')}::uuid[]) and s.id = m.id and s.free_from is distinct from m.free_from`,
)

/**
 * Moves the points from which free addresses are looked for: from below, everything up to the last one was taken, and
 * is now, or will be with this transaction. Only what is registered counts: what agents saw and what rests may be free
 * one day. What was released counts as free until it is taken up, and is passed by the next move.
 */
async function moveFreeFrom(tx: Tx, turns: readonly Turn[]): Promise<void> {
  const moved = new Map<string, string>()
  for (const { subnet, freeFrom } of turns) if (freeFrom !== null) moved.set(subnet.id, freeFrom)
  if (moved.size === 0) return
  const rows = [...moved].map(([id, free_from]) => ({ id, free_from }))
  await tx.db.execute(MOVE_FREE_FROM({ ids: uuidList(moved.keys()), moved: JSON.stringify(rows) }))
}

/** Each by itself, so that what refuses one does not touch the others. */
async function allocateEach(hub: Hub, asks: readonly Allocation[], waits: boolean): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const asked of asks) outcomes.push(...(await allocateGroup(hub, [asked], waits)))
  return outcomes
}

/** How often one ask is tried in all, when others register the address that was found for it. */
const TRIES_MAX = 8
/** Others took up the address between the search and the write. One that nobody asked for by name: there are more. */
const isOvertaken = ({ more }: ApiError, { address }: Allocation): boolean =>
  address === null && more.errors?.address !== undefined

async function allocateGroup(hub: Hub, asks: readonly Allocation[], waits: boolean): Promise<Outcome[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await inTransaction(hub.database.db, tx => allocateTogether(tx, asks, waits))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const [alone, other] = asks
      if (other) return allocateEach(hub, asks, waits)
      if (tries === TRIES_MAX || !alone || !isOvertaken(error, alone)) return [error]
    }
  }
}

type Allocated = { readonly isRepeated: boolean; readonly shown: readonly Values[] }
/**
 * How an ask ended: the answer. Of what stood before it is read after the commit, while others have the subnet. Throws
 * what refuses it.
 */
type Ended = () => Promise<Allocated>

async function workOff(hub: Hub, asks: readonly Allocation[], waits: boolean): Promise<Ended[]> {
  const outcomes = await allocateGroup(hub, asks, waits)
  const given = outcomes.flatMap(outcome => (outcome instanceof ApiError || outcome === 'held' ? [] : outcome))
  // What stood before; two with one request_id have the same addresses.
  const others = given.flatMap(({ rows, shown }) => rows.filter(({ id }) => !shown.has(id)))
  const all = [...new Map(others.map(row => [row.id, row])).values()]
  const shownIn = new Map<Language, Promise<Shown>>()
  const showIn = async (companyId: string, language: Language): Promise<Shown> =>
    shownById(all.length === 0 ? [] : await presentSome(ipAddressKind, { hub, companyId, language }, all))
  return asks.map((asked, at): Ended => {
    const { companyId, language } = asked.editor
    const outcome = outcomes[at]!
    if (outcome instanceof ApiError) return () => Promise.reject(outcome)
    if (outcome === 'held') return () => allocateIn('subnet', asked)
    const known = shownIn.get(language) ?? showIn(companyId, language)
    shownIn.set(language, known)
    return async () => {
      const stood = await known
      return {
        isRepeated: outcome.isRepeated,
        shown: outcome.rows.flatMap(({ id }): Values[] => {
          const row = outcome.shown.get(id) ?? stood.get(id)
          return row ? [row] : []
        }),
      }
    }
  })
}

/** Who goes together: all of a company, whatever the subnet, if nobody waits for another; or those of a subnet. */
type Together = 'company' | 'subnet'
type Groups = Readonly<Record<Together, Grouped<Allocation, Ended>>>
const groupsOf = new WeakMap<Hub, Groups>()

async function allocateIn(which: Together, asked: Allocation): Promise<Allocated> {
  const { hub, companyId } = asked.editor
  const groups = groupsOf.get(hub) ?? {
    company: new Grouped((asks: readonly Allocation[]) => workOff(hub, asks, false), groupSize, GAPS),
    subnet: new Grouped((asks: readonly Allocation[]) => workOff(hub, asks, true), groupSize),
  }
  groupsOf.set(hub, groups)
  const ended = await groups[which].run(which === 'company' ? companyId : `${companyId} ${asked.subnet_id}`, asked)
  return ended()
}

/** Registers the next free addresses of a subnet. Throws 422. */
export const allocate = (asked: Allocation): Promise<Allocated> =>
  allocateIn(isPlain(asked) ? 'company' : 'subnet', asked)
