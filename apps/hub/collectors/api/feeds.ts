// The feeds that collectors pull by `since` (document 1 "Rule sync envelope" and those after it; decisions G-34, G-88,
// G-89, G-90, G-115). Records of every company, ascending by sync_version, tombstones included.
import { type SQL, sql } from 'drizzle-orm'
import { serverStatusOfRecord } from '../../../../core/lifecycle/agent.ts'
import type { Db, Executor } from '../../platform/db/connect.ts'
import type { Feed } from '../../platform/db/transaction.ts'

type FeedRecord = { readonly sync_version: number } & Readonly<Record<string, unknown>>

export type FeedPage = { readonly records: readonly FeedRecord[]; readonly nextSince: number; readonly more: boolean }

type TombstoneRow = { id: string; company_id: string; sync_version: string }

/**
 * One page of a feed: live rows and tombstones of rows that are gone for good, merged by number. Both are read as of one
 * instant: of two instants the later one could show a number above one that the earlier did not have yet, and the reader
 * would go on after it.
 */
async function pageOfFeed<T extends Record<string, unknown>>(
  db: Db,
  feed: Feed,
  since: number,
  limit: number,
  rows: SQL,
  present: (row: T) => FeedRecord,
  presentTombstone: (row: TombstoneRow) => FeedRecord,
): Promise<FeedPage> {
  const [live, gone] = await db.transaction(
    async (tx): Promise<[readonly unknown[], readonly TombstoneRow[]]> => [
      await tx.execute(rows),
      await tx.execute<TombstoneRow>(sql`
        select id, company_id, sync_version from monitoring_feed_tombstones
        where feed = ${feed} and sync_version > ${since} order by sync_version limit ${limit + 1}`),
    ],
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
  const all = [...live.map(row => present(row as T)), ...gone.map(row => presentTombstone(row))]
  if (gone.length > 0) all.sort((a, b) => a.sync_version - b.sync_version)
  const records = all.slice(0, limit)
  return { records, nextSince: records.at(-1)?.sync_version ?? since, more: all.length > limit }
}

const iso = (value: string | null): string | null => (value === null ? null : new Date(value).toISOString())

type AgentFeedRow = {
  id: string
  company_id: string
  server_id: string | null
  collector_id: string | null
  state: string
  token_hash: string
  prev_token_hash: string | null
  prev_token_expires_at: string | null
  version: string
  sync_version: string
  status: string | null
  subnet_id: string | null
  datacenter: string | null
  hostname: string | null
  default_interval: number | null
}

const presentAgent = (row: AgentFeedRow): FeedRecord => ({
  agent_id: row.id,
  company_id: row.company_id,
  server_id: row.server_id,
  collector_id: row.collector_id,
  state: row.state,
  token_hash: row.token_hash,
  prev_token_hash: row.prev_token_hash,
  prev_token_expires_at: iso(row.prev_token_expires_at),
  server_status: serverStatusOfRecord(row.status),
  subnet_id: row.subnet_id ?? '',
  datacenter: row.datacenter ?? '',
  // Additive: the label of agent.down and agent.up (decision G-80).
  hostname: row.hostname ?? '',
  interval_seconds: row.default_interval ?? 0,
  version: Number(row.version),
  sync_version: Number(row.sync_version),
})

const AGENTS: SQL = sql`
  select a.id, a.company_id, a.server_id, a.collector_id, a.state, a.token_hash, a.prev_token_hash, a.prev_token_expires_at,
    a.version, a.sync_version, s.status, s.subnet_id, s.datacenter,
    coalesce(nullif(a.hostname, ''), s.hostname) as hostname, m.default_interval
  from monitoring_agents a left join servers s on s.id = a.server_id
  left join monitoring_settings m on m.company_id = a.company_id`

export async function agentsFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  const rows = sql`${AGENTS} where a.sync_version > ${since} order by a.sync_version limit ${limit + 1}`
  return pageOfFeed<AgentFeedRow>(db, 'agents', since, limit, rows, presentAgent, row => ({
    agent_id: row.id,
    company_id: row.company_id,
    state: 'revoked',
    sync_version: Number(row.sync_version),
  }))
}

/** The agent with that current token, or previous one still in validity; revoked agents too. */
export async function agentByTokenHash(db: Executor, hash: string): Promise<FeedRecord | null> {
  const rows = await db.execute<AgentFeedRow>(sql`${AGENTS}
    where a.token_hash = ${hash} or (a.prev_token_hash = ${hash} and a.prev_token_expires_at > now())
    order by (a.token_hash = ${hash}) desc limit 1`)
  return rows[0] ? presentAgent(rows[0]) : null
}

export async function agentById(db: Executor, id: string): Promise<FeedRecord | null> {
  const rows = await db.execute<AgentFeedRow>(sql`${AGENTS} where a.id = ${id}`)
  return rows[0] ? presentAgent(rows[0]) : null
}

type RuleFeedRow = Record<string, unknown> & { sync_version: string; deleted: boolean }

export async function rulesFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  const rows = sql`
    select id, version, sync_version, company_id, name, kind, scope, resolved_server_ids::text[] as resolved_server_ids,
      metric, matchers, operator, threshold, for_seconds, recover_threshold, recover_for_seconds, severity, no_data,
      renotify_seconds, enabled, deleted_at is not null as deleted
    from monitoring_rules where sync_version > ${since} order by sync_version limit ${limit + 1}`
  return pageOfFeed<RuleFeedRow>(
    db,
    'rules',
    since,
    limit,
    rows,
    row => ({ ...row, enabled: row.enabled === true && !row.deleted, sync_version: Number(row.sync_version) }),
    row => ({ ...gone(row), version: 0, enabled: false }),
  )
}

const gone = (row: TombstoneRow) => ({
  id: row.id,
  company_id: row.company_id,
  sync_version: Number(row.sync_version),
  deleted: true,
})
const EMPTY_SCOPE = { all: false, server_ids: [], resolved_server_ids: [] }

type ScopedRow = {
  id: string
  company_id: string
  sync_version: string
  scope: { all: boolean; server_ids: string[] }
  resolved: string[]
  deleted: boolean
}

const feedScope = (row: ScopedRow) => ({
  all: row.scope.all,
  server_ids: row.scope.server_ids,
  resolved_server_ids: row.resolved,
})

type SilenceFeedRow = ScopedRow & { starts_at: string; ends_at: string; reason: string }

export async function silencesFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  const rows = sql`
    select id, company_id, sync_version, scope, resolved_server_ids::text[] as resolved, starts_at, ends_at, reason,
      (deleted_at is not null or cancelled_at is not null) as deleted
    from monitoring_silences where sync_version > ${since} order by sync_version limit ${limit + 1}`
  return pageOfFeed<SilenceFeedRow>(
    db,
    'silences',
    since,
    limit,
    rows,
    row => ({
      id: row.id,
      company_id: row.company_id,
      sync_version: Number(row.sync_version),
      scope: feedScope(row),
      starts_at: iso(row.starts_at),
      ends_at: iso(row.ends_at),
      reason: row.reason,
      deleted: row.deleted,
    }),
    row => {
      const past = new Date(0).toISOString()
      return { ...gone(row), scope: EMPTY_SCOPE, starts_at: past, ends_at: past, reason: '' }
    },
  )
}

type CheckFeedRow = ScopedRow & {
  enabled: boolean
  type: string
  name: string
  target: Record<string, unknown>
  timeout_seconds: number
}

export async function checksFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  const rows = sql`
    select id, company_id, sync_version, scope, resolved_server_ids::text[] as resolved, enabled, type, name, target,
      timeout_seconds, deleted_at is not null as deleted
    from monitoring_checks where sync_version > ${since} order by sync_version limit ${limit + 1}`
  return pageOfFeed<CheckFeedRow>(
    db,
    'checks',
    since,
    limit,
    rows,
    row => ({
      id: row.id,
      company_id: row.company_id,
      sync_version: Number(row.sync_version),
      deleted: row.deleted,
      enabled: row.enabled,
      scope: feedScope(row),
      type: row.type,
      name: row.name,
      target: row.target,
      timeout_seconds: row.timeout_seconds,
    }),
    row => ({ ...gone(row), enabled: false, scope: EMPTY_SCOPE, type: '', name: '', target: {}, timeout_seconds: 5 }),
  )
}

type AttributeRow = Record<string, unknown> & { sync_version: string; id: string; deleted: boolean }

export async function serverAttributesFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  const rows = sql`
    select id, company_id, tags, environment, role, subnet_id, datacenter, status, sync_version,
      deleted_at is not null as deleted
    from servers where sync_version > ${since} order by sync_version limit ${limit + 1}`
  return pageOfFeed<AttributeRow>(
    db,
    'servers',
    since,
    limit,
    rows,
    ({ id, ...row }) => ({ server_id: id, ...row, sync_version: Number(row.sync_version) }),
    row => ({ server_id: row.id, company_id: row.company_id, sync_version: Number(row.sync_version), deleted: true }),
  )
}
