// A bus in another thread. A listener collects entries for a millisecond or two and transfers them in one buffer. The
// thread that owns the bus answers each buffer once its entries are durable, so that a disk sync never blocks a
// listener.
import { assert } from '../../../core/assert.ts'
import { readUuid } from '../../../core/series/uuid.ts'
import { CallClient, CallServer, Direct, type Waiting } from '../thread-calls.ts'
import type { BusStats, BusWriter, PublishRefusal } from './bus.ts'

/** How long the first entry of a buffer waits for more entries. */
const COLLECT_MS = 1
/** A buffer of this size is sent at once. */
const COLLECT_BYTES_MAX = 1024 * 1024
const COLLECT_ROOM_BYTES = 128 * 1024
const SPARE_GROUPS_MAX = 8
/** Offset of the server id in an entry. */
const SERVER_ID_AT = 24

type BusCalls = {
  /** Entries, one after another, in the first `byteCount` bytes of the buffer, which comes back with the response. */
  publish: { args: [buffer: ArrayBuffer, byteCount: number, count: number]; result: Published }
  stats: { args: []; result: BusStats }
}

/**
 * The result of a publish: the buffer alone when all of its entries are durable, so that the usual response is one
 * object; else the buffer with one refusal for all entries, or one for each when they differ.
 */
type Published =
  | ArrayBuffer
  | { readonly buffer: ArrayBuffer; readonly refusal: PublishRefusal | readonly (PublishRefusal | null)[] }

type Resolve = (refusal: PublishRefusal | null) => void

/** Entries that are sent in one buffer, and the promises of their publishers. Reused once the buffer came back. */
class EntryGroup implements Waiting<Published> {
  private bytes = new Uint8Array(0)
  byteCount = 0
  private readonly resolves: Resolve[] = []

  constructor(private readonly giveBack: (group: EntryGroup) => void) {}

  get count(): number {
    return this.resolves.length
  }

  get buffer(): ArrayBuffer {
    return this.bytes.buffer
  }

  add(entry: Uint8Array, resolve: Resolve): void {
    this.resolves.push(resolve)
    const end = this.byteCount + entry.length
    if (end > this.bytes.length) this.makeRoom(end)
    this.bytes.set(entry, this.byteCount)
    this.byteCount = end
  }

  private makeRoom(byteCount: number): void {
    const larger = new Uint8Array(Math.max(COLLECT_ROOM_BYTES, 2 ** Math.ceil(Math.log2(byteCount))))
    larger.set(this.bytes)
    this.bytes = larger
  }

  resolve(published: Published): void {
    const isDurable = published instanceof ArrayBuffer
    const refusal = isDurable ? null : published.refusal
    if (typeof refusal === 'string' || refusal === null) for (const resolve of this.resolves) resolve(refusal)
    else for (const [index, resolve] of this.resolves.entries()) resolve(refusal[index] ?? null)
    this.bytes = new Uint8Array(isDurable ? published : published.buffer)
    this.byteCount = 0
    this.resolves.length = 0
    this.giveBack(this)
  }

  reject(): void {
    for (const resolve of this.resolves) resolve('failed')
  }
}

/** The bus as a publishing thread sees it. It has no close: the thread that owns the bus closes it. */
export class PortBus implements BusWriter {
  private readonly calls: CallClient<BusCalls>
  /** Groups whose buffer came back and can be used again. */
  private readonly spare: EntryGroup[] = []
  private readonly keep = (group: EntryGroup): void => {
    if (this.spare.length < SPARE_GROUPS_MAX) this.spare.push(group)
  }
  /** The entries that are being collected. */
  private group = new EntryGroup(this.keep)
  private timer: ReturnType<typeof setTimeout> | null = null
  private readonly flushNow = () => this.flush()

  constructor(private readonly port: MessagePort) {
    this.calls = new CallClient(port)
    port.onmessage = event => this.calls.receive(event.data)
  }

  publish(_serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    return new Promise(resolve => {
      const { group } = this
      group.add(entry, resolve)
      if (group.byteCount >= COLLECT_BYTES_MAX) this.flush()
      else this.timer ??= setTimeout(this.flushNow, COLLECT_MS)
    })
  }

  stats(): Promise<BusStats> {
    return this.calls.call('stats')
  }

  async close(): Promise<void> {
    this.port.close()
    this.calls.failAll('the bus is closed')
  }

  /** Sends the collected entries. */
  flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const { group } = this
    if (group.count === 0) return
    this.group = this.spare.pop() ?? new EntryGroup(this.keep)
    const { buffer } = group
    this.calls.send('publish', [buffer, group.byteCount, group.count], group, [buffer])
  }
}

/** Serves the thread that owns the bus: publishes what comes over `port`, in order. */
export function serveBus(port: MessagePort, bus: BusWriter, onError: (error: unknown) => void): void {
  const calls = new CallServer<BusCalls>(
    port,
    {
      publish: new Direct((call, buffer, byteCount, count) => {
        publishAll(bus, new Uint8Array(buffer, 0, byteCount), count).then(
          refusal => calls.answer(call, refusal === null ? buffer : { buffer, refusal }, [buffer]),
          error => {
            onError(error)
            calls.answer(call, { buffer, refusal: 'failed' }, [buffer])
          },
        )
      }),
      stats: () => bus.stats(),
    },
    error => {
      onError(error)
      return 'cannot read the state of the bus'
    },
  )
  port.onmessage = event => calls.receive(event.data)
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
