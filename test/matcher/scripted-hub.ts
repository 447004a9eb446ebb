// A small HTTP peer that answers as the hub does on its matcher-facing endpoints, with what a test puts into it.
import { randomUUID } from 'node:crypto'
import { freePort } from '../../apps/standalone/ports.ts'
import type { SecurityEvent } from '../../core/matching/finding-event.ts'

const PREFIX = '/api/v1/security/matcher'
export const hubToken = 'service-token-of-the-matcher'

export type HubRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: Record<string, unknown>
  readonly atMs: number
}
type HubHost = {
  host_id: string
  company_id: string
  server_id: string | null
  public_key: string
  state: 'active' | 'revoked'
  inactive: boolean
  sync_version: number
  /** Like sync_version, unless a test says otherwise. */
  version?: number
  deleted?: boolean
}

export class ScriptedHub {
  readonly requests: HubRequest[] = []
  readonly hosts = new Map<string, HubHost>()
  /** Answers of GET settings, by company. */
  readonly settings = new Map<string, Record<string, unknown>>()
  /** Code → the company that it enrolls into. */
  readonly codes = new Map<string, string>()
  /** Events that were answered as accepted, in the order in which they came; repeated ones again. */
  readonly taken: SecurityEvent[] = []
  /** Vulnerabilities that were put, by id. */
  readonly vulnerabilities = new Map<string, Record<string, unknown>>()
  /** Asked before everything else; null goes on to the plain answer. */
  script: (request: HubRequest) => Response | Promise<Response> | null = () => null
  /** The token that is taken; another one is answered 401. */
  token = hubToken
  pageMax = 500
  private readonly given = new Map<string, HubHost>()
  private version = 0
  private readonly port = freePort()
  private server = this.serve()

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
    return Response.json({ data, server_time: new Date().toISOString() }, { status })
  }

  error(status: number, code: string, headers: Record<string, string> = {}, message?: string): Response {
    const body = { error: { code, message: message ?? `${code} is the reason` }, server_time: new Date().toISOString() }
    return Response.json(body, { status, headers })
  }

  to(path: string): HubRequest[] {
    return this.requests.filter(request => request.path === path)
  }

  /** Puts a host into the feed, or changes the one that is there. */
  putHost(host: Partial<HubHost> & { readonly host_id: string }): HubHost {
    const before = this.hosts.get(host.host_id)
    const next: HubHost = {
      company_id: '',
      server_id: null,
      public_key: '',
      state: 'active',
      inactive: false,
      ...before,
      ...host,
      sync_version: ++this.version,
    }
    this.hosts.set(host.host_id, next)
    return next
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
      body: text === '' ? {} : JSON.parse(text),
      atMs: performance.now(),
    }
    this.requests.push(seen)
    if (request.headers.get('authorization') !== `Bearer ${this.token}`) return this.error(401, 'unauthorized')
    return (await this.script(seen)) ?? this.plain(seen)
  }

  private plain(request: HubRequest): Response {
    const { method, path, body } = request
    if (path === '/events') return this.takeEvents(body)
    if (path === '/scan-hosts' && method === 'GET') return this.page(request)
    if (path === '/scan-hosts/enroll') return this.enroll(body)
    if (path === '/vulnerabilities') return this.takeVulnerabilities(body)
    if (path.startsWith('/settings/')) {
      const companyId = path.slice('/settings/'.length)
      const plain = { company_id: companyId, version: 1, enabled: true, scan_interval_hours: 24 }
      return this.ok({ ...plain, ...this.settings.get(companyId) })
    }
    const rotated = /^\/scan-hosts\/([^/]+)\/rotate$/.exec(path)?.[1]
    if (rotated !== undefined) this.putHost({ host_id: rotated, public_key: String(body.public_key) })
    return this.ok({})
  }

  private takeEvents(body: Record<string, unknown>): Response {
    const { events } = body as { events: SecurityEvent[] }
    this.taken.push(...events)
    return this.ok({ accepted: events.map(event => event.event_id), rejected: [] })
  }

  private takeVulnerabilities(body: Record<string, unknown>): Response {
    const { items } = body as { items: Record<string, unknown>[] }
    for (const item of items) this.vulnerabilities.set(String(item.vuln_id), item)
    return this.ok({ upserted: items.length })
  }

  private page({ query }: HubRequest): Response {
    const since = Number(query.get('since') ?? 0)
    const limit = Math.min(this.pageMax, Number(query.get('limit') ?? 100))
    const after = [...this.hosts.values()]
      .filter(host => host.sync_version > since)
      .sort((a, b) => a.sync_version - b.sync_version)
    const page = after.slice(0, limit)
    const records = page.map(host => ({ version: host.sync_version, ...host, deleted: host.deleted === true }))
    return this.ok({
      scan_hosts: records,
      next_since: page.at(-1)?.sync_version ?? since,
      more: after.length > page.length,
    })
  }

  /** As decision G-186 has it: the same code and key get the same host. */
  private enroll(body: Record<string, unknown>): Response {
    const companyId = this.codes.get(String(body.code))
    const key = `${String(body.code)} ${String(body.public_key)}`
    if (companyId === undefined) return this.error(401, 'invalid_code')
    const host =
      this.given.get(key) ??
      this.putHost({
        host_id: randomUUID(),
        company_id: companyId,
        public_key: String(body.public_key),
      })
    this.given.set(key, host)
    return this.ok({ host_id: host.host_id, company_id: companyId, server_id: host.server_id }, 201)
  }
}
