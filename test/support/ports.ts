// Ports for what a test starts.
import { createServer } from 'node:net'

/** Below the ports that outgoing connections are given, and above those of services. */
const FIRST = 15_000
const COUNT = 15_000

const canListen = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

/** A port that is free now and that no connection takes meanwhile: for a process that is started later, and again. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if (await canListen(port)) return port
  }
}
