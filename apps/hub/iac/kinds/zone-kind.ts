// Zones in manifests: the fields of the registry with the zone's name under `zone`, and its records in a list that is
// all of them, unless `records_mode` says merge. Records of a name and type are one item, whose values are a set.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { assert } from '../../../../core/assert.ts'
import { parseDomainName, recordName } from '../../../../core/dns/domain-name.ts'
import { parseRecordValue, type RecordType, recordTypes, valueExamples } from '../../../../core/dns/record-value.ts'
import { readZoneFile, writeZoneFile } from '../../../../core/dns/zone-file.ts'
import { faultInZone, type ZoneRecord } from '../../../../core/dns/zone-rules.ts'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { isPublishedZone, zoneFaultWords } from '../../dns/dns-record.ts'
import { dnsZoneKind, usualSoa } from '../../dns/dns-zone.ts'
import { ZoneContent } from '../../dns/zone-content.ts'
import { importZoneFile } from '../../dns/zone-import.ts'
import { TTL_MAX_SECONDS, TTL_MIN_SECONDS } from '../../dns/zone-limits.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { faultsError, integer, listOf, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Kind } from '../../resources/kind.ts'
import { under } from '../../resources/resource-form.ts'
import { findRow } from '../../resources/resource-rows.ts'
import type { Existing, ManifestKind, Reading, Writing } from './manifest-kind.ts'
import { manifestKindOf } from './registry-kind.ts'

const RECORDS_MAX = 10_000
const VALUES_MAX = 1_000

/** The records of a name and type. */
type RecordItem = {
  readonly name: string
  readonly type: RecordType
  /** Not compared where a manifest does not say it. */
  readonly ttl?: number | undefined
  readonly values: readonly string[]
}
type StoredSet = { zone_id: string; name: string; type: RecordType; ttl: number | null; values: string[] }

const item = Type.Object({
  name: optional(text(255)),
  type: oneOf(recordTypes),
  ttl: optional(integer(TTL_MIN_SECONDS, TTL_MAX_SECONDS)),
  value: optional(text(4096)),
  values: optional(listOf(text(4096), VALUES_MAX, 1)),
})

const found = manifestKindOf(dnsZoneKind as Kind)
assert(found !== null, 'manifests have zones')
const base: ManifestKind = found
const { name: _name, ...properties } = base.spec.properties

const toBase = ({ zone, records: _records, records_mode: _mode, ...rest }: Unchecked): Unchecked => ({
  ...rest,
  ...(zone === undefined ? {} : { name: zone }),
})
const fromBase = ({ name, ...rest }: Unchecked): Unchecked => ({
  ...rest,
  ...(name === undefined ? {} : { zone: name }),
})
const zoneOf = (spec: Unchecked): string => parseDomainName(String(spec.zone ?? '')) ?? String(spec.zone ?? '')
const isGiven = (value: unknown): boolean => value !== undefined && value !== null
const valuesOf = ({ value, values }: Unchecked): string[] =>
  (Array.isArray(values) ? values : isGiven(value) ? [value] : []).map(String)

/** Items by name and type, with names and values in the spelling that is kept; what is no value stays as it is. */
function normalRecords(spec: Unchecked): RecordItem[] {
  const zone = zoneOf(spec)
  const sets = new Map<string, RecordItem & { values: string[] }>()
  for (const given of Array.isArray(spec.records) ? spec.records.filter(isObject) : []) {
    const own = recordName(String(given.name ?? '@'), zone)
    const name = 'name' in own ? own.name : String(given.name)
    const type = given.type as RecordType
    const known = sets.get(`${name} ${type}`)
    const ttl = known?.ttl ?? (typeof given.ttl === 'number' ? given.ttl : undefined)
    const values = valuesOf(given).map(value => parseRecordValue(type, value, zone)?.value ?? value)
    const all = [...new Set([...(known?.values ?? []), ...values])].sort()
    sets.set(`${name} ${type}`, { name, type, ttl, values: all })
  }
  return [...sets.values()]
}

/**
 * What the records of a manifest say twice: a record, which the API takes once (RES-200), the time to live of a name
 * and type, and values. Only one of the two would hold, so neither is guessed.
 */
function recordsTwice(spec: Unchecked): Map<string, Words> {
  const zone = zoneOf(spec)
  const faults = new Map<string, Words>()
  const seen = new Set<string>()
  const ttls = new Map<string, number>()
  for (const [index, given] of (Array.isArray(spec.records) ? spec.records : []).entries()) {
    if (isObject(given) && isGiven(given.value) && isGiven(given.values))
      faults.set(`records.${index}.values`, words('dns_value_or_values'))
    for (const { name, type, ttl, values } of normalRecords({ zone, records: [given] })) {
      if (ttl !== undefined) {
        const first = ttls.get(`${name} ${type}`) ?? ttl
        ttls.set(`${name} ${type}`, first)
        if (ttl !== first) faults.set(`records.${index}.ttl`, words('dns_ttl_of_set', { ttl: first }))
      }
      for (const value of values) {
        const identity = `${name} ${type} ${value}`
        if (seen.has(identity)) faults.set(`records.${index}`, words('dns_record_twice'))
        seen.add(identity)
      }
    }
  }
  return faults
}

/** What is wrong with records, by their place in the list. */
function recordFaults(spec: Unchecked): Map<string, Words> {
  const zone = zoneOf(spec)
  const faults = new Map<string, Words>()
  const content = new ZoneContent([])
  for (const [index, { name: given, type, values }] of normalRecords(spec).entries()) {
    const at = `records.${index}`
    const name = recordName(given, zone)
    if ('fault' in name)
      faults.set(`${at}.name`, words(name.fault === 'outside' ? 'dns_outside_zone' : 'dns_name', { zone }))
    if (values.length === 0) faults.set(`${at}.values`, words('required'))
    if ('fault' in name) continue
    for (const text_ of values) {
      const value = parseRecordValue(type, text_, zone)
      const record: ZoneRecord | null = value && { ...value, name: name.name, type }
      const fault = record && faultInZone(record, zone, content.at)
      if (!record) faults.set(`${at}.values`, words('dns_value', { type, example: valueExamples[type] }))
      else if (fault) faults.set(`${at}.${fault.field === 'value' ? 'values' : fault.field}`, zoneFaultWords(fault))
      if (record) content.add(record)
    }
  }
  return faults
}

const hasOwnNs = (spec: Unchecked): boolean =>
  normalRecords(spec).some(({ name, type }) => name === '@' && type === 'NS')

/** Whether the records that a manifest gives leave a published zone without a name server: applying is refused. */
async function losesNs({ db }: Reading, spec: Unchecked, existing: Existing | null): Promise<boolean> {
  if (!existing || spec.records_mode === 'merge' || !hasOwnNs(existing.spec) || hasOwnNs(spec)) return false
  return isPublishedZone(db, existing.id)
}

/** The records of zones that are published, without pointers that the hub keeps by itself. */
async function storedSets({ db, companyId }: Reading, zoneIds: readonly string[]): Promise<StoredSet[]> {
  const rows = await db.execute<StoredSet>(sql`
    select zone_id, name, type, max(ttl) as ttl, array_agg(value order by value collate "C") as values from dns_records
    where company_id = ${companyId} and deleted_at is null and enabled and managed_by is null
      and zone_id in (select jsonb_array_elements_text(${JSON.stringify(zoneIds)}::jsonb)::uuid)
    group by zone_id, name, type order by zone_id, name <> '@', name, type`)
  return [...rows]
}

/** Zones with their records, each with the time to live that is served. */
async function withRecords(reading: Reading, zones: readonly Existing[]): Promise<Existing[]> {
  const sets = await storedSets(
    reading,
    zones.map(zone => zone.id),
  )
  const byZone = Map.groupBy(sets, row => row.zone_id)
  return zones.map(zone => {
    const usual = zone.spec.default_ttl
    const records = (byZone.get(zone.id) ?? []).map(({ zone_id, ttl, ...rest }) => ({ ...rest, ttl: ttl ?? usual }))
    return { ...zone, spec: { ...fromBase(zone.spec), records } }
  })
}

/** Makes the records what the manifest says, as a file of the zone would. */
async function writeRecords(writing: Writing, zoneId: string, spec: Unchecked): Promise<void> {
  if (spec.records === undefined) return
  const { tx, companyId, context, trial } = writing
  const zone = await findRow(dnsZoneKind, tx.db, companyId, zoneId)
  const known = new Map((await storedSets(writing, [zoneId])).map(set => [`${set.name} ${set.type}`, set.ttl]))
  const records = normalRecords({ ...spec, zone: zone.name }).flatMap(({ name, type, values, ttl }) =>
    values.map(value => ({ name, type, value, ttl: ttl ?? known.get(`${name} ${type}`) ?? null, enabled: true })),
  )
  const content = writeZoneFile(zone.name, { ...zone.soa, serial: zone.serial }, zone.default_ttl, records)
  const mode = spec.records_mode === 'merge' ? 'merge' : 'replace'
  const faults = new Map<string, Words>()
  const file = { content, mode, isDryRun: trial !== null } as const
  await under(
    faults,
    'records',
    () => importZoneFile(tx, editorOf(context), zone, file),
    field => recordPlace(field, content, zone.name, spec),
  )
  if (faults.size > 0) throw faultsError(faults)
}

/** The place of a record in the list, of `content.<line>` in the file that was made of it. */
function recordPlace(field: string, content: string, zone: string, spec: Unchecked): string {
  const file = readZoneFile(content, zone)
  const line = Number(field.split('.')[1])
  const found = 'records' in file ? file.records.find(record => record.line === line) : undefined
  const index = normalRecords({ ...spec, zone }).findIndex(
    ({ name, type }) => name === found?.name && type === found.type,
  )
  return index < 0 ? field : `${index}.values`
}

/** A record says `value` or `values`; what is wrong with either is found in its values. */
function placeOfValue([list, index, member, ...rest]: readonly string[], { records }: Unchecked): readonly string[] {
  const record = Array.isArray(records) ? records[Number(index)] : null
  const isOne = member === 'values' && isObject(record) && isGiven(record.value)
  return [list, index, isOne ? 'value' : member, ...rest].filter(step => step !== undefined)
}

const of = (spec: Existing): Existing => ({ ...spec, spec: toBase(spec.spec) })
const { name: _default, ...defaults } = base.defaults

export const zoneKind: ManifestKind = {
  ...base,
  spec: Type.Object({
    ...properties,
    zone: text(253),
    records: optional(listOf(item, RECORDS_MAX)),
    records_mode: optional(oneOf(['merge', 'replace'])),
  }),
  // A manifest that no longer names its records leaves them alone: to delete them all it says so.
  defaults,
  usual: spec => ({ soa: usualSoa(zoneOf(spec)) }),
  whole: { ...base.whole, records: ['name', 'type'] },
  referencesOf: spec => base.referencesOf(toBase(spec)),
  normal: (spec, find) => ({
    ...fromBase(base.normal(toBase(spec), find)),
    ...(spec.records === undefined || spec.records === null ? {} : { records: normalRecords(spec) }),
    ...(spec.records_mode === 'merge' ? { records_mode: 'merge' } : {}),
  }),
  writtenFaults: recordsTwice,
  writtenPlace: placeOfValue,
  specField: field => (field === 'name' ? 'zone' : (base.specField?.(field) ?? field)),
  faults: async (reading, spec, existing) => {
    const ofZone = await base.faults(reading, toBase(spec), existing && of(existing))
    const ofNs: [string, Words][] = (await losesNs(reading, spec, existing)) ? [['records', words('dns_last_ns')]] : []
    return new Map([...ofZone, ...ofNs, ...recordFaults(spec)])
  },
  byIds: async (reading, ids) => withRecords(reading, await base.byIds(reading, ids)),
  candidates: async (reading, spec, slug) => withRecords(reading, await base.candidates(reading, toBase(spec), slug)),
  list: async (reading, filter, range) => withRecords(reading, await base.list(reading, filter, range)),
  create: async (writing, spec, find, slug) => {
    const id = await base.create(writing, toBase(spec), find, slug)
    await writeRecords(writing, id, spec)
    return id
  },
  update: async (writing, existing, changed, spec, find) => {
    const fields = new Set([...changed].map(field => (field === 'zone' ? 'name' : field)))
    await base.update(writing, of(existing), fields, toBase(spec), find)
    if (changed.has('records')) await writeRecords(writing, existing.id, spec)
  },
  remove: (writing, existing) => base.remove(writing, of(existing)),
}
