// The only place of the matcher that calls the hub (document 3 "Security matcher to hub"; decisions G-159, G-175).
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { HubConnection, type HubConnectionOptions, type HubResponse } from '../../hub-link/hub-connection.ts'
import { HubBreaker } from './hub-breaker.ts'
import { Pace, type PaceKind } from './hub-request-rate.ts'

const PREFIX = '/api/v1/security/matcher'
/** What an agent waits for is given up sooner than what waits in the outbox. */
const WAITED_TIMEOUT_MS = 8_000
/** Events that the hub refuses for the token wait so long (MAT-166). */
export const UNAUTHORIZED_HOLD_MS = 60_000

type EnrollmentBody = {
  readonly code: string
  readonly public_key: string
  readonly hostname: string
  readonly ip_addresses: readonly string[]
  readonly machine_id_hash: string
  readonly os: Readonly<Record<string, unknown>>
}

/** One item of the reference data (decisions G-159, G-188). */
export type VulnerabilityItem = {
  readonly vuln_id: string
  readonly title: string
  readonly cvss_score: number | null
  readonly cvss_vector: string
  readonly severity: string
  readonly published_at: string | null
  readonly modified_at: string | null
  readonly references: readonly string[]
  readonly aliases: readonly string[]
  readonly kev: boolean
  readonly kev_due_date: string | null
  readonly epss: number | null
}

type MatcherHubOptions = HubConnectionOptions & {
  /** Called with the status of each answer, 0 without one. */
  readonly onRequest: (status: number) => void
  readonly pace?: Pace
}

type Call = Parameters<HubConnection['call']>[0]

/** The code of a call that was not made: the requests of this minute are used up. */
export const PACED = 'paced'

const paced = (waitMs: number): HubResponse => ({
  kind: 'refused',
  status: 429,
  code: PACED,
  message: 'this matcher may make no more requests to the hub within this minute',
  retryAfterSeconds: Math.ceil(waitMs / 1000),
})

const unreachable = (message: string): HubResponse => ({ kind: 'unreachable', message })

export class MatcherHub {
  private readonly hub: HubConnection
  private readonly pace: Pace
  private refusedOwnToken = false
  private eventsRefusedUntilMs = 0
  private readonly breaker = new HubBreaker()

  /** Throws when the address of the hub is plain http to another server. */
  constructor(private readonly options: MatcherHubOptions) {
    this.hub = new HubConnection(options, { prefix: PREFIX, self: 'matcher' })
    this.pace = options.pace ?? new Pace()
  }

  /**
   * The hub refuses the token of this matcher, and has taken no call since; or it refuses events, and they are held,
   * whatever it answers to other calls (MAT-166).
   */
  get isUnauthorized(): boolean {
    return this.refusedOwnToken || performance.now() < this.eventsRefusedUntilMs
  }

  /** Exchanges a code. The hub answers a repeated call as it did the first (decision G-186). */
  enroll(body: EnrollmentBody, agentAddress: string): Promise<HubResponse> {
    const headers = { 'x-forwarded-for': agentAddress }
    return this.callWaited({ method: 'POST', path: '/scan-hosts/enroll', body, headers })
  }

  rotate(hostId: string, body: { readonly public_key: string; readonly signature: string }): Promise<HubResponse> {
    return this.callWaited({ method: 'POST', path: `/scan-hosts/${encodeURIComponent(hostId)}/rotate`, body })
  }

  settings(companyId: string): Promise<HubResponse> {
    return this.callWaited({ method: 'GET', path: `/settings/${encodeURIComponent(companyId)}` })
  }

  pullHosts(since: number, limit: number): Promise<HubResponse> {
    return this.call('waited', { method: 'GET', path: `/scan-hosts?since=${since}&limit=${limit}` })
  }

  /** Waits until events may be sent. What is purged meanwhile must not be. */
  eventsTurn(): Promise<void> {
    return this.turn('events')
  }

  /** At most 200 events of one company; after `eventsTurn`. */
  async postEvents(events: readonly SecurityEvent[]): Promise<HubResponse> {
    const response = this.note(await this.hub.call({ method: 'POST', path: '/events', body: { events } }))
    if (response.kind === 'ok') this.eventsRefusedUntilMs = 0
    else if (response.kind === 'refused' && isOwnRefusal(response))
      this.eventsRefusedUntilMs = performance.now() + UNAUTHORIZED_HOLD_MS + WAITED_TIMEOUT_MS
    return response
  }

  heartbeat(body: { version: string; db_version: number; queue_depth: number }): Promise<HubResponse> {
    return this.call('waited', { method: 'POST', path: '/heartbeat', body })
  }

  seen(hostId: string, body: { last_seen_at: string; scanner_version?: string }): Promise<HubResponse> {
    return this.call('passing', { method: 'POST', path: `/scan-hosts/${encodeURIComponent(hostId)}/seen`, body })
  }

  /** 1 to 500 items. */
  putVulnerabilities(items: readonly VulnerabilityItem[]): Promise<HubResponse> {
    return this.call('events', { method: 'PUT', path: '/vulnerabilities', body: { items } })
  }

  /** For what an agent waits for: answered at once while the hub does not answer, or has no request left. */
  private async callWaited(call: Call): Promise<HubResponse> {
    if (this.breaker.isOpen) return unreachable('it did not answer just now')
    const waitMs = this.pace.take('waited')
    if (waitMs > 0) return paced(waitMs)
    return this.note(await this.hub.call({ ...call, timeoutMs: this.options.timeoutMs ?? WAITED_TIMEOUT_MS }))
  }

  private async call(kind: PaceKind, call: Call): Promise<HubResponse> {
    await this.turn(kind)
    return this.note(await this.hub.call(call))
  }

  private async turn(kind: PaceKind): Promise<void> {
    for (let waitMs = this.pace.take(kind); waitMs > 0; waitMs = this.pace.take(kind)) await Bun.sleep(waitMs)
  }

  private note(response: HubResponse): HubResponse {
    this.options.onRequest(response.kind === 'unreachable' ? 0 : response.status)
    this.breaker.note(response.kind === 'unreachable' || (response.kind === 'refused' && response.status >= 500))
    if (response.kind === 'ok') this.refusedOwnToken = false
    else if (response.kind === 'refused' && isOwnRefusal(response)) this.refusedOwnToken = true
    return response
  }
}

/** A 401 or 403 of the hub that is about this matcher; that of a code is about the code. */
export const isOwnRefusal = ({ status, code }: { readonly status: number; readonly code: string }): boolean =>
  (status === 401 || status === 403) && code !== 'invalid_code'
