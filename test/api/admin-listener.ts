// The other end of the hub's calls: an HTTP server that speaks the collector's admin API as far as a test tells it to,
// and remembers what it was asked.
import type { Json } from './hub-harness.ts'

type Asked = { method: string; path: string; query: URLSearchParams; token: string | null; body: Json }
type Answer = { status: number; body: Json; headers?: Record<string, string> }

export class AdminListener {
  readonly asked: Asked[] = []
  private readonly server: ReturnType<typeof Bun.serve>
  /** What is answered, at once or later; a test may replace it. */
  answer: (asked: Asked) => Answer | Promise<Answer> = () => ({ status: 200, body: { data: {} } })

  constructor() {
    this.server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async request => {
        const url = new URL(request.url)
        const text = await request.text()
        const asked: Asked = {
          method: request.method,
          path: url.pathname.replace('/internal/v1', ''),
          query: url.searchParams,
          token: request.headers.get('authorization')?.replace('Bearer ', '') ?? null,
          body: text === '' ? null : JSON.parse(text),
        }
        this.asked.push(asked)
        const { status, body, headers = {} } = await this.answer(asked)
        return status === 204 ? new Response(null, { status }) : Response.json(body, { status, headers })
      },
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`
  }

  /** How often a call was made. */
  count(method: string, path: string): number {
    return this.asked.filter(asked => asked.method === method && asked.path === path).length
  }

  stop(): Promise<void> {
    return this.server.stop(true)
  }
}
