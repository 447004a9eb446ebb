// The address that a request comes from: the peer's, or what a trusted proxy says in X-Forwarded-For (decisions G-10
// and G-15).
import { assert } from '../assert.ts'
import type { ConfigFault } from '../config/keys.ts'
import { IpRanges, isAddressOrRange, parseAddress } from './ip-address.ts'

/** The canonical text of an address, without brackets or zone. A text that is not an address stays unchanged. */
function addressText(text: string): string {
  const bare = text
    .trim()
    .replace(/^\[|\]$/g, '')
    .replace(/%.*$/, '')
  return parseAddress(bare)?.toString() ?? bare
}

/** What is wrong with the configuration key `trusted_proxies`. */
export const trustedProxyFaults = (entries: readonly string[]): ConfigFault[] =>
  entries
    .filter(entry => !isAddressOrRange(entry))
    .map(value => ({ key: 'trusted_proxies', value, message: 'is no address and no range such as 10.0.0.0/8' }))

/** Peers whose text is kept: the same ones send request after request, and each address would be parsed anew. */
const PEERS_MAX = 1024

export class TrustedProxies {
  private readonly ranges: IpRanges
  private readonly peers = new Map<string, string>()

  /** Addresses and ranges in CIDR form; the configuration has been checked. */
  constructor(entries: readonly string[]) {
    for (const entry of entries)
      assert(isAddressOrRange(entry), `trusted_proxies: ${entry} is no address and no range such as 10.0.0.0/8`)
    this.ranges = new IpRanges(entries)
  }

  private peerText(peer: string): string {
    const known = this.peers.get(peer)
    if (known !== undefined) return known
    const text = addressText(peer)
    if (this.peers.size >= PEERS_MAX) this.peers.clear()
    this.peers.set(peer, text)
    return text
  }

  isTrusted(peer: string): boolean {
    return !this.ranges.isEmpty && this.ranges.coversText(this.peerText(peer))
  }

  /**
   * The first address from the right of X-Forwarded-For that is not a trusted proxy; the peer's address when the peer
   * is not trusted.
   */
  clientAddress(peer: string, forwardedFor: string | null): string {
    let client = this.peerText(peer)
    if (forwardedFor === null || this.ranges.isEmpty) return client
    for (const hop of forwardedFor.split(',').reverse()) {
      const next = addressText(hop)
      if (!this.ranges.coversText(client) || parseAddress(next) === null) return client
      client = next
    }
    return client
  }
}
