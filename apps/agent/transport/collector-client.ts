// HTTP to the collector: headers of the protocol, deadlines, bounded answers, no redirects (document 3 "Agent to
// collector", "Versioning"). A token leaves the process in the Authorization header only.
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import {
  type Answer,
  isFromCollector,
  parseErrorBody,
  parseRetryAfter,
  somethingElse,
} from '../../../core/agent/response-action.ts'
import { limits } from '../../../core/limits.ts'
import { proxyOf } from './collector-address.ts'
import { acceptedEncodings, readResponseBody } from './response-body.ts'

export type Reply = Answer & {
  readonly body: Uint8Array
  /** error.message of the collector, or the cause of no answer: for the log and status.json. */
  readonly message: string
  readonly requestId: string
}

type Request = {
  readonly method: 'GET' | 'POST'
  /** Below `{collector_url}/agent/v1`. */
  readonly path: string
  readonly token: string | null
  /** Of another collector than the one in use. */
  readonly collectorUrl?: string
  readonly body?: Uint8Array
  readonly encoding?: 'zstd'
  readonly ifNoneMatch?: string
}

const REQUEST_TIMEOUT_MS = 30_000
const PROTOBUF = 'application/x-protobuf'

type ClientOptions = {
  readonly collectorUrl: string
  /** PEM of the certificate authority that signs the collector's certificate; null for the system's. */
  readonly caPem: string | null
  readonly agentVersion: string
  readonly log: Logger
  readonly now: () => number
}

/** Why there is no answer, by the code of the fault: the runtime's own words are for who wrote the program. */
const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the connection was closed before the answer',
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up now',
  EPROTO: 'the TLS handshake failed: perhaps it speaks no TLS on this port',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: name it with tls.ca_file',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is of a private authority: name that with tls.ca_file',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is of an authority that is not known: name that with tls.ca_file',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is of an authority that is not known: name that with tls.ca_file',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
}

/** Why there is no response, in words for an operator. */
export function noResponseCause(error: unknown, collectorUrl: string): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? String(error.code) : ''
  const words = error.name === 'TimeoutError' ? `no answer within ${REQUEST_TIMEOUT_MS / 1000} s` : CAUSES[code]
  return words === undefined ? error.message : `${URL.parse(collectorUrl)?.host ?? collectorUrl}: ${words}`
}

export class CollectorClient {
  readonly #options: ClientOptions
  readonly #stop = new AbortController()
  #collectorUrl: string

  constructor(options: ClientOptions) {
    this.#options = options
    this.#collectorUrl = options.collectorUrl
  }

  get collectorUrl(): string {
    return this.#collectorUrl
  }

  /** Sends everything from now on to another collector. */
  moveTo(collectorUrl: string): void {
    this.#collectorUrl = collectorUrl
  }

  /** Ends requests under way. */
  close(): void {
    this.#stop.abort()
  }

  /** One request. Never throws for what network or collector do: that is an answer too. */
  async call(request: Request): Promise<Reply> {
    const requestId = randomUUID()
    const { log, now } = this.#options
    try {
      const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
      const response = await this.#fetch(request, requestId, signal)
      const body = await readResponseBody(response)
      const { status } = response
      const contentType = response.headers.get('content-type')
      const isOfCollector = isFromCollector(status, contentType, body)
      const error =
        isOfCollector && status >= 400 ? parseErrorBody(new TextDecoder().decode(body)) : { code: null, message: null }
      const { headers } = response
      const retryAfterMs = parseRetryAfter(headers.get('retry-after'), headers.get('date'), now())
      const message = isOfCollector
        ? (error.message ?? error.code ?? `HTTP ${status}`)
        : `${somethingElse(contentType)} (HTTP ${status})`
      log.debug({ path: request.path, status, code: error.code, request_id: requestId }, 'collector answered')
      return { kind: 'answer', status, code: error.code, retryAfterMs, isOfCollector, body, message, requestId }
    } catch (error) {
      const cause = noResponseCause(error, request.collectorUrl ?? this.#collectorUrl)
      log.debug({ path: request.path, cause, request_id: requestId }, 'collector did not answer')
      return { kind: 'no_answer', cause, body: new Uint8Array(), message: cause, requestId }
    }
  }

  #fetch(request: Request, requestId: string, signal: AbortSignal): Promise<Response> {
    const { caPem, agentVersion } = this.#options
    const collectorUrl = request.collectorUrl ?? this.#collectorUrl
    const headers: Record<string, string> = {
      Accept: PROTOBUF,
      'Accept-Encoding': acceptedEncodings,
      'X-SVC-Proto': String(limits.protoMax),
      'X-SVC-Agent-Version': agentVersion,
      'X-Request-Id': requestId,
      'User-Agent': `svc-agent/${agentVersion}`,
    }
    if (request.token !== null) headers.Authorization = `Bearer ${request.token}`
    if (request.body) headers['Content-Type'] = PROTOBUF
    if (request.encoding) headers['Content-Encoding'] = request.encoding
    if (request.ifNoneMatch) headers['If-None-Match'] = request.ifNoneMatch
    return fetch(`${collectorUrl.replace(/\/+$/, '')}/agent/v1${request.path}`, {
      method: request.method,
      headers,
      redirect: 'manual',
      signal,
      ...(request.body ? { body: request.body } : {}),
      // Inflated by whoever reads it, up to a bound.
      decompress: false,
      ...proxyOf(collectorUrl),
      // Said here, so that no setting of the environment takes it back.
      tls: { rejectUnauthorized: true, ...(caPem !== null ? { ca: caPem } : {}) },
    })
  }
}
