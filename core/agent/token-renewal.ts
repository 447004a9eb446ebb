// When an agent renews its token (document 3 "Agent token overlap").
import { DAY_MS } from '../limits.ts'
import { agentHash } from './schedule.ts'

/**
 * When a token is due for renewal: its age reaches the period minus hash(agent_id) mod 24 h, so that every agent renews
 * within any window as long as the period. When the period is too short for a spread of a day, renewals spread over
 * half of it.
 */
export function renewalDueAtMs(issuedAtMs: number, periodMs: number, agentId: string): number {
  const spreadMs = Math.max(1, Math.min(DAY_MS, Math.floor(periodMs / 2)))
  return issuedAtMs + periodMs - agentHash(`renew:${agentId}`, spreadMs)
}
