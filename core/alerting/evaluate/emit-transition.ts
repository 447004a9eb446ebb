// Which events the openings and closings of a state emit, and which ones flapping withholds (document 2 "Flapping",
// decisions G-76, G-85).

import type { EvaluationState } from '../state/evaluation-state.ts'
import { type EvaluatedRule, isWorse } from './evaluate-sample.ts'
import { type EventInput, seriesEvent } from './event-maker.ts'
import { type FlapState, newFlapState, recordTransition } from './flapping.ts'

/**
 * The state went to FIRING: emits alert.opened, unless flapping withholds it. `occurredAtMs` is the time of the sample,
 * or for no data the time of the sweep.
 */
export function opened(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  occurredAtMs: number,
  nowMs: number,
  value: number,
): void {
  const { active, activeRow } = evaluation.states
  const at = activeRow[row]!
  active.notifiedAtMs[at] = nowMs
  const flap = flapOf(evaluation, row)
  const verdict = recordTransition(flap, evaluation.settings.flapping, occurredAtMs, nowMs)
  evaluation.touchedRows.add(row)
  if (verdict === 'withhold') {
    // For the hub the alert never closed, so the peak covers the time since the opening that the hub knows of.
    const peak = active.peak[at]!
    if (!Number.isNaN(flap.peak) && (Number.isNaN(peak) || !isWorse(rule.operatorCode, peak, flap.peak)))
      active.peak[at] = flap.peak
    return
  }
  flap.toldOpenedTsMs = occurredAtMs
  flap.peak = Number.NaN
  emit(evaluation, row, rule, { type: 'alert.opened', occurredAtMs, value })
  if (verdict === 'enter') enterFlapping(evaluation, row, rule, flap, occurredAtMs, value)
}

/**
 * The state is about to go from FIRING to OK: emits alert.resolved, unless flapping withholds it. The caller changes
 * the phase afterwards, because opening and peak are read here.
 */
export function closed(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  occurredAtMs: number,
  nowMs: number,
  reason: 'recovered' | 'data_returned' | 'no_data',
  value: number,
): void {
  const flap = flapOf(evaluation, row)
  const verdict = recordTransition(flap, evaluation.settings.flapping, occurredAtMs, nowMs)
  flap.closedTsMs = occurredAtMs
  evaluation.touchedRows.add(row)
  if (verdict === 'tell') {
    emit(evaluation, row, rule, { type: 'alert.resolved', reason, occurredAtMs, value })
    return
  }
  flap.peak = evaluation.states.peak(row)
  if (verdict === 'enter') enterFlapping(evaluation, row, rule, flap, occurredAtMs, value)
}

function enterFlapping(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  flap: FlapState,
  occurredAtMs: number,
  value: number,
): void {
  const transitions = flap.transitionsTsMs.length
  emit(evaluation, row, rule, { type: 'alert.flapping', reason: 'entered', transitions, occurredAtMs, value })
}

function flapOf(evaluation: EvaluationState, row: number): FlapState {
  let flap = evaluation.flapping.get(row)
  if (!flap) {
    flap = newFlapState()
    evaluation.flapping.set(row, flap)
  }
  return flap
}

/** Emits the next event of a state: stamps seq and suppression, and marks the state for the journal. */
export function emit(evaluation: EvaluationState, row: number, rule: EvaluatedRule, facts: EventInput): void {
  evaluation.touchedRows.add(row)
  evaluation.push(seriesEvent(evaluation, row, rule, facts))
}
