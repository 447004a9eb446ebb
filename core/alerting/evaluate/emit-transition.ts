// What is told of a state's openings, closings and reminders, as far as flapping lets it (document 2 "Flapping",
// decisions G-76, G-85).

import type { EvaluationState } from '../state/evaluation-state.ts'
import { type EvaluatedRule, isWorse } from './evaluate-sample.ts'
import { type EventInput, seriesEvent } from './event-maker.ts'
import { type FlapState, newFlapState, recordTransition } from './flapping.ts'

/**
 * The state went to FIRING: tells it, as far as flapping lets it. `occurredAtMs` is sample time, or the sweep's for no
 * data.
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
    // The alert that the hub knows goes on: its peak is that of its whole life.
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

/** The state goes from FIRING to OK by samples or no data; the caller takes it there after this. */
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

/** A reminder of an alert that is FIRING, when it is due and the series is not flapping. Wall time (decision G-76). */
export function remind(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): void {
  const { states } = evaluation
  const activeRow = states.activeRow[row]!
  const notifiedAtMs = states.active.notifiedAtMs[activeRow]!
  if (nowMs - notifiedAtMs < rule.compiled.renotifyMs || evaluation.flapping.get(row)?.isFlapping) return
  states.active.notifiedAtMs[activeRow] = nowMs
  emit(evaluation, row, rule, { type: 'alert.reminder', occurredAtMs: nowMs, value: states.lastValue[row]! })
}

/** Makes the next event of a state's key. */
export function emit(evaluation: EvaluationState, row: number, rule: EvaluatedRule, facts: EventInput): void {
  evaluation.touchedRows.add(row)
  evaluation.push(seriesEvent(evaluation, row, rule, facts))
}
