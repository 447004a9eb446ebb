// The entry file of the bus thread: the only writer of the file bus, which waits for the disk so that no other thread
// has to.
import { errorInfo } from '../../../core/error-info.ts'
import { serveBus } from './bus-port.ts'
import { FileBusWriter } from './file-bus-writer.ts'
import type { FromBusThread, ToBusThread } from './thread-bus.ts'

declare const self: Worker

const tell = (message: FromBusThread): void => postMessage(message)
const tellError = (error: unknown): void => tell({ kind: 'error', cause: errorInfo(error) })
let bus: FileBusWriter | null = null

function open(options: Extract<ToBusThread, { kind: 'open' }>['options']): void {
  try {
    bus = new FileBusWriter({
      ...options,
      nowMs: Date.now,
      onPublished: () => tell({ kind: 'published' }),
      onError: tellError,
    })
    tell({ kind: 'open' })
  } catch (error) {
    tell({ kind: 'cannot_open', reason: error instanceof Error ? error.message : String(error) })
  }
}

self.onmessage = (event: MessageEvent<ToBusThread>) => {
  const message = event.data
  if (message.kind === 'open') open(message.options)
  else if (message.kind === 'connect' && bus) serveBus(message.port, bus, tellError)
  else if (message.kind === 'close')
    void (bus?.close() ?? Promise.resolve()).catch(tellError).then(() => tell({ kind: 'closed' }))
}
