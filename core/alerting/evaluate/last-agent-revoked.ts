// What becomes of the open alerts and the states of a server whose last agent was revoked (decision G-48).
import { closeForChange } from '../rules/apply-rule-change.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { forgetServer, removeState } from '../state/removal.ts'
import type { ServerSeries } from '../state/server-series.ts'

/**
 * The last agent of a server was revoked (decision G-48): closes its alerts and drops its presence without an event.
 * `agentIds` are the revoked agents; nothing happens when another agent already sends for the server.
 */
export function leaveScope(
  evaluation: EvaluationState,
  server: ServerSeries,
  agentIds: readonly string[],
  nowMs: number,
): void {
  if (!agentIds.includes(server.presence.agentId)) return
  for (let index = 0; index < server.count; index++)
    while (server.head[index]! >= 0) {
      const row = server.head[index]!
      closeForChange(evaluation, row, evaluation.slots[evaluation.states.rule[row]!]!.rule, 'out_of_scope', nowMs)
      removeState(evaluation, row)
    }
  forgetServer(evaluation, server)
  const { key, companyId, serverId, shard } = server
  const removed = { kind: 'left', key, companyId, serverId, shard, agentIds, leftAtMs: nowMs } as const
  evaluation.noteRemovedServer(removed)
  evaluation.newlyRemovedServers.push(removed)
}
