// When the agent does what: the interval grid with its start-up jitter, the config poll and the update check (document
// 3 "Agent to collector"; decisions G-20, G-55). Randomness is passed in as numbers in [0, 1). How long the interval
// is: remote-config.ts; its token: token-renewal.ts; its wait after a failure: retry-wait.ts.
import { assert } from '../assert.ts'
import { limits } from '../limits.ts'
import { sha256Words } from '../series/hash.ts'

const HIGH_WORD = 2 ** 32
const HIGH_BITS = 2 ** 21

/** hash(agent_id) mod `modulus`: the first 53 bits of SHA-256, so that a fleet spreads evenly over any period. */
export function agentHash(agentId: string, modulus: number): number {
  assert(Number.isInteger(modulus) && modulus > 0, 'a hash is taken modulo a positive whole number')
  const { lo, hi } = sha256Words(agentId)
  return ((hi % HIGH_BITS) * HIGH_WORD + lo) % modulus
}

/** The start-up jitter: how far an agent's cycles lie after the whole multiples of its interval. */
export const cycleOffsetMs = (agentId: string, intervalMs: number): number => agentHash(agentId, intervalMs)

/** The first instant after `nowMs` on the agent's grid: n times the interval, plus its offset. */
export function nextCycleAtMs(nowMs: number, intervalMs: number, offsetMs: number): number {
  const cycles = Math.floor((nowMs - offsetMs) / intervalMs) + 1
  return cycles * intervalMs + offsetMs
}

/**
 * The instant of the next cycle: the planned one, whatever the clock reads while the agent waits. A slewed clock runs a
 * little behind or ahead of the timer, so computing the instant again from the clock could give the last one twice, or
 * skip one. The grid is used only when there is no plan, or when the clock was set back by more than half an interval.
 */
export function awaitedCycleAtMs(
  plannedAtMs: number | null,
  nowMs: number,
  intervalMs: number,
  offsetMs: number,
): number {
  const isPlanKept = plannedAtMs !== null && plannedAtMs - nowMs <= 1.5 * intervalMs
  return isPlanKept ? plannedAtMs : nextCycleAtMs(nowMs, intervalMs, offsetMs)
}

/** Milliseconds from the start to the first config poll: the phase of the agent in the poll period. */
export const firstConfigPollMs = (agentId: string): number => agentHash(`config:${agentId}`, limits.configPollMs)

/** Milliseconds from one config poll to the next: 300 s, up to 20 % less or more. */
export function configPollDelayMs(random: number): number {
  return Math.round(limits.configPollMs * (1 + limits.configPollJitter * (2 * random - 1)))
}

/** When a changed etag may be followed by a read of the config: at once, but at most once in 30 s. */
export function configReloadAtMs(nowMs: number, lastReloadAtMs: number | null): number {
  return lastReloadAtMs === null ? nowMs : Math.max(nowMs, lastReloadAtMs + limits.configReloadMinMs)
}

/**
 * Milliseconds from the start to the first check for an update: the agent's phase in the period, which is 6 hours by
 * default.
 */
export const firstUpdateCheckMs = (agentId: string, periodMs: number): number =>
  agentHash(`update:${agentId}`, periodMs)

/** The earliest instant of the next send: an agent never sends more often than every 15 s, whatever its interval. */
export function nextSendAtMs(nowMs: number, lastSendAtMs: number | null): number {
  return lastSendAtMs === null ? nowMs : Math.max(nowMs, lastSendAtMs + limits.sendPeriodMinMs)
}
