// A member of a pool: a server of the company, or an address, with a port. Whether it serves is decided from what
// people want, what the device says and what agents report (R-020).
import { type SQL, sql } from 'drizzle-orm'
import { integer as integerColumn, text as textColumn, timestamp, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { parseHostName } from '../../../core/dns/domain-name.ts'
import { type AdminState, adminStates, memberReasons, memberStates } from '../../../core/load-balancing/state-names.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { boolean, integer, oneOf, uuid } from '../platform/http/request-schema.ts'
import { id, nullable, reference, wordOf } from '../platform/http/response-schema.ts'
import { type Editor, hubEditor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  integerField,
  internalField,
  referenceField,
  textField,
  timeField,
  type Values,
} from '../resources/field.ts'
import { defineKind, type Kind, type Notes, type RowOf, type Write } from '../resources/kind.ts'
import { startRun } from '../resources/runs.ts'
import { DRAIN_SECONDS_MAX, settleDraining, thenStates } from './draining.ts'
import { judgePools, lbPoolKind } from './lb-pool.ts'
import { isInState, memberStatesSql, membersNow } from './member-states.ts'

/** The act that tells the device what people want of a member. */
export const WRITE = 'write_state'

const addressFault = (given: string): Words | null =>
  parseAddress(given) || parseHostName(given) ? null : words('host_or_address')
const normalAddress = (given: string): string => parseAddress(given)?.toString() ?? parseHostName(given) ?? given
const timeColumn = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })
const KEPT = { readOnly: true, manifest: false } as const

const fields = {
  name: textField(255, { fallback: '', search: 'text', sort: true }),
  server_id: referenceField('server', { filter: true }),
  /** Null in the database for a member that is a server: its address is the server's. */
  address: textField(253, { search: 'exact', check: addressFault, normal: normalAddress }),
  port: integerField(1, 65_535, { required: true }),
  weight: integerField(0, 1000, { fallback: 1 }),
  backup: booleanField({ fallback: false }),
  max_connections: integerField(1, 1_000_000, {}),
  /** An act of operators, which no manifest undoes. */
  admin_state: choiceField(adminStates, { fallback: 'enabled', filter: true, manifest: false }),
  drain_until: timeField(KEPT),
  drain_then: internalField<AdminState | null>(name => textColumn(name), null),
  drain_started_at: internalField<Date | null>(timeColumn, null),
  observed_state: choiceField(memberStates, KEPT),
  active_connections: integerField(0, 2_147_483_647, KEPT),
  observed_at: timeField(KEPT),
  /** What the device was not told yet. */
  pending_state: choiceField(adminStates, KEPT),
  write_failures: internalField<number>(name => integerColumn(name).notNull(), 0),
  written_at: internalField<Date | null>(timeColumn, null),
  pool_id: columnField<string>(name => uuidColumn(name), uuid(), id(), { required: true, ...KEPT }),
} as const

export type LbMember = RowOf<typeof fields>

/** A stored address as it is: of a server, the server's. Null for a server without one. */
export async function addressOf(db: Executor, { company_id, server_id, address }: LbMember): Promise<string | null> {
  if (server_id === null) return address
  const [server] = await db.execute<{ ip_address: string | null; name: string }>(sql`
    select ip_address from servers where company_id = ${company_id} and id = ${server_id}`)
  return server?.ip_address ?? null
}

async function usualName(tx: Tx, { company_id, server_id, address, port }: LbMember): Promise<string> {
  if (server_id === null) return `${address}:${port}`
  const [server] = await tx.db.execute<{ name: string }>(sql`
    select name from servers where company_id = ${company_id} and id = ${server_id}`)
  return `${server?.name ?? server_id}:${port}`
}

/** Exactly one of server and address; an address beside a server that is the server's own is no fault (R-076). */
async function settleAddress({ tx, before, next, given }: Write<LbMember>): Promise<void> {
  const wanted = next.address
  if (next.server_id !== null && wanted !== null) {
    const own = await addressOf(tx.db, next)
    const isSentBack = before !== null && given.has('address') && own === wanted
    if (!isSentBack) throw invalidField('server_id', 'lb_either')
    next.address = null
  }
  if (next.server_id === null && next.address === null) throw invalidField('server_id', 'lb_either')
  const address = await addressOf(tx.db, next)
  if (address === null) return
  const [taken] = await tx.db.execute(sql`
    select 1 from lb_members m left join servers s on s.id = m.server_id
    where m.pool_id = ${next.pool_id} and m.deleted_at is null and m.id <> ${next.id} and m.port = ${next.port}
      and coalesce(m.address, s.ip_address) = ${address}`)
  if (taken) throw invalidField('port', 'lb_endpoint_taken')
}

/** Whether the device takes states from the hub. */
async function isWritten(tx: Tx, poolId: string): Promise<boolean> {
  const [device] = await tx.db.execute<{ is_written: boolean }>(sql`
    select d.writes and d.integration <> 'none' as is_written
    from lb_pools p join load_balancers d on d.id = p.device_id where p.id = ${poolId}`)
  return device?.is_written ?? false
}

/** Two writers of a pool see each other's members. */
const lockPool = (tx: Tx, poolId: string) =>
  tx.db.execute(sql`select 1 from lb_pools where id = ${poolId} for no key update`)

/**
 * Throws 422 when a member that serves is the last one of a pool that virtual servers lead to (R-022); with `force` the
 * audit entry says so instead.
 */
async function refuseLast(
  tx: Tx,
  { hub }: Editor,
  { id: memberId, pool_id }: LbMember,
  isForced: boolean,
  notes: Notes,
): Promise<void> {
  if (isForced) {
    notes.force = { old: null, new: true }
    return
  }
  const [pool] = await tx.db.execute<{ serves: boolean; others: number; is_used: boolean }>(sql`
    select coalesce(bool_or(m.id = ${memberId}), false) as serves, (count(*) filter (where m.id <> ${memberId}))::int as others,
      exists (select 1 from virtual_servers v where v.deleted_at is null
        and (v.pool_id = ${pool_id} or v.rule_pool_ids && ${uuidList([pool_id])}::uuid[])) as is_used
    from (${memberStatesSql(hub, sql`m.pool_id = ${pool_id}`)}) m where m.state in ('up', 'unknown')`)
  if (pool?.serves && pool.is_used && pool.others === 0) throw invalidField('admin_state', 'lb_last_member')
}

async function beforeWrite(write: Write<LbMember>): Promise<void> {
  const { tx, editor, before, next, given, input, notes } = write
  await lockPool(tx, next.pool_id)
  if (given.has('server_id') || given.has('address') || given.has('port') || before === null) await settleAddress(write)
  if (next.name === '') next.name = await usualName(tx, next)
  settleDraining(write)
  const isChange = before !== null && before.admin_state !== next.admin_state
  if (isChange && before.admin_state === 'enabled') await refuseLast(tx, editor, before, input.force === true, notes)
  // What was read from the device needs not be told to it.
  if (!isChange || given.has('pending_state')) return
  next.pending_state = (await isWritten(tx, next.pool_id)) ? next.admin_state : null
  next.write_failures = 0
  next.written_at = null
}

async function beforeDelete({
  tx,
  editor,
  row,
  input,
  notes,
}: {
  readonly tx: Tx
  readonly editor: Editor
  readonly row: LbMember
  readonly input: Values
  readonly notes: Notes
}): Promise<void> {
  await lockPool(tx, row.pool_id)
  await refuseLast(tx, editor, row, input.force === true, notes)
}

async function deriveMembers(
  db: Executor,
  { hub }: Pick<Editor, 'hub'>,
  rows: readonly LbMember[],
): Promise<Map<string, Values>> {
  const ids = uuidList(rows.map(row => row.id))
  const now = new Map((await membersNow(db, hub, sql`m.id = any(${ids}::uuid[])`)).map(member => [member.id, member]))
  const serverIds = uuidList(rows.flatMap(row => row.server_id ?? []))
  const servers = await db.execute<{ id: string; name: string }>(sql`
    select id, name from servers where id = any(${serverIds}::uuid[])`)
  const named = new Map(servers.map(server => [server.id, { id: server.id, name: server.name }]))
  return new Map(
    rows.map(row => {
      const member = now.get(row.id)
      const shown = {
        server: named.get(row.server_id ?? '') ?? null,
        address: member?.address ?? row.address,
        effective_state: member?.state ?? 'unknown',
        because: member?.because ?? 'none',
      }
      return [row.id, shown]
    }),
  )
}

const stateOf = (hub: Editor['hub']): SQL => memberStatesSql(hub, sql`m.id = lb_members.id`)

export const lbMemberKind = defineKind({
  kind: 'lb_member',
  title: { one: { en: 'member', vi: 'thành viên' }, many: { en: 'members', vi: 'thành viên' } },
  group: lbPoolKind.group,
  path: '/load-balancers/:device/pools/:pool/members',
  parameter: 'member',
  table: 'lb_members',
  schemaName: 'LbMember',
  fields,
  inputs: {
    drain_seconds: integer(0, DRAIN_SECONDS_MAX),
    // biome-ignore lint/suspicious/noThenProperty: the contract's name of a text, which no promise takes for its own.
    then: oneOf(thenStates),
    force: boolean(),
  },
  parent: { of: lbPoolKind, column: 'pool_id' },
  limit: 200,
  permissions: lbPoolKind.info.permissions,
  filters: () => ({
    effective_state: filter(oneOf(memberStates), (value, { hub }) => isInState(stateOf(hub), value)),
  }),
  derived: {
    list: {
      server: nullable(reference),
      effective_state: wordOf(memberStates),
      because: wordOf(memberReasons),
    },
  },
  iac: null,
  csv: null,
  without: ['show'],
  hooks: {
    beforeWrite,
    beforeDelete,
    afterWrite: async ({ tx, editor, before, after }) => {
      const poolId = after?.pool_id ?? before?.pool_id
      if (poolId) await judgePools(tx, editor, lbPoolKind.info, [poolId])
      if (after && after.pending_state !== null && before?.admin_state !== after.admin_state)
        await startRun(tx, hubEditor(editor.hub, editor.companyId), lbMemberKind as Kind, after, WRITE)
    },
    derive: deriveMembers,
  },
})
