// The API of PowerDNS: how it is called, and how records of a zone are said in it.

import { sql } from 'drizzle-orm'
import { fullName, isWithin, relativeName } from '../../../core/dns/domain-name.ts'
import { isRecordType, parseRecordValue, type RecordType } from '../../../core/dns/record-value.ts'
import { isNewerSerial, nextSerial } from '../../../core/dns/serial.ts'
import { quoteStrings, unquoteStrings } from '../../../core/dns/zone-file.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { parseForeignJson } from '../../../core/wire/json-depth.ts'
import { callAddress, readBeginning, resolveTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import { RunFailed } from '../resources/runs.ts'
import type { DnsZone } from './dns-zone.ts'

const TIMEOUT_MS = 10_000
const SETS_PER_CALL = 100
/** Primary, contact, serial, four times. */
const SOA_WORDS = 7
const SERIAL_WORD = 2

/** Of what the API says of a refusal. */
const REASON_MAX = 300

/** A zone of ten thousand records. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

type Api = {
  readonly host: string
  readonly api_url: string
  readonly api_key_sealed: string | null
  readonly server_id: string
}

/** Records of a name and type, as the API of PowerDNS has them. */
export type RecordSet = {
  readonly name: string
  readonly type: RecordType
  readonly ttl: number
  readonly values: readonly string[]
  /** Those of the values that zones do not keep, as the server has them. */
  readonly unreadable?: readonly string[]
  /** What the server holds and does not give out, as it has it; goes with the set where that is written or deleted. */
  readonly disabled?: readonly string[]
}

/** A change of one set, as the API takes it. */
type Patch = {
  readonly name: string
  readonly type: RecordType
  readonly changetype: 'REPLACE' | 'DELETE'
  readonly ttl?: number
  readonly records?: readonly { readonly content: string; readonly disabled: boolean }[]
}

/** The first name server of a zone that can be written to; null for none. */
export async function publisherOf(editor: Pick<Editor, 'hub' | 'companyId'>, zone: Pick<DnsZone, 'server_ids'>) {
  const [api] = await editor.hub.database.db.execute<Api>(sql`
    select host, api_url, api_key_sealed, server_id from dns_servers where company_id = ${editor.companyId}
      and deleted_at is null and integration = 'powerdns'
      and id in (select jsonb_array_elements_text(${JSON.stringify(zone.server_ids)}::jsonb)::uuid) order by name limit 1`)
  return api ?? null
}

/** Null for what is no JSON. */
function parsedBody(body: Buffer): Unchecked | null {
  if (body.length === 0) return {}
  try {
    const parsed = parseForeignJson(body)
    return isObject(parsed) ? parsed : {}
  } catch {
    return null
  }
}

/** Why the API refuses, in its words: printable, cut, and without the key; nothing where it does not say. */
function reasonOf(answer: Unchecked | null, key: string): string {
  if (typeof answer?.error !== 'string') return ''
  const text = answer.error.replaceAll(/[^\P{C} ]+/gu, ' ')
  return `: ${(key === '' ? text : text.replaceAll(key, '***')).trim().slice(0, REASON_MAX)}`
}

/** One call of the API, connected to the address that was checked. Throws RunFailed. */
export async function callApi(
  { hub }: Editor,
  api: Api,
  zone: DnsZone,
  request: { method: string; body?: string; query?: string },
): Promise<Unchecked> {
  const url = URL.parse(
    `${api.api_url.replace(/\/+$/, '')}/api/v1/servers/${encodeURIComponent(api.server_id)}/zones/${zone.name}.${request.query ?? ''}`,
  )
  const resolved = url && (await resolveTarget(hub.config, url.hostname))
  if (!url || !resolved) throw new RunFailed('target_not_allowed')
  if ('fault' in resolved) throw new RunFailed(resolved.fault)
  const key = api.api_key_sealed === null ? '' : (hub.sealer.open(api.api_key_sealed) ?? '')
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
  const response = await callAddress(url, resolved.addresses[0] ?? '', {
    ...request,
    headers,
    timeoutMs: TIMEOUT_MS,
  }).catch(() => null)
  if (response === null) throw new RunFailed('the API does not answer')
  const body = await readBeginning(response, ANSWER_BYTES_MAX).catch(() => null)
  if (body === null) throw new RunFailed('the API does not answer')
  const parsed = parsedBody(body)
  if (!response.ok) throw new RunFailed(`the API answered ${response.status}${reasonOf(parsed, key)}`)
  if (parsed === null) throw new RunFailed('the API answered no JSON')
  return parsed
}

/** What the server has of the types that zones keep; signatures are its own affair. */
export function setsOf(answer: Unchecked, zoneName: string): RecordSet[] {
  const rrsets = Array.isArray(answer.rrsets) ? answer.rrsets.filter(isObject) : []
  return rrsets.flatMap(({ name, type, ttl, records }) => {
    const own = String(name).toLowerCase().replace(/\.$/, '')
    if (!isRecordType(String(type)) || !isWithin(own, zoneName) || !Array.isArray(records)) return []
    const kind = String(type) as RecordType
    const contents = records.filter(isObject).flatMap(each => (each.disabled === true ? [] : [String(each.content)]))
    const read = contents.map(content => {
      const text = kind === 'TXT' ? unquoteStrings(content) : content
      return { content, value: parseRecordValue(kind, text, zoneName)?.value }
    })
    return [
      {
        name: relativeName(own, zoneName),
        type: kind,
        ttl: Number(ttl),
        values: read.map(({ content, value }) => value ?? content),
        disabled: records.filter(isObject).flatMap(each => (each.disabled === true ? [String(each.content)] : [])),
        unreadable: read.flatMap(({ content, value }) => (value === undefined ? [content] : [])),
      },
    ]
  })
}

function patchOf(set: RecordSet, changetype: 'REPLACE' | 'DELETE', zoneName: string): Patch {
  const { name, type, ttl, values } = set
  const records = values.map(value => ({ content: type === 'TXT' ? quoteStrings(value) : value, disabled: false }))
  return {
    name: `${fullName(name, zoneName)}.`,
    type,
    changetype,
    ...(changetype === 'REPLACE' ? { ttl, records } : {}),
  }
}

/**
 * What each call changes. Of a name, what goes stands before what comes and in the same call: the server takes no CNAME
 * where another type still is, nor the other way round.
 */
export function callsOf(replaced: readonly RecordSet[], deleted: readonly RecordSet[], zoneName: string): Patch[][] {
  const patches = [
    ...deleted.map(set => patchOf(set, 'DELETE', zoneName)),
    ...replaced.map(set => patchOf(set, 'REPLACE', zoneName)),
  ]
  const calls: Patch[][] = []
  for (const ofName of Map.groupBy(patches, ({ name }) => name).values()) {
    const call = calls.at(-1)
    if (call && call.length + ofName.length <= SETS_PER_CALL) call.push(...ofName)
    else calls.push(ofName)
  }
  return calls
}

type ServedSoa = { readonly ttl: number; readonly words: readonly string[]; readonly serial: number }

/** The SOA record of a zone in an answer; null where none is to be read. */
export function soaOf(answer: Unchecked): ServedSoa | null {
  const rrsets = Array.isArray(answer.rrsets) ? answer.rrsets.filter(isObject) : []
  const soa = rrsets.find(({ type }) => type === 'SOA')
  const [record] = Array.isArray(soa?.records) ? soa.records.filter(isObject) : []
  const words = String(record?.content).trim().split(/\s+/)
  const serial = Number(words[SERIAL_WORD])
  return soa && words.length === SOA_WORDS && Number.isInteger(serial) ? { ttl: Number(soa.ttl), words, serial } : null
}

/**
 * Raises the serial of a zone from which records were taken or changed, where the server has not done so by itself: it
 * does for zones with SOA-EDIT-API only. Throws RunFailed.
 */
export async function raiseSerial(editor: Editor, api: Api, zone: DnsZone, before: ServedSoa | null): Promise<void> {
  const query = `?rrset_name=${zone.name}.&rrset_type=SOA`
  const soa = soaOf(await callApi(editor, api, zone, { method: 'GET', query }))
  if (before === null || soa === null || isNewerSerial(soa.serial, before.serial)) return
  const serial = nextSerial(zone.serial_policy, soa.serial, new Date(editor.hub.now()))
  const content = soa.words.with(SERIAL_WORD, String(serial)).join(' ')
  const rrset = {
    name: `${zone.name}.`,
    type: 'SOA',
    changetype: 'REPLACE',
    ttl: soa.ttl,
    records: [{ content, disabled: false }],
  }
  await callApi(editor, api, zone, { method: 'PATCH', body: JSON.stringify({ rrsets: [rrset] }) })
}

export const keyOf = ({ name, type }: RecordSet): string => `${name} ${type}`
