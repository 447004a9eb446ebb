// The rules that states point to. A slot belongs to one rule id for ever and has the newest version of that rule. The
// signatures that the rule has had are numbered, so that a state can say under which one it began (document 2 "Rule
// changes").
import { assert } from '../../assert.ts'
import type { SavedRule } from '../durability/journal-record.ts'
import { evaluatedRule } from '../evaluate/evaluate-sample.ts'
import type { EvaluationState, RuleSlot } from '../state/evaluation-state.ts'
import type { CompiledRule } from './rule.ts'
import type { RuleSet } from './rule-set.ts'

/** A number that no signature has: a state with it restarts when its server is bound. */
export const NO_SIGNATURE = 0xffff

/** Puts a new rule set in force. Each server is bound to it at its next batch or at the next sweep. */
export function setRules(evaluation: EvaluationState, rules: RuleSet): void {
  for (const [companyId, ofCompany] of rules.companies)
    if (evaluation.rules.companies.get(companyId) !== ofCompany)
      for (const compiled of ofCompany.byId.values()) takeRule(evaluation, compiled)
  evaluation.rules = rules
}

/** Puts the newest version of a rule into its slot. */
function takeRule(evaluation: EvaluationState, compiled: CompiledRule): void {
  const slot = evaluation.slots[slotOf(evaluation, compiled)]!
  slot.rule = evaluatedRule(compiled)
  slot.companyId = compiled.companyId
  slot.signature = signatureNumber(slot, compiled.signature)
}

/** The slot of a rule; creates it with `compiled` when the rule has none. */
export function slotOf(evaluation: EvaluationState, compiled: CompiledRule): number {
  const held = evaluation.slotOfRule.get(compiled.id)
  if (held !== undefined) return held
  const { id, companyId, signature } = compiled
  const index = evaluation.slots.length
  evaluation.slots.push({ id, companyId, rule: evaluatedRule(compiled), signature: 0, signatures: [signature] })
  evaluation.slotOfRule.set(id, index)
  return index
}

/**
 * The slot of a rule that was saved beside a state, and the number of its saved signature. When the rule is in force,
 * the slot keeps the version in force.
 */
export function slotOfSaved(evaluation: EvaluationState, saved: SavedRule): { slot: number; signature: number } {
  const slot = slotOf(evaluation, { ...saved, matchers: [], serverIds: new Uint32Array(0) })
  return { slot, signature: signatureNumber(evaluation.slots[slot]!, saved.signature) }
}

function signatureNumber(slot: RuleSlot, signature: string): number {
  const known = slot.signatures.indexOf(signature)
  if (known >= 0) return known
  assert(slot.signatures.length < NO_SIGNATURE, 'the signatures of one rule fit 16 bits')
  return slot.signatures.push(signature) - 1
}
