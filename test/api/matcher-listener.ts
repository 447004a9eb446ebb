// A scripted matcher: says what a test tells it to say, and remembers what it was asked.

type Reply = { readonly status: number; readonly body?: unknown } | 'hangs'
type Asked = {
  readonly method: string
  readonly path: string
  readonly search: URLSearchParams
  readonly token: string | null
}

export class MatcherListener {
  readonly asked: Asked[] = []
  private reply: (asked: Asked) => Reply = () => ({
    status: 404,
    body: { error: { code: 'not_found', message: 'none' } },
  })
  private readonly server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    fetch: request => {
      const url = new URL(request.url)
      const asked: Asked = {
        method: request.method,
        path: url.pathname,
        search: url.searchParams,
        token: request.headers.get('authorization')?.replace(/^Bearer /, '') ?? null,
      }
      this.asked.push(asked)
      const reply = this.reply(asked)
      if (reply === 'hangs') return new Promise<Response>(() => {})
      if (reply.body === undefined) return new Response(null, { status: reply.status })
      return Response.json(reply.body, { status: reply.status })
    },
  })

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`
  }

  /** From now on every request is answered so. */
  answers(reply: Reply | ((asked: Asked) => Reply)): void {
    this.reply = typeof reply === 'function' ? reply : () => reply
    this.asked.length = 0
  }

  count(method: string): number {
    return this.asked.filter(each => each.method === method).length
  }

  stop(): Promise<void> {
    return this.server.stop(true)
  }
}
