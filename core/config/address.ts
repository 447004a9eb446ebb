// Addresses in configuration keys, `HOST:PORT`, and which of them mean this host only.

/** The host, without the brackets of IPv6, and the port of an address key. */
export function splitAddress(value: string): { hostname: string; port: number } {
  const at = value.lastIndexOf(':')
  return { hostname: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) }
}

/** The base of a URL: IPv6 in brackets. */
export const urlOf = (scheme: 'http' | 'https', hostname: string, port: number): string =>
  `${scheme}://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`

/** Whether a host name means loopback: plain HTTP needs no permission there, and only there (decision G-15). */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '::1' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** Whether a host name means all addresses of this host. */
export const isWildcard = (hostname: string): boolean => ['0.0.0.0', '::', '[::]'].includes(hostname)

/** What an operator can do when listening on an address failed with this system error code; null for other codes. */
export function listenAdvice(code: unknown, key = 'listen'): string | null {
  if (code === 'EADDRINUSE') return `another process has the port; stop that one, or change ${key}`
  if (code === 'EACCES') return 'a port below 1024 needs the capability CAP_NET_BIND_SERVICE'
  if (code === 'EADDRNOTAVAIL') return 'this host has no such address'
  return null
}

/** The code of an error of the system, such as EACCES; null for other values. */
export const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : null
