// The running rules of all companies (document 2 "Rule sync on the collector"); compile-rule-set.ts makes them of the
// feed's records. The rules of a company are one object, which is replaced only when one of them changed. Servers
// remember the object that they are bound to, so its identity is the version.
import type { CompiledRule, CompileResult, RejectedRule } from './rule.ts'

/**
 * The rules of one company, by metric. Its identity is its version: when the object is another one, servers must be
 * bound again.
 */
export type CompanyRules = {
  readonly byId: ReadonlyMap<string, CompiledRule>
  readonly byMetric: ReadonlyMap<string, readonly CompiledRule[]>
  /** Ids of its enabled rules of kind agent_down: a silence of one of them covers agent.down and agent.up. */
  readonly agentDownIds: readonly string[]
}

export type RuleSet = {
  readonly companies: ReadonlyMap<string, CompanyRules>
  readonly loaded: number
  readonly rejected: readonly RejectedRule[]
  /** `id:sync_version` of all rules of each company, to detect whether they changed. */
  readonly fingerprints: ReadonlyMap<string, string>
  /** The result of compiling each record, by company, id and sync_version. An unchanged record reuses it. */
  readonly results: ReadonlyMap<string, CompileResult>
}

export const emptyCompanyRules: CompanyRules = { byId: new Map(), byMetric: new Map(), agentDownIds: [] }
export const emptyRuleSet: RuleSet = {
  companies: new Map(),
  loaded: 0,
  rejected: [],
  fingerprints: new Map(),
  results: new Map(),
}

export function companyRules(rules: readonly CompiledRule[], agentDownIds: readonly string[] = []): CompanyRules {
  const byMetric = new Map<string, CompiledRule[]>()
  for (const rule of rules) {
    const sameMetric = byMetric.get(rule.metric)
    if (sameMetric) sameMetric.push(rule)
    else byMetric.set(rule.metric, [rule])
  }
  return { byId: new Map(rules.map(rule => [rule.id, rule])), byMetric, agentDownIds }
}

/** A set of one compiled rule. */
export const setOfOne = (rule: CompiledRule): RuleSet => ({
  ...emptyRuleSet,
  companies: new Map([[rule.companyId, companyRules([rule])]]),
  loaded: 1,
})

/** The companies whose rules were added, changed or removed between two sets. */
export function changedCompanies(before: RuleSet, after: RuleSet): Set<string> {
  const changed = new Set<string>()
  for (const [companyId, rules] of after.companies)
    if (before.companies.get(companyId) !== rules) changed.add(companyId)
  for (const companyId of before.companies.keys()) if (!after.companies.has(companyId)) changed.add(companyId)
  return changed
}
