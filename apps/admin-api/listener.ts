// Where the admin API is served: on the internal network (loopback unless told otherwise), over TLS where a certificate
// is configured (document 3 "Authentication"; decision G-15).
import { splitAddress, urlOf } from '../../core/config/address.ts'
import { fetchHandler } from '../http/fetch-handler.ts'
import type { Refusal } from '../http/http-connection.ts'
import { assertPortIsFree, listenHttp } from '../http/http-listener.ts'
import { IDLE_SECONDS } from '../http/idle-seconds.ts'
import { serveAddress } from '../http/serve-address.ts'
import { readCertificate } from '../process/certificate-files.ts'
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

const refuse = ({ status, message }: Refusal): Response =>
  status === 500 ? errorResponse('unavailable', 'unexpected fault', 500) : errorResponse('bad_request', message, status)

/** Serves on `admin.listen` (port 0 takes a free one). Throws when the address or the certificate cannot be used. */
export function startAdminListener(
  config: Listening,
  handle: (request: Request) => Response | Promise<Response>,
): AdminListener {
  const { hostname, port } = splitAddress(config['admin.listen'])
  const certificate = readCertificate(config)
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
      const next = readCertificate(config)
      if (next) listener.replaceCertificate(next)
    },
    stop: () => listener.stop(0),
  }
}
