// Calls of the hub by the processes that serve it. Every outcome is a value; every call has a deadline; the hub's clock
// is compared at every answer.
import type { Logger } from 'pino'
import { isPlainBeyondHost } from '../../core/config/plain-http.ts'
import { isObject, type Unchecked } from '../../core/json-object.ts'
import { limits } from '../../core/limits.ts'
import { ClockComparison } from './clock-skew.ts'
import { isOwnTokenRefused } from './own-token-refused.ts'
import { readResponse } from './read-answer.ts'

const TIMEOUT_MS = 10_000
const OWN_TOKEN_NOTE_PERIOD_MS = 60_000

/** What the hub answered. `refused`: any status that is not a success, with the hub's code ('' when it gave none). */
export type HubResponse =
  | { readonly kind: 'ok'; readonly status: number; readonly body: Unchecked; readonly data: Unchecked }
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

export type HubConnectionOptions = {
  readonly url: string
  /** A function where the token may be replaced while the process runs. */
  readonly token: string | (() => string)
  /** Plain http to another host is refused unless this is set. */
  readonly isPlainAllowed: boolean
  readonly log: Logger
  readonly nowMs: () => number
  /** Called at every response that contains the hub's time. */
  readonly onClockSkew: (skewSeconds: number) => void
  readonly timeoutMs?: number
}

type HubCall = {
  readonly method: 'GET' | 'POST' | 'PUT'
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

export class HubConnection {
  private readonly base: string
  private readonly clocks = new ClockComparison()
  private ownTokenNotedAtMs = Number.NEGATIVE_INFINITY

  /** `self`: what the process is called. Throws when the address of the hub is plain http to another server. */
  constructor(
    private readonly options: HubConnectionOptions,
    private readonly of: { readonly prefix: string; readonly self: 'collector' | 'matcher' },
  ) {
    const url = new URL(options.url)
    if (isPlainBeyondHost(url) && !options.isPlainAllowed)
      throw new Error(
        `cannot use hub.url ${url.origin}: plain http goes to loopback only; use https, or set listen.insecure`,
      )
    this.base = `${options.url.replace(/\/+$/, '')}${of.prefix}`
  }

  /** `Unreachable` for an answer that is larger than is read, too. */
  async call(call: HubCall): Promise<HubResponse> {
    const answer = await this.ask(call)
    if (answer.kind !== 'too_large') return answer
    return { kind: 'unreachable', message: `an answer of more than ${limits.hubAnswerBytesMax} bytes` }
  }

  async ask(call: HubCall): Promise<HubResponse | LargePage> {
    const { token, nowMs } = this.options
    const sentAtMs = nowMs()
    const text = call.text ?? (call.body === undefined ? null : JSON.stringify(call.body))
    try {
      const response = await fetch(`${this.base}${call.path}`, {
        method: call.method,
        headers: {
          authorization: `Bearer ${typeof token === 'string' ? token : token()}`,
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

  private judge(call: HubCall, response: Response, body: Unchecked): HubResponse {
    if (response.status >= 200 && response.status < 300)
      return { kind: 'ok', status: response.status, body, data: isObject(body.data) ? body.data : {} }
    const error = isObject(body.error) ? body.error : {}
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
  private noteOwnToken(call: HubCall, status: number, code: string): void {
    const nowMs = this.options.nowMs()
    if (nowMs - this.ownTokenNotedAtMs < OWN_TOKEN_NOTE_PERIOD_MS) return
    this.ownTokenNotedAtMs = nowMs
    this.options.log.error(
      { path: call.path.split('?')[0], status, code },
      `the hub refuses this ${this.of.self}'s own token; check hub.token`,
    )
  }

  private compareClocks(serverTime: string, sentAtMs: number, gotAtMs: number): void {
    const found = this.clocks.compare(serverTime, sentAtMs, gotAtMs)
    if (found === null) return
    this.options.onClockSkew(found.skewMs / 1000)
    if (!found.isToBeTold) return
    this.options.log.warn(
      { clock_skew_seconds: Math.round(found.skewMs / 100) / 10 },
      `the clock of this ${this.of.self} and that of the hub differ by more than 5 seconds; check time synchronisation`,
    )
  }
}

function parseBody(text: string): Unchecked {
  try {
    const body: unknown = JSON.parse(text)
    return isObject(body) ? body : {}
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
