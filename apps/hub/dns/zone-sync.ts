// What a call of a zone's sync does: verify, publish to PowerDNS (powerdns-api.ts), or read what it has (R-053,
// When it is refused to publish: unsafe-publish.ts.
import { sql } from 'drizzle-orm'
import { fullName, parseDomainName } from '../../../core/dns/domain-name.ts'
import type { RecordType } from '../../../core/dns/record-value.ts'
import { TTL_MAX, writeZoneFile } from '../../../core/dns/zone-file.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, firstFaultText } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { RunFailed } from '../resources/runs.ts'
import { type DnsZone, dnsZoneKind } from './dns-zone.ts'
import { callApi, callsOf, keyOf, publisherOf, type RecordSet, raiseSerial, setsOf, soaOf } from './powerdns-api.ts'
import { refuseUnsafe } from './unsafe-publish.ts'
import { importZoneFile, skippedText } from './zone-import.ts'
import { verifyZone } from './zone-verify.ts'

const CHANGES_SHOWN = 500

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

const textOf = ({ ttl, values }: RecordSet): string => JSON.stringify([ttl, [...values].sort()])

/** The sets to be written and to be deleted, so that the server has what the zone intends. */
function changesOf(intended: readonly RecordSet[], served: readonly RecordSet[]) {
  const known = new Map(served.map(set => [keyOf(set), set]))
  const wanted = new Set(intended.map(keyOf))
  const replaced = intended.filter(set => {
    const other = known.get(keyOf(set))
    return !other || textOf(other) !== textOf(set)
  })
  const deleted = served.filter(set => !wanted.has(keyOf(set)))
  return { replaced, deleted, atStake: withDisabled(served, [...replaced, ...deleted]) }
}

/** What the server has, with the records that it has as disabled where these go too: those of sets that change. */
function withDisabled(served: readonly RecordSet[], changed: readonly RecordSet[]): RecordSet[] {
  const keys = new Set(changed.map(keyOf))
  return served.map(set => (keys.has(keyOf(set)) ? { ...set, values: [...set.values, ...(set.disabled ?? [])] } : set))
}

async function publish(editor: Editor, zone: DnsZone, info: KindInfo, { dry_run, force }: Unchecked) {
  const api = await publisherOf(editor, zone)
  if (!api) throw new RunFailed('no name server with the integration powerdns')
  const answer = await callApi(editor, api, zone, { method: 'GET' })
  const served = setsOf(answer, zone.name)
  const intended = await intendedSets(editor, zone)
  const { replaced, deleted, atStake } = changesOf(intended, served)
  const changes = [
    ...replaced.map(({ name, type, values }) => ({ name, type, values, state: 'replaced' })),
    ...deleted.map(({ name, type, values, disabled = [] }) => ({
      name,
      type,
      values: [...values, ...disabled],
      state: 'deleted',
    })),
  ].slice(0, CHANGES_SHOWN)
  if (dry_run === true) return { replaced: replaced.length, deleted: deleted.length, changes }
  if (force !== true) refuseUnsafe(intended, atStake)
  const calls = callsOf(replaced, deleted, zone.name)
  for (const rrsets of calls) await callApi(editor, api, zone, { method: 'PATCH', body: JSON.stringify({ rrsets }) })
  if (calls.length > 0) await raiseSerial(editor, api, zone, soaOf(answer))
  const verified = await verifyZone(editor, zone, info)
  return { ...verified, replaced: replaced.length, deleted: deleted.length, changes }
}

/** Why a record that the server has cannot be one of a zone file; null when it can. */
function unfitReason({ name, ttl, unreadable }: RecordSet, value: string, zoneName: string): string | null {
  if (parseDomainName(fullName(name, zoneName)) === null) return 'name'
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > TTL_MAX) return 'ttl'
  return unreadable?.includes(value) ? 'unreadable' : null
}

/** The error of a request, as that of a run. */
function runError(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  return new RunFailed(firstFaultText(error))
}

/** Takes over what the server has, as a zone file that is merged; what the zone cannot keep is named. */
async function read(editor: Editor, zone: DnsZone, { dry_run }: Unchecked) {
  const api = await publisherOf(editor, zone)
  if (!api) throw new RunFailed('no name server with the integration powerdns')
  const served = setsOf(await callApi(editor, api, zone, { method: 'GET' }), zone.name)
  const records = served.flatMap(set => {
    const { name, type, ttl } = set
    return set.values.map(value => ({
      name,
      type,
      value,
      ttl,
      enabled: true,
      reason: unfitReason(set, value, zone.name),
    }))
  })
  const unfit = records.flatMap(({ name, type, value, reason }) =>
    reason === null ? [] : [{ line: 0, text: skippedText(name, type, value), reason }],
  )
  const fit = records.filter(({ reason }) => reason === null)
  const content = writeZoneFile(zone.name, { ...zone.soa, serial: zone.serial }, zone.default_ttl, fit)
  const order = { content, mode: 'merge', isDryRun: dry_run === true, skipsRefused: true } as const
  const done = await inTransaction(editor.hub.database.db, tx => importZoneFile(tx, editor, zone, order)).catch(
    error => {
      throw runError(error)
    },
  )
  return { ...done, skipped: [...done.skipped, ...unfit].slice(0, CHANGES_SHOWN) }
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
