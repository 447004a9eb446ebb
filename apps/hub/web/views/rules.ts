// The rules of a company: a window of those that match, with what they do now and did in the last week.

import type { RuleScope, Severity } from '../../../../core/alerting/rules/rule.ts'
import { DAY_MS } from '../../../../core/limits.ts'
import { metricByName } from '../../../../core/series/catalogue.ts'
import type { Hub } from '../../hub-context.ts'
import { invalidRules } from '../../rules/invalid-rules.ts'
import { presentCondition } from '../../rules/rule-condition.ts'
import { alertsOpenedSince, type RuleRow as RuleRecord, rulesOf } from '../../rules/rule-list.ts'
import { type Filtered, matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { RecentValues } from '../live/recent-values.ts'
import { askedOffset, type View } from './view.ts'

/** More than a company usually has; the rest comes as one scrolls. */
const WINDOW = 100
const WEEK_DAYS = 7
/** A week's alerts are counted once a minute, and a collector is asked as seldom what it refuses. */
const SLOW_MS = 60_000
const COMPANIES_MAX = 500
/** A bulk act on all that match gets their ids. */
const IDS_MAX = 2_000

/** The condition under the names of the API. */
type RuleCondition = ReturnType<typeof presentCondition>

export type RuleRow = {
  readonly id: string
  readonly version: number
  readonly name: string
  readonly kind: 'threshold' | 'check' | 'agent_down'
  readonly severity: Severity
  readonly isEnabled: boolean
  readonly isDefault: boolean
  readonly checkId: string | null
  readonly condition: RuleCondition
  /** Of the metric, as the catalogue names it; null without a metric. */
  readonly unit: string | null
  /** Without the ids, of which there may be thousands. */
  readonly scope: Omit<RuleScope, 'server_ids'> & { readonly servers: number }
  readonly serverCount: number
  readonly firing: number
  readonly firedInWeek: number
  readonly updatedAtMs: number
  /** Why a collector does not run it; null: it does. */
  readonly invalid: string | null
}

export type RulesView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly RuleRow[]
  /** Of all that match, in case they are all to be acted on. */
  readonly ids: readonly string[]
  readonly facets: Readonly<Record<string, readonly (readonly [value: string, count: number])[]>>
}

type Slow = {
  readonly fired: RecentValues<ReadonlyMap<string, number>>
  readonly invalid: RecentValues<ReadonlyMap<string, string>>
}
const slow = new WeakMap<Hub, Slow>()

function slowOf(hub: Hub): Slow {
  const known = slow.get(hub)
  if (known) return known
  const fresh = {
    fired: new RecentValues<ReadonlyMap<string, number>>(SLOW_MS, COMPANIES_MAX, hub.now),
    invalid: new RecentValues<ReadonlyMap<string, string>>(SLOW_MS, 1, hub.now),
  }
  slow.set(hub, fresh)
  return fresh
}

/** What the rules of a company did in the last week, and which of them collectors refuse. */
export async function ruleActivity(hub: Hub, companyId: string) {
  const { fired, invalid } = slowOf(hub)
  const sinceMs = hub.now() - WEEK_DAYS * DAY_MS
  const [ofWeek, refused] = await Promise.all([
    fired.get(companyId, () => alertsOpenedSince(hub.database.db, companyId, sinceMs)),
    invalid.get('all', () => invalidRules(hub)),
  ])
  return { fired: ofWeek, invalid: refused }
}

export function toRuleRow(
  { rule, firing, serverCount }: RuleRecord,
  { fired, invalid }: Awaited<ReturnType<typeof ruleActivity>>,
): RuleRow {
  const { server_ids: ids, ...scope } = rule.scope
  return {
    id: rule.id,
    version: rule.version,
    name: rule.name,
    kind: rule.kind,
    severity: rule.severity,
    isEnabled: rule.enabled,
    isDefault: rule.isDefault,
    checkId: rule.checkId,
    condition: presentCondition(rule),
    unit: metricByName(rule.metric ?? '')?.unit ?? null,
    scope: { ...scope, servers: ids.length },
    serverCount,
    firing,
    firedInWeek: fired.get(rule.id) ?? 0,
    updatedAtMs: rule.updatedAt.getTime(),
    invalid: rule.enabled ? (invalid.get(rule.id) ?? null) : null,
  }
}

const originOf = (row: RuleRow): string => (row.isDefault ? 'default' : row.checkId === null ? 'own' : 'check')

/** A rule as the filter sees it. */
const filtered = (row: RuleRow): Filtered => ({
  words: [row.name, row.condition.metric],
  values: {
    severity: row.severity,
    state: [
      row.isEnabled ? 'enabled' : 'disabled',
      ...(row.firing > 0 ? ['firing'] : []),
      ...(row.invalid === null ? [] : ['invalid']),
    ],
    metric: row.condition.metric,
    kind: row.kind,
    origin: originOf(row),
    tag: row.scope.tags,
    env: row.scope.environments,
    role: row.scope.roles,
    dc: row.scope.datacenters,
    firing: row.firing,
    fired: row.firedInWeek,
    servers: row.serverCount,
  },
})

const RANK: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, info: 2 }

const sortKeys: Readonly<Record<string, (row: RuleRow) => number>> = {
  severity: row => RANK[row.severity],
  servers: row => -row.serverCount,
  firing: row => -row.firing,
  fired: row => -row.firedInWeek,
  edited: row => -row.updatedAtMs,
}

/** The rows come by name. */
function sorted(rows: readonly RuleRow[], sort: string): readonly RuleRow[] {
  const isReversed = sort.startsWith('-')
  const name = isReversed ? sort.slice(1) : sort
  const keyOf = Object.hasOwn(sortKeys, name) ? sortKeys[name] : undefined
  if (keyOf === undefined) return isReversed ? rows.toReversed() : rows
  const sign = isReversed ? -1 : 1
  return rows.toSorted((one, other) => sign * (keyOf(one) - keyOf(other)))
}

function facet(rows: readonly RuleRow[], keyOf: (row: RuleRow) => string | null) {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const value = keyOf(row)
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort((one, other) => other[1] - one[1])
}

export const rulesView: View<RulesView> = {
  permissions: ['monitoring.manage'],
  params: sitePages.rules.takes,
  async make({ hub, companyId, param }) {
    const [records, activity] = await Promise.all([rulesOf(hub.database.db, companyId), ruleActivity(hub, companyId)])
    const all = records.map(record => toRuleRow(record, activity))
    const terms = parseFilter(param('q'))
    const matching = sorted(
      all.filter(row => matchesFilter(filtered(row), terms)),
      param('sort'),
    )
    const wanted = askedOffset(param('offset'))
    const offset = Math.min(wanted, Math.max(0, matching.length - 1))
    return {
      total: all.length,
      matching: matching.length,
      offset,
      rows: matching.slice(offset, offset + WINDOW),
      ids: matching.length > WINDOW ? matching.slice(0, IDS_MAX).map(row => row.id) : [],
      facets: {
        severity: facet(all, row => row.severity),
        metric: facet(all, row => row.condition.metric),
        origin: facet(all, originOf),
      },
    }
  },
}
