// IP addresses and ranges as texts: the one parser for trusted proxies, ranges of tokens, rate limits and the targets
// of webhooks. The library also reads octal, hexadecimal and shortened IPv4 ("0177.1", "127.1") and zones
// ("fe80::1%eth0"); programs disagree about those, so they are refused here.
import ipaddr from 'ipaddr.js'

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [IpAddress, number]

/** The bits of ::ffff:0:0/96, which carries IPv4 addresses in IPv6. */
const MAPPED_BITS = 96

/** True when the dotted part of a text, if any, is four plain decimal numbers. */
const isPlainText = (text: string): boolean => {
  if (text.includes('%')) return false
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  return !dotted.includes('.') || ipaddr.IPv4.isValidFourPartDecimal(dotted)
}

/** Parses an address; null for anything else. `::ffff:10.0.0.1` is the IPv4 address 10.0.0.1. */
export function parseAddress(text: string): IpAddress | null {
  if (!isPlainText(text)) return null
  if (!text.includes(':')) return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : null
  if (!ipaddr.IPv6.isValid(text)) return null
  const address = ipaddr.IPv6.parse(text)
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

/** Parses a range such as `10.0.0.0/8`, or an address as a range of one; null for anything else. */
function parseRange(text: string): Range | null {
  const parts = /^([^/]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text)
  const [, base = '', bits] = parts ?? []
  const address = parseAddress(base)
  if (!address) return null
  const isMapped = address.kind() === 'ipv4' && base.includes(':')
  const bitsMax = address.kind() === 'ipv4' && !isMapped ? 32 : 128
  const prefix = bits === undefined ? bitsMax : Number(bits)
  if (prefix > bitsMax || (isMapped && prefix < MAPPED_BITS)) return null
  return [address, isMapped ? prefix - MAPPED_BITS : prefix]
}

/** Whether a text is an address or a range of addresses in CIDR form. */
export const isAddressOrRange = (text: string): boolean => parseRange(text) !== null

/** Turns an IPv4-mapped IPv6 address into the IPv4 address; returns other texts unchanged. */
export function plainAddress(text: string): string {
  if (!text.includes(':')) return text
  const address = parseAddress(text)
  return address?.kind() === 'ipv4' ? address.toString() : text
}

/** A set of ranges. A malformed range covers nothing. */
export class IpRanges {
  private readonly ranges: readonly Range[]

  constructor(texts: readonly string[]) {
    this.ranges = texts.map(text => parseRange(text.trim())).filter(range => range !== null)
  }

  get isEmpty(): boolean {
    return this.ranges.length === 0
  }

  covers(address: IpAddress): boolean {
    return this.ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
  }

  /** Whether a range covers the address; false for a text that is not an address. */
  coversText(text: string): boolean {
    const address = this.isEmpty ? null : parseAddress(text)
    return address !== null && this.covers(address)
  }
}
