// Records of rule changes: at which position of the bus a rule was activated, and what it was before. A snapshot may be
// older than a change of rules. With these records a replay evaluates the samples between the two under the rules that
// were in force then. Among them stands when a sweep had bound all servers: a rule that had left the set has no states
// then, and begins anew when it comes back.
import type { RuleRecord } from '../rules/rule.ts'

export type RuleChangeRecord = {
  /** The entries up to this position were evaluated before the change. */
  readonly position: number
  /** The cursor of the feed at which the changed set was pulled. */
  readonly since: number
  readonly ruleId: string
  /** null: the rule did not exist. */
  readonly before: RuleRecord | null
  readonly after: RuleRecord | null
}

const ALL_BOUND = ''

/** The record that a sweep had bound all servers to the rules in force. */
export const allBound = (position: number): RuleChangeRecord => ({
  ...{ position, since: 0, ruleId: ALL_BOUND, before: null, after: null },
})

/** True for a record that changes no rule. To a program that does not know it, it removes a rule that nobody has. */
export const isAllBound = ({ ruleId }: RuleChangeRecord): boolean => ruleId === ALL_BOUND

/** The name under which a record of a rule is stored. The content of a rule never changes without its sync_version. */
export const ruleName = (rule: RuleRecord): string => `${rule.id}:${rule.sync_version}`

/** The rules that are in force, by id. */
export type RawRules = Map<string, RuleRecord>

/** The rules of `base` with those of `raw` added; a rule in `raw` replaces the one with its id. */
export function rulesById(raw: Iterable<RuleRecord>, base: RawRules = new Map()): RawRules {
  const rules = new Map(base)
  for (const rule of raw) rules.set(rule.id, rule)
  return rules
}

/**
 * One record for each rule that differs between two sets. Two records with one id and one sync_version count as equal.
 */
export function ruleChanges(from: RawRules, to: RawRules, since: number, position: number): RuleChangeRecord[] {
  const changes: RuleChangeRecord[] = []
  for (const [ruleId, after] of to) {
    const before = from.get(ruleId) ?? null
    if (before?.sync_version !== after.sync_version) changes.push({ position, since, ruleId, before, after })
  }
  for (const [ruleId, before] of from)
    if (!to.has(ruleId)) changes.push({ position, since, ruleId, before, after: null })
  return changes
}

/**
 * The set with the rule of this change replaced by `rule`: by its `after` to apply the change, by its `before` to undo
 * it.
 */
export function withRuleChange(rules: RawRules, { ruleId }: RuleChangeRecord, rule: RuleRecord | null): RawRules {
  const changed = new Map(rules)
  if (rule) changed.set(ruleId, rule)
  else changed.delete(ruleId)
  return changed
}
