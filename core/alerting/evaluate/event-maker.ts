// Turns a state and what happened to it into an event (document 2 "Envelope" and "Types"; decisions G-77, G-78, G-79).

import type { EvaluationState } from '../state/evaluation-state.ts'
import { labelsOf, shownKey } from '../state/series-dictionary.ts'
import type { EvaluatedRule } from './evaluate-sample.ts'
import type { AlertEvent, EventType, ResolveReason } from './event.ts'
import { eventId } from './event-id.ts'

/** What happened. Times are ms; `occurredAtMs` is the event's own time. */
export type EventInput = {
  readonly type: EventType
  readonly occurredAtMs: number
  readonly value: number
  readonly reason?: ResolveReason | 'entered' | 'exited'
  readonly transitions?: number
  /** Opening and peak of a resolved event that ends flapping: they differ from those of the state. */
  readonly openedTsMs?: number
  readonly peak?: number
}

const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null)

/** Makes the next event of the state in `row` and increments the state's seq. */
export function seriesEvent(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  facts: EventInput,
): AlertEvent {
  const { states } = evaluation
  const server = evaluation.servers[states.server[row]!]!
  const series = states.series[row]!
  const definition = evaluation.dictionary.get(server.lo(series), server.hi(series))!
  const seriesKey = shownKey(definition)
  const labels = labelsOf(definition)
  const seq = states.seq[row]! + 1
  states.seq[row] = seq
  const { compiled } = rule
  const isNoData = evaluation.isNoData(row)
  const suppression = evaluation.suppressionOf(server.companyId, server.serverId, [compiled.id], facts.occurredAtMs)
  return {
    event_id: eventId(server.serverId, compiled.id, seriesKey, seq, facts.type),
    type: facts.type,
    seq,
    occurred_at: new Date(facts.occurredAtMs).toISOString(),
    company_id: server.companyId,
    server_id: server.serverId,
    rule_id: compiled.id,
    rule_version: compiled.version,
    series_key: seriesKey,
    severity: compiled.severity,
    value: finiteOrNull(facts.value),
    threshold: isNoData ? null : compiled.threshold,
    suppressed: suppression !== null,
    suppress_reason: suppression,
    group_key: null,
    labels: isNoData ? { ...labels, no_data: 'true' } : labels,
    ...(facts.reason === undefined ? {} : { reason: facts.reason }),
    ...(facts.transitions === undefined ? {} : { transitions: facts.transitions }),
    ...(facts.type === 'alert.resolved' ? resolvedExtras(evaluation, row, facts) : {}),
  }
}

function resolvedExtras(
  evaluation: EvaluationState,
  row: number,
  facts: EventInput,
): { duration_seconds: number; peak_value: number | null } {
  const { states } = evaluation
  const openedTsMs = facts.openedTsMs ?? states.openedTsMs(row)
  return {
    duration_seconds: Math.max(0, Math.floor((facts.occurredAtMs - openedTsMs) / 1000)),
    peak_value: finiteOrNull(facts.peak ?? states.peak(row)),
  }
}

/**
 * The next seq of agent and group events: the time in ms, or one above the previous seq when the clock has not
 * advanced.
 */
export const nextTimeSeq = (previous: number, nowMs: number): number => Math.max(previous + 1, Math.floor(nowMs))
