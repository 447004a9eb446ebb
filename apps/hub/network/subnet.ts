// A subnet: a block of addresses of a company (group 21 of the catalogue). The tree of subnets follows from which block
// lies in which; nobody chooses it.
import { Type } from '@sinclair/typebox'
import { eq, gt, isNull, type SQL, sql } from 'drizzle-orm'
import {
  bigint,
  boolean as booleanColumn,
  cidr as cidrColumn,
  inet,
  real,
  uuid as uuidColumn,
} from 'drizzle-orm/pg-core'
import { addressNumber } from '../../../core/network/address-range.ts'
import { cidrText, holds, networkOf, normalAddress, normalCidr, parseCidr } from '../../../core/network/cidr.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { isUuid, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { id } from '../platform/http/response-schema.ts'
import {
  booleanField,
  choiceField,
  columnField,
  integerField,
  internalField,
  objectsField,
  textField,
} from '../resources/field.ts'
import { columnNamed, defineKind, type NewWrite, type RowOf, type Write, type Written } from '../resources/kind.ts'
import { type Referrers, refuseInUse } from '../resources/references.ts'
import { isSame } from '../resources/write-resource.ts'
import { arrangeTree, lockTree } from './subnet-tree.ts'
import { deriveSubnets, usageResponse } from './subnet-usage.ts'

/** The fault of a block; null for one without host bits. */
function cidrFault(given: string): Words | null {
  const block = parseCidr(given)
  if (!block) return words('cidr')
  const network = networkOf(block)
  return cidrText(network) === cidrText(block) ? null : words('host_bits', { cidr: cidrText(network) })
}

export const addressFault = (given: string): Words | null => (parseAddress(given) ? null : words('ip_address'))

const addressText = () => text(64)
const range = Type.Object({ from: addressText(), to: addressText(), note: Type.Optional(text(255, 0)) })
type Range = { readonly from: string; readonly to: string; readonly note?: string }

export const cidrOrAddress = (value: string): boolean => parseCidr(value) !== null || parseAddress(value) !== null

/** A block or an address that a filter is given. */
const blockFilter = (name: string, where: (block: string) => SQL) =>
  filter(text(64), value => {
    if (!cidrOrAddress(value)) throw invalidField(name, 'cidr')
    return where(value)
  })

const percent = (fallback: number) => integerField(1, 100, { fallback })

const fields = {
  /** The block, unless another name is given. */
  name: textField(255, { fallback: '', search: 'text', sort: true }),
  cidr: columnField<string>(name => cidrColumn(name), text(64), Type.String(), {
    required: true,
    search: 'exact',
    check: cidrFault,
    normal: normalCidr,
  }),
  vrf: textField(64, { fallback: 'default', filter: true, options: 'vrfs' }),
  kind: choiceField(['container', 'network', 'pool'], { fallback: 'network', filter: true }),
  gateway: columnField<string | null>(name => inet(name), addressText(), Type.String(), {
    check: addressFault,
    normal: normalAddress,
  }),
  vlan_id: integerField(1, 4094, { filter: true }),
  datacenter: textField(128, { filter: true, options: 'datacenters' }),
  environment: textField(128, { filter: true, options: 'environments' }),
  discovery: choiceField(['off', 'observe', 'register'], { fallback: 'observe' }),
  reserved: objectsField<Range>(range, 100, {}),
  quarantine_hours: integerField(0, 720, { fallback: 0 }),
  warn_percent: percent(80),
  critical_percent: percent(95),
  full: booleanField({ fallback: false }),
  assign_servers: booleanField({ fallback: false }),
  parent_id: columnField<string | null>(name => uuidColumn(name), uuid(), id(), { readOnly: true, manifest: false }),
  depth: integerField(0, 128, { fallback: 0, readOnly: true, manifest: false }),
  direct_used: internalField<number>(name => bigint(name, { mode: 'number' }).notNull(), 0),
  used_percent: internalField<number>(name => real(name).notNull(), 0),
  usage_stale: internalField<boolean>(name => booleanColumn(name).notNull(), true),
  free_from: internalField<string | null>(name => inet(name), null),
} as const

export type Subnet = RowOf<typeof fields>

/** The faults of members that depend on the block. */
function blockFaults({
  cidr,
  gateway,
  reserved,
}: Pick<Subnet, 'cidr' | 'gateway' | 'reserved'>): Record<string, Words> {
  const faults: Record<string, Words> = {}
  const block = parseCidr(cidr)
  if (!block) return faults
  const isInside = (given: string): boolean => {
    const address = parseAddress(given)
    return address !== null && holds(block, address)
  }
  if (gateway !== null && !isInside(gateway)) faults.gateway = words('outside_block', { cidr })
  for (const [index, { from, to }] of reserved.entries()) {
    if (!isInside(from)) faults[`reserved.${index}.from`] = words('outside_block', { cidr })
    if (!isInside(to)) faults[`reserved.${index}.to`] = words('outside_block', { cidr })
    else if ((addressNumber(to) ?? 0n) < (addressNumber(from) ?? 0n))
      faults[`reserved.${index}.to`] = words('range_order')
  }
  return faults
}

async function beforeWrite({ tx, before, next }: Write<Subnet>): Promise<void> {
  const faults = blockFaults(next)
  if (Object.keys(faults).length > 0) throw invalid(faults)
  if (before !== null && isSame(before, { ...before, ...next })) return
  next.usage_stale = true
  next.free_from = null
  const isMoved = before === null || before.cidr !== next.cidr || before.vrf !== next.vrf
  if (!isMoved) return
  if (before) await refuseLeaving(tx, before, next)
  if (before && next.name === before.cidr) next.name = ''
  await nameFreely(tx, [next])
}

async function beforeInserts(writes: readonly NewWrite<Subnet>[]): Promise<void> {
  const [first] = writes
  if (!first) return
  for (const { next, faults } of writes)
    for (const [field, text] of Object.entries(blockFaults(next))) faults.set(field, text)
  await lockTree(first.tx, first.next.company_id)
  await nameFreely(
    first.tx,
    writes.map(({ next }) => next),
  )
}

/** What lies in the old and in the new block of a subnet that moved is arranged anew. */
async function afterWrite({ tx, before, after }: Written<Subnet>): Promise<void> {
  if (before && after && before.cidr === after.cidr && before.vrf === after.vrf) return
  await arrangeTree(
    tx,
    [before, after].flatMap(each => each ?? []),
  )
}

const afterInserts = async (written: readonly Written<Subnet>[]): Promise<void> => {
  const [first] = written
  if (!first) return
  await arrangeTree(
    first.tx,
    written.flatMap(({ after }) => after ?? []),
  )
}

/** Throws 422 for another block that would leave an address or a child of the subnet outside (RES-222). */
async function refuseLeaving(tx: Tx, before: Subnet, next: Subnet): Promise<void> {
  const [left] = await tx.db.execute(sql`
    select 1 from ip_addresses where subnet_id = ${before.id} and deleted_at is null
      and not (vrf = ${next.vrf} and address <<= ${next.cidr}::cidr)
    union all select 1 from subnets where company_id = ${before.company_id} and parent_id = ${before.id}
      and deleted_at is null and not (vrf = ${next.vrf} and cidr << ${next.cidr}::cidr) limit 1`)
  if (left) throw invalidField('cidr', 'leaves_outside')
}

/** The addresses that would be left without any subnet: they keep it, as what names it does. */
async function orphans(tx: Tx, row: Subnet): Promise<Referrers> {
  if (row.parent_id !== null) return { seen: [], total: 0 }
  const addresses = await tx.db.execute<{ id: string; name: string; total: number }>(sql`
    select id, name, (count(*) over ())::int as total from ip_addresses where subnet_id = ${row.id} and deleted_at is null
    order by address limit 20`)
  return {
    seen: addresses.map(({ id: addressId, name }) => ({ kind: 'ip_address', id: addressId, name, field: 'subnet_id' })),
    total: addresses[0]?.total ?? 0,
  }
}

/** Subnets without a name get their block, or with it their address space where another one has that name. */
async function nameFreely(tx: Tx, subnets: readonly Write<Subnet>['next'][]): Promise<void> {
  const nameless = subnets.filter(({ name }) => name === '')
  const [first] = nameless
  if (!first) return
  const rows = await tx.db.execute<{ name: string }>(sql`
    select lower(name) as name from subnets where company_id = ${first.company_id} and deleted_at is null
      and lower(name) in (select lower(x) from jsonb_array_elements_text(${JSON.stringify(
        nameless.map(({ cidr }) => cidr),
      )}::jsonb) x) and id <> all(${uuidList(nameless.map(({ id: subnetId }) => subnetId))}::uuid[])`)
  const taken = new Set(rows.map(({ name }) => name))
  for (const next of subnets) {
    if (next.name === '') next.name = taken.has(next.cidr) ? `${next.cidr} (${next.vrf})` : next.cidr
    taken.add(next.name.toLowerCase())
  }
}

const percentText = (level: string) => ({
  en: `{used_percent} % of {cidr} are used (${level})`,
  vi: `Đã dùng {used_percent} % của {cidr} (${level})`,
})

export const subnetKind = defineKind({
  kind: 'subnet',
  title: {
    one: { en: 'subnet', vi: 'mạng con' },
    many: { en: 'subnets', vi: 'mạng con' },
  },
  group: 'Subnets',
  groupText: 'Blocks of addresses, what is used of them, what is free.',
  path: '/subnets',
  parameter: 'subnet',
  table: 'subnets',
  schemaName: 'Subnet',
  fields,
  uniqueness: { subnets_cidr: 'cidr' },
  limit: 10_000,
  permissions: { view: 'network.view', manage: 'network.manage' },
  filters: table => ({
    family: filter(oneOf(['4', '6']), value => sql`family(${columnNamed(table, 'cidr')}) = ${Number(value)}`),
    parent_id: filter(text(36), value => {
      if (value === 'none') return isNull(columnNamed(table, 'parent_id'))
      if (!isUuid(value)) throw invalidField('parent_id', 'uuid')
      return eq(columnNamed(table, 'parent_id'), value)
    }),
    contains: blockFilter('contains', value => sql`${columnNamed(table, 'cidr')} = any(blocks_around(${value}::inet))`),
    used_over: filter(Type.Integer({ minimum: 0, maximum: 100 }), value =>
      gt(columnNamed(table, 'used_percent'), value),
    ),
    within: blockFilter('within', value => sql`${columnNamed(table, 'cidr')} <<= ${value}::inet`),
  }),
  sorts: table => ({ cidr: columnNamed(table, 'cidr'), used_percent: columnNamed(table, 'used_percent') }),
  derived: { list: { family: Type.Integer(), children_count: Type.Integer(), usage: usageResponse } },
  conditions: {
    subnet_filling: { severity: 'warning', text: percentText('warning') },
    subnet_full: { severity: 'critical', text: percentText('critical') },
  },
  iac: { kind: 'subnet', order: 2, key: ['cidr', 'vrf'] },
  csv: { key: ['cidr', 'vrf'] },
  hooks: {
    lock: lockTree,
    beforeWrite,
    afterWrite,
    beforeInserts,
    afterInserts,
    beforeDelete: async ({ tx, editor, row }) =>
      refuseInUse(editor, tx, 'subnet', [row.id], [], await orphans(tx, row)),
    derive: deriveSubnets,
  },
})
