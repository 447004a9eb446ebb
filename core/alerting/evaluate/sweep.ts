// What happens by the passing of time alone (every 10 s of wall time): lost agents, no data (no-data.ts), reminders,
// rule changes on silent servers, and the removal of unused states (drop-silent-states.ts; document 2 "No-data sweep";
// decisions G-75, G-76, G-86). So does the end of flapping: end-of-flapping.ts.
import { limits } from '../../limits.ts'
import { rebindServer } from '../rules/apply-rule-change.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { FIRING, OK } from '../state/state-table.ts'
import { sweepPresence } from './agent-down.ts'
import { dropLongSilent } from './drop-silent-states.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'
import { applyNoData, hasNoData, isSilent } from './no-data.ts'
import { remind } from './reminder.ts'

/**
 * Sweeps the servers whose indexes lie in [from, to); a caller that must not block sweeps in slices. `startedAtMs`:
 * when the worker started or the bus last overflowed (see `sweepPresence`).
 */
export function sweepServers(
  evaluation: EvaluationState,
  from: number,
  to: number,
  startedAtMs: number,
  nowMs: number,
): void {
  for (let index = from; index < to && index < evaluation.servers.length; index++) {
    const server = evaluation.servers[index]
    if (!server) continue
    sweepPresence(evaluation, server, startedAtMs, nowMs)
    if (server.stateCount === 0) continue
    const rules = evaluation.companyRules(server.companyId)
    if (server.boundTo !== rules) rebindServer(evaluation, server, rules, nowMs)
  }
}

/** Sweeps the states whose rows lie in [from, to). */
export function sweepStates(evaluation: EvaluationState, from: number, to: number, nowMs: number): void {
  const { states, settings } = evaluation
  for (let row = from; row < to && row < states.end; row++) {
    if (states.rule[row] === -1) continue
    const rule = evaluation.slots[states.rule[row]!]!.rule
    const phase = states.phase[row]!
    // A clock was far ahead and was set back: silence counts from now.
    if (states.lastReceivedMs[row]! > nowMs + limits.wrongClockAheadMs) states.lastReceivedMs[row] = nowMs
    const silentMs = nowMs - states.lastReceivedMs[row]!
    if (isSilent(silentMs, settings)) sweepSilent(evaluation, row, rule, silentMs, nowMs)
    else if (phase === FIRING && rule.compiled.renotifyMs > 0) remind(evaluation, row, rule, nowMs)
  }
}

/** Sweeps a state whose series has been silent for longer than no_data_after. */
function sweepSilent(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  silentMs: number,
  nowMs: number,
): void {
  const { states } = evaluation
  const server = evaluation.servers[states.server[row]!]!
  if (hasNoData(evaluation, server, row, nowMs)) applyNoData(evaluation, row, rule, nowMs)
  const phase = states.phase[row]!
  if (phase === FIRING && rule.compiled.renotifyMs > 0) remind(evaluation, row, rule, nowMs)
  else if (phase === OK) dropLongSilent(evaluation, server, row, silentMs, nowMs)
}
