// The life of an agent record in the hub: which state enrollment gives it, when it counts as online, and what a
// rotation of its token does (document 1 "Agent state", "Token rotation"; decisions G-24, G-26, G-31).
import { limits } from '../limits.ts'

export const agentStates = ['pending', 'active', 'revoked'] as const
export type AgentState = (typeof agentStates)[number]

/** An agent waits for approval exactly when its server is a draft that enrollment made. */
export const stateAtEnrollment = (serverStatus: string): AgentState => (serverStatus === 'draft' ? 'pending' : 'active')

export type Connectivity = 'online' | 'down' | 'unknown'

/**
 * Connectivity of an agent by the hub's records: unknown while it is not active or was never seen; online when it was
 * seen within the threshold and no agent.down alert is open; else down. A server has the connectivity of its agent, and
 * is unknown without one. Queries that filter many agents express the same rule in SQL
 * (apps/hub/agents/connectivity.ts).
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

/** A collector is online while its last heartbeat is at most 180 s old. */
export function collectorStatus(lastHeartbeatAtMs: number | null, nowMs: number): 'online' | 'offline' | 'never' {
  if (lastHeartbeatAtMs === null) return 'never'
  return nowMs - lastHeartbeatAtMs <= limits.collectorOnlineMs ? 'online' : 'offline'
}

/** The server status in an agent record: empty for statuses that do not suppress. */
export const serverStatusOfRecord = (status: string | null): 'maintenance' | 'decommissioned' | '' =>
  status === 'maintenance' || status === 'decommissioned' ? status : ''

export type TokenPair = {
  readonly state: AgentState
  readonly tokenHash: string
  readonly prevTokenHash: string | null
  readonly prevTokenExpiresAtMs: number | null
  /** Times of earlier rotations, at least those within the last hour. */
  readonly rotatedAtMs: readonly number[]
}

export type Rotation =
  | { readonly kind: 'not_found' }
  | { readonly kind: 'rate_limited'; readonly retryAfterSeconds: number }
  | {
      readonly kind: 'rotated'
      readonly tokenHash: string
      readonly prevTokenHash: string
      readonly prevTokenExpiresAtMs: number
      readonly rotatedAtMs: readonly number[]
    }

const HOUR_MS = 3_600_000

/**
 * Rotates the token of an agent that presents the hash of its current token, or of its previous one while that is
 * valid. The result does not tell revoked, pending and mismatching agents apart. The caller has locked the rows.
 */
export function rotateToken(
  agent: TokenPair,
  presentedHash: string,
  newTokenHash: string,
  rotationsPerHour: number,
  nowMs: number,
): Rotation {
  const isCurrent = presentedHash === agent.tokenHash
  const isPrevious =
    agent.prevTokenHash !== null &&
    presentedHash === agent.prevTokenHash &&
    agent.prevTokenExpiresAtMs !== null &&
    agent.prevTokenExpiresAtMs > nowMs
  if (agent.state !== 'active' || (!isCurrent && !isPrevious)) return { kind: 'not_found' }

  const recent = agent.rotatedAtMs.filter(atMs => atMs > nowMs - HOUR_MS).sort((a, b) => a - b)
  if (recent.length >= rotationsPerHour) {
    const oldest = recent[recent.length - rotationsPerHour] ?? nowMs
    return { kind: 'rate_limited', retryAfterSeconds: Math.max(1, Math.ceil((oldest + HOUR_MS - nowMs) / 1000)) }
  }
  const rotatedAtMs = [...recent, nowMs]
  if (isCurrent)
    return {
      kind: 'rotated',
      tokenHash: newTokenHash,
      prevTokenHash: agent.tokenHash,
      prevTokenExpiresAtMs: nowMs + limits.tokenOverlapMs,
      rotatedAtMs,
    }
  // The agent presents its previous token, so it failed to store the one of the last rotation. That one is replaced;
  // the overlap of the previous token stays.
  return {
    kind: 'rotated',
    tokenHash: newTokenHash,
    prevTokenHash: agent.prevTokenHash as string,
    prevTokenExpiresAtMs: agent.prevTokenExpiresAtMs as number,
    rotatedAtMs,
  }
}
