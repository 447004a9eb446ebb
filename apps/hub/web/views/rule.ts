// One rule: whom it covers and whom not, what it told, how it came to be as it is, and which silences meet it.
import { alertingPath, parseAlerting } from '../../../../core/admin-api/alerting.ts'
import type { RuleScope, Severity } from '../../../../core/alerting/rules/rule.ts'
import type { Hub } from '../../hub-context.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { findRule } from '../../rules/rule-list.ts'
import { alertsOfRule, silencesOfRule, versionsOfRule } from '../../rules/rule-page.ts'
import type { FleetServer } from '../live/fleet.ts'
import { type Decision, decisionOfRule, decisionOfSeries } from './decision.ts'
import { type RuleRow, ruleActivity, toRuleRow } from './rules.ts'
import { askedOffset, type View } from './view.ts'

/** Servers of a page whose collector is asked what the rule does on them. */
const SERVERS_SHOWN = 15

export type CoveredServer = Pick<
  FleetServer,
  'id' | 'name' | 'status' | 'connectivity' | 'isSilenced' | 'lastSeenAtMs'
> & {
  readonly hasAgent: boolean
  /** What the rule does there: of its worst series; null: nothing is known. */
  readonly now: Decision | null
}

type UncoveredServer = Pick<FleetServer, 'id' | 'name' | 'tags' | 'environment' | 'role' | 'datacenter'>

export type RuleView = {
  readonly rule: RuleRow
  readonly scope: RuleScope
  readonly createdAtMs: number
  readonly createdBy: string | null
  readonly covered: { readonly total: number; readonly offset: number; readonly rows: readonly CoveredServer[] }
  /** Servers that the scope does not name: the first of them, and how many there are. */
  readonly uncovered: { readonly total: number; readonly rows: readonly UncoveredServer[] }
  readonly alerts: readonly {
    readonly id: string
    readonly serverId: string
    readonly serverName: string
    readonly series: string
    readonly severity: Severity
    readonly state: string
    readonly openedAtMs: number
    readonly resolvedAtMs: number | null
    readonly peak: number | null
  }[]
  /** Null: the viewer may not read the audit log. */
  readonly versions:
    | readonly {
        readonly action: string
        readonly by: string | null
        readonly atMs: number
        readonly changes: Readonly<Record<string, { readonly old: unknown; readonly new: unknown }>>
      }[]
    | null
  readonly silences: readonly {
    readonly id: string
    readonly reason: string
    readonly startsAtMs: number
    readonly endsAtMs: number
    readonly isOfRule: boolean
  }[]
}

const meets = (names: readonly string[], value: string | null): boolean => value !== null && names.includes(value)

/** As the hub's own query decides it. */
const isCovered = (scope: RuleScope, ids: ReadonlySet<string>, server: FleetServer): boolean =>
  scope.all ||
  ids.has(server.id) ||
  server.tags.some(tag => scope.tags.includes(tag)) ||
  meets(scope.environments, server.environment) ||
  meets(scope.roles, server.role) ||
  meets(scope.datacenters, server.datacenter)

const WORST = ['firing', 'pending', 'ok'] as const

/** What the collector says of a rule on a server; null where it does not answer. */
async function askOf(hub: Hub, companyId: string, serverId: string, ruleId: string): Promise<Decision | null> {
  const target = await hub.collectors.targetOfServer(companyId, serverId)
  const answer = target ? await hub.collectors.query(target, 'alerting', alertingPath(companyId, serverId)) : null
  const said = answer?.status === 200 ? parseAlerting(answer.body) : null
  if (said === null) return null
  const series = said.series.filter(each => each.rule_id === ruleId)
  const [worst] = series.toSorted((one, other) => WORST.indexOf(one.state) - WORST.indexOf(other.state))
  if (worst) return decisionOfSeries(worst)
  const rule = said.rules.find(each => each.rule_id === ruleId)
  return rule === undefined ? null : decisionOfRule(rule)
}

const time = (text: string): number => new Date(text).getTime()

async function besides(hub: Hub, companyId: string, ruleId: string, mayAudit: boolean) {
  const { db } = hub.database
  const [alerts, versions, silences] = await Promise.all([
    alertsOfRule(db, companyId, ruleId, hub.now()),
    mayAudit ? versionsOfRule(db, companyId, ruleId) : null,
    silencesOfRule(db, companyId, ruleId),
  ])
  return {
    alerts: alerts.map(alert => ({
      id: alert.id,
      serverId: alert.server_id,
      serverName: alert.server_name,
      series: alert.series_key,
      severity: alert.severity,
      state: alert.state,
      openedAtMs: time(alert.opened_at),
      resolvedAtMs: alert.resolved_at === null ? null : time(alert.resolved_at),
      peak: alert.peak_value,
    })),
    versions:
      versions?.map(({ action, actor_name, created_at, changes }) => ({
        action,
        by: actor_name,
        atMs: time(created_at),
        changes,
      })) ?? null,
    silences: silences.map(({ id, reason, starts_at, ends_at, is_of_rule }) => ({
      id,
      reason,
      startsAtMs: time(starts_at),
      endsAtMs: time(ends_at),
      isOfRule: is_of_rule,
    })),
  }
}

export const ruleView: View<RuleView> = {
  permissions: ['monitoring.manage'],
  optional: ['audit.view'],
  params: ['rule', 'offset'],
  async make({ hub, companyId, param, may, fleets }) {
    const id = param('rule').toLowerCase()
    if (!isUuid(id)) throw notFound()
    const record = await findRule(hub.database.db, companyId, id)
    const { scope } = record.rule
    const [activity, fleet, beside] = await Promise.all([
      ruleActivity(hub, companyId),
      fleets.of(companyId),
      besides(hub, companyId, id, may('audit.view')),
    ])
    const ids = new Set(scope.server_ids)
    const covered = fleet.filter(server => isCovered(scope, ids, server))
    const uncovered = fleet.filter(server => !isCovered(scope, ids, server))
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, covered.length - 1))
    const shown = covered.slice(offset, offset + SERVERS_SHOWN)
    const isRunning = record.rule.enabled && record.rule.kind !== 'agent_down'
    const now = await Promise.all(shown.map(server => (isRunning ? askOf(hub, companyId, server.id, id) : null)))
    return {
      rule: toRuleRow(record, activity),
      scope,
      createdAtMs: record.rule.createdAt.getTime(),
      createdBy: record.creator?.name ?? null,
      covered: {
        total: covered.length,
        offset,
        rows: shown.map(({ id, name, status, connectivity, isSilenced, lastSeenAtMs, hasAgent }, at) => ({
          ...{ id, name, status, connectivity, isSilenced, lastSeenAtMs },
          hasAgent,
          now: now[at] ?? null,
        })),
      },
      uncovered: {
        total: uncovered.length,
        rows: uncovered.slice(0, SERVERS_SHOWN).map(({ id, name, tags, environment, role, datacenter }) => ({
          id,
          name,
          tags,
          environment,
          role,
          datacenter,
        })),
      },
      ...beside,
    }
  },
}
