// How many alerts opened on each of the last seven days, by severity and by what a list of alerts groups by. Counted
// once a minute for all who look.
import { type SQL, sql } from 'drizzle-orm'
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import { DAY_MS } from '../../../../core/limits.ts'
import type { Hub } from '../../hub-context.ts'
import { RecentValues } from './recent-values.ts'

const AGE_MS = 60_000
const AT_HAND_MS = 600_000
const CACHED_MAX = 500
const DAYS = 7
/** Of more rules, servers or tags those with the most alerts. */
const KEYS_MAX = 1_000

export type DayCounts = Readonly<Record<Severity, number>>

type AlertWeeks = {
  /** Days of UTC as `2026-11-22`, today last. */
  readonly days: readonly string[]
  /** By key, a place for each day; a key without an alert is missing. */
  readonly byKey: ReadonlyMap<string, readonly DayCounts[]>
}

/** The keys of an alert as a list of texts, of the tables alerts, servers and rules. An empty one stands for none. */
const keysOf = {
  severity: sql`array[x.severity]`,
  rule: sql`array[coalesce(r.name, '')]`,
  server: sql`array[s.name]`,
  dc: sql`array[coalesce(s.datacenter, '')]`,
  tag: sql`case when cardinality(s.tags) = 0 then array[''] else s.tags end`,
} as const satisfies Readonly<Record<string, SQL>>

type WeekKey = keyof typeof keysOf
export const isWeekKey = (name: string): name is WeekKey => Object.hasOwn(keysOf, name)

const ofHub = new WeakMap<Hub, RecentValues<AlertWeeks>>()

export function alertWeeks(hub: Hub, companyId: string, by: WeekKey): Promise<AlertWeeks> {
  const recent = ofHub.get(hub) ?? new RecentValues<AlertWeeks>(AGE_MS, CACHED_MAX, hub.now)
  ofHub.set(hub, recent)
  const key = `${companyId} ${by}`
  const next = recent.get(key, () => countWeeks(hub, companyId, by))
  const known = recent.last(key, AT_HAND_MS)
  if (known === null) return next
  // Nobody who wants to see alerts waits for how many there were: the next answer brings it.
  next.catch(() => {})
  return Promise.resolve(known)
}

async function countWeeks({ database, now }: Hub, companyId: string, by: WeekKey): Promise<AlertWeeks> {
  const firstMs = (Math.floor(now() / DAY_MS) - DAYS + 1) * DAY_MS
  const rows = await database.db.execute<{ key: string; day: number; severity: Severity; count: number }>(sql`
    with counted as (
      select k.key, floor((extract(epoch from x.opened_at) * 1000 - ${firstMs}::bigint) / ${DAY_MS}::bigint)::int as day,
        x.severity, count(*)::int as count
      from monitoring_alerts x join servers s on s.id = x.server_id left join monitoring_rules r on r.id = x.rule_id
        cross join lateral unnest(${keysOf[by]}) as k (key)
      where x.company_id = ${companyId} and x.opened_at >= ${new Date(firstMs).toISOString()}
        and x.opened_at < ${new Date(firstMs + DAYS * DAY_MS).toISOString()}
      group by 1, 2, 3)
    select key, day, severity, count from counted
    where key in (select key from counted group by key order by sum(count) desc, key limit ${KEYS_MAX})`)
  const byKey = new Map<string, { [Of in Severity]: number }[]>()
  for (const { key, day, severity, count } of rows) {
    const week = byKey.get(key) ?? noWeek()
    byKey.set(key, week)
    const counts = week[day]
    if (counts) counts[severity] += count
  }
  const days = Array.from({ length: DAYS }, (_, at) => new Date(firstMs + at * DAY_MS).toISOString().slice(0, 10))
  return { days, byKey }
}

const noWeek = () => Array.from({ length: DAYS }, () => ({ critical: 0, warning: 0, info: 0 }))
