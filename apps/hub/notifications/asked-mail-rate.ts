// How many mails a company's people may cause in a minute: invitations, tests, new group addresses, repeated
// deliveries.
import type { Hub } from '../hub-context.ts'
import { tooManyRequests } from '../platform/http/api-error.ts'
import type { Caller } from '../platform/http/caller.ts'

/**
 * Counts a message that a user's request causes: an invitation, a test, a new group address, a repeated delivery.
 * Messages caused by alerts are not counted. Throws 429.
 */
export function countAskedMail(hub: Hub, caller: Caller, companyId: string): void {
  const key = `asked mail ${caller.user.companyId ?? companyId}`
  const taken = hub.requestWindows.take(key, hub.config['rate.mail_per_minute'])
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}
