// A request as a handler sees it: the part of the standard's Request that handlers here use, made without its cost.
import type { RequestBody } from './request-body.ts'
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
}

class HeaderFields {
  constructor(private readonly fields: ReadonlyMap<string, string>) {}

  get(name: string): string | null {
    return this.fields.get(name) ?? null
  }

  [Symbol.iterator](): Iterator<readonly [string, string]> {
    return this.fields[Symbol.iterator]()
  }
}

export class HttpRequest implements IncomingRequest {
  readonly headers: HeaderFields
  private controller: AbortController | null = null

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

  /** The host is meaningless: callers of `url` need only path and query. */
  get url(): string {
    return `http://localhost${this.head.target}`
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

  bytes(): Promise<Uint8Array> {
    return this.ofBody.all()
  }
}
