// Writes the file bus: entries that arrive within a few milliseconds become one group with one write and one disk sync.
// A publisher gets its result only after that sync.

import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { assert } from '../../../core/assert.ts'
import { type BusBound, isBusFull, isDiskFull } from '../../../core/bus/bus-bound.ts'
import { lockFile, type ProcessLock } from '../store/process-lock.ts'
import type { BusStats, BusWriter, PublishRefusal } from './bus.ts'
import { CommitPace, GROUP_ENTRIES } from './commit-pace.ts'
import { PacedNotice } from './paced-notice.ts'
import { GROUP_HEADER_BYTES, groupBytes } from './segment.ts'
import { SegmentLog } from './segment-log.ts'
import { BusIndex } from './segments-and-consumers.ts'

const GROUP_BYTES_MAX = 4 * 1024 * 1024
const GROUP_ROOM_BYTES = 256 * 1024
/** How often, at most, the free disk is checked and a refusal recorded. */
const REST_MS = 1000
/**
 * How often, at most, readers are told of commits. Each time wakes a thread, which costs more than what it then reads
 * of a fleet that sends a few hundred batches a second.
 */
const TELL_MS = 20

export type FileBusOptions = BusBound & {
  readonly path: string
  /** The pace of commits (CommitPace). */
  readonly groupWaitMs: number
  readonly nowMs: () => number
  /**
   * Called after a commit, so that readers in this process need not poll: at once when nothing was told for a while,
   * else once for all commits until then.
   */
  readonly onPublished: () => void
  readonly onError: (error: unknown) => void
}

/** The same bytes with room for at least `byteCount`. */
function grown(bytes: Uint8Array, byteCount: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 ** Math.ceil(Math.log2(byteCount)))
  larger.set(bytes)
  return larger
}

/** The only writer of a file bus. */
export class FileBusWriter implements BusWriter {
  private readonly lock: ProcessLock
  private readonly index: BusIndex
  private readonly log: SegmentLog
  /** The pending entries, behind room for the group header; reused for every group. */
  private group = new Uint8Array(GROUP_ROOM_BYTES)
  private pendingBytes = 0
  private pendingCount = 0
  /** The result of the pending group: one promise for all publishers of its entries. */
  private outcome: PromiseWithResolvers<PublishRefusal | null> | null = null
  private timer: ReturnType<typeof setTimeout> | null = null
  /** Groups on disk that are not removed yet, oldest first: last position, size, time. */
  private held: { last: number; size: number; atMs: number }[] = []
  private heldFrom = 0
  private heldBytes = 0
  private trimCheckedAtMs = 0
  private refusalNotedAtMs = 0
  private freeBytes = Number.POSITIVE_INFINITY
  private isClosed = false
  private readonly pace: CommitPace
  private readonly published: PacedNotice

  constructor(private readonly options: FileBusOptions) {
    this.pace = new CommitPace(options.groupWaitMs, GROUP_ENTRIES)
    this.published = new PacedNotice(TELL_MS, options.onPublished)
    // A second writer would number its entries as the first does.
    this.lock = lockFile(`${options.path}.lock`, 'ingest')
    try {
      this.index = BusIndex.open(options.path, 'writer')
      this.log = new SegmentLog(this.index, group =>
        this.hold(group.first + group.count - 1, group.byteCount, group.atMs),
      )
      this.forgetPassed()
    } catch (error) {
      this.lock.release()
      throw error
    }
  }

  private hold(last: number, size: number, atMs: number): void {
    assert(last > (this.held.at(-1)?.last ?? 0), 'positions of the bus grow')
    this.held.push({ last, size, atMs })
    this.heldBytes += size
  }

  publish(_serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    return this.publishGroup(entry, 1)
  }

  publishGroup(bytes: Uint8Array, count: number): Promise<PublishRefusal | null> {
    if (this.isFull()) {
      this.noteRefusal()
      return Promise.resolve('full')
    }
    const end = this.pendingBytes + bytes.length
    if (groupBytes(end) > this.group.length) this.group = grown(this.group, groupBytes(end))
    this.group.set(bytes, GROUP_HEADER_BYTES + this.pendingBytes)
    this.pendingBytes = end
    this.pendingCount += count
    this.pace.arrived()
    this.outcome ??= Promise.withResolvers()
    const { promise } = this.outcome
    if (end >= GROUP_BYTES_MAX) this.flush()
    else this.timer ??= setTimeout(() => this.flush(), this.pace.waitMs)
    return promise
  }

  private isFull(): boolean {
    const nowMs = this.options.nowMs()
    // The clock may have been set back.
    if (Math.abs(nowMs - this.trimCheckedAtMs) >= REST_MS) {
      this.trimCheckedAtMs = nowMs
      const disk = statfsSync(dirname(this.options.path))
      this.freeBytes = disk.bavail * disk.bsize
      this.forgetPassed()
    }
    const fill = { bytes: this.heldBytes + this.pendingBytes, oldestAtMs: this.oldestAtMs() }
    return isDiskFull(this.freeBytes) || isBusFull(fill, this.options, nowMs)
  }

  private oldestAtMs(): number | null {
    return this.held[this.heldFrom]?.atMs ?? null
  }

  /**
   * Records the refusal for the readers: an agent whose batches were refused must not be declared lost (decision
   * G-142).
   */
  private noteRefusal(): void {
    const atMs = this.options.nowMs()
    if (Math.abs(atMs - this.refusalNotedAtMs) < REST_MS) return
    this.refusalNotedAtMs = atMs
    try {
      this.index.noteRefusal(atMs)
    } catch (error) {
      this.options.onError(error)
    }
  }

  /** Removes passed segments. When the disk refuses the change, as when it is full, they are removed later. */
  private forgetPassed(): void {
    const passed = this.index.passedByAll()
    try {
      this.log.forget(passed, this.freeBytes)
    } catch (error) {
      this.options.onError(error)
    }
    while (this.heldFrom < this.held.length && this.held[this.heldFrom]!.last <= passed)
      this.heldBytes -= this.held[this.heldFrom++]!.size
    assert(this.heldBytes >= 0, 'no more is forgotten than was held')
    if (this.heldFrom > 1024 && this.heldFrom * 2 > this.held.length) {
      this.held = this.held.slice(this.heldFrom)
      this.heldFrom = 0
    }
  }

  /** Commits the pending entries as one group and resolves its publishers. */
  private flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const { outcome, pendingCount: count } = this
    if (!outcome) return
    const byteCount = this.pendingBytes
    this.outcome = null
    this.pendingBytes = 0
    this.pendingCount = 0
    const atMs = this.options.nowMs()
    let refusal: PublishRefusal | null = null
    try {
      this.log.append(this.group.subarray(0, groupBytes(byteCount)), byteCount, count, atMs)
      this.hold(this.log.last, byteCount, atMs)
    } catch (error) {
      refusal = 'failed'
      this.options.onError(error)
    }
    this.pace.committed(count)
    outcome.resolve(refusal)
    if (refusal === null) this.published.raise()
  }

  async stats(): Promise<BusStats> {
    this.forgetPassed()
    return {
      lagEntries: Math.max(0, this.log.last - this.index.passedByAll()),
      bytes: this.heldBytes,
      oldestAtMs: this.oldestAtMs(),
      isFull: this.isFull(),
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.flush()
    this.published.stop()
    await this.log.close()
    this.index.close()
    this.lock.release()
  }
}
