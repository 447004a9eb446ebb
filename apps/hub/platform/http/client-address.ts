// The address of a request's client, and whether a token may be used from there. Address lists come from the
// configuration and are the same at each request, so they are parsed once.
import { IpRanges } from '../../../../core/network/ip-address.ts'
import { TrustedProxies } from '../../../../core/network/trusted-proxies.ts'

const proxiesOf = new WeakMap<readonly string[], TrustedProxies>()

function parsed(trusted: readonly string[]): TrustedProxies {
  const known = proxiesOf.get(trusted) ?? new TrustedProxies(trusted)
  proxiesOf.set(trusted, known)
  return known
}

/**
 * The client's address: the peer, or what a trusted peer says in X-Forwarded-For (the last address that is not
 * trusted).
 */
export const clientAddress = (peer: string, forwardedFor: string | null, trusted: readonly string[]): string =>
  parsed(trusted).clientAddress(peer, forwardedFor)

export const isTrustedProxy = (peer: string, trusted: readonly string[]): boolean => parsed(trusted).isTrusted(peer)

/** True when the address is in one of the ranges. */
export const isInRanges = (address: string, ranges: readonly string[]): boolean =>
  new IpRanges(ranges).coversText(address)
