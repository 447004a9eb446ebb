// Whether the browser speaks https with the hub, or with a proxy that the hub trusts. What depends on it:
// session-cookie.ts, security-headers.ts.
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { HubConfig } from '../../config.ts'
import { isTrustedProxy } from './client-address.ts'

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
