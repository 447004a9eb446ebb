// The address that an agent calls from: the peer's, or what a trusted proxy says (decision G-15).
import { BlockList, isIP } from 'node:net'
import { assert } from '../../../../core/assert.ts'

type Subnet = { readonly base: string; readonly prefix: number; readonly family: 'ipv4' | 'ipv6' }

/** An address, or a range in CIDR form; null when it is neither. */
function parseSubnet(entry: string): Subnet | null {
  const [base = '', bits, ...rest] = entry.split('/')
  const family = isIP(base)
  const prefixMax = family === 4 ? 32 : 128
  if (family === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return null
  const prefix = bits === undefined ? prefixMax : Number(bits)
  return prefix > prefixMax ? null : { base, prefix, family: family === 4 ? 'ipv4' : 'ipv6' }
}

export const isAddressOrRange = (entry: string): boolean => parseSubnet(entry) !== null

export class TrustedProxies {
  private readonly list = new BlockList()
  private readonly isEmpty: boolean

  /** Addresses and ranges (CIDR); the configuration has been checked. */
  constructor(entries: readonly string[]) {
    this.isEmpty = entries.length === 0
    for (const entry of entries) {
      const subnet = parseSubnet(entry)
      assert(subnet, `trusted_proxies: ${entry} is no address and no range such as 10.0.0.0/8`)
      this.list.addSubnet(subnet.base, subnet.prefix, subnet.family)
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
