// Who has arrived of the servers that are being added with a licence: waiting, enrolled, reporting, or refused and why.
// All of it stands in the hub's records, so that a page that is opened again shows the same.
import { type SQL, sql } from 'drizzle-orm'
import type { LicenseStatus } from '../../../../core/lifecycle/license.ts'
import { findLicense, statusOf } from '../../licenses/license-list.ts'
import { quotaOf } from '../../licenses/licenses.ts'
import { type RefusalReason, refusalsOf } from '../../licenses/refusals.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isInstant, isUuid } from '../../platform/http/request-schema.ts'
import { sitePages } from '../address/site-map.ts'
import type { View } from './view.ts'

const ROWS_MAX = 1_000
/** A licence that was regenerated is one with those before it. */
const PREDECESSORS_MAX = 20

const arrivalStates = ['refused', 'waiting', 'enrolled', 'reporting'] as const
type ArrivalState = (typeof arrivalStates)[number]

export type Arrival = {
  readonly key: string
  readonly name: string
  readonly state: ArrivalState
  readonly serverId: string | null
  /** An agent may send only when its server is approved. */
  readonly isDraft: boolean
  readonly reason: RefusalReason | null
  readonly addresses: readonly string[]
  /** When it enrolled or was refused last. */
  readonly atMs: number | null
}

export type ArrivalsView = {
  readonly license: {
    readonly id: string
    readonly name: string
    readonly hint: string
    readonly status: LicenseStatus
    readonly usedCount: number
    readonly maxUses: number
    readonly expiresAtMs: number | null
    /** What the server is called for which alone it is. */
    readonly serverName: string | null
  } | null
  /** The one that the address names: a licence for it alone is asked for. */
  readonly server: { readonly id: string; readonly name: string } | null
  /** Uses that the plan has left for further licences; null: no limit. */
  readonly quotaLeft: number | null
  /** Whether unknown servers are let in as drafts. */
  readonly createsDrafts: boolean
  readonly counts: Readonly<Record<ArrivalState, number>>
  readonly drafts: readonly string[]
  readonly rows: readonly Arrival[]
}

const millisOf = (at: string | null): number | null => (at === null ? null : new Date(at).getTime())

async function withPredecessors(db: Executor, companyId: string, licenseId: string): Promise<string[]> {
  const rows = await db.execute<{ id: string }>(sql`
    with recursive chain as (
      select id, supersedes, 0 as depth from monitoring_licenses where company_id = ${companyId} and id = ${licenseId}
      union all select l.id, l.supersedes, c.depth + 1 from monitoring_licenses l join chain c on l.id = c.supersedes
        where c.depth < ${PREDECESSORS_MAX} and l.company_id = ${companyId})
    select id from chain`)
  return rows.map(row => row.id)
}

async function serverNamed(db: Executor, companyId: string, id: string): Promise<ArrivalsView['server']> {
  if (!isUuid(id)) return null
  const [server] = await db.execute<{ id: string; name: string }>(
    sql`select id, name from servers where company_id = ${companyId} and id = ${id} and deleted_at is null`,
  )
  return server ?? null
}

const oneOfIds = (ids: readonly string[]): SQL => sql`any(${`{${ids.join(',')}}`}::uuid[])`

/** Servers whose agents enrolled with one of these licences. */
async function enrolledWith(db: Executor, companyId: string, licenseIds: readonly string[]): Promise<Arrival[]> {
  const rows = await db.execute<{
    id: string
    server_id: string | null
    name: string | null
    hostname: string | null
    state: string
    enrolled_at: string
    last_seen_at: string | null
  }>(sql`
    select a.id, a.server_id, s.name, a.hostname, a.state, a.enrolled_at, a.last_seen_at
    from monitoring_agents a left join servers s on s.id = a.server_id
    where a.company_id = ${companyId} and a.license_id = ${oneOfIds(licenseIds)} and a.state <> 'revoked'
    order by a.enrolled_at desc limit ${ROWS_MAX}`)
  return rows.map(row => ({
    key: row.id,
    name: row.name ?? row.hostname ?? row.id,
    state: row.last_seen_at === null ? 'enrolled' : 'reporting',
    serverId: row.server_id,
    isDraft: row.state === 'pending',
    reason: null,
    addresses: [],
    atMs: millisOf(row.enrolled_at),
  }))
}

type Bare = { id: string; name: string; hostname: string | null; ip_address: string | null; has_agent: boolean }

/** Servers that were added since then, or that the licence is for: the ones whose agents are awaited. */
async function awaited(db: Executor, companyId: string, since: string, licenseIds: readonly string[]): Promise<Bare[]> {
  const isNew = isInstant(since) ? sql`s.created_at >= ${since}` : sql`false`
  const rows = await db.execute<Bare>(sql`
    select s.id, s.name, s.hostname, s.ip_address, exists (
      select 1 from monitoring_agents a where a.server_id = s.id and a.state <> 'revoked') as has_agent
    from servers s where s.company_id = ${companyId} and s.deleted_at is null and s.origin <> 'agent'
      and (${isNew} or s.id in (select server_id from monitoring_licenses where id = ${oneOfIds(licenseIds)}))
    order by lower(s.name), s.id limit ${ROWS_MAX}`)
  return [...rows]
}

type Refused = Awaited<ReturnType<typeof refusalsOf>>[number]

/** The newest refusal of each host, without those who have joined after it. */
async function stillRefused(
  db: Parameters<typeof refusalsOf>[0],
  companyId: string,
  licenseIds: readonly string[],
  joined: readonly Arrival[],
): Promise<Refused[]> {
  const all = (await Promise.all(licenseIds.map(id => refusalsOf(db, companyId, id)))).flat()
  all.sort((one, other) => other.refused_at.getTime() - one.refused_at.getTime())
  const newest = new Map<string, Refused>()
  for (const refusal of all) {
    const key = refusal.hostname?.toLowerCase() ?? refusal.ip_addresses.join()
    if (!newest.has(key)) newest.set(key, refusal)
  }
  const joinedNames = new Set(joined.map(({ name }) => name.toLowerCase()))
  return [...newest.values()].filter(
    ({ hostname, reason }) => !(joinedNames.has(hostname?.toLowerCase() ?? '') && reason === 'already_enrolled'),
  )
}

/** The server that was added and that a refused host is, if it is one. */
const serverOf = (servers: readonly Bare[], { hostname, ip_addresses: addresses }: Refused): Bare | undefined =>
  servers.find(
    server =>
      (hostname !== null &&
        [server.name, server.hostname].some(name => name?.toLowerCase() === hostname.toLowerCase())) ||
      (server.ip_address !== null && addresses.includes(server.ip_address)),
  )

const toRefused = (refusal: Refused, server: Bare | undefined): Arrival => ({
  key: `refused ${refusal.hostname ?? ''} ${refusal.ip_addresses.join()}`,
  name: server?.name ?? refusal.hostname ?? refusal.ip_addresses[0] ?? '?',
  state: 'refused',
  serverId: server?.id ?? null,
  isDraft: false,
  reason: refusal.reason,
  addresses: refusal.ip_addresses,
  atMs: refusal.refused_at.getTime(),
})

const toWaiting = ({ id, name }: Bare): Arrival => ({
  ...{ key: id, name, state: 'waiting', serverId: id, isDraft: false, reason: null, addresses: [], atMs: null },
})

export const arrivalsView: View<ArrivalsView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: sitePages.add_servers.takes,
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    const id = param('license')
    const [server, quota, [setting]] = await Promise.all([
      serverNamed(db, companyId, param('server')),
      quotaOf(db, companyId),
      db.execute<{ creates: boolean }>(
        sql`select auto_create_server as creates from monitoring_settings where company_id = ${companyId}`,
      ),
    ])
    const shared = { server, quotaLeft: quota.remaining, createsDrafts: setting?.creates === true }
    const none = { refused: 0, waiting: 0, enrolled: 0, reporting: 0 }
    if (id === '') return { ...shared, license: null, counts: none, drafts: [], rows: [] }
    if (!isUuid(id)) throw notFound()
    const { license, server: boundTo } = await findLicense(db, companyId, id)
    const licenseIds = await withPredecessors(db, companyId, id)
    const enrolled = await enrolledWith(db, companyId, licenseIds)
    const bare = await awaited(db, companyId, param('since'), licenseIds)
    const refusals = await stillRefused(db, companyId, licenseIds, enrolled)
    const refused = refusals.map(refusal => toRefused(refusal, serverOf(bare, refusal)))
    const refusedIds = new Set(refused.map(({ serverId }) => serverId))
    const waiting = bare.filter(server => !server.has_agent && !refusedIds.has(server.id)).map(toWaiting)
    const rows = [...refused, ...waiting, ...enrolled]
    const counts = { ...none }
    for (const { state } of rows) counts[state]++
    const byName = new Intl.Collator('en', { numeric: true })
    rows.sort(
      (one, other) =>
        arrivalStates.indexOf(one.state) - arrivalStates.indexOf(other.state) || byName.compare(one.name, other.name),
    )
    return {
      ...shared,
      license: {
        ...{ id: license.id, name: license.name, hint: license.tokenHint, status: statusOf(license, hub.now()) },
        ...{ usedCount: license.usedCount, maxUses: license.maxUses },
        expiresAtMs: license.expiresAt?.getTime() ?? null,
        serverName: boundTo?.name ?? null,
      },
      counts,
      drafts: rows.filter(row => row.isDraft).flatMap(row => row.serverId ?? []),
      rows: rows.slice(0, ROWS_MAX),
    }
  },
}
