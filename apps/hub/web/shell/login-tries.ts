// How a password or a code of a login is tried: one at a time from an address, and within the limits of
// identity/login-attempts.ts.
import { availableParallelism } from 'node:os'
import { rateKeyOf } from '../../../../core/network/rate-key.ts'
import type { Hub } from '../../hub-context.ts'
import { countLoginFailure, mayFailAgain } from '../../identity/login-attempts.ts'
import { FairTurns } from '../../platform/fair-turns.ts'

const WAITING_MAX = 100

/**
 * A hash occupies a core and 64 MiB of memory, outside the thread that answers requests. One address has one login at a
 * time, so that concurrent attempts cannot pass a limit that is checked before each.
 */
const logins = new FairTurns(Math.max(1, Math.floor(availableParallelism() / 2)), WAITING_MAX)

export type Refused =
  | { readonly refused: 'wrong' | 'busy' }
  | { readonly refused: 'limited'; readonly retryAfterSeconds: number }

const limited = (retryAfterSeconds: number): Refused => ({ refused: 'limited', retryAfterSeconds })

/** Runs a try for the address of a person, unless too many have failed; one that is wrong counts. */
export async function tryLogin<T extends object>(
  hub: Hub,
  email: string,
  ip: string,
  attempt: () => Promise<T | Refused>,
): Promise<T | Refused> {
  const answer = await logins.run(rateKeyOf(ip), async () => {
    const allowance = mayFailAgain(hub.requestWindows, email, ip)
    if (!allowance.allowed) return limited(allowance.retryAfterSeconds)
    const result = await attempt()
    if ('refused' in result && result.refused === 'wrong') countLoginFailure(hub.requestWindows, email, ip)
    return result
  })
  return answer ?? { refused: 'busy' }
}
