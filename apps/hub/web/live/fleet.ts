// All servers of a company as the hub's records have them, read once in two seconds for all who look: lists filter,
// sort and count them in memory, so that the filter language is one for all keys.
import { type SQL, sql } from 'drizzle-orm'
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import { connectivitySql, isActiveDownAlert } from '../../agents/connectivity-sql.ts'
import type { Hub } from '../../hub-context.ts'
import type { ServerStatus } from '../../platform/db/schema.ts'
import { RecentValues } from './recent-values.ts'

export type Connectivity = 'online' | 'down' | 'unknown'

export type FleetServer = {
  readonly id: string
  readonly name: string
  readonly hostname: string | null
  readonly address: string | null
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
  readonly tags: readonly string[]
  readonly status: ServerStatus
  readonly connectivity: Connectivity
  readonly lastSeenAtMs: number | null
  readonly openAlerts: number
  readonly worst: Severity | null
  readonly isSilenced: boolean
  readonly agentId: string | null
  readonly agentVersion: string | null
}

type Row = {
  id: string
  name: string
  hostname: string | null
  ip_address: string | null
  environment: string | null
  role: string | null
  datacenter: string | null
  tags: string[]
  status: ServerStatus
  connectivity: Connectivity
  last_seen_at: string | null
  open_alerts: number | null
  worst: number | null
  silenced: boolean
  agent_id: string | null
  agent_version: string | null
}

const FLEET_AGE_MS = 2_000
/** Reading a great fleet takes longer, and is done less often: no more than a tenth of the time goes into it. */
const AGE_PER_READ = 10
const COMPANIES_MAX = 200

/** Agents and alerts are gathered once for the company and joined, so that the time grows with the fleet only. */
const fleetSql = (hub: Hub, companyId: string): SQL => {
  const columns = { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost: sql`coalesce(t.is_down, false)` }
  return sql`
    with a as (
      select distinct on (server_id) server_id, id, state, last_seen_at, agent_version from monitoring_agents
      where company_id = ${companyId} and state <> 'revoked' and server_id is not null
      order by server_id, enrolled_at desc),
    t as (
      select x.server_id, (count(*) filter (where x.state <> 'grouped'))::int as open_alerts,
        max(array_position(array['info', 'warning', 'critical'], x.severity)) filter (where x.state <> 'grouped') as worst,
        bool_or(${isActiveDownAlert(sql`x`)}) as is_down
      from monitoring_alerts x
      where x.company_id = ${companyId} and x.state in ('open', 'acknowledged', 'grouped') group by x.server_id),
    q as (
      select distinct unnest(resolved_server_ids) as server_id from monitoring_silences
      where company_id = ${companyId} and starts_at <= now() and ends_at > now() and cancelled_at is null and deleted_at is null and cardinality(rule_ids) = 0),
    whole as (
      select exists (select 1 from monitoring_silences where company_id = ${companyId} and starts_at <= now()
        and ends_at > now() and cancelled_at is null and deleted_at is null and cardinality(rule_ids) = 0 and coalesce((scope ->> 'all')::boolean, false)) as silenced)
    select s.id, s.name, s.hostname, s.ip_address, s.environment, s.role, s.datacenter, s.tags, s.status,
      ${connectivitySql(hub, columns)} as connectivity, a.last_seen_at, t.open_alerts, t.worst,
      (q.server_id is not null or whole.silenced) as silenced, a.id as agent_id, a.agent_version
    from servers s cross join whole left join a on a.server_id = s.id left join t on t.server_id = s.id
      left join q on q.server_id = s.id
    where s.company_id = ${companyId} and s.deleted_at is null
    order by lower(s.name), s.id`
}

const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']

const toServer = (row: Row): FleetServer => ({
  id: row.id,
  name: row.name,
  hostname: row.hostname,
  address: row.ip_address,
  environment: row.environment,
  role: row.role,
  datacenter: row.datacenter,
  tags: row.tags,
  status: row.status,
  connectivity: row.connectivity,
  lastSeenAtMs: row.last_seen_at === null ? null : new Date(row.last_seen_at).getTime(),
  openAlerts: row.open_alerts ?? 0,
  worst: row.worst === null ? null : (SEVERITIES[row.worst - 1] ?? null),
  isSilenced: row.silenced,
  agentId: row.agent_id,
  agentVersion: row.agent_version,
})

export class Fleets {
  private readonly recent: RecentValues<readonly FleetServer[]>
  private readonly goodUntilMs = new Map<string, number>()

  constructor(private readonly hub: Hub) {
    this.recent = new RecentValues(FLEET_AGE_MS, COMPANIES_MAX, hub.now)
  }

  /** The servers of a company, by name; `isFresh`: read after the question, whatever is at hand. */
  async of(companyId: string, isFresh = false): Promise<readonly FleetServer[]> {
    if (isFresh) return this.recent.getFresh(companyId, () => this.read(companyId))
    const kept = this.recent.last(companyId, Number.POSITIVE_INFINITY)
    if (kept !== null && this.hub.now() < (this.goodUntilMs.get(companyId) ?? 0)) return kept
    return this.recent.get(companyId, () => this.read(companyId))
  }

  private async read(companyId: string): Promise<readonly FleetServer[]> {
    const startedAtMs = this.hub.now()
    const rows = await this.hub.database.db.execute<Row>(fleetSql(this.hub, companyId))
    const servers = rows.map(toServer)
    const endedAtMs = this.hub.now()
    if (this.goodUntilMs.size > COMPANIES_MAX) this.goodUntilMs.clear()
    this.goodUntilMs.set(companyId, endedAtMs + (endedAtMs - startedAtMs) * AGE_PER_READ)
    return servers
  }
}
