// The only place that calls the hub (document 1 "Collector-facing endpoints"; decisions G-45, G-150). Every outcome is
// a value; every call has a deadline; the hub's clock is compared at every answer.
import type { Logger } from 'pino'
import { isLoopback } from '../../../core/config/address.ts'
import { limits } from '../../../core/limits.ts'
import { isJsonObject, type JsonObject } from '../store/registry/agent-record.ts'
import { readResponse } from './read-answer.ts'

const PREFIX = '/api/v1/monitoring/collector'
const TIMEOUT_MS = 10_000
const ISSUE_TIMEOUT_MS = 15_000
const SKEW_WARN_PERIOD_MS = 10 * 60_000
const OWN_TOKEN_NOTE_PERIOD_MS = 60_000

/** What the hub answered. `refused`: any status that is not a success, with the hub's code ('' when it gave none). */
export type HubResponse =
  | { readonly kind: 'ok'; readonly status: number; readonly body: JsonObject; readonly data: JsonObject }
  | HubRefusal
  | { readonly kind: 'unreachable'; readonly message: string }
export type HubRefusal = {
  readonly kind: 'refused'
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfterSeconds: number | null
}

/** A page of a feed that is too large to be read, with the facts that were extracted without holding it in memory. */
export type LargePage = {
  readonly kind: 'too_large'
  readonly bytes: number
  /** The cursor after the page and whether more follows; null unless the request asked to skip the page. */
  readonly end: { readonly nextSince: number; readonly more: boolean } | null
  /** The ids of the first record of the page, as far as they were found. */
  readonly first: { readonly id: string | null; readonly companyId: string | null }
}

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
}
export type HeartbeatBody = {
  readonly version: string
  readonly agent_count: number
  readonly ingest_rps?: number
  readonly outbox_depth?: number
}

type HubClientOptions = {
  readonly url: string
  readonly token: string
  readonly collectorId: string | null
  /** Plain http to another host is refused unless this is set. */
  readonly isPlainAllowed: boolean
  readonly log: Logger
  readonly nowMs: () => number
  /** Called at every response that contains the hub's time. */
  readonly onClockSkew: (skewSeconds: number) => void
  readonly timeoutMs?: number
}

type Call = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: unknown
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** A response that is too large is still read to its end, for the facts at its beginning and its end. */
  readonly isSkimmed?: boolean
  /**
   * For a call that issues something: it uses a new connection, because the runtime repeats a request by itself when a
   * kept connection turns out to be closed.
   */
  readonly isOnce?: boolean
}

/** One short sentence for logs and last_sync_error; never a token or a body. */
export function describeResponse(answer: HubResponse): string {
  if (answer.kind === 'ok') return `the hub answered ${answer.status}`
  if (answer.kind === 'unreachable') return `the hub cannot be reached: ${answer.message}`
  return `the hub answered ${answer.status}${answer.code ? ` ${answer.code}` : ''}`
}

export class HubClient {
  private readonly options: HubClientOptions
  private readonly base: string
  private skewWarnedAtMs = Number.NEGATIVE_INFINITY
  private ownTokenNotedAtMs = Number.NEGATIVE_INFINITY

  /** Throws when the address of the hub is plain http to another server. */
  constructor(options: HubClientOptions) {
    const url = new URL(options.url)
    if (url.protocol === 'http:' && !isLoopback(url.hostname) && !options.isPlainAllowed)
      throw new Error(
        `cannot use hub.url ${url.origin}: plain http goes to loopback only; use https, or set listen.insecure`,
      )
    this.options = options
    this.base = `${options.url.replace(/\/+$/, '')}${PREFIX}`
  }

  get collectorId(): string | null {
    return this.options.collectorId
  }

  /** Exchanges a licence. Never retried: a retry after a lost answer would meet already_enrolled. */
  enroll(body: EnrollBody, agentAddress: string): Promise<HubResponse> {
    return this.call({
      method: 'POST',
      path: '/enroll',
      body: { ...body, ...this.collectorField() },
      headers: { 'x-forwarded-for': agentAddress },
      timeoutMs: ISSUE_TIMEOUT_MS,
      isOnce: true,
    })
  }

  renew(agentId: string, tokenHash: string): Promise<HubResponse> {
    return this.call({
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
    return this.ask({ method: 'GET', path, ...(limit === 1 ? { isSkimmed: true } : {}) })
  }

  lookupByToken(tokenHash: string): Promise<HubResponse> {
    return this.call({ method: 'GET', path: `/agents?token_hash=${encodeURIComponent(tokenHash)}` })
  }

  lookupByAgent(agentId: string): Promise<HubResponse> {
    return this.call({ method: 'GET', path: `/agents/lookup?agent_id=${encodeURIComponent(agentId)}` })
  }

  /** At most 200 events. */
  postEvents(events: readonly unknown[]): Promise<HubResponse> {
    return this.call({ method: 'POST', path: '/events', body: { events } })
  }

  /** At most 1000 agents. */
  postSeen(agents: readonly SeenEntry[]): Promise<HubResponse> {
    return this.call({ method: 'POST', path: '/agents/seen', body: { agents, ...this.collectorField() } })
  }

  postHeartbeat(body: HeartbeatBody): Promise<HubResponse> {
    return this.call({ method: 'POST', path: '/heartbeat', body: { ...body, ...this.collectorField() } })
  }

  /** `items`: at most 100, each serialized as JSON. */
  postInventory(items: readonly string[]): Promise<HubResponse> {
    return this.call({ method: 'POST', path: '/inventory', text: `{"items":[${items.join(',')}]}` })
  }

  settings(companyId: string): Promise<HubResponse> {
    return this.call({ method: 'GET', path: `/settings/${encodeURIComponent(companyId)}` })
  }

  private collectorField(): { collector_id?: string } {
    return this.options.collectorId === null ? {} : { collector_id: this.options.collectorId }
  }

  private async call(call: Call): Promise<HubResponse> {
    const answer = await this.ask(call)
    if (answer.kind !== 'too_large') return answer
    return { kind: 'unreachable', message: `an answer of more than ${limits.hubAnswerBytesMax} bytes` }
  }

  private async ask(call: Call): Promise<HubResponse | LargePage> {
    const { token, nowMs } = this.options
    const sentAtMs = nowMs()
    const text = call.text ?? (call.body === undefined ? null : JSON.stringify(call.body))
    try {
      const response = await fetch(`${this.base}${call.path}`, {
        method: call.method,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json',
          ...(text === null ? {} : { 'content-type': 'application/json' }),
          ...call.headers,
        },
        ...(text === null ? {} : { body: text }),
        redirect: 'manual',
        keepalive: call.isOnce !== true,
        signal: AbortSignal.timeout(call.timeoutMs ?? this.options.timeoutMs ?? TIMEOUT_MS),
      })
      const answer = await readResponse(response, limits.hubAnswerBytesMax, call.isSkimmed === true)
      if (typeof answer !== 'string') return { kind: 'too_large', ...answer }
      const body = parseBody(answer)
      const gotAtMs = nowMs()
      if (typeof body.server_time === 'string') this.compareClocks(body.server_time, sentAtMs, gotAtMs)
      return this.judge(call, response, body)
    } catch (error) {
      return { kind: 'unreachable', message: reasonOf(error) }
    }
  }

  private judge(call: Call, response: Response, body: JsonObject): HubResponse {
    if (response.status >= 200 && response.status < 300)
      return { kind: 'ok', status: response.status, body, data: isJsonObject(body.data) ? body.data : {} }
    const error = isJsonObject(body.error) ? body.error : {}
    const code = typeof error.code === 'string' ? error.code : ''
    const message = typeof error.message === 'string' ? error.message : ''
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    if (isOwnTokenRefused(response.status, code)) this.noteOwnToken(call, response.status, code)
    return {
      kind: 'refused',
      status: response.status,
      code,
      message,
      retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds) : null,
    }
  }

  /** Logged at most once a minute, since every call meets the same refusal. */
  private noteOwnToken(call: Call, status: number, code: string): void {
    const nowMs = this.options.nowMs()
    if (nowMs - this.ownTokenNotedAtMs < OWN_TOKEN_NOTE_PERIOD_MS) return
    this.ownTokenNotedAtMs = nowMs
    this.options.log.error(
      { path: call.path.split('?')[0], status, code },
      "the hub refuses this collector's own token; check hub.token",
    )
  }

  /** The hub's time is compared with the middle of the call. */
  private compareClocks(serverTime: string, sentAtMs: number, gotAtMs: number): void {
    const hubMs = Date.parse(serverTime)
    if (Number.isNaN(hubMs)) return
    const skewMs = hubMs - (sentAtMs + gotAtMs) / 2
    this.options.onClockSkew(skewMs / 1000)
    if (Math.abs(skewMs) <= limits.clockSkewWarnMs || gotAtMs - this.skewWarnedAtMs < SKEW_WARN_PERIOD_MS) return
    this.skewWarnedAtMs = gotAtMs
    this.options.log.warn(
      { clock_skew_seconds: Math.round(skewMs / 100) / 10 },
      'the clock of this collector and that of the hub differ by more than 5 seconds; check time synchronisation',
    )
  }
}

/** A 401 or 403 about the collector's own bearer token, not about what it asked for (decision G-27). */
export const isOwnTokenRefused = (status: number, code: string): boolean =>
  (status === 401 || status === 403) && !['invalid_token', 'token_revoked', 'token_expired'].includes(code)

function parseBody(text: string): JsonObject {
  try {
    const body: unknown = JSON.parse(text)
    return isJsonObject(body) ? body : {}
  } catch {
    return {}
  }
}

/** The cause of a network error for the log. It may name addresses, but never headers or bodies. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error.name === 'TimeoutError') return 'no answer in time'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return code
}
