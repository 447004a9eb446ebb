// Whether the hub counts an agent and its server as online (document 1 "Agent"; decision G-31). When a silent agent is
// declared down is decided in core/alerting/evaluate/agent-down.ts.
import { limits } from '../limits.ts'
import type { AgentState } from './agent.ts'

type Connectivity = 'online' | 'down' | 'unknown'

/**
 * Connectivity of an agent by the hub's records: unknown while it is not active or was never seen; online when it was
 * seen within the threshold and no agent.down alert is open; else down. A server has the connectivity of its agent, and
 * is unknown without one. Queries that filter many agents express the same rule in SQL
 * (apps/hub/agents/connectivity-sql.ts).
 */
export function connectivityOf(
  agent: { readonly state: AgentState; readonly lastSeenAtMs: number | null } | undefined,
  hasDownAlert: boolean,
  nowMs: number,
  thresholdMs: number = limits.hubOnlineThresholdMs,
): Connectivity {
  if (agent?.state !== 'active' || agent.lastSeenAtMs === null) return 'unknown'
  return nowMs - agent.lastSeenAtMs <= thresholdMs && !hasDownAlert ? 'online' : 'down'
}
