// Which security headers a response has.
import { type AnyResponse, headerLines } from '../../../http/http-response.ts'
import type { HubConfig } from '../../config.ts'

/**
 * The Content-Security-Policy of a response that does not set its own, as pages do: the browser may load and run
 * nothing.
 */
const NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'"

/** Adds the headers that every answer has. A plain response has no policy of its own. */
export function secureResponse(config: HubConfig, response: AnyResponse, secure: boolean): AnyResponse {
  const seconds = Math.floor(config['tls.hsts_max_age'] / 1000)
  const added: Record<string, string> = { 'X-Content-Type-Options': 'nosniff' }
  if (secure && seconds > 0) added['Strict-Transport-Security'] = `max-age=${seconds}`
  const isPlain = !(response instanceof Response)
  if (isPlain || !response.headers.has('Content-Security-Policy')) added['Content-Security-Policy'] = NOTHING_ALLOWED
  if (isPlain) return { ...response, head: response.head + headerLines(added) }
  for (const name in added) response.headers.set(name, added[name]!)
  return response
}
