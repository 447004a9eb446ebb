// A zone: the records that a company intends for a name and all below it. What name servers answer is held against it.
import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { bigint, jsonb } from 'drizzle-orm/pg-core'
import { isReverseZone, parseDomainName } from '../../../core/dns/domain-name.ts'
import { nextSerial, serialPolicies } from '../../../core/dns/serial.ts'
import type { Soa } from '../../../core/dns/zone-file.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalid } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { integer, isEmail, text, uuid } from '../platform/http/request-schema.ts'
import { id, nullable } from '../platform/http/response-schema.ts'
import {
  booleanField,
  choiceField,
  columnField,
  compositeField,
  integerField,
  referencesField,
  textField,
  timeField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { TTL_MAX_SECONDS, TTL_MIN_SECONDS } from './zone-limits.ts'
import { isFirstChange } from './zone-serial.ts'

/** Seconds, as RIPE-203 advises small zones, with the minimum of RFC 2308. */
const TIMES = { refresh: 3600, retry: 900, expire: 1_209_600, minimum: 300 } as const
const SERIAL_MAX = 2 ** 32 - 1
const MINUTES_MIN = 5
const seconds = () => Type.Optional(integer(1, 2_147_483_647))
const soaSchema = Type.Object({
  primary: Type.Optional(text(253)),
  contact: Type.Optional(text(254)),
  refresh: seconds(),
  retry: seconds(),
  expire: seconds(),
  minimum: seconds(),
})

function zoneNameFault(given: string): Words | null {
  const name = parseDomainName(given)
  return name === null || name.startsWith('*') ? words('dns_zone_name') : null
}
const intervalFault = (minutes: number): Words | null =>
  minutes === 0 || minutes >= MINUTES_MIN ? null : words('minimum', { min: MINUTES_MIN })

function soaFaults({ primary, contact }: Partial<Soa>): ReadonlyMap<string, Words> {
  const faults = new Map<string, Words>()
  if (primary !== undefined && parseDomainName(primary) === null) faults.set('primary', words('host_or_address'))
  if (contact !== undefined && !isEmail(contact)) faults.set('contact', words('email'))
  return faults
}

const normalSoa = (given: Partial<Soa>): Partial<Soa> =>
  given.primary === undefined ? given : { ...given, primary: parseDomainName(given.primary) ?? given.primary }

const syncStates = ['in_sync', 'drifted', 'unreachable', 'never'] as const

const fields = {
  name: textField(255, {
    required: true,
    immutable: true,
    search: 'exact',
    sort: true,
    check: zoneNameFault,
    normal: (given: string) => parseDomainName(given) ?? given,
  }),
  view: textField(64, { fallback: 'default', immutable: true, filter: true }),
  server_ids: referencesField('dns_server', 20, {}),
  default_ttl: integerField(TTL_MIN_SECONDS, TTL_MAX_SECONDS, { fallback: 3600 }),
  soa: compositeField<{ readonly soa: Soa }>({
    value: soaSchema,
    fallback: {},
    columns: { soa: jsonb('soa').notNull() },
    response: Type.Required(soaSchema),
    check: soaFaults,
    normal: normalSoa,
    store: value => ({ soa: value }),
    show: ({ soa }) => soa,
  }),
  serial_policy: choiceField(serialPolicies, { fallback: 'date' }),
  verify_interval_minutes: integerField(0, 1440, { fallback: 60, check: intervalFault }),
  strict: booleanField({ fallback: false }),
  serial: columnField<number>(name => bigint(name, { mode: 'number' }), integer(0, SERIAL_MAX), Type.Integer(), {
    fallback: 0,
    readOnly: true,
    manifest: false,
    sort: true,
  }),
  reverse: booleanField({ fallback: false, readOnly: true, manifest: false, filter: true }),
  records_count: integerField(0, 1_000_000, { fallback: 0, readOnly: true, manifest: false, sort: true }),
  sync_state: choiceField(syncStates, { fallback: 'never', readOnly: true, manifest: false, filter: true }),
  verified_at: timeField({ readOnly: true, manifest: false }),
} as const

export type DnsZone = RowOf<typeof fields>

/** What the start of authority of a zone says where nobody said more. */
export const usualSoa = (zone: string): Soa => ({ primary: `ns1.${zone}`, contact: `hostmaster@${zone}`, ...TIMES })

/** Throws 422 at what is no authoritative name server: only those serve a zone. */
async function refuseResolvers(tx: Tx, { company_id, server_ids }: DnsZone): Promise<void> {
  if (server_ids.length === 0) return
  const rows = await tx.db.execute<{ id: string }>(sql`
    select id from dns_servers where company_id = ${company_id} and role <> 'authoritative'
      and id = any(${uuidList(server_ids)}::uuid[])`)
  const resolvers = new Set(rows.map(row => row.id))
  const faults = server_ids.flatMap((each, index): [string, Words][] =>
    resolvers.has(each) ? [[`server_ids.${index}`, words('dns_authoritative')]] : [],
  )
  if (faults.length > 0) throw invalid(Object.fromEntries(faults))
}

async function beforeWrite({ tx, editor, before, next, given }: Write<DnsZone>): Promise<void> {
  const now = new Date(editor.hub.now())
  if (given.has('server_ids') && !isDeepStrictEqual(before?.server_ids, next.server_ids))
    await refuseResolvers(tx, next)
  // A change names some members; the others stay.
  if (before === null || given.has('soa')) next.soa = { ...usualSoa(next.name), ...before?.soa, ...next.soa }
  next.reverse = isReverseZone(next.name)
  // A zone that is restored goes on from where it was: secondaries would take no lower one.
  if (before === null) next.serial = next.serial > 0 ? next.serial : nextSerial(next.serial_policy, 0, now)
  // Both stand in what servers answer, as records do.
  else if (next.default_ttl !== before.default_ttl || !isDeepStrictEqual(next.soa, before.soa))
    if (await isFirstChange(tx, before.id)) next.serial = nextSerial(next.serial_policy, before.serial, now)
  // Until it is verified nothing speaks for a zone that is verified by the clock.
  if (next.verify_interval_minutes === 0) next.probe_until = null
  else if (before === null || before.verify_interval_minutes === 0) next.probe_until = now
}

/** `a.b.example.com`: `b.example.com`, `example.com`, `com`. */
const namesAbove = (name: string): string[] => {
  const labels = name.split('.')
  return labels.slice(1).map((_, at) => labels.slice(at + 1).join('.'))
}

/** The zone of the company that a zone lies in, by the same view. */
async function deriveZones(
  db: Executor,
  { companyId }: { readonly companyId: string },
  rows: readonly DnsZone[],
): Promise<Map<string, Values>> {
  const above = JSON.stringify(rows.map(row => ({ id: row.id, view: row.view, names: namesAbove(row.name) })))
  const found = await db.execute<{ child: string; parent: string }>(sql`
    select distinct on (x.id) x.id as child, z.id as parent
    from jsonb_to_recordset(${above}::jsonb) as x (id uuid, view text, names jsonb)
    join dns_zones z on z.company_id = ${companyId} and z.deleted_at is null and z.view = x.view
      and z.name in (select jsonb_array_elements_text(x.names))
    order by x.id, length(z.name) desc`)
  const parents = new Map(found.map(({ child, parent }) => [child, parent]))
  return new Map(rows.map(row => [row.id, { parent_zone_id: parents.get(row.id) ?? null }]))
}

/** Kept PTR records of a zone's addresses lie in other zones, and go with it. */
async function removeKeptPointers(tx: Tx, { company_id, id: zoneId }: DnsZone): Promise<void> {
  await tx.db.execute(sql`
    update dns_records set deleted_at = now() where company_id = ${company_id} and deleted_at is null and managed_by in
      (select id from dns_records where company_id = ${company_id} and zone_id = ${zoneId})`)
}

export const dnsZoneKind = defineKind({
  kind: 'dns_zone',
  title: { one: { en: 'zone', vi: 'vùng tên miền' }, many: { en: 'zones', vi: 'vùng tên miền' } },
  buttons: { sync: 'manage' },
  group: 'DNS',
  groupText: 'Zones, records and name servers: what is intended, and what servers answer.',
  path: '/dns/zones',
  parameter: 'zone',
  table: 'dns_zones',
  schemaName: 'DnsZone',
  fields,
  uniqueness: { dns_zones_name: 'name' },
  limit: 1_000,
  permissions: { view: 'dns.view', manage: 'dns.manage' },
  filters: table => ({
    server_id: filter(uuid(), value => sql`${columnNamed(table, 'server_ids')} @> array[${value}]::uuid[]`),
  }),
  derived: { list: { parent_zone_id: nullable(id()) } },
  conditions: {
    zone_drifted: {
      severity: 'warning',
      text: {
        en: 'name servers answer otherwise: {missing} missing, {different} different, {extra} extra',
        vi: 'máy chủ tên miền trả lời khác: thiếu {missing}, khác {different}, thừa {extra}',
      },
    },
    nameserver_unreachable: {
      severity: 'critical',
      text: { en: '{servers} do not answer', vi: '{servers} không trả lời' },
    },
    serial_mismatch: {
      severity: 'warning',
      text: { en: 'servers have different serials: {serials}', vi: 'các máy chủ có số serial khác nhau: {serials}' },
    },
  },
  iac: { kind: 'dns-zone', order: 8, key: ['name', 'view'] },
  csv: { key: ['name', 'view'] },
  hooks: {
    beforeWrite,
    afterWrite: async ({ tx, before, after }) => {
      if (after === null && before !== null) await removeKeptPointers(tx, before)
    },
    derive: deriveZones,
  },
})
