// What a call of a zone's sync does: verify, publish to PowerDNS, or read what it has.
import { sql } from 'drizzle-orm'
import { fullName, isWithin, relativeName } from '../../../core/dns/domain-name.ts'
import { isRecordType, parseRecordValue, type RecordType } from '../../../core/dns/record-value.ts'
import { quoteStrings, unquoteStrings, writeZoneFile } from '../../../core/dns/zone-file.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { callAddress, readBeginning, resolveTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { RunFailed } from '../resources/runs.ts'
import { type DnsZone, dnsZoneKind } from './dns-zone.ts'
import { importZoneFile } from './zone-import.ts'
import { verifyZone } from './zone-verify.ts'

const TIMEOUT_MS = 10_000
/** A zone of ten thousand records. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024
const SETS_PER_CALL = 100
const RECORDS_TO_GUARD = 10
const DELETED_SHARE_MAX = 0.3
const CHANGES_SHOWN = 500

type Api = {
  readonly host: string
  readonly api_url: string
  readonly api_key_sealed: string | null
  readonly server_id: string
}
/** Records of a name and type, as the API of PowerDNS has them. */
type RecordSet = {
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
async function callApi(
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
    const parsed: unknown = JSON.parse(body.toString('utf8'))
    return isObject(parsed) ? parsed : {}
  } catch {
    throw new RunFailed('the API answered no JSON')
  }
}

/** What the server has of the types that zones keep; signatures are its own affair. */
function setsOf(answer: Unchecked, zoneName: string): RecordSet[] {
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

async function intendedSets(editor: Editor, zone: DnsZone): Promise<RecordSet[]> {
  const rows = await editor.hub.database.db.execute<{
    name: string
    type: RecordType
    value: string
    ttl: number | null
  }>(sql`
    select name, type, value, ttl from dns_records where company_id = ${editor.companyId} and zone_id = ${zone.id}
      and deleted_at is null and enabled order by name, type, value`)
  const sets = new Map<string, RecordSet & { values: string[] }>()
  for (const { name, type, value, ttl } of rows) {
    const key = `${name} ${type}`
    const set = sets.get(key) ?? { name, type, ttl: ttl ?? zone.default_ttl, values: [] }
    set.values.push(value)
    sets.set(key, set)
  }
  return [...sets.values()]
}

const keyOf = ({ name, type }: RecordSet): string => `${name} ${type}`
const textOf = ({ ttl, values }: RecordSet): string => JSON.stringify([ttl, [...values].sort()])

/** The sets to be written and to be deleted, so that the server has what the zone intends. */
function changesOf(intended: readonly RecordSet[], served: readonly RecordSet[]) {
  const known = new Map(served.map(set => [keyOf(set), set]))
  const wanted = new Set(intended.map(keyOf))
  const replaced = intended.filter(set => {
    const other = known.get(keyOf(set))
    return !other || textOf(other) !== textOf(set)
  })
  return { replaced, deleted: served.filter(set => !wanted.has(keyOf(set))) }
}

/** Throws RunFailed for a change that empties a zone or deletes much of it. */
function refuseUnsafe(intended: readonly RecordSet[], served: readonly RecordSet[]): void {
  const values = (sets: readonly RecordSet[]) =>
    new Set(sets.flatMap(set => set.values.map(value => `${keyOf(set)} ${value}`)))
  const [wanted, known] = [values(intended), values(served)]
  const gone = [...known].filter(value => !wanted.has(value)).length
  const isMuch = known.size >= RECORDS_TO_GUARD && gone > known.size * DELETED_SHARE_MAX
  if (known.size > 0 && (wanted.size === 0 || isMuch)) throw new RunFailed('unsafe_publish')
}

function patchOf(set: RecordSet, changetype: 'REPLACE' | 'DELETE', zoneName: string) {
  const { name, type, ttl, values } = set
  const records = values.map(value => ({ content: type === 'TXT' ? quoteStrings(value) : value, disabled: false }))
  return {
    name: `${fullName(name, zoneName)}.`,
    type,
    changetype,
    ...(changetype === 'REPLACE' ? { ttl, records } : {}),
  }
}

async function publish(editor: Editor, zone: DnsZone, info: KindInfo, { dry_run, force }: Unchecked) {
  const api = await publisherOf(editor, zone)
  if (!api) throw new RunFailed('no name server with the integration powerdns')
  const served = setsOf(await callApi(editor, api, zone, { method: 'GET' }), zone.name)
  const intended = await intendedSets(editor, zone)
  const { replaced, deleted } = changesOf(intended, served)
  const changes = [
    ...replaced.map(({ name, type, values }) => ({ name, type, values, state: 'replaced' })),
    ...deleted.map(({ name, type, values }) => ({ name, type, values, state: 'deleted' })),
  ].slice(0, CHANGES_SHOWN)
  if (dry_run === true) return { replaced: replaced.length, deleted: deleted.length, changes }
  if (force !== true) refuseUnsafe(intended, served)
  const patches = [
    ...replaced.map(set => patchOf(set, 'REPLACE', zone.name)),
    ...deleted.map(set => patchOf(set, 'DELETE', zone.name)),
  ]
  for (let at = 0; at < patches.length; at += SETS_PER_CALL) {
    const body = JSON.stringify({ rrsets: patches.slice(at, at + SETS_PER_CALL) })
    await callApi(editor, api, zone, { method: 'PATCH', body })
  }
  const verified = await verifyZone(editor, zone, info)
  return { ...verified, replaced: replaced.length, deleted: deleted.length, changes }
}

/** Takes over what the server has, as a zone file that is merged. */
async function read(editor: Editor, zone: DnsZone, { dry_run }: Unchecked) {
  const api = await publisherOf(editor, zone)
  if (!api) throw new RunFailed('no name server with the integration powerdns')
  const served = setsOf(await callApi(editor, api, zone, { method: 'GET' }), zone.name)
  const records = served.flatMap(({ name, type, ttl, values, unreadable }) =>
    values.flatMap(value => (unreadable?.includes(value) ? [] : [{ name, type, value, ttl, enabled: true }])),
  )
  const skipped = served.flatMap(({ name, type, unreadable = [] }) =>
    unreadable.map(content => ({ line: 0, text: `${name} ${type} ${content}`, reason: 'unreadable' })),
  )
  const content = writeZoneFile(zone.name, { ...zone.soa, serial: zone.serial }, zone.default_ttl, records)
  const done = await inTransaction(editor.hub.database.db, tx =>
    importZoneFile(tx, editor, zone, { content, mode: 'merge', isDryRun: dry_run === true }),
  )
  return { ...done, skipped: [...done.skipped, ...skipped].slice(0, CHANGES_SHOWN) }
}

export const zoneActs = {
  sync: {
    work: ({
      editor,
      row,
      input,
    }: {
      readonly editor: Editor
      readonly row: DnsZone
      readonly input: Unchecked
    }): Promise<Unchecked> => {
      if (input.mode === 'publish') return publish(editor, row, dnsZoneKind.info, input)
      if (input.mode === 'read') return read(editor, row, input)
      return verifyZone(editor, row, dnsZoneKind.info)
    },
  },
}
