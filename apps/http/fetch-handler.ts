// Adapts a handler of standard Requests, as applications are written, to a listener of this folder.
import type { Handle, Refusal } from './http-connection.ts'
import type { HttpRequest } from './http-request.ts'
import type { RequestBody } from './request-body.ts'

/** A name, an IPv4 address or an IPv6 address in brackets, and a port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d{0,5})?$/

type FetchHandler = {
  readonly scheme: 'http' | 'https'
  readonly fetch: (request: Request, peer: string) => Promise<Response> | Response
  readonly refuse: (fault: Refusal) => Response
}

/** Passes each request to `fetch` as a Request; one that cannot be made into a Request is refused. */
export function fetchHandler({ scheme, fetch, refuse }: FetchHandler): Handle {
  return async (incoming, peer) => {
    // HTTP/1.0 needs no Host header.
    const host = incoming.headers.get('host') ?? 'localhost'
    const url = `${scheme}://${host}${incoming.target}`
    if (!HOST.test(host) || !URL.canParse(url)) return refuse({ status: 400, message: 'the Host header is malformed' })
    const request = await toRequest(url, incoming)
    // The constructor replaces a method that it does not know by GET.
    if (request.method !== incoming.method)
      return refuse({ status: 501, message: `there is no method ${incoming.method} here` })
    return fetch(request, peer())
  }
}

async function toRequest(url: string, incoming: HttpRequest): Promise<Request> {
  const { method, signal, body } = incoming
  const headers = [...incoming.headers].map(([name, value]): [string, string] => [name, value])
  if (!body || method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal })
  const content = body.isComplete ? new Uint8Array(await body.all()) : streamOf(body)
  return new Request(url, { method, headers, signal, body: content })
}

function streamOf(body: RequestBody): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      pull: async controller => {
        const { done, value } = await reader.read()
        if (done || !value) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  )
}
