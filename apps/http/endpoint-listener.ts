// A listener of endpoints by path, for software that runs on many servers: routes, TLS, HTTP/1 and HTTP/2, and the one
// place where errors become responses.
import type { Logger } from 'pino'
import { isLoopback, splitAddress, urlOf } from '../../core/config/address.ts'
import { readCertificate } from '../process/certificate-files.ts'
import { ApiError, badRequest, errorResponse } from './api-error.ts'
import { discardBody, isBrokenOff } from './body-limits.ts'
import { assertPortIsFree, listenHttp } from './http-listener.ts'
import type { IncomingRequest } from './http-request.ts'
import type { AnyResponse } from './http-response.ts'
import { http2Connection } from './http2-connection.ts'
import { IDLE_SECONDS } from './idle-seconds.ts'
import { serveAddress } from './serve-address.ts'

/** How long `stop` waits for requests under way. */
const STOP_GRACE_MS = 3_000

type Handler = (
  request: IncomingRequest,
  peer: () => string,
) => Promise<AnyResponse | ApiError> | AnyResponse | ApiError
export type Endpoint = { readonly name: string; readonly method: 'GET' | 'POST'; readonly handle: Handler }
/** By path. */
export type Endpoints = Readonly<Record<string, Endpoint>>

type EndpointListenerParts = {
  readonly config: {
    readonly listen: string
    readonly 'listen.insecure': boolean
    readonly 'tls.cert_file': string | null
    readonly 'tls.key_file': string | null
    readonly connections_max?: number
  }
  readonly log: Logger
  readonly endpoints: Endpoints
  /** Overrides the port of `config.listen`: the one that the first of several threads got. */
  readonly port?: number
  /** Other threads listen on the same port. */
  readonly isPortShared: boolean
  /** The scheme of WWW-Authenticate; Bearer when left out. */
  readonly challenge?: string
  /** Called with the name of the endpoint, `other` where there is none. */
  readonly onResponse: (name: string, request: IncomingRequest, status: number) => void
}

export type EndpointListener = {
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

type ResponseParts = {
  readonly log: Logger
  readonly challenge?: string
  readonly onResponse?: EndpointListenerParts['onResponse']
}

/** The response of an endpoint. An unexpected error is logged, and its cause stays out of the response. */
export async function responseOf(
  { log, challenge, onResponse }: ResponseParts,
  endpoint: Endpoint,
  request: IncomingRequest,
  peer: () => string,
): Promise<AnyResponse> {
  let response: AnyResponse
  try {
    const result = await endpoint.handle(request, peer)
    response = result instanceof ApiError ? errorResponse(result, challenge) : result
  } catch (error) {
    if (isBrokenOff(error)) response = errorResponse(badRequest('the body ended early'))
    else {
      log.error({ err: error, endpoint: endpoint.name }, 'cannot answer a request')
      response = errorResponse(new ApiError(500, 'server_error', 'internal error', 30))
    }
  }
  onResponse?.(endpoint.name, request, response.status)
  return response
}

async function notFound(parts: EndpointListenerParts, request: IncomingRequest): Promise<Response> {
  await discardBody(request)
  const endpoint = parts.endpoints[pathOf(request)]
  const response = endpoint
    ? errorResponse(new ApiError(405, 'method_not_allowed', `this path takes ${endpoint.method}`))
    : errorResponse(new ApiError(404, 'not_found', 'there is no such path'))
  if (endpoint) response.headers.set('allow', endpoint.method)
  parts.onResponse('other', request, response.status)
  return response
}

/** Throws when another process has the port. */
function claimPort(hostname: string, port: number): void {
  serveAddress('listen', `${hostname}:${port}`, () => assertPortIsFree(hostname, port))
}

const pathOf = (request: IncomingRequest): string => new URL(request.url).pathname

/** Serves endpoints on `config.listen`. */
export function startEndpointListener(parts: EndpointListenerParts): EndpointListener {
  const { config, endpoints } = parts
  const { hostname, port: configuredPort } = splitAddress(config.listen)
  const port = parts.port ?? configuredPort
  const certificate = readCertificate(config)
  const isTls = certificate !== null
  if (!isTls && !isLoopback(hostname) && !config['listen.insecure'])
    throw new Error(
      `cannot serve plain HTTP on ${config.listen}: it is no loopback address; set tls.cert_file and tls.key_file, or listen.insecure`,
    )
  if (parts.port === undefined) claimPort(hostname, port)
  const listener = listenHttp({
    hostname,
    port,
    reusePort: parts.isPortShared,
    certificate,
    http2: http2Connection,
    idleSeconds: IDLE_SECONDS.agents,
    ...(config.connections_max === undefined ? {} : { connectionsMax: config.connections_max }),
    handle: (request, peer) => {
      // The most requests have no query: their target is a path, and need not be taken apart.
      const endpoint = endpoints[request.target] ?? endpoints[request.path]
      // HEAD is answered as GET is, without the body.
      const method = request.method === 'HEAD' ? 'GET' : request.method
      return endpoint?.method === method ? responseOf(parts, endpoint, request, peer) : notFound(parts, request)
    },
    refuse: ({ status, message }) =>
      errorResponse(new ApiError(status, status === 500 ? 'server_error' : 'bad_request', message)),
  })
  return {
    url: urlOf(isTls ? 'https' : 'http', hostname, listener.port),
    port: listener.port,
    reloadCertificate: async () => {
      // Checked before the old one goes: a bad file must not end the service.
      const next = readCertificate(config)
      if (next) listener.replaceCertificate(next)
    },
    stop: () => listener.stop(STOP_GRACE_MS),
  }
}
