// An address of a company (group 22 of the catalogue). Its subnet is the narrowest one around it, found when it
// is written and when subnets change.
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import { inet, timestamp, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { normalAddress } from '../../../core/network/cidr.ts'
import { recordLinks, recordsOfAddresses } from '../dns/record-links.ts'
import type { Executor } from '../platform/db/connect.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { type Tx, together } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { flag, flagOf, text, uuid } from '../platform/http/request-schema.ts'
import { anyObject, id, listed, string } from '../platform/http/response-schema.ts'
import {
  choiceField,
  columnField,
  internalField,
  referenceField,
  textField,
  timeField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type NewWrite, type RowOf, type Table, type Write } from '../resources/kind.ts'
import { addressFault, cidrOrAddress } from './subnet.ts'
import { lockTreeShared } from './subnet-tree.ts'

const MAC = /^[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}$/i
const macFault = (given: string): Words | null => (MAC.test(given) ? null : words('mac'))

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })

const fields = {
  /** The address. */
  name: { ...textField(255, { fallback: '', readOnly: true, search: 'text', manifest: false }) },
  address: columnField<string>(name => inet(name), text(64), Type.String(), {
    required: true,
    immutable: true,
    search: 'exact',
    check: addressFault,
    normal: normalAddress,
  }),
  vrf: textField(64, { fallback: 'default', immutable: true, filter: true, options: 'vrfs' }),
  status: choiceField(['active', 'reserved', 'dhcp', 'deprecated', 'released'], { fallback: 'active', filter: true }),
  role: choiceField(['host', 'gateway', 'vip', 'anycast', 'loopback', 'network_device'], {
    fallback: 'host',
    filter: true,
  }),
  server_id: referenceField('server', { filter: true }),
  interface: textField(64, {}),
  mac: textField(17, {
    search: 'exact',
    check: macFault,
    normal: (mac: string) => mac.toLowerCase().replaceAll('-', ':'),
  }),
  dns_name: textField(253, { search: 'exact', normal: (name: string) => name.toLowerCase() }),
  reserved_until: timeField({}),
  purpose: textField(128, { options: 'ip_purposes' }),
  subnet_id: columnField<string | null>(name => uuidColumn(name), uuid(), id(), {
    readOnly: true,
    filter: true,
    manifest: false,
  }),
  released_at: internalField<Date | null>(at, null),
  /** When an agent saw it last; the database keeps it with what agents report. */
  last_seen_at: internalField<Date | null>(at, null),
} as const

export type IpAddressRow = RowOf<typeof fields>

/** A reservation ends in the future, when it is new. */
const isOver = ({ before, next, editor }: Write<IpAddressRow>): boolean =>
  next.reserved_until !== null &&
  before?.reserved_until?.getTime() !== next.reserved_until.getTime() &&
  next.reserved_until.getTime() <= editor.hub.now()

async function beforeWrite(write: Write<IpAddressRow>): Promise<void> {
  const { tx, before, next } = write
  next.name = next.address
  if (isOver(write)) throw invalidField('reserved_until', 'future')
  if (before === null) await findSubnets(tx, [next])
}

async function beforeInserts(writes: readonly NewWrite<IpAddressRow>[]): Promise<void> {
  const [first] = writes
  if (!first) return
  for (const write of writes) {
    write.next.name = write.next.address
    if (isOver(write)) write.faults.set('reserved_until', words('future'))
  }
  const rows = writes.map(({ next }) => next)
  if (rows.every(({ subnet_id }) => subnet_id !== null)) await findSeen(first.tx, rows)
  else await findSubnets(first.tx, rows)
}

// The database counts a new address in the row of its subnet, which whoever gives out its addresses holds: it is locked
// before the address, else each would wait for what the other has.
const SUBNETS_AROUND = fixedStatement<'companyId' | 'addresses'>(
  value => sql`
    with around as materialized (
      select x.place, x.address, (select id from subnets where company_id = ${value('companyId')}::uuid
        and vrf = x.vrf and deleted_at is null and cidr = any(blocks_around(x.address)) order by masklen(cidr) desc limit 1) as subnet_id
      from jsonb_to_recordset(${value('addresses')}::jsonb) as x (place int, vrf text, address inet)),
    held as materialized (
      select id from subnets where id in (select subnet_id from around) order by id for no key update)
    select place, subnet_id, (select count(*) from held) as held,
      (select max(last_seen_at) from ip_observations
        where company_id = ${value('companyId')}::uuid and address = around.address) as seen_at
    from around`,
)

type Around = { place: number; subnet_id: string | null; seen_at: Date | string | null }

/** The narrowest subnet around each address, which stays it until the transaction ends, and when it was seen. */
async function findSubnets(tx: Tx, addresses: readonly Write<IpAddressRow>['next'][]): Promise<void> {
  const companyId = addresses[0]?.company_id ?? ''
  const asked = addresses.map(({ vrf, address }, place) => ({ place, vrf, address }))
  const [, found] = await together([
    lockTreeShared(tx, companyId),
    tx.db.execute<Around>(SUBNETS_AROUND({ companyId, addresses: JSON.stringify(asked) })),
  ])
  for (const { place, subnet_id, seen_at } of found) {
    const next = addresses[place]
    if (!next) continue
    next.subnet_id = subnet_id
    next.last_seen_at = seen_at === null ? null : new Date(seen_at)
  }
}

const SEEN = fixedStatement<'companyId' | 'addresses'>(
  value => sql`
    select x.place, s.seen_at from jsonb_to_recordset(${value('addresses')}::jsonb) as x (place int, address inet),
      lateral (select max(last_seen_at) as seen_at from ip_observations
        where company_id = ${value('companyId')}::uuid and address = x.address) s
    where s.seen_at is not null`,
)

/** When each address was seen, whose subnet is known and held already. */
async function findSeen(tx: Tx, addresses: readonly Write<IpAddressRow>['next'][]): Promise<void> {
  const companyId = addresses[0]?.company_id ?? ''
  const asked = addresses.map(({ address }, place) => ({ place, address }))
  const found = await tx.db.execute<{ place: number; seen_at: Date | string }>(
    SEEN({ companyId, addresses: JSON.stringify(asked) }),
  )
  for (const { place, seen_at } of found) {
    const next = addresses[place]
    if (next) next.last_seen_at = new Date(seen_at)
  }
}

type Seen = { address: string; server_id: string; server: string; interface: string; first: Date; last: Date }

async function seenOfAddresses(
  db: Executor,
  companyId: string,
  addresses: readonly string[],
): Promise<readonly Seen[]> {
  if (addresses.length === 0) return []
  return db.execute<Seen>(sql`
    select o.address, o.server_id, s.name as server, o.interface, o.first_seen_at as first, o.last_seen_at as last
    from ip_observations o join servers s on s.id = o.server_id where o.company_id = ${companyId}
      and o.address in (select jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb)::inet)
    order by o.last_seen_at desc`)
}

async function conflictsOfAddresses(
  db: Executor,
  companyId: string,
  ids: readonly string[],
): Promise<readonly { readonly resource_id: string; readonly code: string }[]> {
  if (ids.length === 0) return []
  return db.execute<{ resource_id: string; code: string }>(sql`
    select resource_id, code from resource_conditions where company_id = ${companyId} and kind = 'ip_address'
      and resolved_at is null and since is not null
      and resource_id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb)::uuid)`)
}

/** What agents saw of the addresses, and the conflicts of each. */
async function deriveAddresses(
  db: Executor,
  { companyId }: { readonly companyId: string },
  rows: readonly IpAddressRow[],
  _isShow: boolean,
  made: ReadonlySet<string>,
): Promise<Map<string, Values>> {
  const texts = rows.map(row => row.address)
  // What was made just now says itself whether agents had seen it, and has no conflicts.
  const seenBefore = rows.flatMap(row => (made.has(row.id) && row.last_seen_at === null ? [] : row.address))
  const stood = rows.flatMap(row => (made.has(row.id) ? [] : row.id))
  const [seen, conflicts, records] = await Promise.all([
    seenOfAddresses(db, companyId, seenBefore),
    conflictsOfAddresses(db, companyId, stood),
    recordsOfAddresses(db, companyId, texts),
  ])
  const seenOf = Map.groupBy(seen, row => row.address)
  const conflictsOf = Map.groupBy(conflicts, row => row.resource_id)
  return new Map(
    rows.map(row => [
      row.id,
      {
        seen: (seenOf.get(row.address) ?? []).map(each => ({
          server: { id: each.server_id, name: each.server },
          interface: each.interface,
          first_seen_at: new Date(each.first),
          last_seen_at: new Date(each.last),
        })),
        dns_records: records.get(row.address) ?? [],
        conflicts: (conflictsOf.get(row.id) ?? []).map(each => each.code),
      },
    ]),
  )
}

const hasCondition = (table: Table, code: SQL) => sql`exists (select 1 from resource_conditions c
  where c.company_id = ${table}.company_id and c.kind = 'ip_address' and c.resource_id = ${table}.id
    and c.resolved_at is null and c.code in (${code}))`
const whether = (condition: SQL) => filter(flag(), value => (flagOf(value) ? condition : sql`not ${condition}`))

export const ipAddressKind = defineKind({
  kind: 'ip_address',
  title: { one: { en: 'address', vi: 'địa chỉ IP' }, many: { en: 'addresses', vi: 'địa chỉ IP' } },
  group: 'IPs',
  groupText: 'Addresses: who has which, the next free ones, what agents really have.',
  path: '/ips',
  parameter: 'ip',
  table: 'ip_addresses',
  schemaName: 'IpAddress',
  fields,
  uniqueness: { ip_addresses_address: 'address' },
  limit: 500_000,
  permissions: { view: 'network.view', manage: 'network.manage' },
  filters: table => ({
    unassigned: whether(sql`${columnNamed(table, 'server_id')} is null`),
    contained_in: filter(text(64), value => {
      if (!cidrOrAddress(value)) throw invalidField('contained_in', 'cidr')
      return sql`${columnNamed(table, 'address')} <<= ${value}::inet`
    }),
    conflict: whether(hasCondition(table, sql`'duplicate_address', 'address_moved'`)),
    seen: whether(sql`${columnNamed(table, 'last_seen_at')} is not null`),
    stale: whether(hasCondition(table, sql`'stale_address'`)),
  }),
  sorts: table => ({
    address: columnNamed(table, 'address'),
    last_seen: columnNamed(table, 'last_seen_at'),
  }),
  derived: { list: { seen: listed(anyObject()), dns_records: recordLinks(), conflicts: listed(string()) } },
  conditions: {
    duplicate_address: {
      severity: 'critical',
      text: { en: '{address} is reported by {servers}', vi: '{address} được báo cáo bởi {servers}' },
    },
    address_moved: {
      severity: 'warning',
      text: { en: '{address} is reported by {servers} only', vi: '{address} chỉ được báo cáo bởi {servers}' },
    },
    stale_address: {
      severity: 'info',
      text: { en: '{address} was not seen for {days} days', vi: 'Không thấy {address} trong {days} ngày' },
    },
  },
  iac: { kind: 'ip-address', order: 4, key: ['address', 'vrf'] },
  csv: { key: ['address', 'vrf'] },
  hooks: { lock: lockTreeShared, beforeWrite, beforeInserts, derive: deriveAddresses },
})
