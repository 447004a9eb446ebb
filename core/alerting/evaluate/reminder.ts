// When a reminder of an alert that still fires is told (decision G-76).
import type { EvaluationState } from '../state/evaluation-state.ts'
import { emit } from './emit-transition.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'

/**
 * Emits a reminder of a FIRING alert when it is due and the series is not flapping. Measured in wall time (decision
 * G-76).
 */
export function remind(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): void {
  const { states } = evaluation
  const activeRow = states.activeRow[row]!
  const notifiedAtMs = states.active.notifiedAtMs[activeRow]!
  if (nowMs - notifiedAtMs < rule.compiled.renotifyMs || evaluation.flapping.get(row)?.isFlapping) return
  states.active.notifiedAtMs[activeRow] = nowMs
  emit(evaluation, row, rule, { type: 'alert.reminder', occurredAtMs: nowMs, value: states.lastValue[row]! })
}
