// An address that takes no connection and refuses none: a process listens there and is stopped, and its queue is full.
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { until } from './until.ts'

const STOPPED_LISTENER = `
  const server = require('node:net').createServer()
  server.listen({ port: 0, host: '127.0.0.1' }, () =>
    process.stdout.write(server.address().port + '\\n', () => process.kill(process.pid, 'SIGSTOP')))`
/** What Bun asks of the system for connections that nobody has taken; the system may allow fewer. */
const QUEUE_MAX = 512

function queueMax(): number {
  if (process.platform !== 'linux') return 128
  return Math.min(QUEUE_MAX, Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8')))
}

export class DeafListener {
  private constructor(
    private readonly child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>,
    private readonly waiting: readonly Socket[],
    readonly url: string,
  ) {}

  static async start(): Promise<DeafListener> {
    const child = Bun.spawn([process.execPath, '-e', STOPPED_LISTENER], { stdin: 'ignore', stdout: 'pipe' })
    const { value } = await child.stdout.getReader().read()
    const port = Number(new TextDecoder().decode(value))
    let taken = 0
    const waiting = Array.from({ length: queueMax() + 64 }, () => {
      const socket = connect({ host: '127.0.0.1', port })
      socket.once('connect', () => taken++)
      socket.once('error', () => {})
      return socket
    })
    await until('the queue to be full', () => taken > queueMax())
    return new DeafListener(child, waiting, `http://127.0.0.1:${port}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.waiting) socket.destroy()
    this.child.kill('SIGKILL')
    await this.child.exited
  }
}
