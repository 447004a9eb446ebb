// The listener of the agent API (document 3 "Agent to collector"): routes, TLS, and the one place where errors become
// responses.
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { create } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { codeOf, isLoopback, listenAdvice, splitAddress, urlOf } from '../../../../core/config/address.ts'
import { limits } from '../../../../core/limits.ts'
import { PingResponseSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { assertPortIsFree, type Certificate, listenHttp } from '../../../http/http-listener.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { AnyResponse } from '../../../http/http-response.ts'
import type { IngestConfig } from '../../config.ts'
import { discardBody, isBrokenOff } from '../../read-body.ts'
import type { BatchMetrics } from '../../telemetry.ts'
import { enroll } from '../agents/forward-enrollment.ts'
import { renewCredentials } from '../agents/forward-renewal.ts'
import { receiveInventory } from '../agents/receive-inventory.ts'
import { serveConfig } from '../agents/serve-config.ts'
import { serveUpdate } from '../agents/serve-update.ts'
import type { IngestContext } from '../context.ts'
import type { MetricsReceiver } from '../metrics/receive-metrics.ts'
import { ApiError, badRequest, errorResponse, messageResponse } from './responses.ts'

/** Seconds without progress after which a connection is closed: a body that trickles, a client that is gone. */
const IDLE_SECONDS = 45
/** How long `stop` waits for requests under way. */
const STOP_GRACE_MS = 3_000

type Handler = (
  request: IncomingRequest,
  peer: () => string,
) => Promise<AnyResponse | ApiError> | AnyResponse | ApiError
export type Endpoint = { readonly name: string; readonly method: 'GET' | 'POST'; readonly handle: Handler }
/** By path. */
export type Endpoints = Readonly<Record<string, Endpoint>>

type ListenerParts = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: Pick<BatchMetrics, 'hot'>
  readonly endpoints: Endpoints
  /** Overrides the port of `config.listen`: the one that the first of several threads got. */
  readonly port?: number
  /** Other threads listen on the same port. */
  readonly isPortShared: boolean
}

export type AgentListener = {
  readonly url: string
  readonly port: number
  /**
   * Reads certificate and key again; throws, and goes on with the old ones, when they cannot be used. Connections that
   * are open stay.
   */
  reloadCertificate(): Promise<void>
  /** Stops accepting requests; those under way are answered. */
  stop(): Promise<void>
}

export function ping(request: IncomingRequest, nowMs: number): Response {
  const serverTimeMs = Math.floor(nowMs)
  const { protoMin, protoMax } = limits
  if ((request.headers.get('accept') ?? '').includes('application/x-protobuf'))
    return messageResponse(
      PingResponseSchema,
      create(PingResponseSchema, { serverTimeMs: BigInt(serverTimeMs), protoMin, protoMax }),
      false,
    )
  return Response.json({ server_time_ms: serverTimeMs, proto_min: protoMin, proto_max: protoMax })
}

/** Every endpoint, batches included. */
export function allEndpoints(context: IngestContext, receiver: MetricsReceiver): Endpoints {
  return {
    '/agent/v1/ping': { name: 'ping', method: 'GET', handle: request => ping(request, context.nowMs()) },
    '/agent/v1/metrics': { name: 'metrics', method: 'POST', handle: request => receiver.receive(request) },
    ...controlEndpoints(context),
  }
}

/** The endpoints that need the registry or the hub, served by the thread that has both. */
export function controlEndpoints(context: IngestContext): Endpoints {
  return {
    '/agent/v1/enroll': {
      name: 'enroll',
      method: 'POST',
      handle: (request, peer) => enroll(context, request, peer()),
    },
    '/agent/v1/config': { name: 'config', method: 'GET', handle: request => serveConfig(context, request) },
    '/agent/v1/inventory': { name: 'inventory', method: 'POST', handle: request => receiveInventory(context, request) },
    '/agent/v1/credentials/renew': {
      name: 'renew',
      method: 'POST',
      handle: request => renewCredentials(context, request),
    },
    '/agent/v1/update': { name: 'update', method: 'GET', handle: request => serveUpdate(context, request) },
  }
}

/** Counts a response and logs it when the request had an X-Request-Id, failed, or was not a batch. */
function note(parts: ListenerParts, endpoint: string, request: IncomingRequest, status: number): void {
  const key = `${endpoint} ${status}`
  const { requests } = parts.metrics.hot
  requests.set(key, (requests.get(key) ?? 0) + 1)
  const requestId = request.headers.get('x-request-id')
  if (requestId === null && endpoint === 'metrics') return
  const line = { endpoint, status, ...(requestId === null ? {} : { request_id: requestId.slice(0, 64) }) }
  if (requestId !== null) parts.log.info(line, 'agent request')
  else parts.log.debug(line, 'agent request')
}

/** The response of an endpoint. An unexpected error is logged, and its cause stays out of the response. */
export async function responseOf(
  log: Logger,
  endpoint: Endpoint,
  request: IncomingRequest,
  peer: () => string,
): Promise<AnyResponse> {
  try {
    const result = await endpoint.handle(request, peer)
    return result instanceof ApiError ? errorResponse(result) : result
  } catch (error) {
    if (isBrokenOff(error)) return errorResponse(badRequest('the body ended early'))
    log.error({ err: error, endpoint: endpoint.name }, 'cannot answer an agent request')
    return errorResponse(new ApiError(500, 'server_error', 'internal error', 30))
  }
}

async function answer(parts: ListenerParts, endpoint: Endpoint, request: IncomingRequest, peer: () => string) {
  const response = await responseOf(parts.log, endpoint, request, peer)
  note(parts, endpoint.name, request, response.status)
  return response
}

async function notFound(parts: ListenerParts, request: IncomingRequest): Promise<Response> {
  await discardBody(request)
  const endpoint = parts.endpoints[pathOf(request)]
  const response = endpoint
    ? errorResponse(new ApiError(405, 'method_not_allowed', `this path takes ${endpoint.method}`))
    : errorResponse(new ApiError(404, 'not_found', 'there is no such path'))
  if (endpoint) response.headers.set('allow', endpoint.method)
  note(parts, 'other', request, response.status)
  return response
}

/** Throws when another process has the port. */
function claimPort(hostname: string, port: number): void {
  try {
    assertPortIsFree(hostname, port)
  } catch (error) {
    const reason = listenAdvice(codeOf(error)) ?? 'the system refuses'
    throw new Error(`cannot serve on ${hostname}:${port}: ${reason}`)
  }
}

const pathOf = (request: IncomingRequest): string => new URL(request.url).pathname

/** Serves the agent API on `config.listen`. */
export function startListener(parts: ListenerParts): AgentListener {
  const { config, endpoints } = parts
  const { hostname, port: configuredPort } = splitAddress(config.listen)
  const port = parts.port ?? configuredPort
  const certFile = config['tls.cert_file']
  const keyFile = config['tls.key_file']
  const isTls = certFile !== null && keyFile !== null
  if (!isTls && !isLoopback(hostname) && !config['listen.insecure'])
    throw new Error(
      `cannot serve plain HTTP on ${config.listen}: it is no loopback address; set tls.cert_file and tls.key_file, or listen.insecure`,
    )
  const readCertificate = (): Certificate | null =>
    isTls ? { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') } : null
  if (parts.port === undefined) claimPort(hostname, port)
  const listener = listenHttp({
    hostname,
    port,
    reusePort: parts.isPortShared,
    certificate: readCertificate(),
    speaksHttp2: true,
    idleSeconds: IDLE_SECONDS,
    handle: (request, peer) => {
      const endpoint = endpoints[request.path]
      // HEAD is answered as GET is, without the body.
      const method = request.method === 'HEAD' ? 'GET' : request.method
      return endpoint?.method === method ? answer(parts, endpoint, request, peer) : notFound(parts, request)
    },
    refuse: ({ status, message }) =>
      errorResponse(new ApiError(status, status === 500 ? 'server_error' : 'bad_request', message)),
  })
  return {
    url: urlOf(isTls ? 'https' : 'http', hostname, listener.port),
    port: listener.port,
    reloadCertificate: async () => {
      const next = readCertificate()
      if (!next) return
      // Checked before the old listener closes: a bad file must not end the service.
      createSecureContext(next)
      listener.replaceCertificate(next)
    },
    stop: () => listener.stop(STOP_GRACE_MS),
  }
}
