// What is told when a series has stopped flapping (document 2 "Flapping" 5 and 6; decision G-85): when that is, and
// what is withheld until then, decides flapping.ts.
import type { EvaluationState } from '../state/evaluation-state.ts'
import { FIRING } from '../state/state-table.ts'
import { emit } from './emit-transition.ts'
import { isForgettable, isStable } from './flapping.ts'

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
