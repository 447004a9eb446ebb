// Which rules a series is bound to, and what a change of the rules does to open states (document 2 "Rule changes"). Matching runs
// once a series and version of the company's rules; the change of one company leaves the others alone.
import { type EvaluatedRule, evaluatedRule } from './evaluate.ts'
import type { Evaluator, RuleSlot } from './evaluator.ts'
import { matchesLabels } from './matchers.ts'
import type { CompiledRule } from './rule.ts'
import type { CompanyRules } from './rule-set.ts'
import type { ServerSeries } from './server-series.ts'
import { FIRING, NO_ROW } from './state-table.ts'

/** The slot of a rule's id; made or brought up to date with `compiled`. A new signature gets a new number. */
export function slotOf(evaluator: Evaluator, compiled: CompiledRule): number {
  let index = evaluator.slotOfRule.get(compiled.id)
  if (index === undefined) {
    index = evaluator.slots.length
    evaluator.slots.push({
      rule: null,
      signature: 0,
      signatureText: compiled.signature,
      id: compiled.id,
      companyId: compiled.companyId,
    })
    evaluator.slotOfRule.set(compiled.id, index)
  }
  const slot = evaluator.slots[index]!
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

export const isInScope = (rule: CompiledRule, serverId: string): boolean =>
  rule.scopeAll || rule.serverIds.has(serverId)

/** Binds a series that is new to the machine, or whose key has become known. */
export function bindNewSeries(evaluator: Evaluator, server: ServerSeries, index: number, nowMs: number): void {
  const definition = evaluator.dictionary.get(server.lo(index), server.hi(index))
  if (!definition) {
    server.undefinedSeries ??= new Set()
    server.undefinedSeries.add(index)
    return
  }
  server.undefinedSeries?.delete(index)
  if (server.undefinedSeries?.size === 0) server.undefinedSeries = null
  for (const compiled of evaluator.companyRules(server.companyId).byMetric.get(definition.metric) ?? []) {
    if (!isInScope(compiled, server.serverId) || !matchesLabels(compiled.matchers, definition.labels)) continue
    const slot = slotOf(evaluator, compiled)
    if (stateOf(evaluator, server, index, slot) === NO_ROW) addState(evaluator, server, index, slot, nowMs)
  }
}

function stateOf(evaluator: Evaluator, server: ServerSeries, index: number, slot: number): number {
  const { states } = evaluator
  let row = server.head[index]!
  while (row !== NO_ROW && states.rule[row] !== slot) row = states.next[row]!
  return row
}

export function addState(
  evaluator: Evaluator,
  server: ServerSeries,
  index: number,
  slot: number,
  nowMs: number,
): number {
  const { states } = evaluator
  const row = states.add(slot, evaluator.slots[slot]!.signature, server.index, index, Math.floor(nowMs))
  states.next[row] = server.head[index]!
  server.head[index] = row
  server.stateCount++
  return row
}

/** Brings a machine to the present rules of its company: closes what a change ends, keeps what it keeps, binds what is new. */
export function rebindServer(evaluator: Evaluator, server: ServerSeries, rules: CompanyRules, nowMs: number): void {
  server.boundTo = rules
  for (let index = 0; index < server.count; index++) {
    let row = server.head[index]!
    while (row !== NO_ROW) {
      const next = evaluator.states.next[row]!
      settleChange(evaluator, server, row, rules, nowMs)
      row = next
    }
  }
  for (let index = 0; index < server.count; index++) bindNewSeries(evaluator, server, index, nowMs)
}

/** What the present rules mean for one state: nothing, a restart, or its end. */
function settleChange(
  evaluator: Evaluator,
  server: ServerSeries,
  row: number,
  rules: CompanyRules,
  nowMs: number,
): void {
  const { states } = evaluator
  const slot = evaluator.slots[states.rule[row]!]!
  const compiled = rules.byId.get(slot.id)
  if (!compiled) {
    closeForChange(evaluator, row, slot.rule, 'rule_removed', nowMs)
    evaluator.removeState(row)
  } else if (states.signature[row] !== slot.signature) {
    closeForChange(evaluator, row, slot.rule, 'rule_changed', nowMs)
    restart(evaluator, server, row, compiled, slot)
  } else if (!isInScope(compiled, server.serverId)) {
    closeForChange(evaluator, row, slot.rule, 'out_of_scope', nowMs)
    evaluator.removeState(row)
  }
}

/** From scratch under the new signature; a series that it does not match any more loses its state. */
function restart(
  evaluator: Evaluator,
  server: ServerSeries,
  row: number,
  compiled: CompiledRule,
  slot: RuleSlot,
): void {
  const { states } = evaluator
  const series = states.series[row]!
  const definition = evaluator.dictionary.get(server.lo(series), server.hi(series))
  const isCovered =
    definition?.metric === compiled.metric &&
    isInScope(compiled, server.serverId) &&
    matchesLabels(compiled.matchers, definition.labels)
  if (!isCovered) {
    evaluator.removeState(row)
    return
  }
  states.reset(row)
  states.signature[row] = slot.signature
  evaluator.flapping.delete(row)
}

/** Ends the alerts of a machine that is no longer watched (its last agent was revoked, decision G-48), and its states. */
export function leaveScope(evaluator: Evaluator, server: ServerSeries, nowMs: number): void {
  for (let index = 0; index < server.count; index++)
    while (server.head[index] !== NO_ROW) {
      const row = server.head[index]!
      closeForChange(evaluator, row, evaluator.slots[evaluator.states.rule[row]!]!.rule, 'out_of_scope', nowMs)
      evaluator.removeState(row)
    }
}

/** Ends an open alert, flapping or not, because of its rule. The hub's alert is open while FIRING or flapping. */
export function closeForChange(
  evaluator: Evaluator,
  row: number,
  rule: EvaluatedRule | null,
  reason: 'rule_changed' | 'rule_removed' | 'out_of_scope',
  nowMs: number,
): void {
  const { states } = evaluator
  const flap = evaluator.flapping.get(row)
  const isOpenAtHub = states.phase[row] === FIRING || flap?.isFlapping === true
  if (!isOpenAtHub || rule === null) return
  const opened = flap?.isFlapping ? { openedTsMs: flap.toldOpenedTsMs } : {}
  evaluator.emit(row, rule, {
    type: 'alert.resolved',
    reason,
    occurredAtMs: nowMs,
    value: states.lastValue[row]!,
    ...opened,
  })
}
