// Counts over what a thread evaluates, for /status and the groups.

import type { EvaluationState } from '../../../../core/alerting/state/evaluation-state.ts'
import { UNDEFINED } from '../../../../core/alerting/state/server-series.ts'
import { FIRING, FLAG_NO_DATA, PENDING } from '../../../../core/alerting/state/state-table.ts'
import type { ShardStatus } from './shard-messages.ts'

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

/** The number of the company's servers whose agent is up. */
export function onlineServers(evaluation: EvaluationState, companyId: string): number {
  let count = 0
  for (const server of evaluation.servers)
    if (server?.companyId === companyId && server.presence.state === 'up') count++
  return count
}

/** Servers that are declared lost, and since when. */
export function downServers(evaluation: EvaluationState): [string, number][] {
  return evaluation.servers.flatMap((server): [string, number][] =>
    server?.presence.state === 'down' ? [[server.serverId, server.presence.downSinceMs]] : [],
  )
}
