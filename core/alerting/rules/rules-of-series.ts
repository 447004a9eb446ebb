// Which rules a series is bound to: by metric, scope and labels. Matching runs once for each series and version of the
// company's rules. Which servers a scope means by tag, role or place is decided by the hub (apps/hub/scopes/scope.ts),
// which resolves it to ids; what a change of the rules does to states that are there is decided in
// apply-rule-change.ts.

import type { EvaluationState } from '../state/evaluation-state.ts'
import { labelsOf, type SeriesDefinition } from '../state/series-dictionary.ts'
import { type ServerSeries, UNDEFINED } from '../state/server-series.ts'
import { NO_ROW } from '../state/state-table.ts'
import { matchesLabels } from './matches-labels.ts'
import type { CompiledRule } from './rule.ts'
import { slotOf } from './rule-slots.ts'
import { hasServerId } from './server-ids.ts'

export const isInScope = (rule: CompiledRule, serverId: string): boolean =>
  rule.scopeAll || hasServerId(rule.serverIds, serverId)

/**
 * Binds a series of the batch at hand to the rules that cover it: the series is new to the server, or its key was
 * unknown before, or its rules changed.
 */
export function bindSeen(evaluation: EvaluationState, server: ServerSeries, index: number, nowMs: number): void {
  const { dictionary } = evaluation
  const [lo, hi] = [server.lo(index), server.hi(index)]
  const definition = server.head[index] === UNDEFINED ? dictionary.use(lo, hi) : dictionary.get(lo, hi)
  if (!definition) return
  server.head[index] = NO_ROW
  bindSeries(evaluation, server, index, definition, nowMs)
}

/** Adds a state for each rule that covers the series and has no state on it yet. */
export function bindSeries(
  evaluation: EvaluationState,
  server: ServerSeries,
  index: number,
  definition: SeriesDefinition,
  nowMs: number,
): void {
  for (const compiled of evaluation.companyRules(server.companyId).byMetric.get(definition.metric) ?? []) {
    if (!isInScope(compiled, server.serverId)) continue
    if (compiled.matchers.length > 0 && !matchesLabels(compiled.matchers, labelsOf(definition))) continue
    const slot = slotOf(evaluation, compiled)
    if (stateOf(evaluation, server, index, slot) !== NO_ROW) continue
    const row = addState(evaluation, server, index, slot, nowMs)
    // The hub drops what does not go on above what it has of a rule and series (EVT-006); a clock may be set back.
    evaluation.states.seq[row] = Math.max(Math.floor(nowMs), server.removedSeq)
  }
}

/** The state of a rule on a series, or NO_ROW. */
export function stateOf(evaluation: EvaluationState, server: ServerSeries, index: number, slot: number): number {
  const { states } = evaluation
  let row = Math.max(server.head[index]!, NO_ROW)
  while (row !== NO_ROW && states.rule[row] !== slot) row = states.next[row]!
  return row
}

export function addState(
  evaluation: EvaluationState,
  server: ServerSeries,
  index: number,
  slot: number,
  nowMs: number,
): number {
  const { states } = evaluation
  const row = states.add(slot, evaluation.slots[slot]!.signature, server.index, index, Math.floor(nowMs))
  states.lastReceivedMs[row] = nowMs
  states.next[row] = Math.max(server.head[index]!, NO_ROW)
  server.head[index] = row
  server.stateCount++
  return row
}
