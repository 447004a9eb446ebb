// What happens by the passing of time alone (every 10 s of wall time): lost agents, no data, reminders, the end of
// flapping, rule changes on silent servers, and the removal of unused states (document 2 "No-data sweep"; decisions
// G-75, G-76, G-85, G-86).
import { limits } from '../../limits.ts'
import { rebindServer } from '../rules/apply-rule-change.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { removeState } from '../state/removal.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { FIRING, FLAG_NO_DATA, NO_ROW, OK, PENDING } from '../state/state-table.ts'
import { closed, emit, opened, remind } from './emit-transition.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'
import { isForgettable, isStable } from './flapping.ts'
import { downAfterMs, presenceIntervalSeconds, sweepPresence } from './presence.ts'

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
  const { states } = evaluation
  const { noDataAfterMs } = evaluation.settings
  for (let row = from; row < to && row < states.end; row++) {
    if (states.rule[row] === -1) continue
    const rule = evaluation.slots[states.rule[row]!]!.rule
    const phase = states.phase[row]!
    const silentMs = nowMs - states.lastReceivedMs[row]!
    if (silentMs > noDataAfterMs) sweepSilent(evaluation, row, rule, silentMs, nowMs)
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
  const hasSeenSample = states.lastTsMs[row] !== Number.NEGATIVE_INFINITY
  if (hasSeenSample && isStillSending(evaluation, server, states.lastReceivedMs[row]!, nowMs))
    applyNoData(evaluation, row, rule, nowMs)
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
    const isSilent = nowMs - states.lastReceivedMs[row]! > limits.okStateDropMs
    if (states.phase[row] !== OK || !isSilent || evaluation.flapping.get(row)?.isFlapping) return
  }
  while (server.head[series]! >= 0) removeState(evaluation, server.head[series]!)
}

/** True when the server is up and sent a recent batch without this series. */
function isStillSending(
  evaluation: EvaluationState,
  server: ServerSeries,
  seriesLastReceivedMs: number,
  nowMs: number,
): boolean {
  const managed = evaluation.attributes.get(server.serverId)?.intervalSeconds ?? 0
  const intervalSeconds = presenceIntervalSeconds(server.presence.intervalSeconds, managed)
  return (
    server.presence.state === 'up' &&
    server.lastBatchMs > seriesLastReceivedMs &&
    nowMs - server.lastBatchMs <= downAfterMs(intervalSeconds)
  )
}

function applyNoData(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): void {
  const { states } = evaluation
  if (states.phase[row] === PENDING) {
    states.toOk(row)
    // This change emits no event and a replay of the bus would not repeat it, so the journal must record it.
    evaluation.touchedRows.add(row)
  }
  const mode = rule.compiled.noData
  const value = states.lastValue[row]!
  if (mode === 'alert' && states.phase[row] !== FIRING) {
    states.toActive(row, FIRING)
    states.flags[row] = states.flags[row]! | FLAG_NO_DATA
    states.active.openedTsMs[states.activeRow[row]!] = nowMs
    opened(evaluation, row, rule, nowMs, nowMs, value)
  } else if (mode === 'resolve' && states.phase[row] === FIRING) {
    closed(evaluation, row, rule, nowMs, nowMs, 'no_data', value)
    states.toOk(row)
  }
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
