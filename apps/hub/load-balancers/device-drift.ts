// Reading a device: what it has is compared with the record of the hub, and shown as drift, or taken over.
// Nothing is ever changed on the device.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import {
  compareDevice,
  type DeviceView,
  type FieldDifference,
  type KnownMember,
  type KnownPool,
  type KnownVirtualServer,
  type MemberPair,
} from '../../../core/load-balancing/device-difference.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { RunFailed } from '../resources/runs.ts'
import { setDrift } from '../resources/store-drift.ts'
import { adoptDevice } from './adopt-device.ts'
import { readDevice } from './device-integration.ts'
import { lbMemberKind } from './lb-member.ts'
import { judgePools, lbPoolKind } from './lb-pool.ts'
import type { LoadBalancer } from './load-balancer.ts'
import { virtualServerKind } from './virtual-server.ts'

const DIFFERENCES_SHOWN = 200
const INTERVALS_OF_HEALTH = 3

type Compared = ReturnType<typeof compareDevice>
/** Why parts of a device were left out. */
type LeftOut = ReadonlyMap<unknown, string>

async function knownPools(db: Executor, device: LoadBalancer): Promise<KnownPool[]> {
  const pools = await db.execute<Omit<KnownPool, 'members'>>(sql`
    select id, name, protocol, algorithm from lb_pools where device_id = ${device.id} and deleted_at is null
    order by lower(name), id`)
  const members = await db.execute<KnownMember & { pool_id: string }>(sql`
    select m.id, m.pool_id, m.name, coalesce(m.address, s.ip_address) as address, m.port, m.weight, m.backup,
      m.max_connections, m.admin_state, m.pending_state is not null as "isPending"
    from lb_members m join lb_pools p on p.id = m.pool_id left join servers s on s.id = m.server_id
    where p.device_id = ${device.id} and m.deleted_at is null order by lower(m.name), m.id`)
  const byPool = Map.groupBy(members, member => member.pool_id)
  return pools.map(pool => ({ ...pool, members: byPool.get(pool.id) ?? [] }))
}

async function knownVirtualServers(db: Executor, device: LoadBalancer): Promise<KnownVirtualServer[]> {
  return [
    ...(await db.execute<KnownVirtualServer>(sql`
      select v.id, v.name, v.address, v.port, v.protocol, p.name as pool from virtual_servers v
      left join lb_pools p on p.id = v.pool_id
      where v.device_id = ${device.id} and v.deleted_at is null and v.enabled order by lower(v.name), v.id`)),
  ]
}

const membersOf = (compared: Compared): MemberPair[] => compared.pools.flatMap(pool => pool.members)

/** Everything that differs, one line a field; what only one side has is one line. */
function differencesOf(compared: Compared): FieldDifference[] {
  const pairs = [...compared.pools.flatMap(pool => [pool, ...pool.members]), ...compared.virtualServers]
  return pairs.flatMap(({ known, seen, path, fields }): FieldDifference[] => {
    if (known === null) return [{ field: path, intended: null, actual: shown(seen) }]
    if (seen === null) return [{ field: path, intended: shown(known), actual: null }]
    return fields.map(each => ({ ...each, field: `${path}.${each.field}` }))
  })
}

function shown(one: object | null): Unchecked {
  const { members, observed, activeConnections, id, isPending, ...fields } = { ...one } as Readonly<
    Record<string, unknown>
  >
  return fields
}

/** What the device says of members that both sides have: whether they answer, and how many connections they hold. */
async function storeObservations(tx: Tx, companyId: string, compared: Compared, now: Date): Promise<void> {
  const rows = membersOf(compared).flatMap(({ known, seen }) =>
    known && seen
      ? [{ id: known.id, observed: seen.observed, connections: seen.activeConnections, admin: seen.admin_state }]
      : [],
  )
  await tx.db.execute(sql`
    update lb_members m set observed_state = x.observed, active_connections = x.connections,
      observed_at = ${now.toISOString()}::timestamptz,
      pending_state = nullif(m.pending_state, x.admin)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, observed text, connections int, admin text)
    where m.company_id = ${companyId} and m.id = x.id`)
}

async function storeDrift(tx: Tx, info: KindInfo, device: LoadBalancer, compared: Compared): Promise<void> {
  const { company_id: companyId } = device
  const ofOne = (pairs: readonly { known: { id: string } | null; fields: readonly FieldDifference[] }[]) =>
    pairs.flatMap(({ known, fields }) => (known ? [{ id: known.id, drift: fields }] : []))
  await setDrift(tx.db, info, companyId, 'device', [
    { id: device.id, drift: differencesOf(compared).slice(0, DIFFERENCES_SHOWN) },
  ])
  await setDrift(tx.db, lbPoolKind.info, companyId, 'device', ofOne(compared.pools))
  await setDrift(tx.db, lbMemberKind.info, companyId, 'device', ofOne(membersOf(compared)))
  await setDrift(tx.db, virtualServerKind.info, companyId, 'device', ofOne(compared.virtualServers))
}

async function noteSync(tx: Tx, info: KindInfo, device: LoadBalancer, now: Date, error: string | null): Promise<void> {
  const { sync_interval_seconds: seconds } = device
  const until = seconds > 0 ? new Date(now.getTime() + INTERVALS_OF_HEALTH * seconds * 1000) : null
  await tx.db.execute(sql`
    update load_balancers set sync_tried_at = ${now.toISOString()}::timestamptz, sync_failed = ${error !== null},
      synced_at = case when ${error === null} then ${now.toISOString()}::timestamptz else synced_at end,
      probe_until = ${until?.toISOString() ?? null}::timestamptz
    where company_id = ${device.company_id} and id = ${device.id}`)
  const found = error === null ? [] : [{ code: 'device_unreachable', detail: { error }, isProbed: true }]
  const of = new Map([[device.id, found]])
  await setConditions(tx, info, device.company_id, [device.id], ['device_unreachable'], of)
}

const compareNow = async (db: Executor, device: LoadBalancer, view: DeviceView): Promise<Compared> =>
  compareDevice(await knownPools(db, device), await knownVirtualServers(db, device), view)

const pairsOf = (compared: Compared) => [...compared.pools, ...membersOf(compared), ...compared.virtualServers]

/** What the hub cannot keep of a device, and why. */
const skippedOf = (compared: Compared, leftOut: LeftOut) =>
  pairsOf(compared)
    .flatMap(pair => {
      const reason = leftOut.get(pair)
      return reason === undefined ? [] : [{ text: pair.path, reason }]
    })
    .slice(0, DIFFERENCES_SHOWN)

function countsOf(compared: Compared, leftOut: LeftOut) {
  const pairs = pairsOf(compared).filter(pair => !leftOut.has(pair))
  const many = (isOne: (pair: (typeof pairs)[number]) => boolean): number => pairs.filter(isOne).length
  return {
    created: many(pair => pair.known === null),
    removed: many(pair => pair.seen === null),
    updated: many(pair => pair.known !== null && pair.seen !== null && pair.fields.length > 0),
    unchanged: many(pair => pair.known !== null && pair.seen !== null && pair.fields.length === 0),
  }
}
const NOTHING_LEFT_OUT: LeftOut = new Map()
const NOTHING = { created: 0, updated: 0, removed: 0 }

/** Reads a device; the result of its run. Throws RunFailed. */
async function syncDevice(editor: Editor, device: LoadBalancer, info: KindInfo, applies: boolean) {
  const { hub, companyId } = editor
  const { db } = hub.database
  let view: DeviceView
  try {
    view = await readDevice(editor, device)
  } catch (error) {
    if (!(error instanceof RunFailed)) throw error
    await inTransaction(db, tx => noteSync(tx, info, device, new Date(hub.now()), error.message))
    throw error
  }
  return inTransaction(db, async tx => {
    const now = new Date(hub.now())
    // Two runs of a device, and a person beside them, go one after the other.
    await tx.db.execute(sql`select 1 from load_balancers where id = ${device.id} for no key update`)
    const before = await compareNow(tx.db, device, view)
    const leftOut = applies ? await adoptDevice(tx, editor, device, before) : NOTHING_LEFT_OUT
    const after = applies ? await compareNow(tx.db, device, view) : before
    await storeObservations(tx, companyId, after, now)
    await storeDrift(tx, info, device, after)
    await noteSync(tx, info, device, now, null)
    await judgePools(tx, editor, lbPoolKind.info, null)
    const counts = countsOf(before, leftOut)
    return {
      ...(applies ? { ...counts, skipped: skippedOf(before, leftOut) } : { ...NOTHING, unchanged: counts.unchanged }),
      differences: differencesOf(before).slice(0, DIFFERENCES_SHOWN),
    }
  })
}

/** The act of a device; `info` is its kind, which has the conditions. */
export const syncAct = (info: KindInfo) => ({
  work: ({ editor, row, input }: { readonly editor: Editor; readonly row: LoadBalancer; readonly input: Unchecked }) =>
    syncDevice(editor, row, info, input.apply === true),
})
