// For which hosts a certificate is good: by its names, wildcards among them (RFC 9525).
import { parseAddress } from '../../../core/network/ip-address.ts'
import type { CertificateInfo } from './chain.ts'

type Named = Pick<CertificateInfo, 'sans' | 'commonName'>

/** The names that a certificate is good for: its common name only where it has no other (RES-108). */
export const namesOf = ({ sans, commonName }: Named): readonly string[] =>
  sans.length > 0 ? sans : commonName === null ? [] : [commonName.toLowerCase()]

/** Whether two certificates are for the same names, in whatever order. */
export const hasSameNames = (one: Named, other: Named): boolean =>
  new Set(namesOf(one)).symmetricDifference(new Set(namesOf(other))).size === 0

/** A host in the form in which names of certificates are compared: an address in its usual spelling. */
export const normalHost = (host: string): string =>
  parseAddress(host)?.toString() ?? host.toLowerCase().replace(/\.$/, '')

/** `*.example.com` for `a.example.com`; null for an address and for a name of one label. */
export function wildcardOf(host: string): string | null {
  const dot = host.indexOf('.')
  return dot > 0 && parseAddress(host) === null ? `*${host.slice(dot)}` : null
}

/** RFC 9525: exactly, or a wildcard for one whole label. A wildcard that is asked for is itself. */
export function isGoodFor(certificate: Named, host: string): boolean {
  const wanted = normalHost(host)
  const names = namesOf(certificate)
  const wildcard = wildcardOf(wanted)
  return names.includes(wanted) || (wildcard !== null && names.includes(wildcard))
}
