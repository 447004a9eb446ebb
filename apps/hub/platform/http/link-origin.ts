// The origin of the links that the hub hands out. A client can send any Host header, and a link made from it would lead
// the reader wherever that client wants. So the header counts only where it names this hub.

import { hostname, networkInterfaces } from 'node:os'
import { isLoopback, isWildcard } from '../../../../core/config/address.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { HubConfig } from '../../config.ts'

/** The scheme of a URL whose origin the hub does not know: responses then contain relative paths. */
const UNKNOWN = 'relative:'

/** The origin of a URL that the pipeline made; empty where the origin is not known. */
export const originOf = (url: URL): string => (url.protocol === UNKNOWN ? '' : url.origin)

function withHost(url: URL, name: string): URL {
  const changed = new URL(url)
  changed.hostname = name
  return changed
}

export class Links {
  private listener: URL | null = null
  private ownHosts: ReadonlySet<string> = new Set()

  constructor(private readonly config: HubConfig) {}

  /** Called once the listener has its port. */
  listensAt(url: string): void {
    const listener = new URL(url)
    const bound = listener.hostname
    const names = new Set([bound])
    if (isLoopback(bound) || isWildcard(bound)) for (const name of ['localhost', '127.0.0.1', '[::1]']) names.add(name)
    if (isWildcard(bound)) {
      names.add(hostname().toLowerCase())
      for (const { address, family } of Object.values(networkInterfaces()).flatMap(list => list ?? []))
        names.add(family === 'IPv6' ? `[${address}]` : address)
    }
    this.listener = listener
    this.ownHosts = new Set([...names].map(name => withHost(listener, name).host))
  }

  /** The URL of a request, with the origin that links in its response may have. */
  urlOf(request: IncomingRequest): URL {
    const asked = new URL(request.url)
    const known = this.config.public_url
    if (known === null && this.isOwn(asked)) return asked
    const origin = known?.replace(/\/+$/, '') ?? UNKNOWN
    return new URL(`${origin}${asked.pathname}${asked.search}`)
  }

  private isOwn(asked: URL): boolean {
    return (
      this.ownHosts.has(asked.host) || this.config.allowed_hosts.some(name => name.toLowerCase() === asked.hostname)
    )
  }

  /**
   * The origin of links in mails: `public_url`, else the listener's address as far as it is known. Never taken from a
   * request.
   */
  get base(): string {
    const { public_url: known } = this.config
    if (known !== null) return known.replace(/\/+$/, '')
    if (this.listener === null) return ''
    return (isWildcard(this.listener.hostname) ? withHost(this.listener, hostname()) : this.listener).origin
  }
}
