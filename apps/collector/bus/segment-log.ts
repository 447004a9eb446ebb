// The segments of a bus as their one writer has them open. Segments that all have passed are used again: to overwrite
// what a file has already needs no change of the file system's own, which halves the cost of a sync.

import { closeSync, fdatasyncSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../../core/assert.ts'
import { type BusEnd, EndMark, endOfSegment } from './end-mark.ts'
import { groupBytes, type PlacedGroup, sealGroup, writeBytes } from './segment.ts'
import { type BusIndex, createSegmentFile, type Segment } from './segments-and-consumers.ts'

/** A segment that is so large is followed by another one. */
const SEGMENT_BYTES = 16 * 1024 * 1024
/** Files that nothing is kept in, for the next segments. */
const SPARE_FILES_MAX = 2

export class SegmentLog {
  private readonly mark: EndMark
  private readonly segments: Segment[]
  /**
   * Numbers of files for the next segments. Only what this process has seen passed: of others nobody knows what lies in
   * them.
   */
  private readonly spare: number[] = []
  private file: number
  private end: BusEnd = { last: 0, segment: 1, offset: 0 }

  /**
   * Opens what is on the disk and tells of every group on it. Throws in words for the operator when some of it is
   * missing.
   */
  constructor(
    private readonly index: BusIndex,
    tell: (group: PlacedGroup) => void,
  ) {
    this.segments = index.segments()
    this.mark = new EndMark(index.folder)
    const markedLast = this.mark.read()?.last ?? 0
    // An index that was moved away is made anew. Its readers know their places: no position is used a second time.
    if (this.segments.length === 0) this.segments.push(this.addSegment(markedLast + 1))
    const { segments } = this
    for (const [at, segment] of segments.entries()) {
      const next = segments[at + 1]
      const end = endOfSegment(index, segment, !next, tell)
      const last = next ? next.first - 1 : markedLast
      if (last > end.last) throw this.missing(end.last + 1, last)
      this.end = end
    }
    this.removeUnknownFiles()
    this.file = openSync(index.segmentPath(segments.at(-1)!.file), 'r+')
    // A group may lie whole in the memory of the system and not yet on the disk.
    fdatasyncSync(this.file)
    this.mark.write(this.end)
  }

  get last(): number {
    return this.end.last
  }

  private missing(from: number, to: number): Error {
    const { path, folder } = this.index
    return new Error(
      `cannot open bus ${path}: the entries ${from} to ${to} are missing in ${folder}; bring the files back, or move ${path} away, and batches that nobody has read yet are lost`,
    )
  }

  private removeUnknownFiles(): void {
    const known = new Set(this.segments.map(segment => this.index.segmentPath(segment.file)))
    for (const name of readdirSync(this.index.folder)) {
      const path = join(this.index.folder, name)
      if (name.endsWith('.log') && !known.has(path)) rmSync(path)
    }
  }

  /** A segment that starts at `first`, in a spare file or in a new one. */
  private addSegment(first: number): Segment {
    const spare = this.spare.at(-1)
    const file = spare ?? Math.max(0, ...this.segments.map(segment => segment.file)) + 1
    if (spare === undefined) closeSync(createSegmentFile(this.index.folder, file))
    this.index.addSegment({ first, file })
    if (spare !== undefined) this.spare.pop()
    return { first, file }
  }

  /**
   * Writes a group and waits until it is on the disk. `bytes` holds its `byteCount` bytes of entries behind
   * GROUP_HEADER_BYTES, and is as long as the group. Throws where the disk does; the group is then none of the bus.
   */
  append(bytes: Uint8Array, byteCount: number, count: number, atMs: number): void {
    assert(count > 0 && bytes.length === groupBytes(byteCount), 'a group has entries, and room for just these')
    if (this.end.offset >= SEGMENT_BYTES) this.goOn()
    const { last, segment, offset } = this.end
    sealGroup(bytes, { byteCount, first: last + 1, count, atMs })
    writeBytes(this.file, offset, bytes)
    fdatasyncSync(this.file)
    this.end = { last: last + count, segment, offset: offset + bytes.length }
    this.mark.write(this.end)
  }

  private goOn(): void {
    const segment = this.addSegment(this.end.last + 1)
    const file = openSync(this.index.segmentPath(segment.file), 'r+')
    closeSync(this.file)
    this.file = file
    this.segments.push(segment)
    this.end = { last: this.end.last, segment: segment.first, offset: 0 }
  }

  /** What is up to `passed` may go: whole segments of it do. */
  forget(passed: number): void {
    const kept = this.segments.findLastIndex(segment => segment.first <= passed + 1)
    if (kept <= 0) return
    this.index.removeSegmentsBefore(this.segments[kept]!.first)
    for (const { file } of this.segments.splice(0, kept))
      if (this.spare.length < SPARE_FILES_MAX) this.spare.push(file)
      else rmSync(this.index.segmentPath(file))
  }

  close(): void {
    closeSync(this.file)
    this.mark.close()
  }
}
