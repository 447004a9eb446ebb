// How many requests a minute a caller has (decision G-10): by token, by the address of a session, by collector or
// matcher.
import { rateKeyOf } from '../../../../core/network/ip-address.ts'
import type { HubConfig } from '../../config.ts'
import type { Hub } from '../../hub-context.ts'
import { tooManyRequests } from './api-error.ts'
import type { Caller } from './caller.ts'
import type { Family, ResponseHeaders } from './respond.ts'

/** The most that a company may give a token: its own bound, else the hub's. */
export const tokenRateMax = (config: HubConfig, ofCompany: number | null | undefined): number =>
  ofCompany ?? config['rate.token_max_per_minute']

/**
 * What a token may ask a minute. One that was issued on the screen has at most what the operator lets the company give.
 */
function ownLimit(config: HubConfig, caller: Caller): number {
  const given = caller.ratePerMinute
  if (given === null) return config['rate.default_per_minute']
  return caller.isIssued ? Math.min(given, tokenRateMax(config, caller.rateMax)) : given
}

/** Counts a request of the caller, says in the headers what is left, and refuses one too many. Throws 429. */
export function checkRate(hub: Hub, family: Family, caller: Caller, ip: string, headers: ResponseHeaders): void {
  const { config } = hub
  const own = ownLimit(config, caller)
  const [key, limit] =
    family === 'collector'
      ? [`collector ${caller.credentialId}`, config['rate.collector_per_minute']]
      : family === 'matcher'
        ? [`matcher ${caller.credentialId}`, config['rate.matcher_per_minute']]
        : caller.kind === 'session'
          ? [`session ${rateKeyOf(ip)}`, config['rate.session_per_minute']]
          : [`token ${caller.credentialId}`, own]
  const taken = hub.requestWindows.take(key, limit)
  headers['X-RateLimit-Limit'] = String(taken.limit)
  headers['X-RateLimit-Remaining'] = String(taken.remaining)
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}
