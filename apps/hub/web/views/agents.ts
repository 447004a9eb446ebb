// The agents of a company with their state and version. The newest version is the newest that any of them has: nothing
// tells the hub of releases.

import { sql } from 'drizzle-orm'
import { isOlder, newestVersion } from '../../../../core/agent/version.ts'
import type { AgentState } from '../../../../core/lifecycle/agent.ts'
import { DAY_MS } from '../../../../core/limits.ts'
import { connectivitySql, isActiveDownAlert } from '../../agents/connectivity-sql.ts'
import { matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import type { Connectivity } from '../live/fleet.ts'
import { type AgentSays, type SaysRow, saysOf } from './agent-says.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
/** The limit of servers of a company with room for agents that were revoked. */
const READ_MAX = 100_000
/** A warning that holds is told again each hour: one of so long ago is history. */
const WARNED_MS = DAY_MS
/** Another look costs as much as reading them all. */
const AGE_MS = 5_000

type KnownAgent = {
  readonly id: string
  readonly hostname: string
  readonly serverId: string | null
  readonly serverName: string | null
  readonly state: AgentState
  readonly connectivity: Connectivity
  readonly version: string | null
  readonly isOutdated: boolean
  readonly lastSeenAtMs: number | null
  readonly enrolledAtMs: number
  readonly revokedReason: string | null
}
export type AgentRow = KnownAgent & AgentSays

export type AgentsView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly newestVersion: string | null
  readonly outdated: number
  readonly rows: readonly AgentRow[]
}

type Stored = {
  id: string
  hostname: string | null
  machine_id: string | null
  server_id: string | null
  server_name: string | null
  state: AgentState
  connectivity: Connectivity
  agent_version: string | null
  last_seen_at: string | null
  enrolled_at: string
  revoked_reason: string | null
  is_buffering: boolean | null
  last_warning_at: string | null
  license_name: string | null
  license_hint: string | null
}

/** The licence by which it enrolled, under its name and as lists show its key. */
const licensesOf = ({ license_name: name, license_hint: hint }: Stored): readonly string[] =>
  name === null || hint === null ? [] : [name, hint]

const instantOf = (text: string | null): number | null => (text === null ? null : new Date(text).getTime())

const toRow = (row: Stored, newest: string | null): KnownAgent => ({
  id: row.id,
  hostname: row.hostname ?? row.machine_id ?? row.id,
  serverId: row.server_id,
  serverName: row.server_name,
  state: row.state,
  connectivity: row.connectivity,
  version: row.agent_version,
  isOutdated: row.state !== 'revoked' && isOlder(row.agent_version, newest),
  lastSeenAtMs: instantOf(row.last_seen_at),
  enrolledAtMs: new Date(row.enrolled_at).getTime(),
  revokedReason: row.revoked_reason,
})

/** The words by which an agent is found for what it says of itself. */
const wordsOf = ({ is_buffering: isBuffering, last_warning_at: at }: Stored, nowMs: number): readonly string[] => [
  ...(isBuffering ? ['buffering'] : []),
  ...((instantOf(at) ?? 0) > nowMs - WARNED_MS ? ['warned'] : []),
]

/** What agents say of themselves is read of the rows that are shown: texts of all would be a lot. */
async function withSays({ hub, companyId }: ViewContext, rows: readonly KnownAgent[]): Promise<AgentRow[]> {
  const ids = JSON.stringify(rows.map(row => row.id))
  const stored = await hub.database.db.execute<SaysRow & { id: string }>(sql`
    select id, buffer_bytes::float8 as buffer_bytes, buffer_batches::float8 as buffer_batches, last_warning, last_warning_at
    from monitoring_agents where company_id = ${companyId}
      and id in (select x::uuid from jsonb_array_elements_text(${ids}::jsonb) x)`)
  const says = new Map(stored.map(row => [row.id, saysOf(row)]))
  return rows.map(row => ({ ...row, ...(says.get(row.id) ?? { buffer: null, lastWarning: null }) }))
}

export const agentsView: View<AgentsView> = {
  permissions: ['monitoring.view'],
  params: sitePages.agents.takes,
  ageMs: AGE_MS,
  async make(context) {
    const { hub, companyId, param } = context
    const isLost = sql`exists (select 1 from monitoring_alerts x
      where x.company_id = a.company_id and x.agent_id = a.id and ${isActiveDownAlert(sql`x`)})`
    const columns = { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost }
    const stored = await hub.database.db.execute<Stored>(sql`
      select a.id, a.hostname, a.machine_id, a.server_id, s.name as server_name, a.state, a.agent_version, a.last_seen_at,
        a.enrolled_at, a.revoked_reason, a.buffer_batches > 0 as is_buffering,
        a.last_warning_at, l.name as license_name, l.token_hint as license_hint,
        ${connectivitySql(hub, columns)} as connectivity
      from monitoring_agents a left join servers s on s.id = a.server_id
        left join monitoring_licenses l on l.id = a.license_id
      where a.company_id = ${companyId} order by a.enrolled_at desc, a.id desc limit ${READ_MAX}`)
    const newest = newestVersion(stored.filter(row => row.state !== 'revoked').map(row => row.agent_version))
    const nowMs = hub.now()
    const all = stored.map(row => ({ row: toRow(row, newest), license: licensesOf(row), words: wordsOf(row, nowMs) }))
    const terms = parseFilter(param('q'))
    const matching = all.filter(({ row, license, words }) =>
      matchesFilter(
        {
          words: [row.hostname, row.serverName],
          values: {
            state: [row.state, row.connectivity, ...(row.isOutdated ? ['outdated'] : []), ...words],
            version: row.version,
            license,
          },
        },
        terms,
      ),
    )
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, matching.length - 1))
    return {
      total: all.length,
      matching: matching.length,
      offset,
      newestVersion: newest,
      outdated: all.filter(({ row }) => row.isOutdated).length,
      rows: await withSays(
        context,
        matching.slice(offset, offset + WINDOW).map(({ row }) => row),
      ),
    }
  },
}
