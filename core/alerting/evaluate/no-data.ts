// No data: a series has been silent for longer than no_data_after while its server still sends (document 2 "No-data
// sweep"). What follows is the rule's own choice: nothing, an alert, or the end of one. A server of which nothing comes
// at all: agent-down.ts.
import type { EvaluationState } from '../state/evaluation-state.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { FIRING, FLAG_NO_DATA, PENDING } from '../state/state-table.ts'
import { downAfterMs, presenceIntervalSeconds } from './agent-down.ts'
import { closed, opened } from './emit-transition.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'

/** Whether a series of which nothing came for `silentMs` has been silent for longer than no_data_after. */
export const isSilent = (silentMs: number, { noDataAfterMs }: { readonly noDataAfterMs: number }): boolean =>
  silentMs > noDataAfterMs

/** Of a state whose series is silent: whether that is for want of data, and not of the server. */
export function hasNoData(evaluation: EvaluationState, server: ServerSeries, row: number, nowMs: number): boolean {
  const { states } = evaluation
  const hasSeenSample = states.lastTsMs[row] !== Number.NEGATIVE_INFINITY
  return hasSeenSample && isStillSending(evaluation, server, states.lastReceivedMs[row]!, nowMs)
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

/** Applies what the rule says of silence. */
export function applyNoData(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): void {
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
