// What a reverse proxy's site and a forward proxy may say, as texts. They end up in configurations of other programs,
// so each is held to a form in which nothing is a sign of those languages: no space, quote, brace, semicolon, `$`, `#`,
// `%` or backslash (the renderers of this folder rely on it and look again).
import { parseDomainName, parseHostName } from '../dns/domain-name.ts'
import { IpRanges, isAddressOrRange, parseAddress } from '../network/ip-address.ts'

const PATH = /^\/[A-Za-z0-9._~@:+,=/-]*$/
const HTTP_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }
const PROXY_PORTS: Readonly<Record<string, number>> = { ...HTTP_PORTS, 'socks5:': 1080 }
const USUAL_STATUS = '200-399'

/** A host name, or one with `*.` before it; null for anything else. */
export function parseSiteName(text: string): string | null {
  const name = parseDomainName(text)
  return name === null || name === '*' || parseAddress(name) !== null ? null : name
}

/** Where requests of a site begin: `/`, `/api`. */
export const isSitePath = (text: string): boolean => PATH.test(text)

/** An address or host name in the usual spelling; null for what is neither. */
export const parseHost = (text: string): string | null => parseAddress(text)?.toString() ?? parseHostName(text)

/** `[::1]` for an IPv6 address, other hosts unchanged. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)

type Endpoint = { readonly scheme: string; readonly host: string; readonly port: number; readonly path: string }

function parseEndpoint(text: string, ports: Readonly<Record<string, number>>): Endpoint | null {
  // The parser of URLs drops line breaks and tabs, and reads a backslash as a slash.
  if (/[\s\\\p{Cc}]/u.test(text)) return null
  const url = URL.parse(text)
  const usual = url === null ? undefined : ports[url.protocol]
  if (url === null || usual === undefined || url.username || url.password || text.includes('@')) return null
  if (url.search || url.hash || text.includes('?') || text.includes('#')) return null
  const host = parseHost(url.hostname.replace(/^\[|\]$/g, ''))
  const port = url.port === '' ? usual : Number(url.port)
  if (host === null || port < 1) return null
  const path = url.pathname.replace(/\/+$/, '')
  return path === '' || isSitePath(path) ? { scheme: url.protocol.slice(0, -1), host, port, path } : null
}

/** `http://host`, `https://host:8443/app`: where a site's requests go. Null for anything else. */
export const parseUpstreamUrl = (text: string): Endpoint | null => parseEndpoint(text, HTTP_PORTS)

/** `http://host:port`, `https://host:port`, `socks5://host:port`: no user, no path. Null for anything else. */
export function parseProxyUrl(text: string): Endpoint | null {
  const endpoint = parseEndpoint(text, PROXY_PORTS)
  return endpoint?.path === '' ? endpoint : null
}

export const proxyUrlText = ({ scheme, host, port }: Endpoint): string => `${scheme}://${hostInUrl(host)}:${port}`

/** A host, `.suffix` or CIDR that is reached without the proxy, in the usual spelling; null for anything else. */
export function parseDirectTarget(text: string): string | null {
  if (isAddressOrRange(text)) return text
  const name = parseHostName(text.replace(/^\./, ''))
  return name === null ? null : text.startsWith('.') ? `.${name}` : name
}

/** Whether a host, which has these addresses, is reached without the proxy. */
export function isDirectTarget(targets: readonly string[], host: string, addresses: readonly string[]): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  const ranges = new IpRanges(targets.filter(isAddressOrRange))
  return (
    addresses.some(address => ranges.coversText(address)) ||
    targets.some(target => (target.startsWith('.') ? name.endsWith(target) : name === target))
  )
}

/** `200`, or from-to such as `200-399`. */
const STATUS_RANGE = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/
export function isStatusRange(text: string): boolean {
  const [, from = '', to = from] = STATUS_RANGE.exec(text) ?? []
  return from !== '' && from <= to
}

/** Whether a status is one of those that are expected. */
export function isExpectedStatus(expected: string | readonly number[], status: number): boolean {
  if (typeof expected !== 'string') return expected.includes(status)
  const [, from = '', to = from] = STATUS_RANGE.exec(expected) ?? STATUS_RANGE.exec(USUAL_STATUS) ?? []
  return status >= Number(from) && status <= Number(to)
}

/** Names of a site or a certificate: those that stand for all below them, and the others. */
export function splitWildcards(names: readonly string[]): { readonly wild: string[]; readonly exact: string[] } {
  const { wild = [], exact = [] } = Object.groupBy(names, name => (name.startsWith('*.') ? 'wild' : 'exact'))
  return { wild, exact }
}
