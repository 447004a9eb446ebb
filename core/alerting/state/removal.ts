// Removes states, series and servers: after a change of rules, a revocation, a purge, or when a series is no longer
// sent.

import { stateRecord } from '../durability/state-record.ts'
import type { EvaluationState } from './evaluation-state.ts'
import { type ServerSeries, TO_BIND, UNDEFINED, UNSEEN } from './server-series.ts'
import { NO_ROW } from './state-table.ts'

/** Unlinks and frees a state. When the state has emitted an event, the journal records the removal. */
export function removeState(evaluation: EvaluationState, row: number): void {
  const { states } = evaluation
  if (evaluation.touchedRows.has(row)) evaluation.removed.push(stateRecord(evaluation, row, null))
  const server = evaluation.servers[states.server[row]!]!
  const series = states.series[row]!
  server.removedSeq = Math.max(server.removedSeq, states.seq[row]!)
  if (server.head[series] === row) server.head[series] = states.next[row]!
  else {
    let before = server.head[series]!
    while (states.next[before] !== row) before = states.next[before]!
    states.next[before] = states.next[row]!
  }
  // A series that lost its last state is bound again at its next sample.
  if (server.head[series] === NO_ROW) server.head[series] = TO_BIND
  server.stateCount--
  evaluation.flapping.delete(row)
  evaluation.journaledUpTo.delete(row)
  evaluation.touchedRows.delete(row)
  states.remove(row)
}

/**
 * Drops the series of a server that have no state. Those that the server still sends are added again by the next batch.
 */
export function dropIdleSeries(evaluation: EvaluationState, server: ServerSeries): void {
  keepSeries(evaluation, server, head => head >= 0)
}

/**
 * Checks the servers whose indexes lie in [from, to) and drops series without a state that were not sent since the last
 * check.
 */
export function dropUnseen(evaluation: EvaluationState, from: number, to: number): void {
  for (let at = from; at < to && at < evaluation.servers.length; at++) {
    const server = evaluation.servers[at]
    if (!server) continue
    keepSeries(evaluation, server, head => head >= TO_BIND)
    for (let index = 0; index < server.count; index++) if (server.head[index]! < 0) server.head[index] = UNSEEN
  }
}

function keepSeries(evaluation: EvaluationState, server: ServerSeries, isKept: (head: number) => boolean): void {
  let kept = 0
  for (let index = 0; index < server.count; index++) {
    const head = server.head[index]!
    if (!isKept(head)) {
      releaseSeries(evaluation, server, index)
      continue
    }
    if (kept !== index) {
      server.move(index, kept)
      for (let row = head; row >= 0; row = evaluation.states.next[row]!) evaluation.states.series[row] = kept
    }
    kept++
  }
  server.count = kept
}

function releaseSeries(evaluation: EvaluationState, server: ServerSeries, index: number): void {
  if (server.head[index] !== UNDEFINED) evaluation.dictionary.release(server.lo(index), server.hi(index))
}

/** Drops all state of a server without emitting an event (purge). */
export function forgetServer(evaluation: EvaluationState, server: ServerSeries): void {
  for (let index = 0; index < server.count; index++) {
    while (server.head[index]! >= 0) removeState(evaluation, server.head[index]!)
    releaseSeries(evaluation, server, index)
  }
  if (server.presence.state !== 'unknown') evaluation.noteQuietPresence(server.presence.agentId, 'unknown', 0)
  evaluation.servers[server.index] = null
  evaluation.touchedServers.delete(server)
  evaluation.presenceJournaledUpTo.delete(server)
  evaluation.serversByKey.delete(server.key)
  evaluation.removed = evaluation.removed.filter(record => record.serverId !== server.serverId)
}
