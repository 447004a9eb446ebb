// All servers of a company as the hub's records have them, read once in two seconds for all who look: lists filter,
// sort and count them in memory, so that the filter language is one for all keys. A server stays the same object until
// its row changes (known-rows.ts); what changes by itself is written into it.
import { type SQL, sql } from 'drizzle-orm'
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import { connectivitySql, isActiveDownAlert } from '../../agents/connectivity-sql.ts'
import type { Hub } from '../../hub-context.ts'
import type { ServerStatus } from '../../platform/db/schema.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { type RecordLayout, Records, type RowsReading, readRows } from './known-rows.ts'
import { type Freshness, RecentValues } from './recent-values.ts'
import { SharedTexts } from './shared-texts.ts'

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
  /** As the record has it; null: not known. */
  readonly cpuCores: number | null
  readonly hasAgent: boolean
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
  cpu_cores: number | null
  has_agent: boolean
  agent_version: string | null
}

const FLEET_AGE_MS = 2_000
/** Reading a great fleet takes longer, and is done less often: no more than a tenth of the time goes into it. */
const AGE_PER_READ = 10
const COMPANIES_MAX = 200

/** The newest agent that has not been revoked, of each server that meets the condition. */
const newestAgents = (companyId: string, ofServer: SQL): SQL => sql`
  select distinct on (server_id) server_id, id, state, last_seen_at, agent_version from monitoring_agents
  where company_id = ${companyId} and state <> 'revoked' and server_id ${ofServer}
  order by server_id, enrolled_at desc`

/**
 * A record of every server, in the order of names, as `layout` says. Agents and alerts are gathered once
 * for the company and joined, so that the time grows with the fleet only.
 */
const recordsSql = (hub: Hub, companyId: string): SQL => {
  const columns = { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost: sql`coalesce(t.is_down, false)` }
  return sql`
    with a as (${newestAgents(companyId, sql`is not null`)}),
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
    select string_agg(uuid_send(s.id) || int8send(s.xmin::text::bigint)
        || int8send(hashtextextended(concat_ws(' ', a.id, a.agent_version), 0))
        || int8send(coalesce(floor(extract(epoch from a.last_seen_at) * 1000)::bigint, -1))
        || int4send(coalesce(t.open_alerts, 0))
        || int2send((array_position(array['online', 'down', 'unknown'], ${connectivitySql(hub, columns)}) - 1
          + 4 * coalesce(t.worst, 0) + 16 * (q.server_id is not null or whole.silenced)::int)::int2),
      ''::bytea order by lower(s.name), s.id) as records
    from servers s cross join whole left join a on a.server_id = s.id left join t on t.server_id = s.id
      left join q on q.server_id = s.id
    where s.company_id = ${companyId} and s.deleted_at is null`
}

const rowsSql = (companyId: string, ids: readonly string[]): SQL => {
  const isOne = sql`= any(${uuidList(ids)}::uuid[])`
  return sql`
  with a as (${newestAgents(companyId, isOne)})
  select s.id, s.name, s.hostname, s.ip_address, s.environment, s.role, s.datacenter, s.tags, s.status, s.cpu_cores,
    a.id is not null as has_agent, a.agent_version
  from servers s left join a on a.server_id = s.id
  where s.company_id = ${companyId} and s.id ${isOne} and s.deleted_at is null`
}

/** What of a server changes without a change of its row. */
type ServerState = Pick<FleetServer, 'connectivity' | 'lastSeenAtMs' | 'openAlerts' | 'worst' | 'isSilenced'>
type KeptServer = { -readonly [K in keyof FleetServer]: FleetServer[K] }

/**
 * A record, big-endian: the id (16 bytes); the transaction that wrote the row, and a hash of the agent's id and version
 * (8 each); milliseconds of the epoch when it was last seen, -1 for never (8); open alerts (4); flags (2): the place of
 * the connectivity, 4 × the severity of the worst alert from 1 on, 16 where silenced.
 */
const layout: RecordLayout = { recordBytes: 46, rowBytes: 32 }
const SEEN_AT = 32
const ALERTS_AT = 40
const FLAGS_AT = 44
const CONNECTIVITIES: readonly Connectivity[] = ['online', 'down', 'unknown']
const SEVERITIES: readonly (Severity | null)[] = [null, 'info', 'warning', 'critical']
const NO_STATE: ServerState = {
  connectivity: 'unknown',
  lastSeenAtMs: null,
  openAlerts: 0,
  worst: null,
  isSilenced: false,
}

function updateState(server: KeptServer, { bytes }: Records, place: number): void {
  const at = place * layout.recordBytes
  const seenAtMs = bytes.readInt32BE(at + SEEN_AT) * 2 ** 32 + bytes.readUInt32BE(at + SEEN_AT + 4)
  const flags = bytes.readInt16BE(at + FLAGS_AT)
  server.connectivity = CONNECTIVITIES[flags & 3] ?? 'unknown'
  server.lastSeenAtMs = seenAtMs < 0 ? null : seenAtMs
  server.openAlerts = bytes.readInt32BE(at + ALERTS_AT)
  server.worst = SEVERITIES[(flags >> 2) & 3] ?? null
  server.isSilenced = (flags & 16) !== 0
}

type Reading = RowsReading<KeptServer>

export class Fleets {
  private readonly recent: RecentValues<Reading>
  private readonly goodUntilMs = new Map<string, number>()
  private readonly texts = new SharedTexts()

  constructor(private readonly hub: Hub) {
    this.recent = new RecentValues(FLEET_AGE_MS, COMPANIES_MAX, hub.now)
  }

  /** The servers of a company, by name. The array is the same one for as long as nothing of them changes. */
  async of(companyId: string, wanted: Freshness): Promise<readonly FleetServer[]> {
    const kept = this.recent.last(companyId, Number.POSITIVE_INFINITY)
    const isGood = kept !== null && this.hub.now() < (this.goodUntilMs.get(companyId) ?? 0)
    if (isGood && wanted !== 'now') return kept.rows
    return (await this.recent.of(companyId, wanted, () => this.timedRead(companyId))).rows
  }

  private async timedRead(companyId: string): Promise<Reading> {
    const startedAtMs = this.hub.now()
    const reading = await this.read(companyId)
    const endedAtMs = this.hub.now()
    if (this.goodUntilMs.size > COMPANIES_MAX) this.goodUntilMs.clear()
    this.goodUntilMs.set(companyId, endedAtMs + (endedAtMs - startedAtMs) * AGE_PER_READ)
    return reading
  }

  private async read(companyId: string): Promise<Reading> {
    const { db } = this.hub.database
    const before = this.recent.last(companyId, Number.POSITIVE_INFINITY)
    const [row] = await db.execute<{ records: Buffer | null }>(recordsSql(this.hub, companyId))
    const records = new Records(row?.records ?? Buffer.alloc(0), layout)
    const read = async (ids: readonly string[]): Promise<ReadonlyMap<string, KeptServer>> => {
      const rows = await db.execute<Row>(rowsSql(companyId, ids))
      return new Map(rows.map(each => [each.id, this.toServer(each)]))
    }
    return readRows(before, records, read, (server, place) => updateState(server, records, place))
  }

  private toServer(row: Row): KeptServer {
    return {
      id: row.id,
      name: row.name,
      hostname: row.hostname === row.name ? row.name : row.hostname,
      address: row.ip_address,
      environment: this.texts.text(row.environment),
      role: this.texts.text(row.role),
      datacenter: this.texts.text(row.datacenter),
      tags: this.texts.list(row.tags),
      status: this.texts.text(row.status),
      cpuCores: row.cpu_cores,
      hasAgent: row.has_agent,
      agentVersion: this.texts.text(row.agent_version),
      ...NO_STATE,
    }
  }
}
