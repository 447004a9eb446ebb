// The ops listener of a process: /healthz, /readyz and /metrics, without authentication (decision G-14).
import { splitAddress, urlOf } from '../../core/config/address.ts'
import { answersToHost, hostRefusal } from '../../core/network/host-header.ts'
import { listenHttp } from './http-listener.ts'
import { IDLE_SECONDS } from './idle-seconds.ts'
import { serveAddress } from './serve-address.ts'

/** A part that must work before the process can do its job. */
export type ReadyPart = { readonly name: string; readonly isReady: () => boolean | Promise<boolean> }

/** The metrics of a process in the text format of Prometheus. */
type ScrapedMetrics = {
  readonly registry: { readonly contentType: string }
  readonly scrape: () => Promise<string>
}

export type OpsServer = { readonly url: string; stop(): Promise<void> }

/** The names of the parts that are not ready. */
async function failingParts(parts: readonly ReadyPart[]): Promise<string[]> {
  const failing: string[] = []
  for (const part of parts) {
    // A part that cannot even be asked does not work.
    const isReady = await Promise.try(part.isReady).catch(() => false)
    if (!isReady) failing.push(part.name)
  }
  return failing
}

/**
 * Serves on `listen` (host:port; port 0 takes a free one), on loopback to addresses, localhost and `allowedHosts`.
 * `more`: metrics of other parts of the process, in the same format.
 */
export function startOpsServer(
  listen: string,
  allowedHosts: readonly string[],
  metrics: ScrapedMetrics,
  parts: readonly ReadyPart[],
  more: readonly (() => Promise<string>)[] = [],
): OpsServer {
  const { hostname, port } = splitAddress(listen)
  const pages: Readonly<Record<string, () => Response | Promise<Response>>> = {
    '/healthz': () => new Response('ok\n'),
    '/readyz': async () => {
      const failing = await failingParts(parts)
      return Response.json({ ready: failing.length === 0, failing }, { status: failing.length === 0 ? 200 : 503 })
    },
    '/metrics': async () => {
      const scraped = await Promise.all([metrics.scrape(), ...more.map(scrape => scrape())])
      return new Response(scraped.join('\n'), { headers: { 'content-type': metrics.registry.contentType } })
    },
  }
  const listener = listenHttp({
    hostname,
    port,
    idleSeconds: IDLE_SECONDS.ops,
    handle: ({ method, path, headers }) => {
      const page = method === 'GET' || method === 'HEAD' ? pages[path] : undefined
      if (!page) return new Response('not found\n', { status: 404 })
      return answersToHost(headers.get('host'), hostname, allowedHosts)
        ? page()
        : new Response(hostRefusal, { status: 421 })
    },
    refuse: ({ status, message }) => new Response(`${message}\n`, { status }),
  })
  return { url: urlOf('http', hostname, listener.port), stop: () => listener.stop(0) }
}

type OpsKeys = { readonly 'ops.listen': string | null; readonly 'ops.allowed_hosts': readonly string[] }

/** The ops listener that the configuration names; null where it names none. */
export function startConfiguredOps(
  config: OpsKeys,
  metrics: ScrapedMetrics,
  parts: readonly ReadyPart[],
): OpsServer | null {
  const listen = config['ops.listen']
  if (listen === null) return null
  return serveAddress('ops.listen', listen, () => startOpsServer(listen, config['ops.allowed_hosts'], metrics, parts))
}
