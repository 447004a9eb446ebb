// Where the admin API is served: on the internal network (loopback unless told otherwise), over TLS where a certificate
// is configured (document 3 "Authentication"; decision G-15).
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { splitAddress, urlOf } from '../../core/config/address.ts'
import { fetchHandler } from '../http/fetch-handler.ts'
import type { Refusal } from '../http/http-connection.ts'
import { assertPortIsFree, type Certificate, listenHttp } from '../http/http-listener.ts'
import { IDLE_SECONDS } from '../http/idle-seconds.ts'
import { serveAddress } from '../http/serve-address.ts'
import { errorResponse } from './admin-error.ts'

type AdminListener = {
  readonly url: string
  /**
   * Reads the certificate again; connections that are open stay. Throws for files that cannot be used; the old one
   * stays in force.
   */
  readonly reloadCertificate: () => void
  stop(): Promise<void>
}

type Listening = {
  readonly 'admin.listen': string
  readonly 'tls.cert_file': string | null
  readonly 'tls.key_file': string | null
}

function certificateOf(config: Listening): Certificate | null {
  const [certFile, keyFile] = [config['tls.cert_file'], config['tls.key_file']]
  if (certFile === null || keyFile === null) return null
  const certificate = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  createSecureContext(certificate)
  return certificate
}

const refuse = ({ status, message }: Refusal): Response =>
  status === 500 ? errorResponse('unavailable', 'unexpected fault', 500) : errorResponse('bad_request', message, status)

/** Serves on `admin.listen` (port 0 takes a free one). Throws when the address or the certificate cannot be used. */
export function startAdminListener(
  config: Listening,
  handle: (request: Request) => Response | Promise<Response>,
): AdminListener {
  const { hostname, port } = splitAddress(config['admin.listen'])
  const certificate = certificateOf(config)
  const scheme = certificate ? 'https' : 'http'
  const listener = serveAddress('admin.listen', config['admin.listen'], () => {
    if (certificate) assertPortIsFree(hostname, port)
    return listenHttp({
      hostname,
      port,
      certificate,
      idleSeconds: IDLE_SECONDS.admin,
      handle: fetchHandler({ scheme, fetch: handle, refuse }),
      refuse,
    })
  })
  return {
    url: urlOf(scheme, hostname, listener.port),
    reloadCertificate: () => {
      const next = certificateOf(config)
      if (next) listener.replaceCertificate(next)
    },
    stop: () => listener.stop(0),
  }
}
