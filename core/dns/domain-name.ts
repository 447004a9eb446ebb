// Names of the domain name system as texts: A-labels in lower case, without the dot at the end (RFC 1035, RFC 5891). In
// a zone a record's name is kept relative to it, `@` for the zone itself.
import { parseAddress } from '../network/ip-address.ts'

const NAME_MAX = 253
/** Host names and the labels of services: `_` may stand anywhere, `-` not at an end. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

const asciiLabel = (label: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is what is asked for.
  /^[\x00-\x7f]*$/.test(label) ? label.toLowerCase() : (URL.parse(`http://${label}`)?.hostname ?? '')

/**
 * The name that a text says, with or without its dot at the end; null for what no server takes: an empty label, one
 * over 63 characters, a name over 253, a `*` that is not the whole first label.
 */
export function parseDomainName(text: string): string | null {
  const labels = text.replace(/\.$/, '').split('.').map(asciiLabel)
  const areGood = labels.every((label, at) => LABEL.test(label) || (label === '*' && at === 0))
  const name = labels.join('.')
  return areGood && name.length <= NAME_MAX ? name : null
}

/** As `parseDomainName`, for what a record may lead to: no wildcard, and no IP address. */
export function parseHostName(text: string): string | null {
  const name = parseDomainName(text)
  return name === null || name.startsWith('*') || parseAddress(name) !== null ? null : name
}

export const isWithin = (name: string, zone: string): boolean => name === zone || name.endsWith(`.${zone}`)

/** `www` and `example.com` give `www.example.com`. */
export const fullName = (relative: string, zone: string): string => (relative === '@' ? zone : `${relative}.${zone}`)

/** `www.example.com` and `example.com` give `www`; the name must be within the zone. */
export const relativeName = (name: string, zone: string): string =>
  name === zone ? '@' : name.slice(0, -zone.length - 1)

/**
 * The relative name of a record in `zone`: from `@`, a relative name, or the whole name within the zone, with or
 * without its dot. `outside`: a name that ends in a dot and lies elsewhere.
 */
export function recordName(
  text: string,
  zone: string,
): { readonly name: string } | { readonly fault: 'form' | 'outside' } {
  if (text === '' || text === '@') return { name: '@' }
  const name = parseDomainName(text)
  if (name === null) return { fault: 'form' }
  if (isWithin(name, zone)) return { name: relativeName(name, zone) }
  if (text.endsWith('.')) return { fault: 'outside' }
  return fullName(name, zone).length <= NAME_MAX ? { name } : { fault: 'form' }
}

/** Whether addresses are looked up in the zone by their reversed text (RFC 1035 3.5, RFC 3596 2.5). */
export const isReverseZone = (zone: string): boolean => isWithin(zone, 'in-addr.arpa') || isWithin(zone, 'ip6.arpa')

/** The name whose PTR record belongs to an address; null for what is none. */
export function reverseName(address: string): string | null {
  const parsed = parseAddress(address)
  if (parsed === null) return null
  if (parsed.kind() === 'ipv4') return `${parsed.toByteArray().reverse().join('.')}.in-addr.arpa`
  const digits = parsed
    .toByteArray()
    .map(byte => byte.toString(16).padStart(2, '0'))
    .join('')
  return `${[...digits].reverse().join('.')}.ip6.arpa`
}
