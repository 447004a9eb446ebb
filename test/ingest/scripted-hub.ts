// A small HTTP peer that answers as the hub does on its collector-facing endpoints, with what a test puts into it.
import type { Logger } from 'pino'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import { uuidFromText } from '../../core/series/hash.ts'

export type ScriptedAgent = Record<string, unknown> & { agent_id: string; sync_version: number; token_hash: string }
export type HubRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: unknown
}
type Script = (request: HubRequest) => Response | Promise<Response> | null

const PREFIX = '/api/v1/monitoring/collector'
export const hubToken = 'service-token-of-the-collector'

export class ScriptedHub {
  readonly requests: HubRequest[] = []
  readonly feeds: Record<string, Record<string, unknown>[]> = { agents: [], rules: [], silences: [], checks: [] }
  /** Answers of GET /settings/{company_id}, by company. */
  readonly settings = new Map<string, Record<string, unknown>>()
  /** Events that were answered as accepted, in the order in which they came; repeated ones again. */
  readonly taken: Record<string, unknown>[] = []
  /** Asked before everything else; null goes on to the plain answer. */
  script: Script = () => null
  /** Added to the hub's clock. */
  clockOffsetMs = 0
  private server: Bun.Server<undefined>

  private readonly port = freePort()

  constructor() {
    this.server = this.serve()
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async stop(): Promise<void> {
    await this.server.stop(true)
  }

  /** Serves again on the port it had. */
  restart(): void {
    this.server = this.serve()
  }

  ok(data: unknown, status = 200): Response {
    return Response.json({ data, server_time: new Date(Date.now() + this.clockOffsetMs).toISOString() }, { status })
  }

  error(status: number, code: string, headers: Record<string, string> = {}): Response {
    const body = {
      error: { code, message: code },
      server_time: new Date(Date.now() + this.clockOffsetMs).toISOString(),
    }
    return Response.json(body, { status, headers })
  }

  /** Requests to a path, without the prefix. */
  to(path: string): HubRequest[] {
    return this.requests.filter(request => request.path === path)
  }

  private serve(): Bun.Server<undefined> {
    return Bun.serve({ hostname: '127.0.0.1', port: this.port, fetch: request => this.handle(request) })
  }

  private async handle(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const text = await request.text()
    const seen: HubRequest = {
      method: request.method,
      path: url.pathname.replace(PREFIX, ''),
      query: url.searchParams,
      headers: request.headers,
      body: text === '' ? null : JSON.parse(text),
    }
    this.requests.push(seen)
    if (request.headers.get('authorization') !== `Bearer ${hubToken}`) return this.error(401, 'unauthorized')
    return (await this.script(seen)) ?? this.plain(seen)
  }

  private plain({ method, path, query, body }: HubRequest): Response {
    if (path === '/events') {
      const { events } = body as { events: Record<string, unknown>[] }
      this.taken.push(...events)
      return this.ok({ accepted: events.map(event => event.event_id), rejected: [] })
    }
    if (path.startsWith('/settings/')) {
      const settings = this.settings.get(path.slice('/settings/'.length))
      return settings ? this.ok(settings) : this.error(404, 'not_found')
    }
    if (method === 'POST') return this.ok({ accepted: 0, rejected: [], updated: 0, unknown: [] })
    const feed = path.slice(1)
    const records = this.feeds[feed]
    if (!records) return this.error(404, 'not_found')
    const hash = query.get('token_hash')
    if (feed === 'agents' && hash !== null) {
      const agent = records.find(record => record.token_hash === hash || record.prev_token_hash === hash)
      return agent ? this.ok({ agent }) : this.error(404, 'not_found')
    }
    const since = Number(query.get('since') ?? 0)
    const limit = Number(query.get('limit') ?? 100)
    const after = records
      .filter(record => Number(record.sync_version) > since)
      .sort((a, b) => Number(a.sync_version) - Number(b.sync_version))
    const page = after.slice(0, limit)
    const nextSince = page.length > 0 ? Number(page[page.length - 1]!.sync_version) : since
    return this.ok({ [feed]: page, next_since: nextSince, more: after.length > limit })
  }
}

/** A stable UUID for a name. */
export const id = (name: string): string => uuidFromText(name)

export type HubClientParts = ConstructorParameters<typeof HubClient>[0]

/** The collector's end of the link to this hub. */
export const clientOf = (hub: ScriptedHub, log: Logger, changes: Partial<HubClientParts> = {}): HubClient =>
  new HubClient({
    url: hub.url,
    token: hubToken,
    collectorId: id('collector'),
    isPlainAllowed: false,
    log,
    nowMs: Date.now,
    onClockSkew: () => {},
    timeoutMs: 20_000,
    ...changes,
  })
