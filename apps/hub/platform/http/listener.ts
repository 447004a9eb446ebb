// Where the hub is served: over TLS 1.2 or later where a certificate is configured, else on loopback only (decision
// G-15).
import { constants } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { codeOf, isLoopback, listenAdvice, splitAddress, urlOf } from '../../../../core/config/address.ts'
import type { HubConfig } from '../../config.ts'

/** Older protocol versions are switched off. */
const BEFORE_TLS_1_2 = constants.SSL_OP_NO_TLSv1 | constants.SSL_OP_NO_TLSv1_1
const REQUEST_BYTES_MAX = 32 * 1024 * 1024
const IDLE_SECONDS = 60

/** A start that the operator must change something for; the message says what. */
export class StartError extends Error {}

export type Listener = {
  /** Without a slash at the end. */
  readonly url: string
  /**
   * Serves with the certificate of the files as they are now; what is under way goes on. Throws for files that cannot
   * be used, and the old certificate stays in force. Without TLS it does nothing.
   */
  reloadCertificate(config: HubConfig): void
  stop(): Promise<void>
}

type Certificate = { readonly cert: string; readonly key: string }

/** The certificate of the configuration; null without one. Throws for files that are none. */
function certificateOf(config: HubConfig): Certificate | null {
  const [certFile, keyFile] = [config['tls.cert_file'], config['tls.key_file']]
  if (!certFile || !keyFile) return null
  const certificate = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  createSecureContext(certificate)
  return certificate
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * A port whose next listener may take it over is shared with whoever asks in the same way: the first must have it
 * alone.
 */
function assertIsFree(hostname: string, port: number): void {
  if (port !== 0) Bun.listen({ hostname, port, socket: { data: () => {} } }).stop(true)
}

/** The request with a URL that can be read: HTTP/1.0 needs no Host header. Null for a Host header that is no host. */
function withHost(request: Request): Request | null {
  if (URL.canParse(request.url)) return request
  return request.headers.has('host') ? null : new Request(`http://localhost${request.url}`, request)
}

const malformedHost = () => new Response('the Host header is malformed\n', { status: 400 })

/** Serves `fetch` on an address. Throws StartError with the key for an address or a certificate that cannot be used. */
export function startListener(
  config: HubConfig,
  key: 'listen' | 'ops.listen',
  address: string,
  isTls: boolean,
  fetch: (request: Request, peer: string) => Promise<Response>,
): Listener {
  const { hostname, port } = splitAddress(address)
  const serve = (onPort: number, certificate: Certificate | null) =>
    Bun.serve({
      hostname,
      port: onPort,
      // A listener with another certificate takes the port over before the old one leaves it.
      reusePort: certificate !== null,
      ...(certificate ? { tls: { ...certificate, secureOptions: BEFORE_TLS_1_2 } } : {}),
      maxRequestBodySize: REQUEST_BYTES_MAX,
      idleTimeout: IDLE_SECONDS,
      fetch: (request, self) => {
        const named = withHost(request)
        return named ? fetch(named, self.requestIP(request)?.address ?? '') : malformedHost()
      },
    })
  let certificate: Certificate | null
  try {
    certificate = isTls ? certificateOf(config) : null
  } catch (error) {
    throw new StartError(`tls.cert_file, tls.key_file: cannot be used: ${reasonOf(error)}`, { cause: error })
  }
  if (!certificate && !isLoopback(hostname) && !config['listen.insecure'])
    throw new StartError(
      `${key}: ${address} is not loopback: give tls.cert_file and tls.key_file, or listen.insecure: true`,
    )
  let server: ReturnType<typeof serve>
  try {
    if (certificate) assertIsFree(hostname, port)
    server = serve(port, certificate)
  } catch (error) {
    const reason = listenAdvice(codeOf(error)) ?? reasonOf(error)
    throw new StartError(`${key}: cannot listen on ${address}: ${reason}`, { cause: error })
  }
  const boundPort = server.port ?? port
  return {
    url: urlOf(certificate ? 'https' : 'http', hostname, boundPort),
    reloadCertificate(fresh) {
      if (!certificate) return
      const next = certificateOf(fresh)
      if (!next) return
      const old = server
      server = serve(boundPort, next)
      void old.stop(false)
    },
    stop: () => server.stop(false),
  }
}
