// Whether a server's agent is up (document 2 "Agent presence"; decisions G-46, G-80, G-81): silence declares it down
// once, the first valid batch declares it up. The shard of the server decides, so batches count in the order of the
// bus.
import type { EntryReader } from '../../bus/entry.ts'
import { limits } from '../../limits.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import type { ServerSeries } from '../state/server-series.ts'
import { type AlertEvent, agentDownRuleId, type EventType } from './event.ts'
import { eventId } from './event-id.ts'
import { nextTimeSeq } from './event-maker.ts'

/**
 * The interval that presence uses for a server, in seconds: the one that its agent reports, else the managed one, else
 * 30 s.
 */
export function presenceIntervalSeconds(reported: number, managed: number): number {
  const isValid = (seconds: number) => seconds >= limits.intervalSecondsMin && seconds <= limits.intervalSecondsMax
  return isValid(reported) ? reported : isValid(managed) ? managed : limits.intervalSecondsDefault
}

/** The agent counts as lost after a silence longer than this: max(3 x interval, 90 s). */
export const downAfterMs = (intervalSeconds: number): number =>
  Math.max(3 * intervalSeconds * 1000, limits.presenceDownMinMs)

/**
 * What people are shown of a server: down once it was declared lost, online while its agent is heard of. After a
 * silence that is not declared yet, and before the first batch, nothing is known. `managedSeconds`: as for
 * presenceIntervalSeconds.
 */
export function shownPresence(
  presence: {
    readonly state: 'unknown' | 'up' | 'down'
    readonly lastSeenMs: number
    readonly intervalSeconds: number
  },
  managedSeconds: number,
  nowMs: number,
): 'online' | 'down' | 'unknown' {
  if (presence.state === 'down') return 'down'
  const silentMs = nowMs - presence.lastSeenMs
  const isSilent = silentMs > downAfterMs(presenceIntervalSeconds(presence.intervalSeconds, managedSeconds))
  return presence.state === 'up' && !isSilent ? 'online' : 'unknown'
}

/** Records a valid batch: emits agent.up when the agent was declared lost. */
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
  presence.intervalSeconds = reader.intervalSeconds
}

/**
 * A batch came from another agent of the server: presence starts again without an event. The hub resolves the alert of
 * the previous agent when it revokes that agent.
 */
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
 * Declares the agent of a server lost when it has been silent for long enough. `startedAtMs` is when the worker started
 * or the bus last overflowed: within two intervals of that, nobody is declared lost.
 */
export function sweepPresence(
  evaluation: EvaluationState,
  server: ServerSeries,
  startedAtMs: number,
  nowMs: number,
): void {
  const { presence } = server
  if (presence.state !== 'up') return
  // A clock was ahead and was set back: silence counts from now, and not only once that time has come again.
  if (presence.lastSeenMs > nowMs) presence.lastSeenMs = nowMs
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
  const { agentDownIds } = evaluation.companyRules(server.companyId)
  const suppression = evaluation.suppressionOf(server.companyId, server.serverId, agentDownIds, nowMs)
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
