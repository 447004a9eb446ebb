// A request as a handler sees it: the part of the standard's Request that handlers here use, made without its cost.
import type { RequestBody } from './body-framing.ts'
import type { RequestHead } from './request-head.ts'

/** A Request is one, too. Names of headers are asked for in lower case. */
export type IncomingRequest = {
  readonly method: string
  readonly url: string
  readonly headers: { get(name: string): string | null } & Iterable<readonly [string, string]>
  readonly body: {
    getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> }
  } | null
  bytes(): Promise<Uint8Array>
  /** The whole body without a copy, where it is there: to be read before the response, and not to be kept. */
  readonly view?: Uint8Array | null
  /** Aborted when the client leaves before its answer is sent. */
  readonly signal: AbortSignal
}

class HeaderFields {
  constructor(private readonly fields: Map<string, string>) {}

  get(name: string): string | null {
    return this.fields.get(name) ?? null
  }

  set(name: string, value: string): void {
    this.fields.set(name, value)
  }

  [Symbol.iterator](): Iterator<readonly [string, string]> {
    return this.fields[Symbol.iterator]()
  }
}

export class HttpRequest implements IncomingRequest {
  readonly headers: HeaderFields
  private controller: AbortController | null = null
  private origin = 'http://localhost'

  constructor(
    private readonly head: RequestHead,
    private readonly ofBody: RequestBody,
  ) {
    this.headers = new HeaderFields(head.fields)
  }

  get method(): string {
    return this.head.method
  }

  /** Path and query. */
  get target(): string {
    return this.head.target
  }

  get path(): string {
    const { target } = this.head
    const queryAt = target.indexOf('?')
    return queryAt < 0 ? target : target.slice(0, queryAt)
  }

  /** Only path and query have a meaning, unless the request was placed at an origin. */
  get url(): string {
    return `${this.origin}${this.head.target}`
  }

  /** From now on the URL begins with this scheme and host. */
  placeAt(origin: string): void {
    this.origin = origin
  }

  /** Aborted when the client leaves before its answer is sent. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController()
    return this.controller.signal
  }

  abort(): void {
    this.controller?.abort()
  }

  get body(): RequestBody | null {
    return this.ofBody.isEmpty ? null : this.ofBody
  }

  get view(): Uint8Array | null {
    return this.ofBody.view
  }

  bytes(): Promise<Uint8Array> {
    return this.ofBody.all()
  }

  /** The same as a Request of the standard. */
  async standard(): Promise<Request> {
    const { method, signal, body } = this
    const headers = [...this.headers].map(([name, value]): [string, string] => [name, value])
    if (!body || method === 'GET' || method === 'HEAD') return new Request(this.url, { method, headers, signal })
    const content = body.isComplete ? new Uint8Array(await body.all()) : streamOf(body)
    return new Request(this.url, { method, headers, signal, body: content })
  }
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
