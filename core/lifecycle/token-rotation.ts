// What a rotation does to the token pair of an agent (document 1 "Token rotation").
import { limits } from '../limits.ts'
import type { AgentState } from './agent.ts'

export type TokenPair = {
  readonly state: AgentState
  readonly tokenHash: string
  readonly prevTokenHash: string | null
  readonly prevTokenExpiresAtMs: number | null
  /** Times of earlier rotations, at least those within the last hour. */
  readonly rotatedAtMs: readonly number[]
}

type Rotation =
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
