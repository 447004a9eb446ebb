// Makes the hub's record what a device has: what was compared is created, changed and removed, of origin import. What
// the hub cannot keep is left out, each by itself.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type {
  DeviceMember,
  MemberPair,
  PoolPair,
  VirtualServerPair,
} from '../../../core/load-balancing/device-difference.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError, firstFaultText } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { parseForm } from '../resources/resource-form.ts'
import { RunFailed } from '../resources/runs.ts'
import { deleteResource, insertResource, updateResource } from '../resources/write-resource.ts'
import { lbMemberKind } from './lb-member.ts'
import { lbPoolKind } from './lb-pool.ts'
import type { LoadBalancer } from './load-balancer.ts'
import { virtualServerKind } from './virtual-server.ts'

const IMPORT = { origin: 'import' } as const

/** A member is a server where one of the company has its address. */
async function endpointOf(tx: Tx, { companyId }: Editor, { address }: DeviceMember): Promise<Unchecked> {
  const [server] = await tx.db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and ip_address = ${address} and deleted_at is null
    order by name limit 1`)
  return server ? { server_id: server.id, address: null } : { server_id: null, address }
}

const fieldsOf = ({ name, port, weight, backup, max_connections, admin_state }: DeviceMember): Unchecked => ({
  name,
  port,
  weight,
  backup,
  max_connections,
  ...(admin_state === null ? {} : { admin_state }),
})

type AnyPair = PoolPair | MemberPair | VirtualServerPair
/** Why the hub cannot keep what a device has. */
type LeftOut = Map<AnyPair, string>

/** Null when it was taken over. */
async function refusal(tx: Tx, act: (tx: Tx) => Promise<void>): Promise<string | null> {
  try {
    await tx.db.transaction(db => act({ ...tx, db }))
    return null
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 422) throw error
    return firstFaultText(error)
  }
}

/** Each is a statement a part, in one transaction. */
const PASSES_MAX = 10

/** Takes over what differs; what is refused is tried again as long as others free what it needs. */
async function takeOver<P extends AnyPair>(
  tx: Tx,
  pairs: readonly P[],
  leftOut: LeftOut,
  act: (tx: Tx, pair: P) => Promise<void>,
): Promise<void> {
  let left = pairs.filter(({ known, seen, fields }) => seen !== null && (known === null || fields.length > 0))
  let before = left.length + 1
  for (let pass = 0; pass < PASSES_MAX && left.length > 0 && left.length < before; pass++) {
    const refused: P[] = []
    for (const pair of left) {
      const reason = await refusal(tx, inner => act(inner, pair))
      if (reason === null) leftOut.delete(pair)
      else {
        leftOut.set(pair, reason)
        refused.push(pair)
      }
    }
    before = left.length
    // Where each took over what the next one had, the last one frees its place first.
    left = refused.toReversed()
  }
}

async function adoptMember(tx: Tx, editor: Editor, poolId: string, { known, seen, fields }: MemberPair) {
  if (seen === null) return
  const isMoved = known === null || fields.some(({ field }) => field === 'address')
  const given = { ...fieldsOf(seen), ...(isMoved ? await endpointOf(tx, editor, seen) : {}) }
  const values = {
    ...(await parseForm(lbMemberKind, known ? 'change' : 'create', given)),
    // The device has the state already, and is not asked whether it may.
    pending_state: null,
    force: true,
  }
  if (known) await updateResource(tx, lbMemberKind, editor, known.id, values, IMPORT)
  else await insertResource(tx, lbMemberKind, editor, values, { ...IMPORT, parentId: poolId })
}

async function storePool(tx: Tx, editor: Editor, device: LoadBalancer, { known, seen }: PoolPair): Promise<string> {
  const given = {
    name: seen?.name,
    ...(seen?.protocol ? { protocol: seen.protocol } : {}),
    ...(seen?.algorithm ? { algorithm: seen.algorithm } : {}),
  }
  const values = await parseForm(lbPoolKind, known ? 'change' : 'create', given)
  if (known === null)
    return (await insertResource(tx, lbPoolKind, editor, values, { ...IMPORT, parentId: device.id })).id
  await updateResource(tx, lbPoolKind, editor, known.id, values, IMPORT)
  return known.id
}

/** The id of the pool; null for one that the device does not have, or the hub cannot keep. */
async function adoptPool(tx: Tx, editor: Editor, device: LoadBalancer, pair: PoolPair, leftOut: LeftOut) {
  const { known, seen, members } = pair
  if (seen === null) return null
  let id = known?.id ?? null
  await takeOver(tx, [pair], leftOut, async inner => {
    id = await storePool(inner, editor, device, pair)
  })
  const poolId = id
  if (poolId === null) {
    for (const member of members) leftOut.set(member, leftOut.get(pair) ?? '')
    return null
  }
  // What goes first frees its name and its port.
  for (const { known: gone, seen: still } of members)
    if (gone && !still) await deleteResource(tx, lbMemberKind, editor, gone.id, {}, { force: true })
  await takeOver(tx, members, leftOut, (inner, member) => adoptMember(inner, editor, poolId, member))
  return poolId
}

async function adoptVirtualServer(
  tx: Tx,
  editor: Editor,
  device: LoadBalancer,
  { known, seen }: VirtualServerPair,
  pools: ReadonlyMap<string, string>,
): Promise<void> {
  if (seen === null) return
  const { name, address, port, protocol, pool } = seen
  const poolId = pool === null ? null : (pools.get(pool) ?? null)
  const given = { name, address, port, ...(protocol === null ? {} : { protocol }), pool_id: poolId }
  const values = await parseForm(virtualServerKind, known ? 'change' : 'create', given)
  if (known) await updateResource(tx, virtualServerKind, editor, known.id, values, IMPORT)
  else await insertResource(tx, virtualServerKind, editor, values, { ...IMPORT, parentId: device.id })
}

/** What others name stays, and stays a difference. */
async function removed(act: Promise<void>): Promise<void> {
  try {
    await act
  } catch (error) {
    if (!(error instanceof ApiError) || error.more.reason !== 'in_use') throw error
  }
}

type Compared = { readonly pools: readonly PoolPair[]; readonly virtualServers: readonly VirtualServerPair[] }

/** What was left out. Throws RunFailed for something that cannot be removed. */
export async function adoptDevice(tx: Tx, editor: Editor, device: LoadBalancer, compared: Compared): Promise<LeftOut> {
  const leftOut: LeftOut = new Map()
  try {
    for (const { known, seen } of compared.virtualServers)
      if (known && !seen) await removed(deleteResource(tx, virtualServerKind, editor, known.id))
    const pools = new Map<string, string>()
    for (const pair of compared.pools) {
      const id = await adoptPool(tx, editor, device, pair, leftOut)
      if (id !== null && pair.seen) pools.set(pair.seen.name, id)
    }
    await takeOver(tx, compared.virtualServers, leftOut, (inner, pair) =>
      adoptVirtualServer(inner, editor, device, pair, pools),
    )
    for (const { known, seen } of compared.pools)
      if (known && !seen) await removed(deleteResource(tx, lbPoolKind, editor, known.id))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new RunFailed(`cannot take over what the device has: ${firstFaultText(error)}`)
  }
  return leftOut
}
