// Many records of a zone at once: made with it, sent as a list, or read from a file. The rules of a zone are judged in
// memory and what differs is written by few statements, so that a file of ten thousand records is one request.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { fullName, recordName } from '../../../core/dns/domain-name.ts'
import { parseRecordValue, type RecordType, valueExamples } from '../../../core/dns/record-value.ts'
import { faultInZone, type ZoneRecord } from '../../../core/dns/zone-rules.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { Editor } from '../resources/editor.ts'
import { parseForm, under } from '../resources/resource-form.ts'
import { deleteResource, insertResource } from '../resources/write-resource.ts'
import { dnsRecordKind, zoneFaultWords } from './dns-record.ts'
import type { DnsZone } from './dns-zone.ts'
import { touchZone } from './zone-serial.ts'

const { kind, limit } = { kind: dnsRecordKind.info.kind, limit: dnsRecordKind.limit }

export type StoredRecord = ZoneRecord & {
  readonly id: string
  readonly ttl: number | null
  readonly enabled: boolean
  readonly ptr: boolean
  readonly comment: string | null
  readonly managed_by: string | null
}
type Addition = ZoneRecord & {
  readonly ttl: number | null
  readonly enabled: boolean
  readonly ptr: boolean
  readonly comment: string | null
}

/** All records of a zone, which is locked until the transaction ends. */
export async function lockRecords(tx: Tx, zoneId: string): Promise<StoredRecord[]> {
  await tx.db.execute(sql`select 1 from dns_zones where id = ${zoneId} for no key update`)
  const rows = await tx.db.execute<StoredRecord>(sql`
    select id, name, type, value, priority, weight, port, target, ttl, enabled, ptr, comment, managed_by
    from dns_records where zone_id = ${zoneId} and deleted_at is null`)
  return [...rows]
}

/** Records by their name, as the rules of a zone ask for them. */
export class ZoneContent {
  readonly #byName = new Map<string, ZoneRecord[]>()

  constructor(records: readonly ZoneRecord[]) {
    for (const record of records) this.add(record)
  }

  readonly at = (name: string): readonly ZoneRecord[] => this.#byName.get(name) ?? []

  add(record: ZoneRecord): void {
    const known = this.#byName.get(record.name)
    if (known) known.push(record)
    else this.#byName.set(record.name, [record])
  }
}

const shown = ({ name, type, value, ttl, enabled }: Addition) => ({ name, type, value, ttl, enabled })
const subjectOf = (record: { readonly id: string; readonly name: string }) => ({
  type: kind,
  id: record.id,
  name: record.name,
})

/** Throws 422 when the zone would have more records than it may. */
export function checkRecordLimit(total: number): void {
  if (total <= limit) return
  throw new ApiError(422, 'limit_exceeded', words('invalid'), {
    errors: { limit: [words('list_max', { max: limit })] },
    reason: 'company_quota',
  })
}

/** Stores records that were judged. Their ids. */
export async function insertRecords(
  tx: Tx,
  editor: Editor,
  zone: Pick<DnsZone, 'id' | 'name'>,
  records: readonly Addition[],
  origin: 'manual' | 'import',
): Promise<string[]> {
  if (records.length === 0) return []
  const rows = records.map(record => ({ ...record, id: randomUUID(), fqdn: fullName(record.name, zone.name) }))
  await tx.db.execute(sql`
    insert into dns_records (id, company_id, zone_id, name, type, value, priority, weight, port, target, ttl, enabled, ptr,
      comment, fqdn, state, health, origin, created_by, updated_by)
    select x.id, ${editor.companyId}::uuid, ${zone.id}::uuid, x.name, x.type, x.value, x.priority, x.weight, x.port, x.target,
      x.ttl, x.enabled, x.ptr, x.comment, x.fqdn, case when x.enabled then 'unknown' else 'disabled' end, 'ok', ${origin},
      ${editor.userId}::uuid, ${editor.userId}::uuid
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, name text, type text, value text, priority int,
      weight int, port int, target text, ttl int, enabled boolean, ptr boolean, comment text, fqdn text)`)
  await editor.recordMany(
    tx,
    `${kind}.create`,
    rows.map(row => ({ subject: subjectOf(row), changes: changesBetween({}, shown(row)) })),
  )
  return rows.map(({ id }) => id)
}

/** One time to live for all records of a name and type: those of `ttls` by `name type`. The number that changed. */
export async function setTtls(
  tx: Tx,
  editor: Editor,
  records: readonly StoredRecord[],
  ttls: ReadonlyMap<string, number | null>,
): Promise<number> {
  const changed = records.filter(({ name, type, ttl, managed_by }) => {
    const wanted = ttls.get(`${name} ${type}`)
    return wanted !== undefined && wanted !== ttl && managed_by === null
  })
  if (changed.length === 0) return 0
  const rows = changed.map(({ id, name, type }) => ({ id, ttl: ttls.get(`${name} ${type}`) ?? null }))
  await tx.db.execute(sql`
    update dns_records r set ttl = x.ttl, version = version + 1, updated_at = now(), updated_by = ${editor.userId}::uuid
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, ttl int)
    where r.id = x.id and r.company_id = ${editor.companyId}`)
  await editor.recordMany(
    tx,
    `${kind}.update`,
    changed.map((record, at) => ({
      subject: subjectOf(record),
      changes: changesBetween({ ttl: record.ttl }, { ttl: rows[at]?.ttl ?? null }),
    })),
  )
  return changed.length
}

/** Deletes records of a zone; those with a kept pointer one by one, for it goes with them. */
export async function deleteRecords(tx: Tx, editor: Editor, records: readonly StoredRecord[]): Promise<void> {
  const plain = records.filter(({ ptr }) => !ptr)
  for (const { id } of records.filter(({ ptr }) => ptr)) await deleteResource(tx, dnsRecordKind, editor, id)
  if (plain.length === 0) return
  await tx.db.execute(sql`
    update dns_records set deleted_at = now() where company_id = ${editor.companyId}
      and id = any(${uuidList(plain.map(({ id }) => id))}::uuid[])`)
  await editor.recordMany(
    tx,
    `${kind}.delete`,
    plain.map(record => ({ subject: subjectOf(record), changes: {} })),
  )
}

/** A record of a request, with its name and value as they are kept. Throws 422. */
async function parseAddition(zoneName: string, body: unknown): Promise<Addition> {
  const { name, type, value, ttl, enabled, ptr, comment } = (await parseForm(
    dnsRecordKind,
    'create',
    body,
  )) as Unchecked & {
    readonly type: RecordType
  }
  const own = recordName(String(name ?? '@'), zoneName)
  const parsed = parseRecordValue(type, String(value), zoneName)
  const faults = new Map<string, Words>()
  if ('fault' in own)
    faults.set('name', words(own.fault === 'outside' ? 'dns_outside_zone' : 'dns_name', { zone: zoneName }))
  if (parsed === null) faults.set('value', words('dns_value', { type, example: valueExamples[type] }))
  if ('fault' in own || parsed === null) throw faultsError(faults)
  return {
    ...parsed,
    type,
    name: own.name,
    ttl: typeof ttl === 'number' ? ttl : null,
    enabled: enabled !== false,
    ptr: ptr === true,
    comment: typeof comment === 'string' ? comment : null,
  }
}

/**
 * Adds records of a request to a zone, all or none (RES-201). `place` begins the names of faulty fields. Returns the
 * ids in the order of the request.
 */
export async function addRecords(
  tx: Tx,
  editor: Editor,
  zone: Pick<DnsZone, 'id' | 'name'>,
  bodies: readonly unknown[],
  place: string,
): Promise<string[]> {
  const stored = await lockRecords(tx, zone.id)
  const content = new ZoneContent(stored)
  const faults = new Map<string, Words>()
  const additions: Addition[] = []
  for (const [index, body] of bodies.entries()) {
    const at = `${place}.${index}`
    const addition = await under(faults, at, () => parseAddition(zone.name, body))
    if (!addition) continue
    const fault = faultInZone(addition, zone.name, content.at)
    if (fault) faults.set(`${at}.${fault.field}`, zoneFaultWords(fault))
    content.add(addition)
    additions.push(addition)
  }
  if (faults.size > 0) throw faultsError(faults)
  checkRecordLimit(stored.length + additions.length)
  const ids = new Map<Addition, string>()
  const ttls = ttlsOf(additions, stored)
  const even = additions.map(addition => ({ ...addition, ttl: ttls.get(`${addition.name} ${addition.type}`) ?? null }))
  const plain = even.filter(({ ptr }) => !ptr)
  const made = await insertRecords(tx, editor, zone, plain, 'manual')
  for (const [index, addition] of plain.entries()) ids.set(addition, made[index] ?? '')
  await setTtls(tx, editor, stored, ttls)
  for (const [index, addition] of even.entries())
    if (addition.ptr)
      await under(faults, `${place}.${index}`, async () => {
        const { name, type, value, ttl, enabled, ptr, comment } = addition
        const values = { name, type, value, ttl, enabled, ptr, comment }
        ids.set(addition, (await insertResource(tx, dnsRecordKind, editor, values, { parentId: zone.id })).id)
      })
  if (faults.size > 0) throw faultsError(faults)
  await touchZone(
    tx,
    zone.id,
    additions.some(({ enabled }) => enabled),
    new Date(editor.hub.now()),
  )
  return even.map(addition => ids.get(addition) ?? '')
}

/** The time to live of each name and type among what is added: the first that is given, else that of its set. */
function ttlsOf(
  additions: readonly Pick<Addition, 'name' | 'type' | 'ttl'>[],
  stored: readonly StoredRecord[],
): ReadonlyMap<string, number | null> {
  const ttls = new Map<string, number | null>()
  const known = new Map(stored.map(({ name, type, ttl }) => [`${name} ${type}`, ttl]))
  for (const { name, type, ttl } of additions) {
    const key = `${name} ${type}`
    if (ttl !== null && (ttls.get(key) ?? null) === null) ttls.set(key, ttl)
    else if (!ttls.has(key)) ttls.set(key, known.get(key) ?? null)
  }
  return ttls
}

/** The NS records of a zone's name servers, for a zone that is made without any. */
export async function usualNameServers(
  tx: Tx,
  { companyId }: Editor,
  zone: DnsZone,
  bodies: readonly unknown[],
): Promise<Unchecked[]> {
  const isGiven = bodies.some(
    body => isObject(body) && body.type === 'NS' && ['@', undefined, `${zone.name}.`].includes(body.name as string),
  )
  if (isGiven || zone.server_ids.length === 0) return []
  const servers = await tx.db.execute<{ host: string }>(sql`
    select host from dns_servers where company_id = ${companyId} and deleted_at is null and role = 'authoritative'
      and id in (select jsonb_array_elements_text(${JSON.stringify(zone.server_ids)}::jsonb)::uuid)
      and host ~ '[a-z]' and host !~ ':' order by name`)
  return servers.map(({ host }) => ({ type: 'NS', value: `${host}.` }))
}

/** The records of a zone for its file; those that are not enabled only where they are asked for. */
export async function publishedRecords(db: Executor, companyId: string, zoneId: string, withDisabled: boolean) {
  const rows = await db.execute<Pick<StoredRecord, 'name' | 'type' | 'value' | 'ttl' | 'enabled'>>(sql`
    select name, type, value, ttl, enabled from dns_records
    where company_id = ${companyId} and zone_id = ${zoneId} and deleted_at is null and (enabled or ${withDisabled})`)
  return [...rows]
}
