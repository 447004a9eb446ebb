// A bus that lives in another thread: entries of a millisecond or two go over in one buffer, which changes hands.
// Whoever has the bus answers each buffer once its entries are durable, so that the sync of the disk never holds up a
// listener.
import { assert } from '../../../core/assert.ts'
import { readUuid } from '../../../core/series/uuid.ts'
import type { BusStats, BusWriter, PublishRefusal } from './bus.ts'

/** How long the first entry of a buffer waits for others. */
const COLLECT_MS = 1
/** A buffer that is so large goes at once. */
const COLLECT_BYTES_MAX = 1024 * 1024
const COLLECT_ROOM_BYTES = 128 * 1024
const SPARE_BUFFERS_MAX = 8
/** Where an entry names its server. */
const SERVER_ID_AT = 24

/** `call` is answered with the same number. */
type ToBus =
  | {
      readonly kind: 'publish'
      readonly call: number
      /** Entries one after another in its first `byteCount` bytes; it comes back with the answer. */
      readonly buffer: ArrayBuffer
      readonly byteCount: number
      readonly count: number
    }
  | { readonly kind: 'stats'; readonly call: number }

type FromBus =
  /** One refusal for all entries, or one each where they differ. */
  | {
      readonly kind: 'published'
      readonly call: number
      readonly refusal: PublishRefusal | null | readonly (PublishRefusal | null)[]
      readonly buffer: ArrayBuffer
    }
  /** null: it cannot be read. */
  | { readonly kind: 'stats'; readonly call: number; readonly stats: BusStats | null }

type Resolve = (refusal: PublishRefusal | null) => void

/** The side of a thread that publishes. It is not closed: the thread that has the bus does that. */
export class PortBus implements BusWriter {
  private resolves: Resolve[] = []
  /** What waits for others lies at its start. */
  private bytes = new Uint8Array(0)
  private byteCount = 0
  /** Buffers that came back. */
  private readonly spare: ArrayBuffer[] = []
  private timer: ReturnType<typeof setTimeout> | null = null
  private nextCall = 1
  private readonly publishing = new Map<number, readonly Resolve[]>()
  private readonly asking = new Map<number, (stats: BusStats | null) => void>()
  private readonly flushNow = () => this.flush()

  constructor(private readonly port: MessagePort) {
    port.onmessage = event => this.receive(event.data)
  }

  publish(_serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    return new Promise(resolve => {
      this.resolves.push(resolve)
      const end = this.byteCount + entry.length
      if (end > this.bytes.length) this.makeRoom(end)
      this.bytes.set(entry, this.byteCount)
      this.byteCount = end
      if (end >= COLLECT_BYTES_MAX) this.flush()
      else this.timer ??= setTimeout(this.flushNow, COLLECT_MS)
    })
  }

  async stats(): Promise<BusStats> {
    const call = this.nextCall++
    const stats = await new Promise<BusStats | null>(resolve => {
      this.asking.set(call, resolve)
      this.tell({ kind: 'stats', call })
    })
    if (!stats) throw new Error('cannot read the state of the bus')
    return stats
  }

  async close(): Promise<void> {
    this.port.close()
  }

  private tell(message: ToBus, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer)
  }

  /** Sends what waits for others. */
  flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const { resolves, bytes, byteCount } = this
    if (resolves.length === 0) return
    this.resolves = []
    this.bytes = new Uint8Array(this.spare.pop() ?? new ArrayBuffer(0))
    this.byteCount = 0
    const call = this.nextCall++
    this.publishing.set(call, resolves)
    const { buffer } = bytes
    this.tell({ kind: 'publish', call, buffer, byteCount, count: resolves.length }, [buffer])
  }

  private makeRoom(byteCount: number): void {
    const larger = new Uint8Array(Math.max(COLLECT_ROOM_BYTES, 2 ** Math.ceil(Math.log2(byteCount))))
    larger.set(this.bytes)
    this.bytes = larger
  }

  private receive(message: FromBus): void {
    if (message.kind === 'stats') {
      this.asking.get(message.call)?.(message.stats)
      this.asking.delete(message.call)
      return
    }
    const resolves = this.publishing.get(message.call)
    assert(resolves, 'the bus answers what was published')
    this.publishing.delete(message.call)
    const { refusal, buffer } = message
    if (this.spare.length < SPARE_BUFFERS_MAX) this.spare.push(buffer)
    if (typeof refusal === 'string' || refusal === null) for (const resolve of resolves) resolve(refusal)
    else for (const [index, resolve] of resolves.entries()) resolve(refusal[index] ?? null)
  }
}

/** The side that has the bus: publishes what comes over `port`, in its order. */
export function serveBus(port: MessagePort, bus: BusWriter, onError: (error: unknown) => void): void {
  const tell = (message: FromBus, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)
  port.onmessage = event => {
    const message: ToBus = event.data
    const { call } = message
    if (message.kind === 'stats') {
      bus.stats().then(
        stats => tell({ kind: 'stats', call, stats }),
        error => {
          onError(error)
          tell({ kind: 'stats', call, stats: null })
        },
      )
      return
    }
    const { buffer, byteCount, count } = message
    publishAll(bus, new Uint8Array(buffer, 0, byteCount), count).then(
      refusal => tell({ kind: 'published', call, refusal, buffer }, [buffer]),
      error => {
        onError(error)
        tell({ kind: 'published', call, refusal: 'failed', buffer }, [buffer])
      },
    )
  }
}

function publishAll(bus: BusWriter, bytes: Uint8Array, count: number) {
  if (bus.publishGroup) return bus.publishGroup(bytes, count)
  const lengths = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const publishing: Promise<PublishRefusal | null>[] = []
  for (let at = 0; at < bytes.length; ) {
    // An entry starts with its length.
    const end = at + lengths.getUint32(at, true)
    publishing.push(bus.publish(readUuid(bytes, at + SERVER_ID_AT), bytes.subarray(at, end)))
    at = end
  }
  assert(publishing.length === count, 'a buffer holds the entries that it says')
  return Promise.all(publishing)
}
