// Alert rules: validated as the collector will compile them, resolved to servers, versioned (document 2 "Rule";
// decisions G-65 to G-69). version counts user edits; sync_version is the feed's cursor.
import { randomUUID } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import type { RuleKind, RuleScope, Severity } from '../../../core/alerting/rules/rule.ts'
import { ruleFaults } from '../../../core/alerting/rules/rule-faults.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { type Executor, violatedUniqueIndex } from '../platform/db/connect.ts'
import { rules } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Words } from '../platform/http/api-texts.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { isScope, NO_SCOPE, resolvedIds, type ScopeInput, scopeFaults, toScope } from '../scopes/scope.ts'
import { createDefaultRules } from './default-rules.ts'
import { type ConditionColumns, type ConditionInput, conditionColumns, presentCondition } from './rule-condition.ts'
import { defaultRulesOf, findRule, presentRule, type RuleRow } from './rule-list.ts'

type Rule = typeof rules.$inferSelect

/** A rule in a request; the schema checks its shape, this file its meaning. */
export type RuleInput = ConditionInput & {
  readonly name: string
  readonly kind: RuleKind
  readonly scope: ScopeInput
  readonly severity: Severity
  readonly enabled?: boolean | null | undefined
}

type Columns = ConditionColumns & Pick<Rule, 'name' | 'kind' | 'scope' | 'severity'>

/** The columns of a valid input. */
export const ruleColumns = (input: RuleInput, scope: RuleScope): Columns => ({
  name: input.name,
  kind: input.kind,
  scope,
  severity: input.severity,
  ...conditionColumns(input.kind, input),
})

/**
 * The faults of a rule, by field: those that the rule compiler finds, and unknown servers of the company. The input may
 * have the wrong shape too.
 */
export async function faultsOfRule(
  db: Executor,
  companyId: string,
  given: Unchecked,
  before: RuleScope | null = null,
): Promise<Map<string, Words>> {
  const scope = isScope(given.scope) ? toScope(given.scope) : null
  const faults = new Map<string, Words>()
  for (const fault of ruleFaults(scope ? { ...given, scope } : given))
    if (!faults.has(fault.field)) faults.set(fault.field, words(`rule_${fault.reason}`, { message: fault.message }))
  if (scope) for (const [field, text] of await scopeFaults(db, companyId, scope, before)) faults.set(field, text)
  return faults
}

/** The columns of a rule with a valid shape; throws 422 with every fault. */
export async function validRule(
  db: Executor,
  companyId: string,
  input: RuleInput,
  before: RuleScope | null = null,
): Promise<Columns> {
  const faults = await faultsOfRule(db, companyId, input, before)
  if (faults.size > 0) throw faultsError(faults, 'invalid_request')
  return ruleColumns(input, toScope(input.scope))
}

async function refuseSecondAgentDown<T>(act: Promise<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'monitoring_rules_agent_down') throw invalidField('kind', 'one_agent_down')
    throw error
  }
}

const INTERNAL = new Set(['updated_at', 'firing_count', 'resolved_server_count', 'created_by', 'created_at'])
const visible = (row: RuleRow): Record<string, unknown> =>
  Object.fromEntries(Object.entries(presentRule(row)).filter(([key]) => !INTERNAL.has(key)))

const subjectOf = (row: RuleRow) => ({ type: 'rule', id: row.rule.id, name: row.rule.name })

type Extra = { readonly isDefault?: boolean; readonly checkId?: string | null; readonly createdBy: string | null }

/** Inserts a rule in a transaction that holds the company's lock. */
export async function insertRule(
  hub: Hub,
  tx: Tx,
  companyId: string,
  columns: Columns,
  enabled: boolean,
  extra: Extra,
): Promise<string> {
  const id = randomUUID()
  const resolvedServerIds = await resolvedIds(tx.db, companyId, columns.scope)
  await refuseSecondAgentDown(
    tx.db
      .insert(rules)
      .values({ ...columns, ...extra, id, companyId, enabled, resolvedServerIds })
      .execute(),
  )
  await checkCompanyLimit(hub, tx, companyId, 'rules')
  if (resolvedServerIds.length > 0) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
  tx.touch('rules', [id])
  return id
}

export async function createRule(context: RouteContext, input: RuleInput): Promise<RuleRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const columns = await validRule(tx.db, companyId, input)
    const createdBy = context.caller.user.id
    const id = await insertRule(hub, tx, companyId, columns, input.enabled ?? true, { createdBy })
    await reloadCollectors(hub, tx, 'rules')
    const row = await findRule(tx.db, companyId, id)
    await auditRequest(tx, context, 'rule.create', subjectOf(row))
    return row
  })
}

export const toInput = ({ rule }: RuleRow): RuleInput => ({
  name: rule.name,
  kind: rule.kind,
  scope: rule.scope,
  severity: rule.severity,
  ...presentCondition(rule),
  enabled: rule.enabled,
})

/** Writes an edit: version + 1, a new feed number, a reload of the collectors, an audit entry. */
async function saveEdit(
  context: RouteContext,
  tx: Tx,
  before: RuleRow,
  set: Partial<Rule>,
  action: string,
): Promise<RuleRow> {
  const { hub, companyId } = context
  const { rule } = before
  await refuseSecondAgentDown(
    tx.db
      .update(rules)
      .set({ ...set, version: rule.version + 1, updatedAt: new Date(hub.now()) })
      .where(and(eq(rules.companyId, companyId), eq(rules.id, rule.id)))
      .execute(),
  )
  tx.touch('rules', [rule.id])
  await reloadCollectors(hub, tx, 'rules')
  const after = await findRule(tx.db, companyId, rule.id)
  if (after.rule.serverIdCount > rule.serverIdCount) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
  await auditRequest(tx, context, action, subjectOf(after), changesBetween(visible(before), visible(after)))
  return after
}

/** Changes the given members; with `replace` the input is the whole rule. */
export async function updateRule(
  context: RouteContext,
  id: string,
  patch: Partial<RuleInput>,
  replace: boolean,
): Promise<RuleRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findRule(tx.db, companyId, id)
    const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
    const base = replace ? {} : toInput(before)
    const input = { ...base, ...given } as RuleInput
    const columns = await validRule(tx.db, companyId, input, before.rule.scope)
    const resolvedServerIds = await resolvedIds(tx.db, companyId, columns.scope)
    const enabled = input.enabled ?? true
    return saveEdit(context, tx, before, { ...columns, resolvedServerIds, enabled }, 'rule.update')
  })
}

export async function setRuleEnabled(context: RouteContext, id: string, enabled: boolean): Promise<RuleRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findRule(tx.db, companyId, id)
    if (before.rule.enabled === enabled) return before
    return saveEdit(context, tx, before, { enabled }, enabled ? 'rule.enable' : 'rule.disable')
  })
}

/** A copy, disabled and not of the default set. */
export async function duplicateRule(context: RouteContext, id: string): Promise<RuleRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findRule(tx.db, companyId, id)
    if (before.rule.kind === 'agent_down') throw invalidField('kind', 'one_agent_down')
    const name = `${before.rule.name.slice(0, 248)} (copy)`
    const columns = ruleColumns({ ...toInput(before), name }, before.rule.scope)
    const newId = await insertRule(hub, tx, companyId, columns, false, { createdBy: context.caller.user.id })
    await reloadCollectors(hub, tx, 'rules')
    const row = await findRule(tx.db, companyId, newId)
    await auditRequest(tx, context, 'rule.duplicate', subjectOf(row))
    return row
  })
}

/** Deletes a rule and leaves a tombstone, so that collectors remove it. */
export async function deleteRule(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findRule(tx.db, companyId, id)
    await tx.db
      .update(rules)
      .set({ ...NO_SCOPE, deletedAt: new Date(hub.now()), enabled: false, version: before.rule.version + 1 })
      .where(eq(rules.id, id))
    tx.touch('rules', [id])
    await reloadCollectors(hub, tx, 'rules')
    await auditRequest(tx, context, 'rule.delete', subjectOf(before))
  })
}

/** Creates the default rules that are missing. Returns all of them, and how many were missing. */
export async function createDefaults(context: RouteContext): Promise<{ rows: RuleRow[]; created: number }> {
  const { hub, companyId } = context
  const ids = await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const created = await createDefaultRules(tx, companyId, context.caller.user.id)
    if (created.length > 0) {
      await reloadCollectors(hub, tx, 'rules')
      await auditRequest(tx, context, 'rule.defaults', { type: 'rule', id: null, name: null })
    }
    return created
  })
  return { rows: await defaultRulesOf(hub.database.db, companyId), created: ids.length }
}
