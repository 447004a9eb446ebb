// The request rate limit of each caller (decision G-10): by token, by the address of a session, by collector or
// matcher.
import { rateKeyOf } from '../../../../core/network/rate-key.ts'
import type { HubConfig } from '../../config.ts'
import type { Hub } from '../../hub-context.ts'
import { tooManyRequests } from './api-error.ts'
import type { Caller } from './caller.ts'
import type { Family, ResponseHeaders } from './respond.ts'

/** The highest limit that a company may give to a token: the company's own bound, else the hub's. */
export const tokenRateMax = (config: HubConfig, ofCompany: number | null | undefined): number =>
  ofCompany ?? config['rate.token_max_per_minute']

/**
 * The requests a minute of a token. For one created in the web interface, at most the bound that the operator set for
 * the company.
 */
function ownLimit(config: HubConfig, caller: Caller): number {
  const given = caller.ratePerMinute
  if (given === null) return config['rate.default_per_minute']
  return caller.isIssued ? Math.min(given, tokenRateMax(config, caller.rateMax)) : given
}

/** Counts a request of the caller, and writes the rest of the limit into the headers. Throws 429 over the limit. */
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
