// Reads the file bus in one thread: groups in order, as far as they are synced to disk.

import { closeSync, fstatSync, openSync } from 'node:fs'
import { assert } from '../../../core/assert.ts'
import type { BusGroup, BusReader } from './bus.ts'
import { type BusEnd, EndMark, endOnDisk } from './end-mark.ts'
import { GROUP_HEADER_BYTES, groupBytes, groupHeader, groupsOf, isWhole, readBytes } from './segment.ts'
import { BusIndex, type Segment } from './segments-and-consumers.ts'

/** The smallest read from a segment file. */
const CHUNK_BYTES_MIN = 64 * 1024
/** A reader keeps no more memory than this. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024

/** A place between two groups: the next group starts at `offset` of the segment with the entry of `position`. */
type Place = { readonly segment: Segment; readonly file: number; offset: number; position: number }

/** One for each thread. */
export class FileBusReader implements BusReader {
  readonly partitions = [0]
  private readonly index: BusIndex
  private readonly mark: EndMark
  private place: Place | null = null
  /** The end found by searching the disk; used when the mark is older than the boot of this host. */
  private found: BusEnd | null = null
  private isClosed = false
  /**
   * What was read lies here until the next read. New memory for each read costs several times the copy: the system
   * gives it page by page, at the first touch of each.
   */
  private kept = new Uint8Array(0)
  /** How much of it the groups of this read have. */
  private keptUsed = 0

  /** `consumers` must all be registered before any entry may be removed. */
  constructor(path: string, consumers: readonly string[]) {
    this.index = BusIndex.open(path, 'reader')
    this.mark = new EndMark(this.index.folder)
    for (const name of consumers) this.index.addConsumer(name)
  }

  async read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]> {
    const end = this.end()
    const groups: BusGroup[] = []
    this.keptUsed = 0
    let place = this.place
    if (place?.position !== position + 1) place = this.seek(position)
    let bytes = 0
    try {
      while (place && place.position <= end.last && bytes < bytesMax) {
        const before = groups.length
        this.take(place, end, bytesMax - bytes, group => {
          assert(group.firstPosition > position, 'the bus gives what comes after the position that is asked for')
          groups.push({ partition, ...group })
          bytes += group.bytes.length
        })
        if (groups.length === before) place = this.seekOn(place, end)
      }
    } catch (error) {
      // The groups before the damage are good and are returned; the next read throws.
      if (groups.length === 0) throw error
    }
    return groups
  }

  private end(): BusEnd {
    const mark = this.mark.read()
    if (mark?.isCurrent) return mark
    this.found ??= endOnDisk(this.index)
    return this.found
  }

  /** Finds the first group that starts after `position` and that some consumer has not passed. */
  private seek(position: number): Place | null {
    const passed = this.index.passedByAll()
    const segment = this.index.segmentAt(Math.max(position, passed) + 1)
    if (!segment) return null
    const place = this.enter(segment)
    for (const group of groupsOf(place.file, segment.first, false)) {
      place.offset = group.at
      place.position = group.first
      if (group.first > position && group.first + group.count - 1 > passed) break
      place.offset += groupBytes(group.byteCount)
      place.position += group.count
    }
    return place
  }

  /** Moves from the end of a segment to the start of the next one. */
  private seekOn(place: Place, end: BusEnd): Place | null {
    // A reader that is behind all consumers may find the file reused for a newer segment.
    if (this.index.passedByAll() >= place.position) return this.seek(place.position - 1)
    const next = place.segment.first === end.segment ? null : this.index.segmentAfter(place.segment.first)
    if (next?.first !== place.position) throw this.damaged(place)
    return this.enter(next)
  }

  private enter(segment: Segment): Place {
    if (this.place) closeSync(this.place.file)
    this.place = null
    const file = openSync(this.index.segmentPath(segment.file), 'r')
    this.place = { segment, file, offset: 0, position: segment.first }
    return this.place
  }

  /**
   * Reads groups from `place` on and moves it behind them: about `bytesMax`, but at least one group if there is one.
   */
  private take(place: Place, end: BusEnd, bytesMax: number, visit: (group: Omit<BusGroup, 'partition'>) => void): void {
    const limit = place.segment.first === end.segment ? end.offset : fstatSync(place.file).size
    const room = limit - place.offset
    const wanted = Math.min(room, Math.max(bytesMax, CHUNK_BYTES_MIN))
    const usedBefore = this.keptUsed
    let chunk = readBytes(place.file, place.offset, wanted, this.memoryFor(wanted))
    for (let at = 0; ; ) {
      const header = groupHeader(chunk, at, place.position)
      const length = header ? groupBytes(header.byteCount) : 0
      if (!header || at + length > room) return
      if (at + length > chunk.length) {
        if (at > 0) return
        this.keptUsed = usedBefore
        chunk = readBytes(place.file, place.offset, length, this.memoryFor(length))
      }
      const group = chunk.subarray(at, at + length)
      if (!isWhole(group)) throw this.damaged(place)
      const bytes = group.subarray(GROUP_HEADER_BYTES, GROUP_HEADER_BYTES + header.byteCount)
      visit({ firstPosition: header.first, count: header.count, bytes })
      at += length
      place.offset += length
      place.position += header.count
    }
  }

  /** Of what is kept where there is room, at a multiple of eight; else new. */
  private memoryFor(byteCount: number): Uint8Array<ArrayBuffer> {
    const at = Math.ceil(this.keptUsed / 8) * 8
    if (at === 0 && byteCount > this.kept.length && byteCount <= KEPT_BYTES_MAX)
      this.kept = new Uint8Array(Math.min(KEPT_BYTES_MAX, Math.max(CHUNK_BYTES_MIN, byteCount * 2)))
    if (at + byteCount > this.kept.length) return new Uint8Array(byteCount)
    this.keptUsed = at + byteCount
    return this.kept.subarray(at, at + byteCount)
  }

  private damaged({ segment, offset, position }: Place): Error {
    const path = this.index.segmentPath(segment.file)
    return new Error(
      `bus ${path} is damaged at byte ${offset}: the entry at position ${position} cannot be read; move ${this.index.path} away, and batches that nobody has read yet are lost`,
    )
  }

  async lastPosition(): Promise<number> {
    return this.end().last
  }

  async passed(consumer: string): Promise<number> {
    return this.index.passed(consumer)
  }

  async pass(consumer: string, _partition: number, position: number): Promise<void> {
    if (position > this.index.passed(consumer)) this.index.pass(consumer, position)
  }

  /** When the writer last refused an entry because the bus was full; 0 when it never did. */
  async refusedAtMs(): Promise<number> {
    return this.index.refusedAtMs()
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    if (this.place) closeSync(this.place.file)
    this.place = null
    this.mark.close()
    this.index.close()
  }
}
