// Whether a server's agent is there (document 2 "Agent presence"; decisions G-46, G-80, G-81): down once, up at the
// first valid batch. The evaluation of the server's shard owns it, so the signal is seen in the order of the bus.
import type { EntryReader } from '../../bus/entry.ts'
import { limits } from '../../limits.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { type AlertEvent, agentDownRuleId, type EventType, eventId } from './event.ts'
import { nextTimeSeq } from './event-maker.ts'

/** The interval that counts for a server: what its agent reports, else the managed one, else 30 s. */
export function presenceIntervalSeconds(reported: number, managed: number): number {
  const isValid = (seconds: number) => seconds >= limits.intervalSecondsMin && seconds <= limits.intervalSecondsMax
  return isValid(reported) ? reported : isValid(managed) ? managed : limits.intervalSecondsDefault
}

/** Silence beyond this is loss of signal: max(3 x interval, 90 s). */
export const downAfterMs = (intervalSeconds: number): number =>
  Math.max(3 * intervalSeconds * 1000, limits.presenceDownMinMs)

/** A valid batch came: the server is up. */
export function batchSeen(
  evaluation: EvaluationState,
  server: ServerSeries,
  reader: EntryReader,
  position: number,
): void {
  const { presence } = server
  const journaledUpTo = evaluation.presenceJournaledUpTo.get(server) ?? 0
  server.lastBatchMs = reader.receivedAtMs
  if (position <= journaledUpTo) return
  if (presence.agentWord !== reader.agentWord()) replaceAgent(evaluation, server, reader)
  if (presence.state === 'down') {
    const nowMs = reader.receivedAtMs
    emitAgent(evaluation, server, 'agent.up', 0, nowMs, {
      duration_seconds: Math.max(0, Math.floor((nowMs - presence.downSinceMs) / 1000)),
    })
    presence.downSinceMs = 0
  } else if (presence.state === 'unknown') evaluation.noteQuietPresence(presence.agentId, 'up', reader.receivedAtMs)
  presence.state = 'up'
  presence.lastSeenMs = Math.max(presence.lastSeenMs, reader.receivedAtMs)
  if (reader.intervalSeconds > 0) presence.intervalSeconds = reader.intervalSeconds
}

/** Another agent speaks for the server: its presence begins anew; the hub settles the alert of the revoked one. */
function replaceAgent(evaluation: EvaluationState, server: ServerSeries, reader: EntryReader): void {
  const { presence } = server
  presence.agentWord = reader.agentWord()
  const agentId = reader.agentId()
  if (agentId === presence.agentId) return
  if (presence.state !== 'unknown') evaluation.noteQuietPresence(presence.agentId, 'unknown', reader.receivedAtMs)
  presence.agentId = agentId
  presence.state = 'unknown'
  presence.downSinceMs = 0
}

/**
 * Declares the agent of a server lost when its silence is long enough. `graceUntilMs`: start or overflow of the bus,
 * per server.
 */
export function sweepPresence(
  evaluation: EvaluationState,
  server: ServerSeries,
  startedAtMs: number,
  nowMs: number,
): void {
  const { presence } = server
  if (presence.state !== 'up') return
  const managed = evaluation.attributes.get(server.serverId)?.intervalSeconds ?? 0
  const intervalSeconds = presenceIntervalSeconds(presence.intervalSeconds, managed)
  if (nowMs < startedAtMs + 2 * intervalSeconds * 1000) return
  if (presence.lastSeenMs >= nowMs - downAfterMs(intervalSeconds)) return
  presence.state = 'down'
  presence.downSinceMs = nowMs
  const silentSeconds = Math.floor((nowMs - presence.lastSeenMs) / 1000)
  emitAgent(evaluation, server, 'agent.down', silentSeconds, nowMs, {}, downAfterMs(intervalSeconds) / 1000)
}

function emitAgent(
  evaluation: EvaluationState,
  server: ServerSeries,
  type: EventType,
  value: number,
  nowMs: number,
  extras: { duration_seconds?: number },
  threshold?: number,
): void {
  const { presence } = server
  const seq = nextTimeSeq(presence.seq, nowMs)
  presence.seq = seq
  const attributes = evaluation.attributes.get(server.serverId)
  const seriesKey = `agent:${presence.agentId}`
  const suppression = evaluation.suppressionOf(server.companyId, server.serverId, nowMs)
  const intervalSeconds = presenceIntervalSeconds(presence.intervalSeconds, attributes?.intervalSeconds ?? 0)
  const event: AlertEvent = {
    event_id: eventId(server.serverId, agentDownRuleId, seriesKey, seq, type),
    type,
    seq,
    occurred_at: new Date(nowMs).toISOString(),
    company_id: server.companyId,
    server_id: server.serverId,
    rule_id: agentDownRuleId,
    rule_version: 0,
    series_key: seriesKey,
    severity: 'critical',
    value,
    threshold: threshold ?? downAfterMs(intervalSeconds) / 1000,
    suppressed: suppression !== null,
    suppress_reason: suppression,
    group_key: null,
    labels: { agent_id: presence.agentId, ...(attributes?.hostname ? { hostname: attributes.hostname } : {}) },
    ...extras,
  }
  evaluation.touchedServers.add(server)
  evaluation.push(event)
}
