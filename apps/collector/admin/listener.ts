// Where the admin API is served: on the internal network (loopback unless told otherwise), over TLS where a certificate
// is configured (document 3 "Authentication"; decision G-15).
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { splitAddress, urlOf } from '../../../core/config/address.ts'
import type { WorkerConfig } from '../config.ts'
import { errorResponse } from './admin-error.ts'

/** The hub waits 30 s for the answer to a purge. */
const IDLE_SECONDS = 60

export type AdminListener = {
  readonly url: string
  /**
   * Reads the certificate again; connections that are open stay. Throws for files that cannot be used; the old one
   * stays in force.
   */
  readonly reloadCertificate: () => void
  stop(): Promise<void>
}

type Listening = Pick<WorkerConfig, 'admin.listen' | 'tls.cert_file' | 'tls.key_file'>

function tlsOf(config: Listening): { tls?: { cert: string; key: string } } {
  const [certFile, keyFile] = [config['tls.cert_file'], config['tls.key_file']]
  if (certFile === null || keyFile === null) return {}
  const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  createSecureContext(tls)
  return { tls }
}

/** Serves on `admin.listen` (port 0 takes a free one). Throws when the address or the certificate cannot be used. */
export function startAdminListener(
  config: Listening,
  handle: (request: Request) => Response | Promise<Response>,
): AdminListener {
  const { hostname, port } = splitAddress(config['admin.listen'])
  const serve = (onPort: number, tls: ReturnType<typeof tlsOf>) =>
    Bun.serve({
      hostname,
      port: onPort,
      fetch: handle,
      error: () => errorResponse('unavailable', 'unexpected fault', 500),
      // A body that is too large is refused by the call that reads it, in the form of this API; the runtime's own
      // answer would have none.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_SECONDS,
      ...tls,
    })
  const first = tlsOf(config)
  let server = serve(port, first)
  const boundPort = server.port ?? port
  return {
    url: urlOf(first.tls ? 'https' : 'http', hostname, boundPort),
    reloadCertificate: () => {
      const next = tlsOf(config)
      if (!next.tls) return
      void server.stop(false)
      server = serve(boundPort, next)
    },
    stop: () => server.stop(true),
  }
}
