// A listener for HTTP/1 over TCP or TLS, on which requests of one connection are answered in their order, pipelined
// ones too; over TLS it speaks HTTP/2 as well where it is told to.
import { constants } from 'node:crypto'
import type { Socket } from 'bun'
import { type Connection, type ConnectionOptions, HttpConnection } from './http-connection.ts'
import { BeyondBound, CONNECTIONS_MAX } from './too-many-connections.ts'

const CLOSE_POLL_MS = 20
/** How long clients have to close connections after they were told that no further response comes. */
const LINGER_MS = 500
/** Older protocol versions are switched off. */
const BEFORE_TLS_1_2 = constants.SSL_OP_NO_TLSv1 | constants.SSL_OP_NO_TLSv1_1
/** What a client may choose from, each with its length before it (RFC 7301, 3.1). */
const PROTOCOLS = Buffer.from('\x02h2\x08http/1.1', 'latin1')

export type Certificate = { readonly cert: string; readonly key: string }

export type HttpListener = {
  readonly port: number
  /**
   * Connections that come from now on are shown this certificate; those that are there stay. Only for a listener that
   * has one. Connections that are being made at this moment may be reset, or go over to it where
   * net.ipv4.tcp_migrate_req is set.
   */
  replaceCertificate(certificate: Certificate): void
  /**
   * No new connections, and no further requests on those that are there. Resolves when what was asked is answered,
   * after about `graceMs` at the latest.
   */
  stop(graceMs: number): Promise<void>
}

type HttpListenerOptions = ConnectionOptions & {
  readonly hostname: string
  readonly port: number
  /** Other listeners have the port, too. One with a certificate shares it with its successor in any case. */
  readonly reusePort?: boolean
  readonly certificate?: Certificate | null
  /** Connections at once; further ones get 503 over TCP, and are closed at once over TLS. */
  readonly connectionsMax?: number
  /** Makes the connection of a client that chooses HTTP/2 over TLS. Without it only HTTP/1 is spoken. */
  readonly http2?: (socket: Socket<Connection>, options: ConnectionOptions) => Connection
}

/**
 * A listener with a certificate, or one of several threads, shares its port with every process that asks for it the
 * same way, and such a process would silently take some of the clients. So the first listener briefly binds the port
 * alone. Throws the system's error when another process has it.
 */
export function assertPortIsFree(hostname: string, port: number): void {
  if (port !== 0) Bun.listen({ hostname, port, socket: { data: () => {} } }).stop(true)
}

/** Listens at once; throws the system's error when it cannot. */
export function listenHttp(options: HttpListenerOptions): HttpListener {
  const { connectionsMax = CONNECTIONS_MAX } = options
  const open = new Set<Socket<Connection>>()
  const beyondBound = new BeyondBound()
  const listen = (port: number, certificate: Certificate | null) => {
    // The types of the runtime know reusePort of node:net only; it is the same option.
    const address = { hostname: options.hostname, port, reusePort: options.reusePort === true || certificate !== null }
    const alpn = options.http2 ? { ALPNProtocols: PROTOCOLS } : {}
    const tls = certificate && { tls: { ...certificate, secureOptions: BEFORE_TLS_1_2, ...alpn } }
    return Bun.listen<Connection>({
      ...address,
      ...tls,
      allowHalfOpen: true,
      socket: {
        open: socket => {
          if (open.size >= connectionsMax) return beyondBound.turnAway(socket, certificate !== null)
          socket.data = new HttpConnection(socket, options)
          socket.timeout(options.idleSeconds)
          open.add(socket)
        },
        handshake: socket => {
          if (!beyondBound.has(socket) && options.http2 && socket.alpnProtocol === 'h2')
            socket.data = options.http2(socket, options)
        },
        data: (socket, data) => socket.data.receive(data),
        drain: socket => socket.data.drain(),
        end: socket => socket.data.end(),
        close: socket => {
          open.delete(socket)
          beyondBound.closed(socket)
          socket.data.closed()
        },
        error: socket => void socket.terminate(),
        timeout: socket => {
          if (socket.data.isAwaited) socket.timeout(options.idleSeconds)
          else socket.terminate()
        },
      },
    })
  }
  let server = listen(options.port, options.certificate ?? null)
  const { port } = server
  return {
    port,
    replaceCertificate: certificate => {
      const next = listen(port, certificate)
      server.stop(false)
      server = next
    },
    stop: async graceMs => {
      server.stop(false)
      for (const socket of open) socket.data.finish()
      const isBusy = (): boolean => open.values().some(socket => !socket.data.isIdle)
      const endMs = performance.now() + graceMs
      while (isBusy() && performance.now() < endMs) await Bun.sleep(CLOSE_POLL_MS)
      const lingerEndMs = Math.min(endMs, performance.now() + LINGER_MS)
      while (open.size > 0 && performance.now() < lingerEndMs) await Bun.sleep(CLOSE_POLL_MS)
      for (const socket of open) socket.terminate()
      server.stop(true)
    },
  }
}
