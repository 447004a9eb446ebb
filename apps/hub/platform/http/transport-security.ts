// Which session cookie counts and which security headers a response has, by whether the browser speaks https with the
// hub or with a proxy that the hub trusts.
import type { HttpRequest, IncomingRequest } from '../../../http/http-request.ts'
import { type AnyResponse, headerLines } from '../../../http/http-response.ts'
import type { HubConfig } from '../../config.ts'
import { sessionCookie } from './caller.ts'
import { isTrustedProxy } from './client-address.ts'

/**
 * A browser accepts a cookie with this prefix over https only, from the host itself and for all its paths: no other
 * host can replace the session.
 */
const SECURE_PREFIX = '__Host-'

/**
 * Whether the browser speaks https: with the hub itself, or with a trusted proxy that says so or that stands behind an
 * https `public_url`.
 */
export function isSecure(config: HubConfig, request: IncomingRequest, peer: string): boolean {
  if (config['tls.cert_file'] !== null || request.url.startsWith('https:')) return true
  if (!isTrustedProxy(peer, config.trusted_proxies)) return false
  const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
  return forwarded === undefined ? /^https:/i.test(config.public_url ?? '') : forwarded === 'https'
}

/** The name of the session cookie that a browser is given. */
export const cookieName = (secure: boolean): string => (secure ? `${SECURE_PREFIX}${sessionCookie}` : sessionCookie)

/**
 * Removes all session cookies from a request but the one that counts, which gets its plain name: over https the one
 * with the prefix. There the plain one does not count, since any neighbouring host can set it.
 */
export function chooseSessionCookie(request: HttpRequest, secure: boolean): void {
  const header = request.headers.get('cookie')
  if (header === null || !header.includes(sessionCookie)) return
  const cookies = header.split(';').map(cookie => cookie.trim())
  const prefixed = cookies.find(cookie => cookie.startsWith(`${cookieName(true)}=`))
  const plain = secure ? undefined : cookies.find(cookie => cookie.startsWith(`${sessionCookie}=`))
  const chosen = prefixed?.slice(SECURE_PREFIX.length) ?? plain
  const names = [cookieName(true), cookieName(false)]
  const others = cookies.filter(cookie => !names.includes(cookie.split('=')[0] ?? ''))
  request.headers.set('cookie', [...(chosen === undefined ? [] : [chosen]), ...others].join('; '))
}

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
