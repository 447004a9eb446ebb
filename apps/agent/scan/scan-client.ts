// HTTP to the matcher (MAT section 2): headers, signature, deadline, bounded answers, no redirects.
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { parseErrorBody, parseRetryAfter } from '../../../core/agent/response-action.ts'
import { objectIn, type Unchecked } from '../../../core/json-object.ts'
import { SCAN_HEADERS, SCAN_PROTO, signedScanText } from '../../../core/matching/scan-protocol.ts'
import { proxyOf } from '../transport/collector-address.ts'
import { noResponseCause } from '../transport/collector-client.ts'
import { acceptedEncodings, readResponseBody } from '../transport/response-body.ts'
import { signText } from './scan-keys.ts'

export type ScanReply =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly code: string | null
      readonly message: string
      readonly retryAfterMs: number | null
      /** The JSON object of the body; empty for anything else. */
      readonly data: Unchecked
    }
  | { readonly kind: 'no_answer'; readonly message: string }

export type SignedCall = {
  /** Below `{matcher_url}/scan/v1`. */
  readonly path: '/enroll' | '/report' | '/rotate'
  /** Empty at enrollment. */
  readonly hostId: string
  readonly privateKey: string
  readonly timeMs: number
  readonly body: Uint8Array
  readonly encoding?: 'zstd'
  /** Asks whether this report is held, instead of sending it. */
  readonly contentHash?: string
}

const REQUEST_TIMEOUT_MS = 30_000

type ClientOptions = {
  readonly matcherUrl: string
  readonly caPem: string | null
  readonly agentVersion: string
  readonly log: Logger
  readonly now: () => number
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal
}

export class ScanClient {
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /** One call. Never throws for what network or matcher do: that is an answer too. */
  async call(call: SignedCall): Promise<ScanReply> {
    const { log, matcherUrl, now } = this.#options
    try {
      const response = await this.#fetch(call)
      const text = new TextDecoder().decode(await readResponseBody(response))
      const { status, headers } = response
      const error = status >= 400 ? parseErrorBody(text) : { code: null, message: null }
      const data = objectIn(text)
      if (status < 300 && data === null) throw new Error('something else answered instead of the matcher')
      log.debug({ path: call.path, status, code: error.code }, 'matcher answered')
      return {
        kind: 'answer',
        status,
        code: error.code,
        message: [error.code, error.message].filter(part => part !== null).join(': ') || `HTTP ${status}`,
        retryAfterMs: parseRetryAfter(headers.get('retry-after'), headers.get('date'), now()),
        data: data ?? {},
      }
    } catch (error) {
      const message = noResponseCause(error, matcherUrl)
      log.debug({ path: call.path, cause: message }, 'matcher did not answer')
      return { kind: 'no_answer', message }
    }
  }

  #fetch(call: SignedCall): Promise<Response> {
    const { matcherUrl, caPem, agentVersion, signal } = this.#options
    const url = new URL(`${matcherUrl.replace(/\/+$/, '')}/scan/v1${call.path}`)
    const text = signedScanText({
      method: 'POST',
      pathWithQuery: url.pathname + url.search,
      hostId: call.hostId,
      timeMs: call.timeMs,
      bodySha256: createHash('sha256').update(call.body).digest('hex'),
    })
    const headers: Record<string, string> = {
      Accept: 'application/json',
      'Accept-Encoding': acceptedEncodings,
      'X-SVC-Agent-Version': agentVersion,
      'User-Agent': `svc-agent/${agentVersion}`,
      [SCAN_HEADERS.proto]: String(SCAN_PROTO),
      [SCAN_HEADERS.host]: call.hostId,
      [SCAN_HEADERS.time]: String(call.timeMs),
      [SCAN_HEADERS.signature]: signText(call.privateKey, text),
    }
    if (call.contentHash !== undefined) headers[SCAN_HEADERS.content] = call.contentHash
    if (call.body.length > 0) headers['Content-Type'] = 'application/json'
    if (call.encoding !== undefined) headers['Content-Encoding'] = call.encoding
    return fetch(url, {
      method: 'POST',
      headers,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
      ...(call.body.length > 0 ? { body: call.body } : {}),
      decompress: false,
      ...proxyOf(matcherUrl),
      tls: { rejectUnauthorized: true, ...(caPem !== null ? { ca: caPem } : {}) },
    })
  }
}
