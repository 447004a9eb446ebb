// What an operator sees of evaluation: counts for /status, and for one machine why each rule did or did not fire.

import { violates } from '../../../core/alerting/evaluate.ts'
import type { EvaluationState } from '../../../core/alerting/evaluation-state.ts'
import type { CompiledRule } from '../../../core/alerting/rule.ts'
import { shownKey } from '../../../core/alerting/series-dictionary.ts'
import { type ServerSeries, UNDEFINED } from '../../../core/alerting/server-series.ts'
import { FIRING, FLAG_NO_DATA, PENDING } from '../../../core/alerting/state-table.ts'
import type { SeriesAlerting, ServerAlerting, ShardStatus } from './shard-messages.ts'

/** Counts over everything that the thread owns. */
export function shardStatus(
  evaluation: EvaluationState,
  loop: {
    readonly partition: number
    readonly position: number
    readonly snapshotSeconds: number
    readonly snapshotBytes: number
  },
): ShardStatus {
  const { states } = evaluation
  let pending = 0
  let firing = 0
  let noData = 0
  for (let row = 0; row < states.end; row++) {
    if (states.rule[row] === -1) continue
    if (states.phase[row] === PENDING) pending++
    if (states.phase[row] === FIRING) {
      firing++
      if ((states.flags[row]! & FLAG_NO_DATA) !== 0) noData++
    }
  }
  let flapping = 0
  for (const flap of evaluation.flapping.values()) if (flap.isFlapping) flapping++
  let servers = 0
  let online = 0
  let series = 0
  let undefinedSeries = 0
  for (const server of evaluation.servers) {
    if (!server) continue
    servers++
    series += server.count
    for (let index = 0; index < server.count; index++) if (server.head[index] === UNDEFINED) undefinedSeries++
    if (server.presence.state === 'up') online++
  }
  const { evaluations, samples } = evaluation
  const { partition, position, snapshotSeconds, snapshotBytes } = loop
  return {
    partition,
    position,
    servers,
    online,
    series,
    states: states.count,
    pending,
    firing,
    noData,
    flapping,
    evaluations,
    samples,
    snapshotSeconds,
    snapshotBytes,
    undefinedSeries,
  }
}

/** Machines of a company whose agent is there. */
export function onlineServers(evaluation: EvaluationState, companyId: string): number {
  let count = 0
  for (const server of evaluation.servers)
    if (server?.companyId === companyId && server.presence.state === 'up') count++
  return count
}

/** Machines that are declared lost, and since when. */
export function downServers(evaluation: EvaluationState): [string, number][] {
  return evaluation.servers.flatMap((server): [string, number][] =>
    server?.presence.state === 'down' ? [[server.serverId, server.presence.downSinceMs]] : [],
  )
}

const instant = (ms: number): string | null => (Number.isFinite(ms) && ms > 0 ? new Date(ms).toISOString() : null)
const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000))

/** The alerting of one machine, series by series; null when the thread has not seen it. */
export function serverAlerting(evaluation: EvaluationState, serverId: string): ServerAlerting | null {
  const server = evaluation.servers.find(candidate => candidate?.serverId === serverId)
  if (!server) return null
  const series: SeriesAlerting[] = []
  for (let index = 0; index < server.count; index++)
    for (let row = server.head[index]!; row >= 0; row = evaluation.states.next[row]!)
      series.push(seriesAlerting(evaluation, server, row))
  const { state, lastSeenMs, intervalSeconds } = server.presence
  return { companyId: server.companyId, presence: { state, lastSeenMs, intervalSeconds }, series }
}

function seriesAlerting(evaluation: EvaluationState, server: ServerSeries, row: number): SeriesAlerting {
  const { states } = evaluation
  const index = states.series[row]!
  const definition = evaluation.dictionary.get(server.lo(index), server.hi(index))
  const rule = evaluation.slots[states.rule[row]!]!.rule
  const isFlapping = evaluation.flapping.get(row)?.isFlapping === true
  const phase = states.phase[row]!
  const lastValue = states.lastValue[row]!
  return {
    rule_id: rule.compiled.id,
    rule_name: rule.compiled.name,
    series_key: definition ? shownKey(definition) : '',
    state: phase === FIRING ? 'firing' : phase === PENDING ? 'pending' : 'ok',
    since:
      phase === FIRING ? instant(states.openedTsMs(row)) : phase === PENDING ? instant(states.sinceTsMs(row)) : null,
    last_value: Number.isFinite(lastValue) ? lastValue : null,
    last_sample_at: instant(states.lastTsMs[row]!),
    flapping: isFlapping,
    no_data: (states.flags[row]! & FLAG_NO_DATA) !== 0,
    decision: decision(evaluation, row, rule.compiled, violates(rule.operatorCode, lastValue, rule.threshold)),
  }
}

/** The last decision in words. */
function decision(evaluation: EvaluationState, row: number, rule: CompiledRule, isViolating: boolean): string {
  const { states } = evaluation
  const value = states.lastValue[row]!
  const condition = `${value} ${rule.operator} ${rule.threshold}`
  const heldMs = states.lastTsMs[row]! - states.sinceTsMs(row)
  if (Number.isNaN(value)) return 'no sample evaluated yet'
  if (states.phase[row] === PENDING) return `${condition} for ${seconds(heldMs)} s of ${seconds(rule.forMs)} s`
  if (states.phase[row] !== FIRING) return `${condition} does not hold`
  if ((states.flags[row]! & FLAG_NO_DATA) !== 0) return 'open because the series is silent'
  if (isViolating) return `open: ${condition} holds`
  if (Number.isNaN(states.sinceTsMs(row)))
    return `open: ${value} has not passed recover_threshold ${rule.recoverThreshold}`
  return `open: recovering for ${seconds(heldMs)} s of ${seconds(rule.recoverForMs)} s`
}
