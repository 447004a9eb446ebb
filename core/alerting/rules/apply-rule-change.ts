// What a change of the rules does to states and open alerts (document 2 "Rule changes"): a state continues, restarts,
// or is closed and removed. A change of one company's rules does not touch the others.

import { emit } from '../evaluate/emit-transition.ts'
import type { EvaluatedRule } from '../evaluate/evaluate-sample.ts'
import type { EvaluationState, RuleSlot } from '../state/evaluation-state.ts'
import { removeState } from '../state/removal.ts'
import { labelsOf } from '../state/series-dictionary.ts'
import { type ServerSeries, TO_BIND } from '../state/server-series.ts'
import { FIRING, NO_ROW } from '../state/state-table.ts'
import { matchesLabels } from './matches-labels.ts'
import type { CompiledRule } from './rule.ts'
import type { CompanyRules } from './rule-set.ts'
import { bindSeries, isInScope } from './rules-of-series.ts'

/**
 * Binds a server to the present rules of its company: closes alerts that the change ends, keeps states that it leaves
 * alone, and adds states for new rules. During a replay, a state that the journal restored from beyond `position` may
 * belong to a rule that is activated only later on the bus. It is left alone, and the server is bound again until the
 * replay has passed that position.
 */
export function rebindServer(
  evaluation: EvaluationState,
  server: ServerSeries,
  rules: CompanyRules,
  nowMs: number,
  position = Number.POSITIVE_INFINITY,
): void {
  server.boundTo = rules
  for (let index = 0; index < server.count; index++) {
    let row = server.head[index]!
    while (row >= 0) {
      const next = evaluation.states.next[row]!
      if ((evaluation.journaledUpTo.get(row) ?? 0) >= position) server.boundTo = null
      else applyRuleChange(evaluation, server, row, rules, nowMs)
      row = next
    }
    // A series without a state is bound at its next sample, so that a new rule counts from the first sample that it
    // judges.
    if (server.head[index] === NO_ROW) server.head[index] = TO_BIND
    else if (server.head[index]! >= 0) {
      const definition = evaluation.dictionary.get(server.lo(index), server.hi(index))!
      bindSeries(evaluation, server, index, definition, nowMs)
    }
  }
}

/** Applies the present rules to one state: it continues, restarts, or is closed and removed. */
function applyRuleChange(
  evaluation: EvaluationState,
  server: ServerSeries,
  row: number,
  rules: CompanyRules,
  nowMs: number,
): void {
  const { states } = evaluation
  const slot = evaluation.slots[states.rule[row]!]!
  const compiled = rules.byId.get(slot.id)
  if (!compiled) {
    // The company is part of a rule's signature: a rule that now belongs to another company has changed, and was not
    // removed.
    const isElsewhere = evaluation.companyRules(slot.companyId).byId.has(slot.id)
    closeForChange(evaluation, row, slot.rule, isElsewhere ? 'rule_changed' : 'rule_removed', nowMs)
    removeState(evaluation, row)
  } else if (states.signature[row] !== slot.signature) {
    closeForChange(evaluation, row, slot.rule, 'rule_changed', nowMs)
    restart(evaluation, server, row, compiled, slot, nowMs)
  } else if (!isInScope(compiled, server.serverId)) {
    closeForChange(evaluation, row, slot.rule, 'out_of_scope', nowMs)
    removeState(evaluation, row)
  }
}

/** Restarts a state under the new signature of its rule; removes it when the rule no longer covers the series. */
function restart(
  evaluation: EvaluationState,
  server: ServerSeries,
  row: number,
  compiled: CompiledRule,
  slot: RuleSlot,
  nowMs: number,
): void {
  const { states } = evaluation
  const series = states.series[row]!
  const definition = evaluation.dictionary.get(server.lo(series), server.hi(series))
  const isCovered =
    definition?.metric === compiled.metric &&
    isInScope(compiled, server.serverId) &&
    matchesLabels(compiled.matchers, labelsOf(definition))
  if (!isCovered) {
    removeState(evaluation, row)
    return
  }
  states.reset(row)
  states.lastReceivedMs[row] = nowMs
  states.signature[row] = slot.signature
  evaluation.flapping.delete(row)
}

/**
 * Resolves an open alert because its rule changed. For the hub an alert is open while its state is FIRING or flapping.
 */
export function closeForChange(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  reason: 'rule_changed' | 'rule_removed' | 'out_of_scope',
  nowMs: number,
): void {
  const { states } = evaluation
  const flap = evaluation.flapping.get(row)
  const isOpenAtHub = states.phase[row] === FIRING || flap?.isFlapping === true
  if (!isOpenAtHub) return
  const isWithheld = flap?.isFlapping === true && states.phase[row] !== FIRING
  const opened = flap?.isFlapping ? { openedTsMs: flap.toldOpenedTsMs } : {}
  emit(evaluation, row, rule, {
    type: 'alert.resolved',
    reason,
    occurredAtMs: nowMs,
    value: states.lastValue[row]!,
    ...opened,
    ...(isWithheld ? { peak: flap.peak } : {}),
  })
}
