// When evaluation forgets a series that is no longer sent: after a day of silence, and never while an alert of it is
// open.
import { limits } from '../../limits.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { removeState } from '../state/removal.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { NO_ROW, OK } from '../state/state-table.ts'

/**
 * Removes the states of the series of an OK state that has been silent for a day, once all of them are OK. The next
 * sample of the series makes new ones.
 */
export function dropLongSilent(
  evaluation: EvaluationState,
  server: ServerSeries,
  silentRow: number,
  silentMs: number,
  nowMs: number,
): void {
  if (silentMs <= limits.okStateDropMs) return
  const { states } = evaluation
  const series = states.series[silentRow]!
  for (let row = server.head[series]!; row !== NO_ROW; row = states.next[row]!) {
    const isUnused = nowMs - states.lastReceivedMs[row]! > limits.okStateDropMs
    if (states.phase[row] !== OK || !isUnused || evaluation.flapping.get(row)?.isFlapping) return
  }
  while (server.head[series]! >= 0) removeState(evaluation, server.head[series]!)
}
