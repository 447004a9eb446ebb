// The only place of the collector that calls the hub (document 1 "Collector-facing endpoints"; decisions G-45, G-150).
import {
  HubConnection,
  type HubConnectionOptions,
  type HubResponse,
  type LargePage,
} from '../../hub-link/hub-connection.ts'

const PREFIX = '/api/v1/monitoring/collector'
const ISSUE_TIMEOUT_MS = 15_000

export type FeedName = 'agents' | 'rules' | 'silences' | 'checks'

type EnrollBody = {
  readonly license: string
  readonly hostname: string
  readonly ip_addresses: readonly string[]
  readonly machine_id: string | undefined
  readonly os: Readonly<Record<string, string>>
  readonly agent_version: string | undefined
  readonly proto_version: number
}
export type SeenEntry = {
  readonly agent_id: string
  readonly last_seen_at: string
  readonly agent_version?: string
  readonly proto_version?: number
  readonly buffer_bytes?: number
  readonly buffer_batches?: number
  readonly last_warning?: string
  readonly last_warning_at?: string
}
export type HeartbeatBody = {
  readonly version: string
  readonly agent_count: number
  readonly ingest_rps?: number
  readonly outbox_depth?: number
}

type HubClientOptions = Omit<HubConnectionOptions, 'token'> & {
  readonly token: string
  readonly collectorId: string | null
}

export class HubClient {
  private readonly hub: HubConnection

  private token: string

  /** Throws when the address of the hub is plain http to another server. */
  constructor(private readonly options: HubClientOptions) {
    this.token = options.token
    this.hub = new HubConnection({ ...options, token: () => this.token }, { prefix: PREFIX, self: 'collector' })
  }

  /** Calls show this one from now on. */
  useToken(token: string): void {
    this.token = token
  }

  get collectorId(): string | null {
    return this.options.collectorId
  }

  /** Exchanges a licence. Never retried: a retry after a lost answer would meet already_enrolled. */
  enroll(body: EnrollBody, agentAddress: string): Promise<HubResponse> {
    return this.hub.call({
      method: 'POST',
      path: '/enroll',
      body: { ...body, ...this.collectorField() },
      headers: { 'x-forwarded-for': agentAddress },
      timeoutMs: ISSUE_TIMEOUT_MS,
      isOnce: true,
    })
  }

  renew(agentId: string, tokenHash: string): Promise<HubResponse> {
    return this.hub.call({
      method: 'POST',
      path: `/agents/${encodeURIComponent(agentId)}/renew`,
      body: { token_hash: tokenHash, ...this.collectorField() },
      timeoutMs: ISSUE_TIMEOUT_MS,
      isOnce: true,
    })
  }

  /**
   * When a page of a single record is too large to be read, its cursor is extracted, so that the feed can continue
   * after it.
   */
  pullFeed(feed: FeedName, since: number, limit: number): Promise<HubResponse | LargePage> {
    const path = `/${feed}?since=${since}&limit=${limit}`
    return this.hub.ask({ method: 'GET', path, ...(limit === 1 ? { isSkimmed: true } : {}) })
  }

  lookupByToken(tokenHash: string): Promise<HubResponse> {
    return this.hub.call({ method: 'GET', path: `/agents?token_hash=${encodeURIComponent(tokenHash)}` })
  }

  lookupByAgent(agentId: string): Promise<HubResponse> {
    return this.hub.call({ method: 'GET', path: `/agents/lookup?agent_id=${encodeURIComponent(agentId)}` })
  }

  /** At most 200 events. */
  postEvents(events: readonly unknown[]): Promise<HubResponse> {
    return this.hub.call({ method: 'POST', path: '/events', body: { events } })
  }

  /** At most 1000 agents. */
  postSeen(agents: readonly SeenEntry[]): Promise<HubResponse> {
    return this.hub.call({ method: 'POST', path: '/agents/seen', body: { agents, ...this.collectorField() } })
  }

  postHeartbeat(body: HeartbeatBody): Promise<HubResponse> {
    return this.hub.call({ method: 'POST', path: '/heartbeat', body: { ...body, ...this.collectorField() } })
  }

  /** `items`: at most 100, each serialized as JSON. */
  postInventory(items: readonly string[]): Promise<HubResponse> {
    return this.hub.call({ method: 'POST', path: '/inventory', text: `{"items":[${items.join(',')}]}` })
  }

  settings(companyId: string): Promise<HubResponse> {
    return this.hub.call({ method: 'GET', path: `/settings/${encodeURIComponent(companyId)}` })
  }

  private collectorField(): { collector_id?: string } {
    return this.options.collectorId === null ? {} : { collector_id: this.options.collectorId }
  }
}
