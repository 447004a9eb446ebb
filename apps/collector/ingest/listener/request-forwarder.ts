// Forwards control requests from a listener thread to the main thread, which has the registry and the hub. The listener
// thread reads the body, within its limit, and sends the main thread's response unchanged.

import { ApiError } from '../../../http/api-error.ts'
import { readBody } from '../../../http/body-limits.ts'
import type { Endpoint, Endpoints } from '../../../http/endpoint-listener.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { type AnyResponse, standard } from '../../../http/http-response.ts'
import type { CallClient } from '../../thread-calls.ts'
import { controlEndpoints } from './agent-endpoints.ts'
import type { ForwardedRequest, ForwardedResponse, MainCalls } from './thread-messages.ts'

/** The listener thread's side. */
export class RequestForwarder {
  constructor(
    private readonly bodyBytesMax: number,
    private readonly calls: CallClient<MainCalls>,
  ) {}

  endpoints(): Endpoints {
    return controlEndpoints(() => (request, peer) => this.carry(request, peer()))
  }

  private async carry(request: IncomingRequest, peer: string): Promise<Response> {
    const headers = new Headers([...request.headers].map(([name, value]) => [name, value] as [string, string]))
    const read = request.method === 'POST' ? await readBody(request, this.bodyBytesMax) : null
    // A body beyond the limit is replaced by a Content-Length beyond the limit, so that the main thread refuses it at
    // the point where it would read it.
    headers.delete('transfer-encoding')
    if (read instanceof ApiError) headers.set('content-length', String(this.bodyBytesMax + 1))
    else if (read) headers.set('content-length', String(read.length))
    const body = read instanceof ApiError || read === null || read.length === 0 ? null : new Uint8Array(read)
    const forwarded = { url: request.url, method: request.method, headers: [...headers], body, peer }
    const response = await new Promise<ForwardedResponse>((resolve, reject) =>
      this.calls.send('forward', [forwarded], { resolve, reject }, body ? [body.buffer] : []),
    )
    return new Response(response.body.length > 0 ? response.body : null, {
      status: response.status,
      headers: [...response.headers],
    })
  }
}

/** The main thread's side: handles a forwarded request as if it had come over a connection of the main thread. */
export async function answerForwarded(
  endpoints: Endpoints,
  { url, method, headers, body, peer }: ForwardedRequest,
  toResponse: (endpoint: Endpoint, request: Request, peer: () => string) => Promise<AnyResponse>,
): Promise<ForwardedResponse> {
  const endpoint = endpoints[new URL(url).pathname]
  if (!endpoint) return { status: 404, headers: [], body: new Uint8Array(0) }
  const request = new Request(url, { method, headers: [...headers], ...(body ? { body } : {}) })
  const response = standard(await toResponse(endpoint, request, () => peer))
  return { status: response.status, headers: [...response.headers], body: new Uint8Array(await response.arrayBuffer()) }
}
