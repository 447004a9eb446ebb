// A listener for HTTP/1 over plain TCP, on which requests of one connection are answered in their order, pipelined ones
// too.
import type { Socket } from 'bun'
import { type ConnectionOptions, HttpConnection } from './http-connection.ts'

const CLOSE_POLL_MS = 20

export type HttpListener = {
  readonly port: number
  /**
   * No new connections, and no further requests on those that are there. Resolves when all are closed, after `graceMs`
   * at the latest.
   */
  stop(graceMs: number): Promise<void>
}

export type HttpListenerOptions = ConnectionOptions & {
  readonly hostname: string
  readonly port: number
  readonly reusePort: boolean
}

/** Listens at once; throws what the system says when it cannot. */
export function listenHttp(options: HttpListenerOptions): HttpListener {
  const open = new Set<Socket<HttpConnection>>()
  // The types of the runtime know reusePort of node:net only; it is the same option.
  const address = { hostname: options.hostname, port: options.port, reusePort: options.reusePort }
  const server = Bun.listen<HttpConnection>({
    ...address,
    allowHalfOpen: true,
    socket: {
      open: socket => {
        socket.data = new HttpConnection(socket, options)
        socket.timeout(options.idleSeconds)
        open.add(socket)
      },
      data: (socket, data) => socket.data.receive(data),
      drain: socket => socket.data.drain(),
      end: socket => socket.data.end(),
      close: socket => {
        open.delete(socket)
        socket.data.closed()
      },
      error: socket => void socket.terminate(),
      timeout: socket => void socket.terminate(),
    },
  })
  return {
    port: server.port,
    stop: async graceMs => {
      server.stop(false)
      for (const socket of open) socket.data.finish()
      const untilMs = performance.now() + graceMs
      while (open.size > 0 && performance.now() < untilMs) await Bun.sleep(CLOSE_POLL_MS)
      for (const socket of open) socket.terminate()
      server.stop(true)
    },
  }
}
