// The hub's listener: TLS 1.2 or later where a certificate is configured, else plain HTTP on loopback only (decision
// G-15).
import { codeOf, isLoopback, listenAdvice, splitAddress, urlOf } from '../../../../core/config/address.ts'
import { hostedHandler } from '../../../http/fetch-handler.ts'
import type { Refusal } from '../../../http/http-connection.ts'
import { assertPortIsFree, type Certificate, type HttpListener, listenHttp } from '../../../http/http-listener.ts'
import type { HttpRequest } from '../../../http/http-request.ts'
import type { AnyResponse } from '../../../http/http-response.ts'
import { IDLE_SECONDS } from '../../../http/idle-seconds.ts'
import { readCertificate } from '../../../process/certificate-files.ts'
import type { HubConfig } from '../../config.ts'

/** How long a stop waits for running requests: a collector allows 30 s for the longest call. */
const STOP_GRACE_MS = 30_000

/** The hub cannot start until the operator changes something; the message says what. */
export class StartError extends Error {}

export type Listener = {
  /** Without a slash at the end. */
  readonly url: string
  /**
   * Reads the certificate files again and serves with them; running requests continue. Throws for files that cannot be
   * used, and the old certificate stays in force. Without TLS it does nothing.
   */
  reloadCertificate(config: HubConfig): void
  stop(): Promise<void>
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The response of this API to a request that never reaches a route. */
const refuse = ({ status, message }: Refusal): Response => Response.json({ message }, { status })

/** Serves requests on an address. Throws StartError with the key for an address or a certificate that is no use. */
export function startListener(
  config: HubConfig,
  key: 'listen' | 'ops.listen',
  address: string,
  isTls: boolean,
  handle: (request: HttpRequest, peer: string) => Promise<AnyResponse>,
): Listener {
  const { hostname, port } = splitAddress(address)
  let certificate: Certificate | null
  try {
    certificate = isTls ? readCertificate(config) : null
  } catch (error) {
    throw new StartError(reasonOf(error), { cause: error })
  }
  if (!certificate && !isLoopback(hostname) && !config['listen.insecure'])
    throw new StartError(
      `${key}: ${address} is not loopback: give tls.cert_file and tls.key_file, or listen.insecure: true`,
    )
  const scheme = certificate ? 'https' : 'http'
  let listener: HttpListener
  try {
    if (certificate) assertPortIsFree(hostname, port)
    listener = listenHttp({
      hostname,
      port,
      certificate,
      idleSeconds: IDLE_SECONDS.hub,
      connectionsMax: config.connections_max,
      handle: hostedHandler({ scheme, handle, refuse }),
      refuse,
    })
  } catch (error) {
    const reason = listenAdvice(codeOf(error), key) ?? reasonOf(error)
    throw new StartError(`${key}: cannot listen on ${address}: ${reason}`, { cause: error })
  }
  return {
    url: urlOf(scheme, hostname, listener.port),
    reloadCertificate(fresh) {
      if (!certificate) return
      const next = readCertificate(fresh)
      if (next) listener.replaceCertificate(next)
    },
    stop: () => listener.stop(STOP_GRACE_MS),
  }
}
