// Starts the file bus in a thread of its own. Any number of threads can connect to it and publish.
import { threadFault } from '../../../core/error-info.ts'
import { endThread } from '../../process/end-thread.ts'
import type { BusStats, BusWriter, PublishRefusal } from './bus.ts'
import { PortBus, serveBus } from './bus-port.ts'
import type { FileBusOptions } from './file-bus-writer.ts'

type BusThreadOptions = Pick<FileBusOptions, 'path' | 'bytesMax' | 'ageMaxMs' | 'groupWaitMs'>

export type ToBusThread =
  | { readonly kind: 'open'; readonly options: BusThreadOptions }
  | { readonly kind: 'connect'; readonly port: MessagePort }
  | { readonly kind: 'close' }

export type FromBusThread =
  | { readonly kind: 'open' }
  | { readonly kind: 'cannot_open'; readonly reason: string }
  /** Entries were published; wakes readers, so that they need not poll. */
  | { readonly kind: 'published' }
  | { readonly kind: 'error'; readonly cause: unknown }
  | { readonly kind: 'closed' }

type ThreadBusParts = {
  readonly threadUrl: URL | string
  readonly options: BusThreadOptions
  readonly onPublished: () => void
  /** The cause of an error, for the log. */
  readonly onError: (cause: unknown) => void
  /** The thread died: the process must end. Nothing acknowledged is lost. */
  readonly onFailure: (error: Error) => void
}

export class ThreadBus implements BusWriter {
  private readonly own: PortBus
  private closed: (() => void) | null = null

  private constructor(private readonly worker: Worker) {
    this.own = new PortBus(this.connect())
  }

  /** Opens the bus in a new thread. Rejects, with a message for the operator, when it cannot be opened. */
  static open(parts: ThreadBusParts): Promise<ThreadBus> {
    const worker = new Worker(parts.threadUrl)
    return new Promise((resolve, reject) => {
      let bus: ThreadBus | null = null
      let isRefused = false
      const fail = (reason: string) => {
        const error = new Error(`the bus thread failed: ${reason}`)
        reject(error)
        if (!bus?.closed && !isRefused) parts.onFailure(error)
      }
      worker.onerror = event => fail(threadFault(event.message))
      worker.addEventListener('close', () => fail('it ended'))
      worker.onmessage = (event: MessageEvent<FromBusThread>) => {
        const message = event.data
        switch (message.kind) {
          case 'open':
            bus = new ThreadBus(worker)
            resolve(bus)
            return
          case 'cannot_open':
            isRefused = true
            reject(new Error(message.reason))
            worker.terminate()
            return
          case 'published':
            parts.onPublished()
            return
          case 'error':
            parts.onError(message.cause)
            return
          case 'closed':
            bus?.closed?.()
        }
      }
      const open: ToBusThread = { kind: 'open', options: parts.options }
      worker.postMessage(open)
    })
  }

  /** A port for a publishing thread, which calls `new PortBus(port)` with it. */
  connect(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    const message: ToBusThread = { kind: 'connect', port: port1 }
    this.worker.postMessage(message, [port1])
    return port2
  }

  publish(serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    return this.own.publish(serverId, entry)
  }

  stats(): Promise<BusStats> {
    return this.own.stats()
  }

  /** Commits pending entries and ends the thread. All publishers must have stopped. */
  async close(): Promise<void> {
    // Messages of a port keep their order: when this call is answered, the bus has everything that this thread
    // published.
    this.own.flush()
    await this.own.stats().catch(() => {})
    const closed = new Promise<void>(resolve => {
      this.closed = resolve
    })
    const message: ToBusThread = { kind: 'close' }
    this.worker.postMessage(message)
    await closed
    await endThread(this.worker)
  }
}

/** A port through which another thread publishes on `bus`, whichever thread owns it. */
export function connectBus(bus: BusWriter, onError: (error: unknown) => void): MessagePort {
  if (bus instanceof ThreadBus) return bus.connect()
  const { port1, port2 } = new MessageChannel()
  serveBus(port1, bus, onError)
  return port2
}
