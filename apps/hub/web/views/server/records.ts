// What the hub's own records say of a server: its checks, its inventory, its agents, and who changed what.
import { desc, eq, sql } from 'drizzle-orm'
import { isOlder } from '../../../../../core/agent/version.ts'
import { isObject } from '../../../../../core/json-object.ts'
import type { AgentState } from '../../../../../core/lifecycle/agent.ts'
import { connectivitySql, isActiveDownAlert } from '../../../agents/connectivity-sql.ts'
import { auditRows } from '../../../audit/audit-list.ts'
import { differencesOf } from '../../../inventory/differences.ts'
import { newestFacts } from '../../../inventory/inventory.ts'
import type { CheckType } from '../../../platform/db/schema.ts'
import { checks } from '../../../platform/db/schema.ts'
import { healthBlocks } from '../../../servers/health.ts'
import { type AgentSays, type SaysRow, saysOf } from '../agent-says.ts'
import { type DaySpan, dayOf, lastAtOf, metricsOfCheck, readDay } from '../check-day.ts'
import { FRESH_HOURS, isStale, RESULT_STEP_MS, standingOf } from '../check-standing.ts'
import type { View } from '../view.ts'
import { shownServer } from './head.ts'

const ROWS_MAX = 200
const keys = { permissions: ['monitoring.view', 'servers.view'], optional: ['servers.delete'], params: ['server'] }

type CheckOfServer = {
  readonly id: string
  readonly name: string
  readonly type: CheckType
  /** As `http https://example.com/`. */
  readonly target: string
  readonly intervalSeconds: number
  readonly isEnabled: boolean
  /** What the last result was; null: there is none of this hour or the one before. */
  readonly isWell: boolean | null
  /** The beginning of the hour from which on all results were so; null: for the whole day, or it has no standing. */
  readonly sinceMs: number | null
  /** How long the newest answer took; null: it is not measured, or not known. */
  readonly seconds: number | null
  /** When the last result was taken, to the minute; null: there is none, or it is not known. */
  readonly atMs: number | null
  /** Several results are missing since: the last one says nothing about now. */
  readonly isStale: boolean
}
export type ChecksView = {
  readonly checks: readonly CheckOfServer[]
  /** No collector answers: how checks fare is not known. */
  readonly isSilent: boolean
}

/** The answer is of the hour that runs: nobody needs it of the second, and it costs two calls of the collector. */
const CHECKS_AGE_MS = 20_000

export const serverChecksView: View<ChecksView> = {
  ...keys,
  ageMs: CHECKS_AGE_MS,
  async make(context) {
    const { hub, companyId } = context
    const { server } = await shownServer(context)
    // Of a server that does not report the last result says nothing about now.
    const isOnline = (await healthBlocks(hub, companyId, [server.id]))(server.id).connectivity === 'online'
    const rows = await context.hub.database.db
      .select({
        id: checks.id,
        name: checks.name,
        type: checks.type,
        target: checks.target,
        intervalSeconds: checks.intervalSeconds,
        isEnabled: checks.enabled,
      })
      .from(checks)
      .where(
        sql`${eq(checks.companyId, context.companyId)} and ${checks.deletedAt} is null
          and ((${checks.scope}->>'all')::boolean or ${server.id} = any(${checks.resolvedServerIds}))`,
      )
      .orderBy(desc(checks.createdAt), desc(checks.id))
      .limit(ROWS_MAX)
    const metrics = [...new Set(rows.filter(({ isEnabled }) => isEnabled).flatMap(metricsOfCheck))]
    const read = (agg: 'last' | 'avg', span?: DaySpan) =>
      metrics.length === 0 ? null : readDay(hub, companyId, server.id, metrics, agg, span)
    const minutes = { hours: FRESH_HOURS, stepMs: RESULT_STEP_MS }
    const [last, whole, recent] = await Promise.all([read('last'), read('avg'), read('last', minutes)])
    const checksOfServer = rows.map((row): CheckOfServer => {
      const [newest, day] = [last, whole].map(series => dayOf(row.isEnabled ? series : null, row, hub.now()))
      const standing = standingOf(isOnline ? (newest?.hours ?? []) : [], day?.hours ?? [], hub.now())
      const atMs = standing.isWell === null ? null : lastAtOf(row.isEnabled ? recent : null, row)
      return {
        ...{ ...row, target: Object.values(row.target).join(' '), seconds: newest?.seconds ?? null },
        ...{ ...standing, atMs, isStale: isStale(atMs, row.intervalSeconds, hub.now()) },
      }
    })
    return { checks: checksOfServer, isSilent: metrics.length > 0 && last === null }
  },
}

type Shown = string | number | null
export type InventoryView = {
  readonly reportedAtMs: number | null
  /** As the agent reported them, one line a fact: `nics.0.name`. */
  readonly facts: readonly (readonly [name: string, value: string])[]
  readonly differences: readonly {
    readonly field: string
    readonly serverValue: Shown
    readonly inventoryValue: Shown | readonly string[]
  }[]
  /** Servers that code describes are not changed by hand. */
  readonly canApply: boolean
}

const FACTS_MAX = 500
const VALUE_CHARS_MAX = 500

/** The leaves of the facts with their paths. */
function flatten(value: unknown, path: string, into: [string, string][]): void {
  if (into.length >= FACTS_MAX) return
  if (Array.isArray(value) && value.every(each => typeof each !== 'object')) into.push([path, value.join(', ')])
  else if (Array.isArray(value))
    for (const [index, each] of value.entries()) flatten(each, `${path}.${index + 1}`, into)
  else if (isObject(value))
    for (const [name, each] of Object.entries(value)) flatten(each, path === '' ? name : `${path}.${name}`, into)
  else if (value !== null && value !== undefined) into.push([path, String(value).slice(0, VALUE_CHARS_MAX)])
}

export const serverInventoryView: View<InventoryView> = {
  ...keys,
  async make(context) {
    const { server } = await shownServer(context)
    const found = await newestFacts(context.hub.database.db, context.companyId, server.id)
    const canApply = server.origin !== 'iac'
    if (found === null) return { reportedAtMs: null, facts: [], differences: [], canApply }
    const { facts, hostname } = found
    const lines: [string, string][] = []
    flatten(facts.facts, '', lines)
    return {
      reportedAtMs: facts.reportedAt.getTime(),
      facts: lines,
      differences: differencesOf(server, facts.facts, hostname).map(({ field, server_value, inventory_value }) => ({
        field,
        serverValue: server_value,
        inventoryValue: inventory_value,
      })),
      canApply,
    }
  },
}

type AgentOfServer = {
  readonly id: string
  readonly hostname: string | null
  readonly os: string | null
  readonly arch: string | null
  readonly agentVersion: string | null
  readonly state: AgentState
  readonly connectivity: 'online' | 'down' | 'unknown'
  readonly lastSeenAtMs: number | null
  readonly enrolledAtMs: number
  readonly revokedReason: string | null
  readonly collector: string | null
  /** Older than the newest version that the company has. */
  readonly isOutdated: boolean
} & AgentSays
export type AgentsView = { readonly agents: readonly AgentOfServer[]; readonly newestVersion: string | null }

type AgentRow = {
  id: string
  hostname: string | null
  os: string | null
  arch: string | null
  agent_version: string | null
  state: AgentState
  connectivity: AgentOfServer['connectivity']
  last_seen_at: string | null
  enrolled_at: string
  revoked_reason: string | null
  collector: string | null
} & SaysRow

export const serverAgentsView: View<AgentsView> = {
  ...keys,
  async make(context) {
    const { hub, companyId } = context
    const { server } = await shownServer(context)
    const isLost = sql`exists (select 1 from monitoring_alerts x where x.company_id = a.company_id and x.agent_id = a.id
      and ${isActiveDownAlert(sql`x`)})`
    const connectivity = connectivitySql(hub, { state: sql`a.state`, lastSeenAt: sql`a.last_seen_at`, isLost })
    const { newestVersion } = await context.standings.of(companyId)
    const rows = await hub.database.db.execute<AgentRow>(sql`
      select a.id, a.hostname, nullif(concat_ws(' ', a.os_family, a.os_version), '') as os, a.arch, a.agent_version, a.state,
        ${connectivity} as connectivity, a.last_seen_at, a.enrolled_at, a.revoked_reason, c.name as collector,
        a.buffer_bytes::float8 as buffer_bytes, a.buffer_batches::float8 as buffer_batches, a.last_warning, a.last_warning_at
      from monitoring_agents a left join monitoring_collectors c on c.id = a.collector_id
      where a.company_id = ${companyId} and a.server_id = ${server.id}
      order by (a.state <> 'revoked') desc, a.enrolled_at desc, a.id limit ${ROWS_MAX}`)
    return {
      newestVersion,
      agents: rows.map(row => ({
        ...{ id: row.id, hostname: row.hostname, os: row.os, arch: row.arch, agentVersion: row.agent_version },
        ...{ state: row.state, connectivity: row.connectivity, collector: row.collector },
        lastSeenAtMs: row.last_seen_at === null ? null : new Date(row.last_seen_at).getTime(),
        enrolledAtMs: new Date(row.enrolled_at).getTime(),
        revokedReason: row.revoked_reason,
        isOutdated: row.state !== 'revoked' && isOlder(row.agent_version, newestVersion),
        ...saysOf(row),
      })),
    }
  },
}

type HistoryEntry = {
  readonly id: string
  readonly atMs: number
  readonly actor: string | null
  readonly action: string
  readonly changes: readonly (readonly [field: string, before: string, after: string])[]
}
export type HistoryView = { readonly entries: readonly HistoryEntry[]; readonly isTruncated: boolean }

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export const serverHistoryView: View<HistoryView> = {
  ...keys,
  permissions: [...keys.permissions, 'audit.view'],
  async make(context) {
    const { server } = await shownServer(context)
    const subject = { subjectType: 'server', subjectId: server.id }
    const range = { limit: ROWS_MAX, offset: 0 }
    const rows = await auditRows(context.hub.database.db, context.companyId, subject, range)
    return {
      entries: rows.map(row => ({
        id: row.id,
        atMs: row.createdAt.getTime(),
        actor: row.actorName,
        action: row.action,
        changes: Object.entries(row.changes).map(([field, change]) => [field, textOf(change.old), textOf(change.new)]),
      })),
      isTruncated: rows.length === ROWS_MAX,
    }
  },
}
