// The checks of a company: what each looks at, how many servers run it, on how many of them it fails now, and how the
// last day was on a few of them.

import { and, desc, eq, isNull, sql } from 'drizzle-orm'
import type { Target } from '../../checks/check-target.ts'
import { type CheckType, checks } from '../../platform/db/schema.ts'
import { matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { type CheckDay, dayOf, metricsOfCheck, readDay, worstDay } from './check-day.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
/** More than a company may have. */
const READ_MAX = 2_000

export type CheckListRow = {
  readonly id: string
  readonly name: string
  readonly type: CheckType
  readonly target: string
  readonly isEnabled: boolean
  readonly intervalSeconds: number
  /** Servers that run it; null: all of the company. */
  readonly servers: number | null
  /** Servers with an open alert of its rules. */
  readonly failing: number
}

export type ChecksView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly CheckListRow[]
}

/** What is looked at, as a person says it. */
export function targetText(type: CheckType, target: Target): string {
  switch (type) {
    case 'service':
      return String(target.name)
    case 'port':
      return `${target.port}/${target.proto}`
    case 'tcp':
    case 'cert':
      return String(target.target)
    case 'http':
      return String(target.url)
  }
}

type Stored = typeof checks.$inferSelect

/** The checks of a company, the newest first, and how many servers each fails on. */
async function readChecks({
  hub,
  companyId,
}: ViewContext): Promise<{ stored: Stored[]; failing: Map<string, number> }> {
  const { db } = hub.database
  const [stored, failing] = await Promise.all([
    db
      .select()
      .from(checks)
      .where(and(eq(checks.companyId, companyId), isNull(checks.deletedAt)))
      .orderBy(desc(checks.createdAt), desc(checks.id))
      .limit(READ_MAX),
    db.execute<{ check_id: string; failing: number }>(sql`
      select r.check_id, count(distinct a.server_id)::int as failing
      from monitoring_alerts a join monitoring_rules r on r.id = a.rule_id
      where a.company_id = ${companyId} and a.state in ('open', 'acknowledged', 'grouped')
        and r.company_id = ${companyId} and r.check_id is not null
      group by r.check_id`),
  ])
  return { stored, failing: new Map(failing.map(row => [row.check_id, row.failing])) }
}

/** The window of checks that match, with how many they are. */
async function shownChecks(context: ViewContext) {
  const { param } = context
  const { stored, failing } = await readChecks(context)
  const terms = parseFilter(param('q'))
  const matching = stored.filter(({ id, name, target, type, enabled }) =>
    matchesFilter(
      {
        words: [name, targetText(type, target)],
        values: { type, state: [enabled ? 'enabled' : 'disabled', ...(failing.has(id) ? ['failing'] : [])] },
      },
      terms,
    ),
  )
  const offset = Math.min(askedOffset(param('offset')), Math.max(0, matching.length - 1))
  const shown = matching.slice(offset, offset + WINDOW)
  return { total: stored.length, matching: matching.length, offset, shown, failing }
}

export const checksView: View<ChecksView> = {
  permissions: ['monitoring.view'],
  params: sitePages.checks.takes,
  async make(context) {
    const { total, matching, offset, shown, failing } = await shownChecks(context)
    const rows = shown.map(
      (check): CheckListRow => ({
        ...{ id: check.id, name: check.name, type: check.type, target: targetText(check.type, check.target) },
        ...{ isEnabled: check.enabled, intervalSeconds: check.intervalSeconds },
        servers: check.scope.all ? null : check.resolvedServerIds.length,
        failing: failing.get(check.id) ?? 0,
      }),
    )
    return { total, matching, offset, rows }
  },
}

/** Servers of a check that are looked at, and of all checks of a window: each costs a call of its collector. */
const SERVERS_A_CHECK = 5
const SERVERS_READ = 40
const DAYS_AGE_MS = 60_000

/** Of a check: `well` and `failed` count servers by the last hour that has a result. */
type CheckDays = CheckDay & {
  readonly well: number
  readonly failed: number
  readonly read: number
  /** No collector of its servers answers: nothing is known of it. */
  readonly isSilent: boolean
}
/** By the id of the check. */
export type CheckDaysView = Readonly<Record<string, CheckDays>>

export const checkDaysView: View<CheckDaysView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['q', 'offset'],
  ageMs: DAYS_AGE_MS,
  async make(context) {
    const { hub, companyId } = context
    const { shown } = await shownChecks(context)
    const isWide = shown.some(check => check.enabled && check.scope.all)
    const fleet = isWide ? (await context.fleets.of(companyId)).map(({ id }) => id) : []
    const metricsOf = new Map<string, Set<string>>()
    const serversOf = new Map<string, string[]>()
    for (const check of shown.filter(({ enabled }) => enabled)) {
      const ids = check.scope.all ? fleet : check.resolvedServerIds
      // Those that are read anyway go first.
      const known = ids.filter(id => metricsOf.has(id)).slice(0, SERVERS_A_CHECK)
      const room = Math.min(SERVERS_A_CHECK - known.length, SERVERS_READ - metricsOf.size)
      const chosen = [...known, ...ids.filter(id => !metricsOf.has(id)).slice(0, Math.max(0, room))]
      serversOf.set(check.id, chosen)
      for (const id of chosen) metricsOf.set(id, new Set([...(metricsOf.get(id) ?? []), ...metricsOfCheck(check)]))
    }
    const read = new Map(
      await Promise.all(
        [...metricsOf].map(async ([id, metrics]) => [id, await readDay(hub, companyId, id, [...metrics])] as const),
      ),
    )
    const entries = shown.flatMap(check => {
      const servers = serversOf.get(check.id)
      if (servers === undefined) return []
      const days = servers.map(id => dayOf(read.get(id) ?? null, check, hub.now()))
      const lasts = days.map(({ hours }) => hours.findLast(hour => hour !== null) ?? null)
      const well = lasts.filter(last => last === 1).length
      const failed = lasts.filter(last => last !== null && last < 1).length
      const isSilent = servers.length > 0 && servers.every(id => read.get(id) === null)
      return [[check.id, { ...worstDay(days), well, failed, read: servers.length, isSilent }] as const]
    })
    return Object.fromEntries(entries)
  },
}
