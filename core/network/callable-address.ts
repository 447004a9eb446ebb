// Which addresses the hub may call for a company: public ones, and those that the operator allows; never the
// addresses where clouds hand out the credentials of a host, whatever is allowed.
import { IpRanges, parseAddress } from './ip-address.ts'
import { isPublicAddress } from './public-address.ts'

/** Where clouds answer with the credentials of the host itself, also in IPv6 forms that lead to an IPv4 address. */
const METADATA = new IpRanges([
  '169.254.169.254', // most clouds
  '64:ff9b::a9fe:a9fe', // the same, by NAT64
  '2002:a9fe:a9fe::/48', // the same, by 6to4
  '169.254.170.2', // containers of AWS
  '169.254.170.23',
  'fd00:ec2::254', // AWS
  'fd00:ec2::23',
  'fd20:ce::254', // Google Cloud
  '100.100.100.200', // Alibaba Cloud
  '168.63.129.16', // Azure, a public address by its number
  '192.0.0.192', // Oracle Cloud
])

/** What the operator allows beside the public internet. */
type AllowedTargets = { readonly allPrivate: boolean; readonly ranges: readonly string[] }

/** False for a text that is no address. */
export function isCallableAddress(text: string, allowed: AllowedTargets): boolean {
  const address = parseAddress(text)
  if (address === null || METADATA.covers(address)) return false
  return allowed.allPrivate || isPublicAddress(text) || new IpRanges(allowed.ranges).covers(address)
}
