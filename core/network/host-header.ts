// Which names a listener on loopback answers to. It needs no token, because nobody else reaches it; but a page in a
// browser on this host does, once the name of its own server leads to 127.0.0.1 (DNS rebinding). Such a request carries
// that name as its Host.
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
 * Whether a listener on `hostname` answers a request with this Host header. Elsewhere than on loopback every name is
 * good. There it is an address, which no page can make its own, localhost, or one of `allowed`. HTTP/1.0 sends none,
 * browsers always do.
 */
export function answersToHost(host: string | null, hostname: string, allowed: readonly string[]): boolean {
  if (host === null || !isLoopback(hostname)) return true
  const name = nameOf(host)
  if (name === 'localhost' || name.endsWith('.localhost') || parseAddress(name) !== null) return true
  return allowed.some(each => each.toLowerCase() === name)
}

/** What a refused request is told. */
export const hostRefusal = 'this listener answers to an address or to localhost; add the name to ops.allowed_hosts\n'
