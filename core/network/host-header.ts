// Which Host headers a listener on loopback accepts. It needs no token, because other hosts cannot reach it. But a web
// page in a browser on this host can, when the page's domain name resolves to 127.0.0.1 (DNS rebinding); its requests
// carry that name as their Host.
import { isLoopback } from '../config/address.ts'
import { parseAddress } from './ip-address.ts'

/** The name of a Host header, without port, brackets and the dot at the end. */
const nameOf = (host: string): string =>
  host
    .trim()
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')

/**
 * Whether a listener on `hostname` answers a request with this Host header. A listener that is not on loopback accepts
 * every name. On loopback it accepts IP addresses (no page can take one as its domain), localhost and the names in
 * `allowed`. A request without Host is accepted: HTTP/1.0 clients send none, browsers always do.
 */
export function answersToHost(host: string | null, hostname: string, allowed: readonly string[]): boolean {
  if (host === null || !isLoopback(hostname)) return true
  const name = nameOf(host)
  if (name === 'localhost' || name.endsWith('.localhost') || parseAddress(name) !== null) return true
  return allowed.some(each => each.toLowerCase() === name)
}

/** The body of the refusal. */
export const hostRefusal = 'this listener answers to an address or to localhost; add the name to ops.allowed_hosts\n'
