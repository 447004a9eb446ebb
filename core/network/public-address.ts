// Which addresses belong to the public internet: global unicast less everything that IANA has set aside for special
// purposes (RFC 6890 and its successors: the IPv4 and the IPv6 Special-Purpose Address Registry). What the hub may
// call: callable-address.ts.
import { type IpAddress, IpRanges, parseAddress } from './ip-address.ts'

/** The IPv4 registry, with multicast (224.0.0.0/4). */
const SPECIAL_IPV4 = new IpRanges([
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // shared address space of carriers
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link local, metadata of clouds
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // IETF protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays, deprecated
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, limited broadcast
])

/**
 * The only IPv6 range that is assigned as global unicast. Outside lie loopback, NAT64, discard, SRv6 SIDs, local and
 * multicast addresses.
 */
const GLOBAL_IPV6 = new IpRanges(['2000::/3'])

/** What the IPv6 registry sets aside inside that range. */
const SPECIAL_IPV6 = new IpRanges([
  '2001::/23', // IETF protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, drone remote identification
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which carries an IPv4 address
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
])

const isPublic = (address: IpAddress): boolean =>
  address.kind() === 'ipv4'
    ? !SPECIAL_IPV4.covers(address)
    : GLOBAL_IPV6.covers(address) && !SPECIAL_IPV6.covers(address)

/** False for a text that is no address. An IPv4 address in IPv6 form (::ffff:0:0/96) counts as the IPv4 address. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && isPublic(address)
}
