// The one guard for everything that the hub connects to on behalf of a company: a name is resolved once, and
// the connection goes to exactly the address that was checked, so that a name whose address changes between check and
// call reaches no internal host. Which addresses may be connected to: core/network/callable-address.ts.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import pTimeout from 'p-timeout'
import { isCallableAddress } from '../../../core/network/callable-address.ts'
import type { HubConfig } from '../config.ts'
import { invalidField } from './http/api-error.ts'
import { type ForwardProxy, openConnection, requestOver, secure } from './open-connection.ts'

const LOOKUP_MS = 10_000
const BODY_BYTES_MAX = 256 * 1024

type OutboundConfig = Pick<HubConfig, 'webhooks.allow_private' | 'outbound.allowed_ranges'>

/** Whether the hub may connect to an address for a company, as it is configured. */
export const isAllowedAddress = (config: OutboundConfig, text: string): boolean =>
  isCallableAddress(text, { allPrivate: config['webhooks.allow_private'], ranges: config['outbound.allowed_ranges'] })

type Resolved = { readonly addresses: readonly string[] } | { readonly fault: 'dns' | 'target_not_allowed' }

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')

/**
 * Hosts for work that holds locks, and so must not wait for name servers: what is known is answered, what is not counts
 * as allowed, until `lookUp` has looked it up and the work is done again.
 */
export class HostBook {
  private readonly known = new Map<string, Resolved>()
  private readonly missing = new Set<string>()

  find(host: string): Resolved {
    const found = this.known.get(host)
    if (found === undefined) this.missing.add(host)
    return found ?? { addresses: [] }
  }

  /** Looks up the hosts that were asked for. Returns false when all of them were known. */
  async lookUp(config: OutboundConfig): Promise<boolean> {
    const hosts = [...this.missing]
    this.missing.clear()
    const found = await Promise.all(hosts.map(host => resolveTarget(config, host)))
    for (const [index, host] of hosts.entries()) this.known.set(host, found[index] ?? { fault: 'dns' })
    return hosts.length > 0
  }
}

const books = new WeakMap<OutboundConfig, HostBook>()

/** A configuration under which hosts are looked for in a book only. */
export function withHostBook<C extends OutboundConfig>(config: C, book: HostBook): C {
  const own = { ...config }
  books.set(own, book)
  return own
}

/** The addresses of a host, which may all be connected to. One that may not refuses the host. */
export async function resolveTarget(config: OutboundConfig, host: string, timeoutMs = LOOKUP_MS): Promise<Resolved> {
  // An address needs no name server.
  const book = isIP(withoutBrackets(host)) === 0 ? books.get(config) : undefined
  if (book) return book.find(host)
  try {
    const found = await pTimeout(lookup(withoutBrackets(host), { all: true }), {
      milliseconds: timeoutMs,
      message: 'no answer in time',
    })
    if (found.length === 0) return { fault: 'dns' }
    const addresses = found.map(({ address }) => address)
    return addresses.every(address => isAllowedAddress(config, address))
      ? { addresses }
      : { fault: 'target_not_allowed' }
  } catch {
    return { fault: 'dns' }
  }
}

/**
 * Throws 422 on `field` for a host, or the host of a URL, that may not be connected to. A name that does not resolve
 * now is refused too.
 */
export async function refuseTarget(config: OutboundConfig, field: string, target: string): Promise<void> {
  const host = URL.parse(target)?.hostname || target
  const resolved = await resolveTarget(config, host)
  if ('fault' in resolved) throw invalidField(field, 'private_target')
}

type OutboundRequest = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly timeoutMs: number
  /** Certificates to trust instead of the system's. */
  readonly ca?: string
  /** False: whatever certificate the target shows. */
  readonly verifiesTls?: boolean
  /** The company's way out, if it has one for this. */
  readonly via?: ForwardProxy | null
}

/** A call through a forward proxy, by a tunnel to the checked address: the proxy sees no name, path or header. */
async function callThrough(
  url: URL,
  address: string,
  via: ForwardProxy,
  { method = 'GET', headers, body, timeoutMs, ca, verifiesTls = true }: OutboundRequest,
): Promise<Response> {
  const deadlineMs = performance.now() + timeoutMs
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const socket = await openConnection({ host: address, port }, via, deadlineMs)
  const tls = { deadlineMs, verifies: verifiesTls, ...(ca === undefined ? {} : { ca }) }
  return requestOver(isTls ? await secure(socket, withoutBrackets(url.hostname), tls) : socket, {
    method,
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, Host: url.host, 'Content-Length': String(Buffer.byteLength(body ?? '')) },
    deadlineMs,
    ...(body === undefined ? {} : { body }),
  })
}

/**
 * Calls a URL, connected to `address`, which was checked. The Host header and the name in the certificate stay those of
 * the URL. Follows no redirect. Throws on network errors and late responses.
 */
export function callAddress(url: URL, address: string, request: OutboundRequest): Promise<Response> {
  if (request.via) return callThrough(url, address, request.via, request)
  const target = new URL(url)
  target.hostname = isIP(address) === 6 ? `[${address}]` : address
  const isNamed = isIP(withoutBrackets(url.hostname)) === 0
  return fetch(target, {
    method: request.method ?? 'GET',
    headers: { ...request.headers, Host: url.host },
    redirect: 'manual',
    // The runtime reuses a kept connection by its address, even for another host name.
    keepalive: false,
    signal: AbortSignal.timeout(request.timeoutMs),
    tls: {
      ...(isNamed ? { serverName: url.hostname } : {}),
      ...(request.ca ? { ca: request.ca } : {}),
      ...(request.verifiesTls === false ? { rejectUnauthorized: false } : {}),
    },
    ...(request.body === undefined ? {} : { body: request.body }),
  })
}

/** The beginning of a body, at most 256 KiB of it; the rest is not read. */
export async function readBeginning(response: Response, bytesMax = BODY_BYTES_MAX): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = response.body?.getReader()
  while (reader && size < bytesMax) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    size += value.length
  }
  await reader?.cancel().catch(() => {})
  return Buffer.concat(chunks).subarray(0, bytesMax)
}
