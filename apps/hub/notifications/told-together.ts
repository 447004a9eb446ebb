// How soon a company is told again after it has been told: what happens meanwhile is told together. What happens after
// a quiet time is told at once.
import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'

const GATHER_MS = 500

/** Tells a company; of several that begin soon after another one the first does it. */
export function toldTogether(tell: (companyId: string) => Promise<void>): (companyId: string) => Promise<void> {
  const justTold = new LRUCache<string, true>({ max: 10_000, ttl: GATHER_MS })
  const waiting = new Set<string>()
  return async companyId => {
    if (waiting.has(companyId)) return
    waiting.add(companyId)
    await setTimeout(Math.max(0, justTold.getRemainingTTL(companyId)))
    // From here on what is written is for the next one.
    waiting.delete(companyId)
    await tell(companyId)
    justTold.set(companyId, true)
  }
}
