// Blocks of addresses as texts (RFC 4632, RFC 4291): their usual spelling, and whether one holds an address.
import ipaddr from 'ipaddr.js'
import { type IpAddress, parseAddress } from './ip-address.ts'

type Cidr = { readonly address: IpAddress; readonly prefix: number }

const bitsOf = (address: IpAddress): number => (address.kind() === 'ipv4' ? 32 : 128)

/** The spelling of RFC 5952 for IPv6; dotted decimals for IPv4. */
export const addressText = (address: IpAddress): string =>
  address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString()

export const cidrText = ({ address, prefix }: Cidr): string => `${addressText(address)}/${prefix}`

/** Parses a block with its prefix length; null for anything else. */
export function parseCidr(text: string): Cidr | null {
  const parts = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text)
  const address = parts ? parseAddress(parts[1] ?? '') : null
  const prefix = Number(parts?.[2])
  // An IPv4 address in IPv6 form would have a prefix of the other family.
  if (!address || text.includes(':') !== (address.kind() === 'ipv6') || prefix > bitsOf(address)) return null
  return { address, prefix }
}

/** The block that an address with a prefix length lies in: the host bits are zero. */
export function networkOf({ address, prefix }: Cidr): Cidr {
  const bytes = address.toByteArray().map((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefix - index * 8))
    return byte & (0xff << (8 - bits)) & 0xff
  })
  return { address: ipaddr.fromByteArray(bytes), prefix }
}

/** Whether a block holds an address, or a block within it. */
export const holds = (block: Cidr, address: IpAddress): boolean =>
  block.address.kind() === address.kind() && address.match(block.address, block.prefix)

/** The usual spelling of an address; the text itself for anything else. */
export function normalAddress(text: string): string {
  const address = parseAddress(text)
  return address ? addressText(address) : text
}

/** The usual spelling of a block; the text itself for anything else. */
export function normalCidr(text: string): string {
  const block = parseCidr(text)
  return block ? cidrText(block) : text
}
