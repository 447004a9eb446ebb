// The API of PowerDNS: how it is called, and how records of a zone are said in it.

import { sql } from 'drizzle-orm'
import { fullName, isWithin, relativeName } from '../../../core/dns/domain-name.ts'
import { isRecordType, parseRecordValue, type RecordType } from '../../../core/dns/record-value.ts'
import { quoteStrings, unquoteStrings } from '../../../core/dns/zone-file.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { parseForeignJson } from '../../../core/wire/json-depth.ts'
import { callAddress, readBeginning, resolveTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import { RunFailed } from '../resources/runs.ts'
import type { DnsZone } from './dns-zone.ts'

const TIMEOUT_MS = 10_000

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
}

/** The first name server of a zone that can be written to; null for none. */
export async function publisherOf(editor: Pick<Editor, 'hub' | 'companyId'>, zone: Pick<DnsZone, 'server_ids'>) {
  const [api] = await editor.hub.database.db.execute<Api>(sql`
    select host, api_url, api_key_sealed, server_id from dns_servers where company_id = ${editor.companyId}
      and deleted_at is null and integration = 'powerdns'
      and id in (select jsonb_array_elements_text(${JSON.stringify(zone.server_ids)}::jsonb)::uuid) order by name limit 1`)
  return api ?? null
}

/** One call of the API, connected to the address that was checked. Throws RunFailed. */
export async function callApi(
  { hub }: Editor,
  api: Api,
  zone: DnsZone,
  request: { method: string; body?: string },
): Promise<Unchecked> {
  const url = URL.parse(
    `${api.api_url.replace(/\/+$/, '')}/api/v1/servers/${encodeURIComponent(api.server_id)}/zones/${zone.name}.`,
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
  const body = await readBeginning(response, ANSWER_BYTES_MAX)
  if (!response.ok) throw new RunFailed(`the API answered ${response.status}`)
  if (body.length === 0) return {}
  try {
    const parsed = parseForeignJson(body)
    return isObject(parsed) ? parsed : {}
  } catch {
    throw new RunFailed('the API answered no JSON')
  }
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
        unreadable: read.flatMap(({ content, value }) => (value === undefined ? [content] : [])),
      },
    ]
  })
}

export function patchOf(set: RecordSet, changetype: 'REPLACE' | 'DELETE', zoneName: string) {
  const { name, type, ttl, values } = set
  const records = values.map(value => ({ content: type === 'TXT' ? quoteStrings(value) : value, disabled: false }))
  return {
    name: `${fullName(name, zoneName)}.`,
    type,
    changetype,
    ...(changetype === 'REPLACE' ? { ttl, records } : {}),
  }
}

export const keyOf = ({ name, type }: RecordSet): string => `${name} ${type}`
