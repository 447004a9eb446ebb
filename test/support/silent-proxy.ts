// A way to a TCP server on which connections can go silent, as behind a firewall that forgot them: both sides keep an
// open connection and nothing comes through any more, while new connections pass.
import { once } from 'node:events'
import net from 'node:net'

type Pair = { isSilent: boolean; hasLeft: boolean; readonly near: net.Socket; readonly far: net.Socket }

export class SilentProxy {
  private readonly pairs = new Set<Pair>()
  /** Connections that were ever made. */
  made = 0

  private constructor(private readonly server: net.Server) {}

  static async start(to: number): Promise<SilentProxy> {
    const server = net.createServer({ allowHalfOpen: true })
    const proxy = new SilentProxy(server)
    server.on('connection', near => proxy.join(near, net.connect({ port: to, host: '127.0.0.1', allowHalfOpen: true })))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return proxy
  }

  get port(): number {
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen')
    return address.port
  }

  /** Swallows from now on what comes on the connections that there are, also their ends. */
  silence(): void {
    for (const pair of this.pairs) pair.isSilent = true
  }

  /** Silent connections that the near side keeps. */
  get silent(): number {
    return [...this.pairs].filter(({ isSilent, hasLeft }) => isSilent && !hasLeft).length
  }

  private join(near: net.Socket, far: net.Socket): void {
    const pair: Pair = { isSilent: false, hasLeft: false, near, far }
    this.pairs.add(pair)
    this.made++
    const carry = (from: net.Socket, to: net.Socket): void => {
      const left = (): void => {
        pair.hasLeft ||= from === near
        if (!pair.isSilent) to.end()
      }
      from.on('error', () => {})
      from.on('data', data => pair.isSilent || to.write(data))
      from.on('end', left)
      from.on('close', left)
    }
    carry(near, far)
    carry(far, near)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    for (const { near, far } of this.pairs) {
      near.destroy()
      far.destroy()
    }
    await closed
  }
}
