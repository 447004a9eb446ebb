// What happens by the passing of time alone (every 10 s of wall time): lost agents, no data (no-data.ts), reminders,
// the end of flapping, rule changes on silent servers, and the removal of unused states (document 2 "No-data sweep";
// decisions G-75, G-76, G-85, G-86).
import { limits } from '../../limits.ts'
import { rebindServer } from '../rules/apply-rule-change.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { removeState } from '../state/removal.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { FIRING, NO_ROW, OK } from '../state/state-table.ts'
import { sweepPresence } from './agent-down.ts'
import { emit } from './emit-transition.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'
import { isForgettable, isStable } from './flapping.ts'
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
  else if (phase === OK && silentMs > limits.okStateDropMs) dropOkSeries(evaluation, server, states.series[row]!, nowMs)
}

/**
 * Removes the states of a series that has been silent for a day, once all of them are OK. The next sample of the series
 * makes new ones.
 */
function dropOkSeries(evaluation: EvaluationState, server: ServerSeries, series: number, nowMs: number): void {
  const { states } = evaluation
  for (let row = server.head[series]!; row !== NO_ROW; row = states.next[row]!) {
    const isUnused = nowMs - states.lastReceivedMs[row]! > limits.okStateDropMs
    if (states.phase[row] !== OK || !isUnused || evaluation.flapping.get(row)?.isFlapping) return
  }
  while (server.head[series]! >= 0) removeState(evaluation, server.head[series]!)
}

/**
 * Ends flapping for series that made no transition for flap_stable, and drops flapping states that are no longer
 * needed.
 */
export function sweepFlapping(evaluation: EvaluationState, nowMs: number): void {
  const { states } = evaluation
  const settings = evaluation.settings.flapping
  for (const [row, flap] of evaluation.flapping) {
    if (isForgettable(flap, settings, nowMs)) {
      evaluation.flapping.delete(row)
      continue
    }
    if (!isStable(flap, settings, nowMs)) continue
    const rule = evaluation.slots[states.rule[row]!]!.rule
    const value = states.lastValue[row]!
    const transitions = flap.countSinceEntered
    flap.isFlapping = false
    flap.transitionsTsMs = []
    emit(evaluation, row, rule, { type: 'alert.flapping', reason: 'exited', transitions, occurredAtMs: nowMs, value })
    if (states.phase[row] === FIRING) {
      // The alert continues as the one that the hub knows, with its opening time; the next reminder is due
      // renotify_seconds from now.
      const activeRow = states.activeRow[row]!
      states.active.openedTsMs[activeRow] = flap.toldOpenedTsMs
      states.active.notifiedAtMs[activeRow] = nowMs
      continue
    }
    emit(evaluation, row, rule, {
      type: 'alert.resolved',
      reason: 'recovered',
      occurredAtMs: flap.closedTsMs,
      value,
      openedTsMs: flap.toldOpenedTsMs,
      peak: flap.peak,
    })
  }
}
