// The address that an agent calls from: the peer's, or what a trusted proxy says (decision G-15).
import { BlockList, isIP } from 'node:net'

export class TrustedProxies {
  private readonly list = new BlockList()
  private readonly isEmpty: boolean

  /** Addresses and ranges (CIDR). Throws naming an entry that is neither. */
  constructor(entries: readonly string[]) {
    this.isEmpty = entries.length === 0
    for (const entry of entries) {
      const [base = '', bits] = entry.split('/')
      const family = isIP(base)
      const prefix = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits)
      if (family === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > (family === 4 ? 32 : 128))
        throw new Error(`trusted_proxies: ${entry} is no address and no range such as 10.0.0.0/8`)
      this.list.addSubnet(base, prefix, family === 4 ? 'ipv4' : 'ipv6')
    }
  }

  private isTrusted(address: string): boolean {
    const family = isIP(address)
    return !this.isEmpty && family !== 0 && this.list.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }

  /** From the right of X-Forwarded-For, the first address that is no trusted proxy; the peer when nobody trusted speaks. */
  clientAddress(peer: string, forwardedFor: string | null): string {
    let client = plainAddress(peer)
    if (forwardedFor === null) return client
    const hops = forwardedFor.split(',').map(plainAddress).reverse()
    for (const hop of hops) {
      if (!this.isTrusted(client) || isIP(hop) === 0) return client
      client = hop
    }
    return client
  }
}

/** Without the IPv6 form of an IPv4 address, zone or brackets. */
function plainAddress(address: string): string {
  return address
    .trim()
    .replace(/^\[|\]$/g, '')
    .replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
    .replace(/%.*$/, '')
}
