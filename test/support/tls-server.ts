// A real TLS server whose certificate can be changed while it runs.
import { createServer, type Server } from 'node:tls'

type Shown = { readonly cert: string; readonly key: string }

export class TlsServer {
  /** The names that clients asked for (SNI). */
  readonly askedNames: string[] = []
  /** Where clients came from. */
  readonly addresses: string[] = []
  #server: Server

  private constructor(shown: Shown) {
    this.#server = this.#make(shown)
  }

  #make(shown: Shown): Server {
    const server = createServer(shown, socket => {
      this.askedNames.push(String(socket.servername))
      this.addresses.push(String(socket.remoteAddress))
      socket.on('error', () => {})
      socket.end()
    })
    server.on('tlsClientError', () => {})
    return server
  }

  static async start(shown: Shown): Promise<TlsServer> {
    const server = new TlsServer(shown)
    await server.#listen(0)
    return server
  }

  #listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', () => resolve())
    })
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the server does not listen')
    return address.port
  }

  /** Shows another certificate from now on, at the same port. */
  async show(shown: Shown): Promise<void> {
    const { port } = this
    await this.stop()
    this.#server = this.#make(shown)
    await this.#listen(port)
  }

  stop(): Promise<void> {
    return new Promise(resolve => this.#server.close(() => resolve()))
  }
}
