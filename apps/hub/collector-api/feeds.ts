// The feeds that collectors pull by `since` (document 1 "Rule sync envelope" and those after it; decisions G-34, G-88,
// G-89, G-90, G-115).
import { type SQL, sql } from 'drizzle-orm'
import { serverStatusOfRecord } from '../../../core/lifecycle/agent.ts'
import { limits } from '../../../core/limits.ts'
import type { Hub } from '../hub-context.ts'
import type { Db } from '../platform/db/connect.ts'
import { type FeedPage, type FeedRecord, type LiveRows, type PageRow, pageOfFeed } from '../platform/db/feed-page.ts'

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
  /** Only where agents are invited. */
  scan_code_sealed?: string | null
}

/** Where the agent reports its packages to, until it has a scan host of its own (decision G-194). */
function scanOf({ config, sealer }: Hub, { scan_code_sealed: sealed }: AgentFeedRow) {
  const code = sealed ? sealer.open(sealed) : null
  return code === null ? null : { scan: { matcher_url: config['matcher.scan_url'], enrol_code: code } }
}

const presentAgent = (hub: Hub, row: AgentFeedRow): FeedRecord => ({
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
  ...scanOf(hub, row),
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
/** Where agents are invited to the matcher, each with the code that it may still use. */
const INVITED_AGENTS: LiveRows = {
  ...AGENTS,
  from: sql`${AGENTS.from}
    left join scan_enrolment_codes k on k.agent_id = r.id and k.uses = 0 and k.expires_at > now()`,
  columns: sql`${AGENTS.columns}, k.code_sealed as scan_code_sealed`,
}
const agentRows = ({ config }: Hub): LiveRows => (config['matcher.scan_url'] === null ? AGENTS : INVITED_AGENTS)

function oneAgent(hub: Hub): SQL {
  const { columns, from } = agentRows(hub)
  return sql`select ${columns}, r.sync_version from ${from}`
}

export async function agentsFeed(hub: Hub, since: number, limit: number): Promise<FeedPage> {
  const present = (row: AgentFeedRow) => presentAgent(hub, row)
  return pageOfFeed<AgentFeedRow>(hub.database.db, 'agents', since, limit, agentRows(hub), present, row => ({
    agent_id: row.id,
    company_id: row.company_id,
    state: 'revoked',
    sync_version: Number(row.sync_version),
  }))
}

/** The agent with that hash as its current token, or as its previous token that is still valid; revoked agents too. */
export async function agentByTokenHash(hub: Hub, hash: string): Promise<FeedRecord | null> {
  const rows = await hub.database.db.execute<AgentFeedRow>(sql`${oneAgent(hub)}
    where r.token_hash = ${hash} or (r.prev_token_hash = ${hash} and r.prev_token_expires_at > now())
    order by (r.token_hash = ${hash}) desc limit 1`)
  return rows[0] ? presentAgent(hub, rows[0]) : null
}

export async function agentById(hub: Hub, id: string): Promise<FeedRecord | null> {
  const rows = await hub.database.db.execute<AgentFeedRow>(sql`${oneAgent(hub)} where r.id = ${id}`)
  return rows[0] ? presentAgent(hub, rows[0]) : null
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
  readonly rule_ids: readonly string[]
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
    { ...SCOPE, rule_ids: sql`r.rule_ids::text[]` },
  ),
  bytes: sql`feed_bytes + 40 * cardinality(rule_ids)`,
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
    ...(row.rule_ids.length > 0 ? { rule_ids: row.rule_ids } : {}),
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
