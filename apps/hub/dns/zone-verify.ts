// A zone held against its name servers: each is asked directly for every name and type, and sets of values are
// compared. What differs is shown and never corrected by itself.
import { randomBytes } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { fullName, relativeName } from '../../../core/dns/domain-name.ts'
import type { RecordType } from '../../../core/dns/record-value.ts'
import { compareWithServers, setKey, type ValueSets, type ZoneDifference } from '../../../core/dns/zone-difference.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { resolveTarget } from '../platform/outbound-guard.ts'
import { type Finding, setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { RunFailed } from '../resources/runs.ts'
import type { DnsZone } from './dns-zone.ts'
import { askNameServer, type NameServer, NoResponse } from './name-server-query.ts'
import { turnAt } from './query-pace.ts'

const CHANGES_SHOWN = 500
/** Of what one server answers for a name and type. */
const SEEN_VALUES_MAX = 100
const SERIALS_MAY_DIFFER_MS = 600_000
const MINUTE_MS = 60_000

type Server = NameServer & { readonly name: string; readonly isRecursive: boolean }
type IntendedRecord = {
  readonly id: string
  readonly name: string
  readonly type: RecordType
  readonly value: string
  readonly enabled: boolean
}
type Asked = { readonly server: Server; readonly sets: ValueSets; readonly serial: number | null }

/** The name servers of a zone, each with an address that may be connected to. Throws RunFailed. */
async function serversOf({ hub, companyId }: Editor, zone: DnsZone): Promise<Server[]> {
  const rows = await hub.database.db.execute<{ name: string; host: string; port: number }>(sql`
    select name, host, port from dns_servers where company_id = ${companyId} and deleted_at is null
      and role = 'authoritative' and id in (select jsonb_array_elements_text(${JSON.stringify(zone.server_ids)}::jsonb)::uuid)
    order by name`)
  const resolvers = rows.length > 0 ? [] : hub.state.valueOf('dns.resolvers')
  const targets = [
    ...rows.map(row => ({ ...row, isRecursive: false })),
    ...resolvers.map(host => ({ name: host, host, port: 53, isRecursive: true })),
  ]
  if (targets.length === 0) throw new RunFailed('the zone has no name servers, and dns.resolvers names none')
  const servers: Server[] = []
  for (const { name, host, port, isRecursive } of targets) {
    const resolved = await resolveTarget(hub.config, host)
    if ('fault' in resolved) throw new RunFailed(resolved.fault)
    servers.push({ name, address: resolved.addresses[0] ?? '', port, isRecursive })
  }
  return servers
}

/** A name that only a wildcard answers for. */
const askedName = (name: string): string =>
  name === '*' || name.startsWith('*.') ? `${randomBytes(8).toString('hex')}${name.slice(1)}` : name

/** What to ask of a zone. */
type Asking = {
  readonly zone: DnsZone
  readonly keys: readonly string[]
  /** The names that the zone hands over to other servers, relative to it. */
  readonly cuts: ReadonlySet<string>
}

function askingOf(zone: DnsZone, records: readonly IntendedRecord[]): Asking {
  const handedOver = records.filter(({ name, type, enabled }) => type === 'NS' && name !== '@' && enabled)
  return {
    zone,
    keys: [...new Set(records.map(({ name, type }) => setKey(name, type)))],
    cuts: new Set(handedOver.map(({ name }) => name)),
  }
}

async function askServer(server: Server, { zone, keys, cuts }: Asking): Promise<Asked> {
  const { isRecursive } = server
  const sets = new Map<string, ReadonlySet<string> | null>()
  await turnAt(server)
  const { serial } = await askNameServer(server, { name: zone.name, type: 'SOA', zone: zone.name }, { isRecursive })
  for (const key of keys) {
    const [name = '', type = ''] = key.split(' ')
    await turnAt(server)
    const question = { name: fullName(askedName(name), zone.name), type: type as RecordType, zone: zone.name }
    const { values, cut } = await askNameServer(server, question, { isRecursive })
    // Of what lies below a cut that is meant to be there, a server tells only the addresses that lead to it.
    const isHandedOver = cut !== null && cuts.has(relativeName(cut, zone.name))
    sets.set(key, isHandedOver && values.size === 0 ? null : values)
  }
  return { server, sets, serial }
}

type Silent = { readonly server: Server; readonly error: string }

async function askAll(servers: readonly Server[], zone: DnsZone, records: readonly IntendedRecord[]) {
  const asking = askingOf(zone, records)
  const answered: Asked[] = []
  const silent: Silent[] = []
  await Promise.all(
    servers.map(async server => {
      try {
        answered.push(await askServer(server, asking))
      } catch (error) {
        if (!(error instanceof NoResponse)) throw error
        silent.push({ server, error: error.message })
      }
    }),
  )
  return { answered, silent }
}

type Change = { readonly name: string; readonly type: string; readonly value: string; readonly state: string }

function changesOf(records: readonly IntendedRecord[], { states, unknown }: ZoneDifference): Change[] {
  const own = records.flatMap(({ id, name, type, value }) => {
    const state = states.get(id) ?? 'unknown'
    return state === 'in_sync' || state === 'disabled' || state === 'unknown' ? [] : [{ name, type, value, state }]
  })
  return [...own, ...unknown.map(each => ({ ...each, state: 'extra' }))]
}

/** What each server answered for each record's name and type, the beginning of it. */
function seenBy(answered: readonly Asked[], { name, type }: IntendedRecord) {
  return answered.map(({ server, sets }) => ({
    server: server.name,
    values: [...(sets.get(setKey(name, type)) ?? [])].sort().slice(0, SEEN_VALUES_MAX),
  }))
}

async function storeStates(
  tx: Tx,
  zone: DnsZone,
  records: readonly IntendedRecord[],
  { states }: ZoneDifference,
  answered: readonly Asked[],
) {
  const rows = records.map(record => ({
    id: record.id,
    state: states.get(record.id) ?? 'unknown',
    seen: seenBy(answered, record),
  }))
  await tx.db.execute(sql`
    update dns_records r set state = x.state, seen = x.seen
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, state text, seen jsonb)
    where r.id = x.id and r.zone_id = ${zone.id} and (r.state, r.seen) is distinct from (x.state, x.seen)`)
}

/** Stores the state of the zone, and since when serials differ. */
async function storeZone(
  tx: Tx,
  zone: DnsZone,
  state: string,
  hasSerialsApart: boolean,
  now: Date,
): Promise<Date | null> {
  const minutes = zone.verify_interval_minutes
  const until = minutes > 0 ? new Date(now.getTime() + 3 * minutes * MINUTE_MS) : null
  await tx.db.execute(sql`
    update dns_zones set sync_state = ${state}, verified_at = ${now.toISOString()}::timestamptz,
      probe_until = ${until?.toISOString() ?? null}::timestamptz
    where id = ${zone.id} and deleted_at is null`)
  const [row] = await tx.db.execute<{ since: Date | string | null }>(sql`
    insert into dns_zone_states as s (zone_id, serials_differ_since)
    select id, case when ${hasSerialsApart} then ${now.toISOString()}::timestamptz end from dns_zones where id = ${zone.id}
    on conflict (zone_id) do update set serials_differ_since =
      case when excluded.serials_differ_since is not null then coalesce(s.serials_differ_since, excluded.serials_differ_since) end
    returning serials_differ_since as since`)
  return row?.since ? new Date(row.since) : null
}

const CODES = ['zone_drifted', 'nameserver_unreachable', 'serial_mismatch'] as const

/** Verifies a zone and stores what was found. The result of its run. Throws RunFailed. */
export async function verifyZone(editor: Editor, zone: DnsZone, info: KindInfo) {
  const { hub, companyId } = editor
  const servers = await serversOf(editor, zone)
  const records = [
    ...(await hub.database.db.execute<IntendedRecord>(sql`
      select id, name, type, value, enabled from dns_records
      where company_id = ${companyId} and zone_id = ${zone.id} and deleted_at is null order by name, type, value`)),
  ]
  const { answered, silent } = await askAll(servers, zone, records)
  const now = new Date(hub.now())
  const serials = Object.fromEntries(answered.map(({ server, serial }) => [server.name, serial]))
  const difference = compareWithServers(
    records,
    answered.map(({ sets }) => sets),
  )
  const changes = changesOf(records, difference)
  const counted = (state: string): number => changes.filter(change => change.state === state).length
  const counts = { missing: counted('missing'), different: counted('different'), extra: counted('extra') }
  const isDrifted = counts.missing + counts.different > 0 || (zone.strict && counts.extra > 0)
  const state = silent.length > 0 ? 'unreachable' : isDrifted ? 'drifted' : 'in_sync'
  const hasSerialsApart = new Set(Object.values(serials)).size > 1
  await inTransaction(hub.database.db, async tx => {
    const since = await storeZone(tx, zone, state, hasSerialsApart, now)
    if (answered.length > 0) await storeStates(tx, zone, records, difference, answered)
    const found: Finding[] = []
    if (silent.length > 0)
      found.push({
        code: 'nameserver_unreachable',
        detail: { servers: silent.map(({ server }) => server.name) },
        isProbed: true,
      })
    if (state === 'drifted') found.push({ code: 'zone_drifted', detail: counts })
    if (since && now.getTime() - since.getTime() >= SERIALS_MAY_DIFFER_MS)
      found.push({ code: 'serial_mismatch', detail: { serials: Object.values(serials).map(String) } })
    await setConditions(tx, info, companyId, [zone.id], CODES, new Map([[zone.id, found]]))
  })
  if (answered.length === 0)
    throw new RunFailed(`no name server answers: ${silent.map(({ error }) => error).join(', ')}`)
  const inSync = records.filter(({ id }) => difference.states.get(id) === 'in_sync').length
  return { checked: records.length, in_sync: inSync, ...counts, changes: changes.slice(0, CHANGES_SHOWN), serials }
}
