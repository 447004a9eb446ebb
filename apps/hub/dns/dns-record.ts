// A record: one value of a name and type in a zone. What may stand beside what is decided in core/dns/zone-rules.ts.

import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { assert } from '../../../core/assert.ts'
import { fullName, recordName, relativeName, reverseName } from '../../../core/dns/domain-name.ts'
import { parseRecordValue, type RecordType, recordTypes, valueExamples } from '../../../core/dns/record-value.ts'
import { faultInZone, targetInZone, type ZoneFault, type ZoneRecord } from '../../../core/dns/zone-rules.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Executor } from '../platform/db/connect.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError, invalid, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { text, uuid } from '../platform/http/request-schema.ts'
import { id, nullable, reference } from '../platform/http/response-schema.ts'
import { addressesNamed } from '../resources/address-links.ts'
import type { Editor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  integerField,
  objectsField,
  textField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { deleteResource, insertResource, updateResource } from '../resources/write-resource.ts'
import { dnsZoneKind } from './dns-zone.ts'
import { TTL_MAX_SECONDS, TTL_MIN_SECONDS } from './zone-limits.ts'
import { touchZone } from './zone-serial.ts'

const recordStates = ['in_sync', 'missing', 'different', 'extra', 'disabled', 'unknown'] as const
const seenSchema = Type.Object({ server: Type.String(), values: Type.Array(Type.String()) })
type Seen = { readonly server: string; readonly values: readonly string[] }
/** Types whose value is an address, in the spelling that addresses are kept in. */
const addressTypes = ['A', 'AAAA'] as const
const KEPT = { readOnly: true, manifest: false } as const

const fields = {
  /** Relative to the zone; `@` for the zone itself. */
  name: textField(255, { fallback: '@' }),
  type: choiceField(recordTypes, { required: true, immutable: true, filter: true, sort: true }),
  value: textField(4096, { required: true, search: 'text' }),
  ttl: integerField(TTL_MIN_SECONDS, TTL_MAX_SECONDS, { sort: true }),
  enabled: booleanField({ fallback: true, filter: true }),
  ptr: booleanField({ fallback: false }),
  comment: textField(255, { search: 'text' }),
  fqdn: textField(255, { fallback: '', search: 'exact', ...KEPT }),
  priority: integerField(0, 65_535, KEPT),
  weight: integerField(0, 65_535, KEPT),
  port: integerField(0, 65_535, KEPT),
  target: textField(255, KEPT),
  state: choiceField(recordStates, { fallback: 'unknown', filter: true, ...KEPT }),
  seen: objectsField<Seen>(seenSchema, 20, KEPT),
  /** The record whose address a kept PTR belongs to. */
  managed_by: columnField<string | null>(name => uuidColumn(name), uuid(), id(), KEPT),
  zone_id: columnField<string>(name => uuidColumn(name), uuid(), id(), { required: true, ...KEPT }),
} as const

type DnsRecord = RowOf<typeof fields>
type ZoneOfRecord = {
  readonly id: string
  readonly name: string
  readonly view: string
  readonly default_ttl: number
}

export const zoneFaultWords = ({ reason }: ZoneFault) => words(`dns_${reason}`)

async function zoneOf(db: Executor, companyId: string, zoneId: string): Promise<ZoneOfRecord> {
  const [zone] = await db.execute<ZoneOfRecord>(sql`
    select id, name, view, default_ttl from dns_zones where company_id = ${companyId} and id = ${zoneId}`)
  assert(zone !== undefined, 'a record has its zone')
  return zone
}

/** Name and value of a record as they are kept. Throws 422. */
function parseRecord(zone: ZoneOfRecord, next: Pick<DnsRecord, 'name' | 'type' | 'value'>): ZoneRecord {
  const name = recordName(next.name, zone.name)
  if ('fault' in name)
    throw invalidField('name', name.fault === 'outside' ? 'dns_outside_zone' : 'dns_name', { zone: zone.name })
  const type = next.type as RecordType
  const value = parseRecordValue(type, next.value, zone.name)
  if (value === null) throw invalidField('value', 'dns_value', { type, example: valueExamples[type] })
  return { ...value, name: name.name, type }
}

/** The other records of a zone with these names. */
async function recordsAt(
  tx: Tx,
  zoneId: string,
  exceptId: string,
  names: readonly string[],
): Promise<(ZoneRecord & { ttl: number | null })[]> {
  const rows = await tx.db.execute<ZoneRecord & { ttl: number | null }>(sql`
    select name, type, value, priority, weight, port, target, ttl from dns_records
    where zone_id = ${zoneId} and deleted_at is null and id <> ${exceptId}
      and name in (select jsonb_array_elements_text(${JSON.stringify(names)}::jsonb))`)
  return [...rows]
}

/** Whether a record is one of the name servers that its zone publishes. */
export const isNsOfZone = ({ name, type, enabled }: Pick<DnsRecord, 'name' | 'type' | 'enabled'>): boolean =>
  enabled && type === 'NS' && name === '@'

/** A zone is published once its name servers were asked for it. */
export async function isPublishedZone(db: Executor, zoneId: string): Promise<boolean> {
  const rows = await db.execute(sql`select 1 from dns_zones where id = ${zoneId} and verified_at is not null`)
  return rows.length > 0
}

/** Throws 409 when a published zone loses its last name server with a record. */
async function refuseLastNs(tx: Tx, { id: recordId, zone_id }: DnsRecord): Promise<void> {
  // Two that go at once see each other.
  await tx.db.execute(sql`select 1 from dns_zones where id = ${zone_id} for no key update`)
  const others = await tx.db.execute(sql`
    select 1 from dns_records where zone_id = ${zone_id} and name = '@' and type = 'NS' and enabled and deleted_at is null
      and id <> ${recordId} limit 1`)
  if (others.length === 0 && (await isPublishedZone(tx.db, zone_id))) throw lastNs()
}

export const lastNs = (): ApiError => new ApiError(409, 'conflict', words('dns_last_ns'))

async function beforeWrite({ tx, editor, before, next, given }: Write<DnsRecord>): Promise<void> {
  const isOwnWork = given.has('managed_by')
  if (before?.managed_by && !isOwnWork) throw invalidField('managed_by', 'managed_by')
  const zone = await zoneOf(tx.db, next.company_id, next.zone_id)
  // Two writers of a zone see each other's records.
  await tx.db.execute(sql`select 1 from dns_zones where id = ${zone.id} for no key update`)
  const parsed = parseRecord(zone, next)
  Object.assign(next, parsed, { fqdn: fullName(parsed.name, zone.name) })
  if (before && isNsOfZone(before) && !isNsOfZone(next)) await refuseLastNs(tx, before)
  const target = targetInZone(parsed, zone.name)
  const others = await recordsAt(tx, zone.id, next.id, [parsed.name, ...(target === null ? [] : [target])])
  const fault = faultInZone(parsed, zone.name, name => others.filter(other => other.name === name))
  if (fault) throw invalid({ [fault.field]: zoneFaultWords(fault) })
  if (before === null && next.ttl === null)
    next.ttl = others.find(({ name, type }) => name === parsed.name && type === parsed.type)?.ttl ?? null
  if (next.ptr && !addressTypes.some(each => each === parsed.type)) throw invalidField('ptr', 'dns_ptr_type')
  if (next.ptr && (await reverseZoneOf(editor, tx, zone.view, next.value)) === null)
    throw invalidField('ptr', 'dns_ptr_zone')
  if (!next.enabled) next.state = 'disabled'
  else if (before === null || isPublishedOtherwise(before, next)) next.state = 'unknown'
}

const published = ({ name, type, value, ttl }: DnsRecord) => JSON.stringify([name, type, value, ttl])

/** Whether name servers would answer something else. */
function isPublishedOtherwise(before: DnsRecord | null, after: DnsRecord | null): boolean {
  const wasPublished = before?.enabled === true
  const isPublished = after?.enabled === true
  return wasPublished !== isPublished || (wasPublished && isPublished && published(before) !== published(after))
}

type ReverseZone = { readonly id: string; readonly name: string }

/** The narrowest reverse zone of the company that an address belongs to. */
async function reverseZoneOf(editor: Editor, tx: Tx, view: string, address: string): Promise<ReverseZone | null> {
  const [zone] = await tx.db.execute<ReverseZone>(sql`
    select id, name from dns_zones where company_id = ${editor.companyId} and deleted_at is null and reverse
      and view = ${view} and right(${reverseName(address)}, length(name) + 1) = '.' || name
    order by length(name) desc limit 1`)
  return zone ?? null
}

/** Makes, changes or removes the PTR that is kept for an address (RES-213). */
async function keepPointer(tx: Tx, editor: Editor, record: DnsRecord | null, recordId: string): Promise<void> {
  const [kept] = await tx.db.execute<{ id: string; zone_id: string }>(sql`
    select id, zone_id from dns_records where company_id = ${editor.companyId} and managed_by = ${recordId} and deleted_at is null`)
  const wants = record?.ptr && record.enabled
  const zone = wants ? await zoneOf(tx.db, editor.companyId, record.zone_id) : null
  const reverse = wants && zone ? await reverseZoneOf(editor, tx, zone.view, record.value) : null
  if (kept && kept.zone_id !== reverse?.id) {
    await tx.db.execute(sql`update dns_records set managed_by = null where id = ${kept.id}`)
    await deleteResource(tx, dnsRecordKind, editor, kept.id)
  }
  if (!record || !reverse) return
  const values = {
    name: relativeName(reverseName(record.value) ?? '', reverse.name),
    value: `${record.fqdn}.`,
    managed_by: record.id,
  }
  if (kept?.zone_id === reverse.id) await updateResource(tx, dnsRecordKind, editor, kept.id, values)
  else await insertResource(tx, dnsRecordKind, editor, { ...values, type: 'PTR' }, { parentId: reverse.id })
}

/** One time to live for all records of a name and type (RES-199). */
async function spreadTtl(tx: Tx, editor: Editor, { id: recordId, zone_id, name, type, ttl }: DnsRecord): Promise<void> {
  const others = await tx.db.execute<{ id: string }>(sql`
    select id from dns_records where zone_id = ${zone_id} and deleted_at is null and name = ${name} and type = ${type}
      and id <> ${recordId} and ttl is distinct from ${ttl}::int`)
  for (const other of others) await updateResource(tx, dnsRecordKind, editor, other.id, {}, { columns: { ttl } })
}

async function afterWrite({
  tx,
  editor,
  before,
  after,
}: {
  readonly tx: Tx
  readonly editor: Editor
  readonly before: DnsRecord | null
  readonly after: DnsRecord | null
}): Promise<void> {
  const record = after ?? before
  if (!record) return
  if (after && before?.ttl !== after.ttl) await spreadTtl(tx, editor, after)
  if (before?.ptr || after?.ptr) await keepPointer(tx, editor, after, record.id)
  await touchZone(tx, record.zone_id, isPublishedOtherwise(before, after), new Date(editor.hub.now()))
}

async function beforeDelete({ tx, row }: { readonly tx: Tx; readonly row: DnsRecord }): Promise<void> {
  if (row.managed_by !== null) throw invalidField('managed_by', 'managed_by')
  if (isNsOfZone(row)) await refuseLastNs(tx, row)
}

/** The addresses that values are, and the servers that have them. */
async function deriveAddresses(
  db: Executor,
  { companyId }: { readonly companyId: string },
  rows: readonly DnsRecord[],
): Promise<Map<string, Values>> {
  const isAddress = ({ type }: DnsRecord): boolean => addressTypes.some(each => each === type)
  const texts = rows.filter(isAddress).map(({ value }) => value)
  const named = await addressesNamed(db, companyId, texts)
  return new Map(
    rows.map(row => {
      const address = isAddress(row) ? named.get(row.value) : undefined
      const { server_id = null, server = null } = address ?? {}
      const owner = server_id === null ? null : { id: server_id, name: server ?? '' }
      return [row.id, { ip_address_id: address?.id ?? null, server: owner }]
    }),
  )
}

/** Name and value of a row of a file as they are kept; one with a fault stays, and is refused when it is written. */
function normalKey(values: Unchecked, zone: ZoneOfRecord): Unchecked {
  const name = recordName(String(values.name ?? '@'), zone.name)
  const value = parseRecordValue(values.type as RecordType, String(values.value), zone.name)
  return { ...values, ...('name' in name ? { name: name.name } : {}), ...(value ? { value: value.value } : {}) }
}

export const dnsRecordKind = defineKind({
  kind: 'dns_record',
  title: { one: { en: 'record', vi: 'bản ghi' }, many: { en: 'records', vi: 'bản ghi' } },
  group: 'DNS',
  path: '/dns/zones/:zone/records',
  parameter: 'record',
  table: 'dns_records',
  schemaName: 'DnsRecord',
  fields,
  parent: { of: dnsZoneKind, column: 'zone_id' },
  uniqueness: { dns_records_value: 'value' },
  limit: 10_000,
  permissions: { view: 'dns.view', manage: 'dns.manage' },
  filters: table => ({
    search: filter(text(255), value => {
      const isLike = (each: string) => sql`${columnNamed(table, 'search_text')} like lower(${likePattern(each)})`
      const ascii = asciiName(value)
      return ascii === value.toLowerCase() ? isLike(value) : sql`(${isLike(value)} or ${isLike(ascii)})`
    }),
    name: filter(text(255), value => sql`${columnNamed(table, 'name')} = ${asciiName(value)}`),
    fqdn: filter(text(255), value => sql`${columnNamed(table, 'fqdn')} = ${asciiName(value)}`),
    value: filter(text(4096), value => sql`${columnNamed(table, 'value')} = ${value}`),
    // What leads to a server: the records of its addresses.
    server_id: filter(
      uuid(),
      value => sql`${columnNamed(table, 'type')} in ('A', 'AAAA') and ${columnNamed(table, 'value')} in (
        select host(a.address) from ip_addresses a where a.company_id = ${table}.company_id and a.server_id = ${value}
          and a.deleted_at is null)`,
    ),
  }),
  sorts: table => ({
    name: sql`case when ${columnNamed(table, 'name')} = '@' then '' else ${columnNamed(table, 'name')} end`,
  }),
  references: [
    {
      field: 'value',
      to: 'ip_address',
      column: 'value',
      isAddress: true,
      among: { column: 'type', values: addressTypes },
    },
  ],
  derived: { list: { ip_address_id: nullable(id()), server: nullable(reference) } },
  iac: null,
  csv: { key: ['name', 'type', 'value'], normal: normalKey },
  hooks: { beforeWrite, afterWrite, beforeDelete, derive: deriveAddresses },
})

/** A filter finds both spellings of a name (RES-191). */
function asciiName(given: string): string {
  const name = recordName(given, '\u0000')
  return 'name' in name ? name.name : given.toLowerCase()
}
