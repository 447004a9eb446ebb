// How many acts that leave the hub a company may start in a minute.
import type { Hub } from '../hub-context.ts'
import { tooManyRequests } from '../platform/http/api-error.ts'

/** Acts that leave the hub, a minute and company. */
const ACTS_PER_MINUTE = 30

/** Throws 429 for more acts in a minute than a company has. */
export function takeAct(hub: Hub, companyId: string): void {
  const taken = hub.requestWindows.take(`outbound ${companyId}`, ACTS_PER_MINUTE)
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}
