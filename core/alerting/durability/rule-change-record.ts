// What a replay must know of rule changes: at which place on the bus a rule was put in force, and what it was before. A
// snapshot may be older than a change; the samples between the two are then evaluated under the rules of their time, as
// they were.
import type { RawRule } from '../rules/rule.ts'

export type RuleNote = {
  /** All of the bus up to here was evaluated before the change. */
  readonly position: number
  /** The feed's cursor of the set that brought it. */
  readonly since: number
  readonly ruleId: string
  /** null: the rule was not there. */
  readonly before: RawRule | null
  readonly after: RawRule | null
}

/** What a record of a rule is kept under: it never changes under one sync_version. */
export const ruleName = (rule: RawRule): string => `${rule.id}:${rule.sync_version}`

/** The rules that are in force, by id. */
export type RawRules = Map<string, RawRule>

/** The rules of `base`, and these in place of those of the same id. */
export function rulesById(raw: Iterable<RawRule>, base: RawRules = new Map()): RawRules {
  const rules = new Map(base)
  for (const rule of raw) rules.set(rule.id, rule)
  return rules
}

/** What differs between two sets. A record of the feed is the same as long as its sync_version is. */
export function ruleNotes(from: RawRules, to: RawRules, since: number, position: number): RuleNote[] {
  const notes: RuleNote[] = []
  for (const [ruleId, after] of to) {
    const before = from.get(ruleId) ?? null
    if (before?.sync_version !== after.sync_version) notes.push({ position, since, ruleId, before, after })
  }
  for (const [ruleId, before] of from) if (!to.has(ruleId)) notes.push({ position, since, ruleId, before, after: null })
  return notes
}

/** The set after a change, or before it. */
export function withNote(rules: RawRules, { ruleId }: RuleNote, rule: RawRule | null): RawRules {
  const changed = new Map(rules)
  if (rule) changed.set(ruleId, rule)
  else changed.delete(ruleId)
  return changed
}
