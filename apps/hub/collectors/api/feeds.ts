// The feeds that collectors pull by `since` (document 1 "Rule sync envelope" and those after it; decisions G-34, G-88,
// G-89, G-90, G-115). Records of every company, ascending by sync_version, tombstones included. A page is bounded in
// records and in bytes, so that what one company has never stops the delivery to the others; each page holds at least
// one record.
import { type SQL, sql } from 'drizzle-orm'
import { serverStatusOfRecord } from '../../../../core/lifecycle/agent.ts'
import { limits } from '../../../../core/limits.ts'
import type { Db, Executor } from '../../platform/db/connect.ts'
import type { Feed } from '../../platform/db/transaction.ts'

type FeedRecord = { readonly sync_version: number } & Readonly<Record<string, unknown>>

export type FeedPage = { readonly records: readonly FeedRecord[]; readonly nextSince: number; readonly more: boolean }

type TombstoneRow = { id: string; company_id: string; sync_version: string }

/** What every live row of a page has besides its columns. */
type PageRow = Record<string, unknown> & { readonly sync_version: string; readonly available: number }

/** The source of the live rows of a feed. */
type LiveRows = {
  /** The table, under the name `r`, with what is joined to it. */
  readonly from: SQL
  readonly table: SQL
  readonly columns: SQL
  /**
   * The upper bound of a row's bytes as JSON, from the columns of the table alone; null where rows are always small.
   */
  readonly bytes: SQL | null
}

/**
 * At most `limit` rows after a number; the row that makes the page large enough is the last. The bound is computed from
 * small columns, so that the long lists of a row on the next page are not read. `available` is the number of candidate
 * rows.
 */
function liveRows({ from, table, columns, bytes }: LiveRows, since: number, limit: number): SQL {
  const before = bytes === null ? sql`0` : sql`sum(bytes) over (order by sync_version) - bytes`
  return sql`
    select ${columns}, r.sync_version, p.available from (
      select id, ${before} as bytes_before, (count(*) over ())::int as available from (
        select id, sync_version, ${bytes ?? sql`0`} as bytes from ${table} r
        where sync_version > ${since} order by sync_version limit ${limit + 1}) x) p
    join ${from} on r.id = p.id
    where p.bytes_before < ${limits.feedPageBytes} order by r.sync_version`
}

/**
 * One page of a feed: live rows and tombstones, merged by number. Both are read in one snapshot: of two snapshots the
 * later could show a number above one that the earlier did not have yet, and the reader would skip it.
 */
async function pageOfFeed<T extends PageRow>(
  db: Db,
  feed: Feed,
  since: number,
  limit: number,
  rows: LiveRows,
  present: (row: T) => FeedRecord,
  presentTombstone: (row: TombstoneRow) => FeedRecord,
): Promise<FeedPage> {
  const [found, gone] = await db.transaction(
    async (tx): Promise<[readonly unknown[], readonly TombstoneRow[]]> => [
      await tx.execute(liveRows(rows, since, limit)),
      await tx.execute<TombstoneRow>(sql`
        select id, company_id, sync_version from monitoring_feed_tombstones
        where feed = ${feed} and sync_version > ${since} order by sync_version limit ${limit + 1}`),
    ],
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
  const live = found as readonly T[]
  const isCut = live.length < (live[0]?.available ?? 0)
  // When a page was cut for its bytes, everything after its last row belongs to the next page, tombstones too.
  const lastNumber = isCut ? Number(live.at(-1)?.sync_version) : Number.POSITIVE_INFINITY
  const all = [
    ...live.map(present),
    ...gone.filter(row => Number(row.sync_version) < lastNumber).map(row => presentTombstone(row)),
  ]
  if (gone.length > 0) all.sort((a, b) => a.sync_version - b.sync_version)
  const records = all.slice(0, limit)
  return { records, nextSince: records.at(-1)?.sync_version ?? since, more: isCut || all.length > limit }
}

const iso = (value: string | null): string | null => (value === null ? null : new Date(value).toISOString())

type AgentFeedRow = PageRow & {
  id: string
  company_id: string
  server_id: string | null
  collector_id: string | null
  state: string
  token_hash: string
  prev_token_hash: string | null
  prev_token_expires_at: string | null
  version: string
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

const AGENTS: LiveRows = {
  table: sql`monitoring_agents`,
  from: sql`monitoring_agents r left join servers s on s.id = r.server_id
    left join monitoring_settings m on m.company_id = r.company_id`,
  columns: sql`r.id, r.company_id, r.server_id, r.collector_id, r.state, r.token_hash, r.prev_token_hash,
    r.prev_token_expires_at, r.version, s.status, s.subnet_id, s.datacenter,
    coalesce(nullif(r.hostname, ''), s.hostname) as hostname, m.default_interval`,
  bytes: null,
}
const ONE_AGENT: SQL = sql`select ${AGENTS.columns}, r.sync_version, 1 as available from ${AGENTS.from}`

export async function agentsFeed(db: Db, since: number, limit: number): Promise<FeedPage> {
  return pageOfFeed<AgentFeedRow>(db, 'agents', since, limit, AGENTS, presentAgent, row => ({
    agent_id: row.id,
    company_id: row.company_id,
    state: 'revoked',
    sync_version: Number(row.sync_version),
  }))
}

/** The agent with that hash as its current token, or as its previous token that is still valid; revoked agents too. */
export async function agentByTokenHash(db: Executor, hash: string): Promise<FeedRecord | null> {
  const rows = await db.execute<AgentFeedRow>(sql`${ONE_AGENT}
    where r.token_hash = ${hash} or (r.prev_token_hash = ${hash} and r.prev_token_expires_at > now())
    order by (r.token_hash = ${hash}) desc limit 1`)
  return rows[0] ? presentAgent(rows[0]) : null
}

export async function agentById(db: Executor, id: string): Promise<FeedRecord | null> {
  const rows = await db.execute<AgentFeedRow>(sql`${ONE_AGENT} where r.id = ${id}`)
  return rows[0] ? presentAgent(rows[0]) : null
}

/** The state of a rule, silence or check that decides whether its content is in the feed. */
type ContentRow = PageRow & {
  readonly id: string
  readonly company_id: string
  readonly deleted: boolean
  /** Set for a record that is too large to be delivered: its bytes at most. */
  readonly too_large: string | null
}

/**
 * The columns of a record with content; for a tombstone or a record that is too large the long ones are not even read.
 */
const contentColumns = (isGone: SQL, short: SQL, long: Readonly<Record<string, SQL>>): SQL => {
  const isWithheld = sql`(${isGone} or r.feed_bytes > ${limits.feedRecordBytesMax})`
  const columns = Object.entries(long).map(
    ([name, value]) => sql`case when not ${isWithheld} then ${value} end as ${sql.identifier(name)}`,
  )
  return sql`r.id, r.company_id, ${isGone} as deleted,
    case when not ${isGone} and r.feed_bytes > ${limits.feedRecordBytesMax} then r.feed_bytes end as too_large,
    ${short}, ${sql.join(columns, sql`, `)}`
}

const SCOPE = { scope: sql`r.scope`, resolved_server_ids: sql`r.resolved_server_ids::text[]` }

/** A tombstone: the id of the record and that it was deleted, without its content. */
const gone = (row: { readonly id: string; readonly company_id: string; readonly sync_version: string }) => ({
  id: row.id,
  company_id: row.company_id,
  sync_version: Number(row.sync_version),
  deleted: true,
})

/**
 * Replaces a record that no collector could accept: the version that collectors hold goes out of force, and they report
 * that.
 */
const withheld = (row: ContentRow) => ({ ...gone(row), deleted: false, too_large: Number(row.too_large) })

type RuleFeedRow = ContentRow & {
  readonly version: number
  readonly enabled: boolean
  readonly resolved_server_ids: string
}

const RULES: LiveRows = {
  table: sql`monitoring_rules`,
  from: sql`monitoring_rules r`,
  columns: contentColumns(
    sql`r.deleted_at is not null`,
    sql`r.version, r.name, r.kind, r.metric, r.operator, r.threshold, r.for_seconds, r.recover_threshold,
      r.recover_for_seconds, r.severity, r.no_data, r.renotify_seconds, r.enabled`,
    { ...SCOPE, matchers: sql`r.matchers` },
  ),
  bytes: sql`feed_bytes`,
}

function presentRule(row: RuleFeedRow): FeedRecord {
  if (row.deleted) return { ...gone(row), version: row.version, enabled: false }
  if (row.too_large !== null) return { ...withheld(row), version: row.version, enabled: row.enabled }
  const { available: _available, too_large: _tooLarge, ...rule } = row
  return { ...rule, sync_version: Number(row.sync_version) }
}

export const rulesFeed = (db: Db, since: number, limit: number): Promise<FeedPage> =>
  pageOfFeed<RuleFeedRow>(db, 'rules', since, limit, RULES, presentRule, row => ({
    ...gone(row),
    version: 0,
    enabled: false,
  }))

const EMPTY_SCOPE = { all: false, server_ids: [], resolved_server_ids: [] }

type ScopedRow = ContentRow & {
  readonly scope: { readonly all: boolean; readonly server_ids: readonly string[] }
  readonly resolved_server_ids: readonly string[]
}

const feedScope = (row: ScopedRow) => ({
  all: row.scope.all,
  server_ids: row.scope.server_ids,
  resolved_server_ids: row.resolved_server_ids,
})

type SilenceFeedRow = ScopedRow & {
  readonly starts_at: string
  readonly ends_at: string
  readonly reason: string
}

/**
 * A silence that ended longer ago than collectors keep it is sent as a tombstone, since its content has no use any
 * more.
 */
const SILENCES: LiveRows = {
  table: sql`monitoring_silences`,
  from: sql`monitoring_silences r`,
  columns: contentColumns(
    sql`(r.deleted_at is not null or r.cancelled_at is not null
      or r.ends_at < now() - make_interval(secs => ${limits.silenceKeepMs / 1000}))`,
    sql`r.starts_at, r.ends_at, r.reason`,
    SCOPE,
  ),
  bytes: sql`feed_bytes`,
}

/** The members that a silence always has, without content. */
const PAST = new Date(0).toISOString()
const NO_SILENCE = { scope: EMPTY_SCOPE, starts_at: PAST, ends_at: PAST, reason: '' }

function presentSilence(row: SilenceFeedRow): FeedRecord {
  if (row.deleted) return { ...gone(row), ...NO_SILENCE }
  if (row.too_large !== null) return { ...withheld(row), ...NO_SILENCE }
  return {
    id: row.id,
    company_id: row.company_id,
    sync_version: Number(row.sync_version),
    scope: feedScope(row),
    starts_at: iso(row.starts_at),
    ends_at: iso(row.ends_at),
    reason: row.reason,
    deleted: false,
  }
}

export const silencesFeed = (db: Db, since: number, limit: number): Promise<FeedPage> =>
  pageOfFeed<SilenceFeedRow>(db, 'silences', since, limit, SILENCES, presentSilence, row => ({
    ...gone(row),
    ...NO_SILENCE,
  }))

type CheckFeedRow = ScopedRow & {
  readonly enabled: boolean
  readonly type: string
  readonly name: string
  readonly target: Record<string, unknown>
  readonly timeout_seconds: number
}

const CHECKS: LiveRows = {
  table: sql`monitoring_checks`,
  from: sql`monitoring_checks r`,
  columns: contentColumns(sql`r.deleted_at is not null`, sql`r.enabled, r.type, r.name, r.timeout_seconds`, {
    ...SCOPE,
    target: sql`r.target`,
  }),
  bytes: sql`feed_bytes`,
}

/** The members that a check always has, without content. */
const NO_CHECK = {
  enabled: false,
  scope: EMPTY_SCOPE,
  type: '',
  name: '',
  target: {},
  timeout_seconds: limits.checkTimeoutSecondsDefault,
}

function presentCheck(row: CheckFeedRow): FeedRecord {
  if (row.deleted) return { ...gone(row), ...NO_CHECK }
  if (row.too_large !== null) return { ...withheld(row), ...NO_CHECK, enabled: row.enabled }
  return {
    id: row.id,
    company_id: row.company_id,
    sync_version: Number(row.sync_version),
    deleted: false,
    enabled: row.enabled,
    scope: feedScope(row),
    type: row.type,
    name: row.name,
    target: row.target,
    timeout_seconds: row.timeout_seconds,
  }
}

export const checksFeed = (db: Db, since: number, limit: number): Promise<FeedPage> =>
  pageOfFeed<CheckFeedRow>(db, 'checks', since, limit, CHECKS, presentCheck, row => ({ ...gone(row), ...NO_CHECK }))

type AttributeRow = PageRow & { readonly server_id: string; readonly company_id: string; readonly deleted: boolean }

const SERVERS: LiveRows = {
  table: sql`servers`,
  from: sql`servers r`,
  columns: sql`r.id as server_id, r.company_id, r.tags, r.environment, r.role, r.subnet_id, r.datacenter, r.status,
    r.deleted_at is not null as deleted`,
  bytes: sql`1024 + octet_length(array_to_string(tags, '    '))`,
}

export const serverAttributesFeed = (db: Db, since: number, limit: number): Promise<FeedPage> =>
  pageOfFeed<AttributeRow>(
    db,
    'servers',
    since,
    limit,
    SERVERS,
    ({ available: _available, ...row }) =>
      row.deleted
        ? {
            server_id: row.server_id,
            company_id: row.company_id,
            sync_version: Number(row.sync_version),
            deleted: true,
          }
        : { ...row, sync_version: Number(row.sync_version) },
    row => ({ server_id: row.id, company_id: row.company_id, sync_version: Number(row.sync_version), deleted: true }),
  )
