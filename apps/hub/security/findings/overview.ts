// Security at a glance: counts of findings, how well the servers are covered by scans, and whether the matcher works;
// what was opened and resolved each day; and one server (decisions G-160, G-176).
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Executor } from '../../platform/db/connect.ts'
import type { Asker } from '../../platform/http/collection.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  string,
  texts,
  time,
  wordOf,
} from '../../platform/http/response-schema.ts'
import { matcherNote } from '../packages/matcher-note.ts'
import { databaseStates } from '../packages/matcher-status.ts'
import { dayAgeMs, isStaleHost, MATCHER_SILENT_MINUTES } from '../stale-hosts-and-database.ts'
import { findingKinds, findingStatuses, priorities } from './finding-filter.ts'
import { findingCollection, presentFinding } from './finding-list.ts'
import { findingResponse, kindCounts, priorityCounts, statusCounts } from './finding-response.ts'
import { hasTermState } from './finding-term-sql.ts'
import { hiddenKinds } from './hidden-kinds.ts'

const TREND_DAYS = 30
const matchStatuses = ['ok', 'unsupported_os', 'unsupported_release', 'release_eol', 'no_db'] as const
const TOP = 5
const HOUR_MS = 3_600_000

const zeros = <const T extends readonly string[]>(names: T) =>
  Object.fromEntries(names.map(name => [name, 0])) as Record<T[number], number>

type CountRow = { status: string; priority: string; kind: string; is_kev: boolean; count: number }

/** Totals of a company by status, priority and kind, from the kept counts. */
const totals = (db: Executor, companyId: string) =>
  db.execute<CountRow>(sql`
    select status, priority, kind, kev as is_kev, sum(count)::int as count from (
      select status, priority, kind, kev, count from security_finding_counts where company_id = ${companyId}
      union all
      select status, priority, kind, kev, count from security_finding_count_changes where company_id = ${companyId}) x
    group by 1, 2, 3, 4 having sum(count) > 0`)

export async function findingCounts(db: Executor, companyId: string) {
  const byStatus = zeros(findingStatuses)
  const byPriority = zeros(priorities)
  const byKind = zeros(findingKinds)
  let kev = 0
  for (const row of await totals(db, companyId)) {
    byStatus[row.status as (typeof findingStatuses)[number]] += row.count
    if (row.status !== 'open') continue
    byPriority[row.priority as (typeof priorities)[number]] += row.count
    byKind[row.kind as (typeof findingKinds)[number]] += row.count
    if (row.is_kev) kev += row.count
  }
  return { by_status: byStatus, by_priority: byPriority, by_kind: byKind, kev }
}

export type Coverage = {
  servers: number
  scanned_servers: number
  hosts: number
  unattached_hosts: number
  stale_hosts: number
  never_scanned_hosts: number
  inactive_hosts: number
  reboot_required: number
  overdue: number
  due_soon: number
  oldest_scan_at: string | null
  newest_scan_at: string | null
}

export async function coverage(db: Executor, companyId: string, nowMs: number): Promise<Coverage> {
  const now = new Date(nowMs).toISOString()
  const [row] = await db.execute<Coverage>(sql`
    select
      (select count(*)::int from servers where company_id = ${companyId} and deleted_at is null) as servers,
      count(distinct h.server_id) filter (where h.state = 'active' and s.host_id is not null)::int as scanned_servers,
      count(*) filter (where h.state = 'active')::int as hosts,
      count(*) filter (where h.state = 'active' and h.server_id is null)::int as unattached_hosts,
      count(*) filter (where ${isStaleHost(now)})::int as stale_hosts,
      count(*) filter (where h.state = 'active' and h.last_report_at is null and s.host_id is null)::int as never_scanned_hosts,
      count(*) filter (where h.state = 'active' and h.inactive_at is not null)::int as inactive_hosts,
      count(*) filter (where h.state = 'active' and s.reboot_required)::int as reboot_required,
      (select count(*)::int from security_findings
        where company_id = ${companyId} and ${hasTermState('overdue', nowMs)}) as overdue,
      (select count(*)::int from security_findings
        where company_id = ${companyId} and ${hasTermState('due_soon', nowMs)}) as due_soon,
      min(s.scanned_at) filter (where h.state = 'active') as oldest_scan_at,
      max(s.scanned_at) filter (where h.state = 'active') as newest_scan_at
    from scan_hosts h left join security_server_scans s on s.host_id = h.host_id where h.company_id = ${companyId}`)
  if (!row) throw new Error('cannot count the scan hosts of a company')
  return row
}

async function matchStatusCounts(db: Executor, companyId: string) {
  const counts = zeros(matchStatuses)
  const rows = await db.execute<{ match_status: string; count: number }>(sql`
    select s.match_status, count(*)::int as count from security_server_scans s
    join scan_hosts h on h.host_id = s.host_id and h.state = 'active' where s.company_id = ${companyId} group by 1`)
  for (const row of rows)
    if (row.match_status in counts) counts[row.match_status as (typeof matchStatuses)[number]] = row.count
  return counts
}

type MatcherRow = { version: string; db_version: string; last_heartbeat_at: string; is_silent: boolean }

/** Whether the matcher works, and what it knows. */
export async function matcherState({ hub, companyId }: Pick<Asker, 'hub' | 'companyId'>) {
  const { db } = hub.database
  const [heartbeats, [scanned], database] = await Promise.all([
    db.execute<MatcherRow>(sql`
      select version, db_version, last_heartbeat_at, last_heartbeat_at < now() - make_interval(mins => ${MATCHER_SILENT_MINUTES})
        as is_silent
      from security_matchers order by last_heartbeat_at desc limit 1`),
    db.execute<{ db_version: string | null }>(
      sql`select max(db_version) as db_version from security_server_scans where company_id = ${companyId}`,
    ),
    hub.matcherStatus.current(),
  ])
  const [beat] = heartbeats
  const told = beat ? Number(beat.db_version) : scanned?.db_version ? Number(scanned.db_version) : null
  const dbVersion = database?.dbVersion ?? told
  const ageMs = database ? database.ageSeconds && database.ageSeconds * 1000 : dayAgeMs(dbVersion, hub.now())
  const isHeard = beat !== undefined && !beat.is_silent
  return {
    available: isHeard || (beat === undefined && hub.matcher.isConfigured),
    reason: isHeard ? null : beat ? 'unavailable' : hub.matcher.isConfigured ? null : 'not_configured',
    version: beat?.version ?? null,
    last_heartbeat_at: beat ? new Date(beat.last_heartbeat_at) : null,
    db_version: dbVersion,
    db_age_hours: ageMs === null ? null : Math.max(0, Math.floor(ageMs / HOUR_MS)),
    state: database?.state ?? null,
    source: database?.source ?? null,
    records: database?.records ?? null,
    fault: database?.fault ?? null,
  }
}

export const securityOverviewResponse = named('SecurityOverview', {
  by_status: statusCounts,
  by_priority: priorityCounts,
  by_kind: kindCounts,
  kev: amount(),
  sla: Type.Object({ overdue: amount(), due_soon: amount() }),
  coverage: Type.Object({
    servers: amount(),
    scanned_servers: amount(),
    hosts: amount(),
    unattached_hosts: amount(),
    stale_hosts: amount(),
    never_scanned_hosts: amount(),
    inactive_hosts: amount(),
    reboot_required: amount(),
    oldest_scan_at: nullable(time()),
    newest_scan_at: nullable(time()),
  }),
  match_status: Type.Object(
    Object.fromEntries(matchStatuses.map(name => [name, amount()])) as Record<
      (typeof matchStatuses)[number],
      ReturnType<typeof amount>
    >,
  ),
  matcher: Type.Object({
    ...matcherNote,
    version: nullable(string()),
    last_heartbeat_at: nullable(time()),
    db_version: nullable(amount()),
    db_age_hours: nullable(amount()),
    /** What it does with its database; null while it does not answer. */
    state: nullable(wordOf(databaseStates)),
    source: nullable(string()),
    records: nullable(amount()),
    fault: nullable(string()),
  }),
  top_findings: listed(findingResponse),
})

const instant = (value: string | null): Date | null => (value === null ? null : new Date(value))

export async function securityOverview(asker: Asker) {
  const { hub, companyId } = asker
  const { db } = hub.database
  const [counts, covered, matchStatus, matcher, top] = await Promise.all([
    findingCounts(db, companyId),
    coverage(db, companyId, hub.now()),
    matchStatusCounts(db, companyId),
    matcherState(asker),
    findingCollection.read(asker, { status: 'open' }, { limit: TOP, offset: 0 }),
  ])
  const { overdue, due_soon, ...rest } = covered
  return {
    ...counts,
    sla: { overdue, due_soon },
    coverage: {
      ...rest,
      oldest_scan_at: instant(rest.oldest_scan_at),
      newest_scan_at: instant(rest.newest_scan_at),
    },
    match_status: matchStatus,
    matcher,
    top_findings: top.rows.map(presentFinding),
  }
}

export const trendDay = named('SecurityTrendDay', {
  date: Type.Unsafe<string>({ type: 'string', format: 'date', examples: ['2026-01-31'] }),
  opened: amount(),
  resolved: amount(),
})

/** What was opened and resolved on each of the last 30 days (UTC), today included. */
export async function securityTrends({ hub, companyId }: Asker) {
  const today = new Date(hub.now()).toISOString().slice(0, 10)
  const rows = await hub.database.db.execute<{ date: string; opened: number; resolved: number }>(sql`
    with counted as (
      select day, sum(opened)::int as opened, sum(resolved)::int as resolved from (
        select day, opened, resolved from security_finding_days where company_id = ${companyId}
        union all select day, opened, resolved from security_finding_day_changes where company_id = ${companyId}) x
      where day > ${today}::date - ${TREND_DAYS}::int group by day)
    select to_char(d, 'YYYY-MM-DD') as date, coalesce(c.opened, 0) as opened, coalesce(c.resolved, 0) as resolved
    from generate_series(${today}::date - ${TREND_DAYS - 1}::int, ${today}::date, interval '1 day') d
    left join counted c on c.day = d::date order by d`)
  return [...rows]
}

const scanResponse = named('ServerScan', {
  host_id: id(),
  scanned_at: time(),
  scanner_version: nullable(string()),
  db_version: amount(),
  os: texts(),
  kernel_running: nullable(string()),
  reboot_required: nullable(Type.Boolean()),
  livepatch_active: nullable(Type.Boolean()),
  package_count: nullable(amount()),
  error_codes: listed(string()),
  match_status: wordOf(matchStatuses),
  release_support: nullable(string()),
  open_findings: nullable(amount()),
})

export const serverSecurityResponse = named('ServerSecurity', {
  server_id: id(),
  by_status: statusCounts,
  by_priority: priorityCounts,
  scan: nullable(scanResponse),
  host: nullable(
    Type.Object({
      host_id: id(),
      state: string(),
      inactive: Type.Boolean(),
      stale: Type.Boolean(),
      last_seen_at: nullable(time()),
    }),
  ),
  /** The open ones of the highest risk. */
  findings: listed(findingResponse),
})

type ScanRow = {
  host_id: string
  scanned_at: string
  scanner_version: string | null
  db_version: string
  os: Record<string, string>
  kernel_running: string | null
  reboot_required: boolean | null
  livepatch_active: boolean | null
  package_count: number | null
  error_codes: string[]
  match_status: (typeof matchStatuses)[number]
  release_support: string | null
  open_findings: number | null
}
type HostRow = {
  host_id: string
  state: string
  inactive: boolean
  stale: boolean
  last_seen_at: string | null
  last_report_at: string | null
}

const scanOf = (row: ScanRow | undefined) =>
  row ? { ...row, scanned_at: new Date(row.scanned_at), db_version: Number(row.db_version) } : null

const FINDINGS_SHOWN = 15

type SecurityAsker = Pick<Asker, 'hub' | 'companyId'> & { readonly caller: Parameters<typeof hiddenKinds>[0] }

/** What is counted of the findings of a server that was found in the company, its scan host and its last scan. */
export async function serverStanding({ hub, companyId, caller }: SecurityAsker, serverId: string) {
  const { db } = hub.database
  const now = new Date(hub.now()).toISOString()
  const hidden = hiddenKinds(caller).map(kind => sql` and kind <> ${kind}`)
  const [counted, [scan], [host]] = await Promise.all([
    db.execute<{ status: (typeof findingStatuses)[number]; priority: (typeof priorities)[number]; count: number }>(sql`
      select status, priority, count(*)::int as count from security_findings
      where server_id = ${serverId} and company_id = ${companyId} ${sql.join(hidden, sql``)} group by 1, 2`),
    db.execute<ScanRow>(sql`
      select host_id, scanned_at, scanner_version, db_version, os, kernel_running, reboot_required, livepatch_active,
        package_count, error_codes, match_status, release_support, open_findings
      from security_server_scans where server_id = ${serverId} and company_id = ${companyId}
      order by scanned_at desc limit 1`),
    db.execute<HostRow>(sql`
      select h.host_id, h.state, h.inactive_at is not null as inactive, (${isStaleHost(now)}) as stale, h.last_seen_at,
        h.last_report_at
      from scan_hosts h where h.server_id = ${serverId} and h.company_id = ${companyId}
      order by (h.state = 'active') desc, h.enrolled_at desc limit 1`),
  ])
  const byStatus = zeros(findingStatuses)
  const byPriority = zeros(priorities)
  for (const { status, priority, count } of counted) {
    byStatus[status] += count
    if (status === 'open') byPriority[priority] += count
  }
  return {
    by_status: byStatus,
    by_priority: byPriority,
    scan: scanOf(scan),
    host: host
      ? { ...host, last_seen_at: instant(host.last_seen_at), last_report_at: instant(host.last_report_at) }
      : null,
  }
}

const shownHost = ({ last_report_at: _, ...host }: NonNullable<Awaited<ReturnType<typeof serverStanding>>['host']>) =>
  host

/** The findings and the last scan of a server that was found in the company. */
export async function serverSecurity(asker: Asker, serverId: string) {
  const [{ host, ...standing }, open] = await Promise.all([
    serverStanding(asker, serverId),
    findingCollection.read(asker, { status: 'open', server: serverId }, { limit: FINDINGS_SHOWN, offset: 0 }),
  ])
  return { server_id: serverId, ...standing, host: host && shownHost(host), findings: open.rows.map(presentFinding) }
}
