// Puts requests in front of a handler that knows the URL they were sent to, as applications do: with scheme and host.
import type { Handle, Refusal } from './http-connection.ts'
import type { HttpRequest } from './http-request.ts'
import type { AnyResponse } from './http-response.ts'

/** A name, an IPv4 address or an IPv6 address in brackets, and a port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d{0,5})?$/
const HOSTS_MAX = 256
/** The methods that nearly every request has; of others the runtime is asked whether it knows them. */
const USUAL_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

type HostedHandler = {
  readonly scheme: 'http' | 'https'
  readonly handle: (request: HttpRequest, peer: string) => Promise<AnyResponse>
  readonly refuse: (fault: Refusal) => Response
}

/** The constructor of a Request replaces a method that it does not know by GET, and throws for some. */
function isMethod(method: string): boolean {
  if (USUAL_METHODS.has(method)) return true
  try {
    return new Request('http://localhost', { method }).method === method
  } catch {
    return false
  }
}

/** Passes each request on with its whole URL; one whose host or method cannot be understood is refused. */
export function hostedHandler({ scheme, handle, refuse }: HostedHandler): Handle {
  // To parse a host costs more than the rest of this, and clients send the same ones again and again.
  const knownOrigins = new Map<string, string>()
  const originOf = (host: string): string | null => {
    const known = knownOrigins.get(host)
    if (known !== undefined) return known
    const origin = `${scheme}://${host}`
    if (!HOST.test(host) || !URL.canParse(origin)) return null
    if (knownOrigins.size < HOSTS_MAX) knownOrigins.set(host, origin)
    return origin
  }
  return (request, peer) => {
    // HTTP/1.0 needs no Host header.
    const origin = originOf(request.headers.get('host') ?? 'localhost')
    if (origin === null) return refuse({ status: 400, message: 'the Host header is malformed' })
    if (!isMethod(request.method)) return refuse({ status: 501, message: `there is no method ${request.method} here` })
    request.placeAt(origin)
    return handle(request, peer())
  }
}

type FetchHandler = Pick<HostedHandler, 'scheme' | 'refuse'> & {
  readonly fetch: (request: Request, peer: string) => Promise<Response> | Response
}

/** The same for a handler of standard Requests. */
export const fetchHandler = ({ fetch, ...options }: FetchHandler): Handle =>
  hostedHandler({ ...options, handle: async (request, peer) => fetch(await request.standard(), peer) })
