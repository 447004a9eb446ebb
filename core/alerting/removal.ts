// States and machines that go: a rule was removed, a machine left scope, a tenant was purged, a series is not needed any more.
import type { EvaluationState } from './evaluation-state.ts'
import type { ServerSeries } from './server-series.ts'
import { stateRecord } from './state-record.ts'
import { NO_ROW } from './state-table.ts'

/** Unlinks and frees a state; with an event of it on its way, the journal notes the removal. */
export function removeState(evaluation: EvaluationState, row: number): void {
  const { states } = evaluation
  if (evaluation.touchedRows.has(row)) evaluation.removed.push(stateRecord(evaluation, row, null))
  const server = evaluation.servers[states.server[row]!]!
  const series = states.series[row]!
  if (server.head[series] === row) server.head[series] = states.next[row]!
  else {
    let before = server.head[series]!
    while (states.next[before] !== row) before = states.next[before]!
    states.next[before] = states.next[row]!
  }
  server.stateCount--
  evaluation.flapping.delete(row)
  evaluation.settledUpTo.delete(row)
  evaluation.touchedRows.delete(row)
  states.remove(row)
}

/** Gives up the series of a machine that no rule is bound to; those it still sends come again. */
export function dropIdleSeries(evaluation: EvaluationState, server: ServerSeries): void {
  const kept: { lo: number; hi: number; head: number }[] = []
  for (let index = 0; index < server.count; index++)
    if (server.head[index] !== NO_ROW)
      kept.push({ lo: server.lo(index), hi: server.hi(index), head: server.head[index]! })
  server.count = 0
  server.undefinedSeries = null
  for (const { lo, hi, head } of kept) {
    const index = server.add(lo, hi)
    server.head[index] = head
    for (let row = head; row !== NO_ROW; row = evaluation.states.next[row]!) evaluation.states.series[row] = index
  }
}

/** Forgets everything of a machine without an event (purge). */
export function forgetServer(evaluation: EvaluationState, server: ServerSeries): void {
  for (let index = 0; index < server.count; index++)
    while (server.head[index] !== NO_ROW) removeState(evaluation, server.head[index]!)
  evaluation.servers[server.index] = null
  evaluation.touchedServers.delete(server)
  evaluation.presenceSettledUpTo.delete(server)
  evaluation.serversByKey.delete(server.key)
  evaluation.removed = evaluation.removed.filter(record => record.serverId !== server.serverId)
}
