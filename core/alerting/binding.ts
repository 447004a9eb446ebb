// Which rules a series is bound to, and what a change of the rules does to open states (document 2 "Rule changes"). Matching runs
// once a series and version of the company's rules; the change of one company leaves the others alone.
import { type EvaluatedRule, evaluatedRule } from './evaluate.ts'
import type { EvaluationState, RuleSlot } from './evaluation-state.ts'
import { matchesLabels } from './matchers.ts'
import { forgetServer, removeState } from './removal.ts'
import type { CompiledRule } from './rule.ts'
import type { CompanyRules, RuleSet } from './rule-set.ts'
import type { ServerSeries } from './server-series.ts'
import { FIRING, NO_ROW } from './state-table.ts'
import { emit } from './transitions.ts'

/** The slot of a rule's id; made or brought up to date with `compiled`. A new signature gets a new number. */
function slotOf(evaluation: EvaluationState, compiled: CompiledRule): number {
  let index = evaluation.slotOfRule.get(compiled.id)
  if (index === undefined) {
    index = evaluation.slots.length
    evaluation.slots.push({
      rule: null,
      signature: 0,
      signatureText: compiled.signature,
      id: compiled.id,
      companyId: compiled.companyId,
    })
    evaluation.slotOfRule.set(compiled.id, index)
  }
  const slot = evaluation.slots[index]!
  if (slot.rule?.compiled !== compiled) {
    if (slot.signatureText !== compiled.signature) {
      slot.signature++
      slot.signatureText = compiled.signature
    }
    slot.rule = evaluatedRule(compiled)
    slot.companyId = compiled.companyId
  }
  return index
}

/** Takes over a new rule set. Machines are bound to it lazily: at their next batch or the next sweep. */
export function setRules(evaluation: EvaluationState, rules: RuleSet): void {
  for (const [companyId, ofCompany] of rules.companies)
    if (evaluation.rules.companies.get(companyId) !== ofCompany)
      for (const compiled of ofCompany.byId.values()) slotOf(evaluation, compiled)
  evaluation.rules = rules
}

export const isInScope = (rule: CompiledRule, serverId: string): boolean =>
  rule.scopeAll || rule.serverIds.has(serverId)

/** Binds a series that is new to the machine, or whose key has become known. */
export function bindNewSeries(evaluation: EvaluationState, server: ServerSeries, index: number, nowMs: number): void {
  const definition = evaluation.dictionary.get(server.lo(index), server.hi(index))
  if (!definition) {
    server.undefinedSeries ??= new Set()
    server.undefinedSeries.add(index)
    return
  }
  server.undefinedSeries?.delete(index)
  if (server.undefinedSeries?.size === 0) server.undefinedSeries = null
  for (const compiled of evaluation.companyRules(server.companyId).byMetric.get(definition.metric) ?? []) {
    if (!isInScope(compiled, server.serverId) || !matchesLabels(compiled.matchers, definition.labels)) continue
    const slot = slotOf(evaluation, compiled)
    if (stateOf(evaluation, server, index, slot) === NO_ROW) addState(evaluation, server, index, slot, nowMs)
  }
}

function stateOf(evaluation: EvaluationState, server: ServerSeries, index: number, slot: number): number {
  const { states } = evaluation
  let row = server.head[index]!
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
  states.next[row] = server.head[index]!
  server.head[index] = row
  server.stateCount++
  return row
}

/** Brings a machine to the present rules of its company: closes what a change ends, keeps what it keeps, binds what is new. */
export function rebindServer(
  evaluation: EvaluationState,
  server: ServerSeries,
  rules: CompanyRules,
  nowMs: number,
): void {
  server.boundTo = rules
  for (let index = 0; index < server.count; index++) {
    let row = server.head[index]!
    while (row !== NO_ROW) {
      const next = evaluation.states.next[row]!
      settleChange(evaluation, server, row, rules, nowMs)
      row = next
    }
  }
  for (let index = 0; index < server.count; index++) bindNewSeries(evaluation, server, index, nowMs)
}

/** What the present rules mean for one state: nothing, a restart, or its end. */
function settleChange(
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
    // The company is part of the signature: a rule that is another company's now has changed, it is not gone.
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

/** From scratch under the new signature; a series that it does not match any more loses its state. */
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
    matchesLabels(compiled.matchers, definition.labels)
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
 * The last agent of a machine was revoked (decision G-48): its alerts end, its presence goes without an event. `agentIds` are revoked;
 * where another one speaks for the machine already, nothing happens.
 */
export function leaveScope(
  evaluation: EvaluationState,
  server: ServerSeries,
  agentIds: readonly string[],
  nowMs: number,
): void {
  if (!agentIds.includes(server.presence.agentId)) return
  for (let index = 0; index < server.count; index++)
    while (server.head[index] !== NO_ROW) {
      const row = server.head[index]!
      closeForChange(evaluation, row, evaluation.slots[evaluation.states.rule[row]!]!.rule, 'out_of_scope', nowMs)
      removeState(evaluation, row)
    }
  forgetServer(evaluation, server)
  const { key, companyId, serverId, shard } = server
  const left = { kind: 'left', key, companyId, serverId, shard, agentIds, leftAtMs: nowMs } as const
  evaluation.noteLeft(left)
  evaluation.departed.push(left)
}

/** Ends an open alert, flapping or not, because of its rule. The hub's alert is open while FIRING or flapping. */
export function closeForChange(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule | null,
  reason: 'rule_changed' | 'rule_removed' | 'out_of_scope',
  nowMs: number,
): void {
  const { states } = evaluation
  const flap = evaluation.flapping.get(row)
  const isOpenAtHub = states.phase[row] === FIRING || flap?.isFlapping === true
  if (!isOpenAtHub || rule === null) return
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
