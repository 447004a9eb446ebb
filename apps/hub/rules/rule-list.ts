// Rules as people see them (decision G-66).
import { Type } from '@sinclair/typebox'
import { and, desc, eq, getTableColumns, isNull, sql } from 'drizzle-orm'
import { type RuleScope, ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Owner } from '../platform/db/page-of-rows.ts'
import { rules } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { collection, collectionReadBy, equals, isOn, ofCompany, search } from '../platform/http/collection.ts'
import { oneOf, text } from '../platform/http/request-schema.ts'
import { serverReference } from '../platform/http/response-schema.ts'
import { resolveScope } from '../scopes/scope.ts'
import { presentCondition } from './rule-condition.ts'
import { ruleResponse } from './rule-response.ts'

const FIRING = sql<number>`(select count(*)::int from monitoring_alerts x
  where x.rule_id = ${rules.id} and x.state in ('open', 'acknowledged', 'grouped'))`
/** Computed once for each query, not once for each rule. */
const serverCount = (companyId: Owner) => sql<number>`case when (${rules.scope}->>'all')::boolean then
  (select count(*)::int from servers s where s.company_id = ${companyId} and s.deleted_at is null)
  else cardinality(${rules.resolvedServerIds}) end`
/**
 * The list shows only the number of resolved servers, so the ids themselves (up to ten thousand a rule) are not
 * fetched.
 */
const { resolvedServerIds: _resolved, ...shownColumns } = getTableColumns(rules)

const selectRules = (db: Executor, companyId: Owner) =>
  db
    .select({
      rule: shownColumns,
      creator: { id: users.id, name: users.name },
      firing: FIRING,
      serverCount: serverCount(companyId),
    })
    .from(rules)
    .leftJoin(users, eq(users.id, rules.createdBy))

export type RuleRow = Awaited<ReturnType<typeof selectRules>>[number]

export const presentRule = ({ rule, creator, firing, serverCount }: RuleRow) => ({
  id: rule.id,
  company_id: rule.companyId,
  version: rule.version,
  name: rule.name,
  kind: rule.kind,
  scope: rule.scope,
  resolved_server_count: serverCount,
  ...presentCondition(rule),
  severity: rule.severity,
  enabled: rule.enabled,
  is_default: rule.isDefault,
  check_id: rule.checkId,
  firing_count: firing,
  created_by: creator,
  created_at: rule.createdAt,
  updated_at: rule.updatedAt,
})

export const ruleCollection = collection({
  table: rules,
  scope: ofCompany(rules.companyId, isNull(rules.deletedAt)),
  filters: {
    kind: equals(rules.kind, oneOf(ruleKinds)),
    metric: equals(rules.metric, text(64)),
    severity: equals(rules.severity, oneOf(severities)),
    enabled: isOn(rules.enabled),
    search: search(rules.name),
  },
  select: selectRules,
  order: [desc(rules.createdAt), desc(rules.id)],
  pageBy: 'ids',
  response: ruleResponse,
  present: presentRule,
})

export const findRule = ruleCollection.find

/** The default rules of a company, the oldest first. */
export async function defaultRulesOf(db: Executor, companyId: string): Promise<RuleRow[]> {
  return selectRules(db, companyId)
    .where(and(eq(rules.companyId, companyId), eq(rules.isDefault, true), isNull(rules.deletedAt)))
    .orderBy(rules.createdAt, rules.id)
}

/** All rules of a company, by name. */
export async function rulesOf(db: Executor, companyId: string): Promise<RuleRow[]> {
  return selectRules(db, companyId)
    .where(and(eq(rules.companyId, companyId), isNull(rules.deletedAt)))
    .orderBy(sql`lower(${rules.name})`, rules.id)
}

/** How many alerts of each rule of a company opened since then. */
export async function alertsOpenedSince(
  db: Executor,
  companyId: string,
  sinceMs: number,
): Promise<Map<string, number>> {
  const rows = await db.execute<{ rule_id: string; count: number }>(sql`
    select rule_id, count(*)::int as count from monitoring_alerts
    where company_id = ${companyId} and opened_at >= ${new Date(sinceMs).toISOString()} and rule_id is not null group by rule_id`)
  return new Map(rows.map(row => [row.rule_id, row.count]))
}

/** The servers that a scope covers, by name. */
export const coveredServers = collectionReadBy({
  filters: {},
  within: { scope: Type.Unsafe<RuleScope>({}) },
  async read({ hub, companyId }, { scope }, { limit, offset }) {
    const { db } = hub.database
    const ids = scope ? await resolveScope(db, companyId, scope) : []
    const rows = await db.execute<{ id: string; name: string; hostname: string | null }>(sql`
      select id, name, hostname from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
      order by lower(name), id limit ${limit} offset ${offset}`)
    return { rows, total: ids.length }
  },
  response: serverReference,
  present: row => row,
})
