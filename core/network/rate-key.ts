// Which addresses count as one caller where requests, logins and enrollments are limited.
import ipaddr from 'ipaddr.js'
import { parseAddress } from './ip-address.ts'

/**
 * The key of a rate limit: an IPv4 address, or the /64 of an IPv6 address, since one subscriber usually has a whole
 * /64.
 */
export function rateKeyOf(text: string): string {
  const address = parseAddress(text)
  if (!(address instanceof ipaddr.IPv6)) return address?.toString() ?? text
  return `${new ipaddr.IPv6([...address.parts.slice(0, 4), 0, 0, 0, 0]).toString()}/64`
}
