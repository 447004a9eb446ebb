// Addresses and ranges: who called, whether a token may be used from there, whether an address is public.
import { BlockList, isIP } from 'node:net'

/** Adds `10.0.0.0/8`, `::1` and the like to a list. False for text that is neither an address nor a range. */
function addRange(blocks: BlockList, range: string): boolean {
  const [address = '', bits] = range.trim().split('/')
  const family = isIP(address)
  if (family === 0) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) {
    blocks.addAddress(address, type)
    return true
  }
  const prefix = Number(bits)
  if (!/^\d{1,3}$/.test(bits) || prefix > (family === 4 ? 32 : 128)) return false
  blocks.addSubnet(address, prefix, type)
  return true
}

export const isRange = (range: string): boolean => addRange(new BlockList(), range)

/** `::ffff:10.0.0.1` is the IPv4 address 10.0.0.1. */
export const plainAddress = (address: string): string => (/^::ffff:\d+\./i.test(address) ? address.slice(7) : address)

/** True when the address is in one of the ranges. */
export function isInRanges(address: string, ranges: readonly string[]): boolean {
  const plain = plainAddress(address)
  const family = isIP(plain)
  if (family === 0) return false
  const blocks = new BlockList()
  for (const range of ranges) addRange(blocks, range)
  return blocks.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}

/** The client's address: the peer, or what a trusted peer says in X-Forwarded-For (the last address that is not trusted). */
export function clientAddress(peer: string, forwardedFor: string | null, trusted: readonly string[]): string {
  let address = plainAddress(peer)
  if (!forwardedFor || trusted.length === 0) return address
  for (const hop of forwardedFor.split(',').reverse()) {
    if (!isInRanges(address, trusted)) break
    const next = plainAddress(hop.trim())
    if (isIP(next) === 0) break
    address = next
  }
  return address
}

const PRIVATE = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '192.0.2.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '::/96',
  // These carry an IPv4 address, which may be private.
  '64:ff9b::/96',
  '2001::/32',
  '2002::/16',
  '100::/64',
  '2001:db8::/32',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

export const isPrivateAddress = (address: string): boolean =>
  isIP(plainAddress(address)) === 0 || isInRanges(address, PRIVATE)
