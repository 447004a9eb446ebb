// The rules that states point to. A slot is one rule id, for ever; the rule in it is the newest form, and the
// signatures that the rule had are numbered, so that a state knows under which one it began (document 2 "Rule
// changes").
import { assert } from '../../assert.ts'
import type { SavedRule } from '../durability/journal-record.ts'
import { evaluatedRule } from '../evaluate/evaluate-sample.ts'
import type { EvaluationState, RuleSlot } from '../state/evaluation-state.ts'
import type { CompiledRule } from './rule.ts'
import type { RuleSet } from './rule-set.ts'

/** The number of no signature: a state that has it restarts when its server is bound. */
export const NO_SIGNATURE = 0xffff

/** Takes over a new rule set. Servers are bound to it lazily: at their next batch or the next sweep. */
export function setRules(evaluation: EvaluationState, rules: RuleSet): void {
  for (const [companyId, ofCompany] of rules.companies)
    if (evaluation.rules.companies.get(companyId) !== ofCompany)
      for (const compiled of ofCompany.byId.values()) takeRule(evaluation, compiled)
  evaluation.rules = rules
}

/** Brings the slot of a rule up to date. */
function takeRule(evaluation: EvaluationState, compiled: CompiledRule): void {
  const slot = evaluation.slots[slotOf(evaluation, compiled)]!
  slot.rule = evaluatedRule(compiled)
  slot.companyId = compiled.companyId
  slot.signature = signatureNumber(slot, compiled.signature)
}

/** The slot of a rule; made with `compiled` in it where there is none. */
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
 * The slot of a rule that was saved with a state of it, and the number of the signature that it had. The running set's
 * form holds.
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
