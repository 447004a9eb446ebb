// The hub's client of the matcher's internal API (document 3, Security matcher API called by the hub): 2 s to connect,
// 5 s to answer, two retries of GET only, and a circuit breaker that counts tries (decision G-177). A query never
// fails a request: who shows what the matcher has says instead that it is not available. Deletions are made by jobs,
// outside the breaker, and throw, so that the job is tried again.
import { connect } from 'node:net'
import { circuitBreaker, handleAll, type IPolicy, noop, retry, wrap } from 'cockatiel'
import type { Logger } from 'pino'
import { isLoopback } from '../../../../core/config/address.ts'
import { FailuresInWindow } from '../../collectors/collector-client.ts'
import type { HubConfig } from '../../config.ts'
import type { HubMetrics } from '../../platform/telemetry.ts'

type MatcherResponse = { readonly status: number; readonly body: unknown }
type Target = { readonly url: string; readonly host: string; readonly port: number; readonly tokens: readonly string[] }

const PREFIX = '/internal/v1'
const CONNECT_TIMEOUT_MS = 2_000
const READ_TIMEOUT_MS = 5_000
const RETRIES = 2
const BREAK_AFTER_FAILURES = 5
const BREAK_WINDOW_MS = 60_000
const HALF_OPEN_AFTER_MS = 30_000
const BODY_BYTES_MAX = 8 * 1024 * 1024

/** Throws when nobody takes a connection in time. The request that follows has only the time to answer. */
function checkConnects(host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect({ host, port })
  const timer = setTimeout(() => reject(new Error('no connection in time')), CONNECT_TIMEOUT_MS)
  socket.once('connect', () => resolve())
  socket.once('error', () => reject(new Error('no connection')))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

/** Reads a body up to the bound. Throws for a longer one. */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > BODY_BYTES_MAX) throw new Error('the matcher answered too much')
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

export class MatcherClient {
  private readonly breaker = circuitBreaker(handleAll, {
    halfOpenAfter: HALF_OPEN_AFTER_MS,
    breaker: new FailuresInWindow(BREAK_AFTER_FAILURES, BREAK_WINDOW_MS, Date.now),
  })
  private readonly repeated: IPolicy = wrap(retry(handleAll, { maxAttempts: RETRIES }), this.breaker)
  private readonly once: IPolicy = wrap(noop, this.breaker)

  constructor(
    private readonly config: HubConfig,
    private readonly log: Logger,
    private readonly metrics: HubMetrics,
  ) {}

  /** Read at each call: the token may be read again on SIGHUP. */
  private target(): Target | null {
    const url = URL.parse(this.config['matcher.url'] ?? '')
    const tokens = (this.config['matcher.token'] ?? '').split(/[\s,]+/).filter(token => token !== '')
    if (!url || tokens.length === 0) return null
    if (url.protocol === 'http:' && !isLoopback(url.hostname) && !this.config['listen.insecure']) {
      this.log.error('plain http to another server is refused: the matcher is not called')
      return null
    }
    return {
      url: url.href.replace(/\/+$/, ''),
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      tokens,
    }
  }

  get isConfigured(): boolean {
    return this.target() !== null
  }

  private async send(target: Target, token: string, method: string, path: string, timeoutMs: number) {
    const response = await fetch(`${target.url}${PREFIX}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, Accept: 'application/json' },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await textOf(response)
    let body: unknown = null
    try {
      body = text === '' ? null : JSON.parse(text)
    } catch {
      if (response.ok) throw new Error('the matcher answered something that is not JSON')
    }
    return { status: response.status, body }
  }

  /**
   * One call; throws on network faults and late answers. While tokens change, a refused one is followed by the next.
   */
  async call(method: 'GET' | 'POST' | 'DELETE', path: string, timeoutMs = READ_TIMEOUT_MS): Promise<MatcherResponse> {
    const target = this.target()
    if (!target) throw new Error('no matcher is configured (matcher.url, matcher.token)')
    await checkConnects(target.host, target.port)
    let last: MatcherResponse = { status: 0, body: null }
    for (const token of target.tokens) {
      last = await this.send(target, token, method, path, timeoutMs)
      if (last.status !== 401 && last.status !== 403) return last
    }
    this.log.error('the matcher refuses the token (matcher.token)')
    return last
  }

  /**
   * A query, or a request of a person. Null: the matcher cannot answer. Answers with 4xx are answers, except those that
   * refuse the token.
   */
  async ask(method: 'GET' | 'POST', name: string, path: string): Promise<MatcherResponse | null> {
    const policy = method === 'GET' ? this.repeated : this.once
    try {
      const got = await policy.execute(async () => {
        const response = await this.call(method, path)
        if (response.status >= 500 || response.status === 429)
          throw new Error(`the matcher answered ${response.status}`)
        return response
      })
      const isRefused = got.status === 401 || got.status === 403
      this.metrics.matcherRequests.inc({ call: name, result: isRefused ? 'refused' : 'ok' })
      return isRefused ? null : got
    } catch (error) {
      this.log.warn({ call: name, error: String(error) }, 'the matcher cannot answer')
      this.metrics.matcherRequests.inc({ call: name, result: 'unavailable' })
      return null
    }
  }
}
