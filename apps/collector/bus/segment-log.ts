// The open segments of the bus writer. Files of segments that all consumers have passed are reused, and where there is
// none a file is written full of zeros ahead of its use: overwriting allocated blocks changes no metadata of the file
// system, which halves the cost of a sync.

import { closeSync, fdatasyncSync, openSync, readdirSync, rmSync } from 'node:fs'
import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../../../core/assert.ts'
import { type BusEnd, EndMark, endOfSegment } from './end-mark.ts'
import { groupBytes, type PlacedGroup, sealGroup, writeBytes } from './segment.ts'
import { type BusIndex, createSegmentFile, type Segment } from './segments-and-consumers.ts'

/** A segment that has reached this size is followed by a new one. */
const SEGMENT_BYTES = 16 * 1024 * 1024
/**
 * The most unused files that are kept for the next segments, or as many as passed at once the last time: when samples
 * that were held for minutes are stored, all files of these minutes pass, and as many are needed until the next time.
 * Where the disk has little room, only a few.
 */
const SPARE_FILES_MAX = 32
const SPARE_FILES_OF_A_SMALL_DISK = 2
const AMPLE_BYTES = 64 * SEGMENT_BYTES
/** A half segment of fewer commits has so many entries in each that it is not their syncs that cost. */
const COMMITS_OF_A_HALF = 256
const ZEROS = new Uint8Array(1024 * 1024)

/** Makes a file of zeros for a segment, unless it is given up meanwhile. */
async function writeZeros(path: string, folder: string, isGivenUp: () => boolean): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    for (let at = 0; at < SEGMENT_BYTES && !isGivenUp(); at += ZEROS.length)
      await file.write(ZEROS, 0, ZEROS.length, at)
    await file.sync()
  } finally {
    await file.close()
  }
  const directory = await open(folder, 'r')
  await directory.sync().finally(() => directory.close())
}

export class SegmentLog {
  private readonly mark: EndMark
  private readonly segments: Segment[]
  /**
   * Numbers of unused files for the next segments. Only files whose segments this process has seen passed, since the
   * content of others is unknown.
   */
  private readonly spare: number[] = []
  /** How many files passed at once the last time that some did. */
  private passedAtOnce = 0
  /** Files that are being removed, one after the other: to remove a file takes milliseconds. */
  private readonly toRemove: number[] = []
  private removing: Promise<void> | null = null
  /** The file that is made ahead of its use. */
  private preparing: { readonly file: number; readonly done: Promise<void> } | null = null
  /** Once a segment, whatever came of it. */
  private hasTried = false
  private isClosed = false
  private file: number
  /** In the present segment. */
  private commits = 0
  private end: BusEnd = { last: 0, segment: 1, offset: 0 }

  /**
   * Opens the segments on disk and reports every group in them. Throws, with a message for the operator, when a part is
   * missing.
   */
  constructor(
    private readonly index: BusIndex,
    tell: (group: PlacedGroup) => void,
  ) {
    this.segments = index.segments()
    this.mark = new EndMark(index.folder)
    const markedLast = this.mark.read()?.last ?? 0
    // The index was moved away and is created again. Readers still remember their positions, so the new segment starts
    // after the last position of the mark and none is used twice.
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
    // A group may be complete in the page cache and not yet on disk.
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

  /** Creates a segment that starts at position `first`, in an unused or a new file. */
  private addSegment(first: number): Segment {
    const spare = this.spare.at(-1)
    const file = spare ?? this.newFile()
    if (spare === undefined) closeSync(createSegmentFile(this.index.folder, file))
    this.index.addSegment({ first, file })
    if (spare !== undefined) this.spare.pop()
    return { first, file }
  }

  private newFile(): number {
    return Math.max(this.preparing?.file ?? 0, ...this.toRemove, ...this.segments.map(segment => segment.file)) + 1
  }

  /** Once a segment is half full: sees to it that there is a file for the next one. */
  private prepare(): void {
    if (this.hasTried || this.spare.length > 0 || this.isClosed || this.commits < COMMITS_OF_A_HALF) return
    this.hasTried = true
    const file = this.newFile()
    const done = this.makeSpare(file).finally(() => {
      this.preparing = null
    })
    this.preparing = { file, done }
  }

  private removeFile(path: string): void {
    try {
      rmSync(path, { force: true })
    } catch {
      // What is left of it is removed at the next start.
    }
  }

  /** A disk that does not take it will be told of by the commit that needs it. */
  private async makeSpare(file: number): Promise<void> {
    const { folder } = this.index
    const path = this.index.segmentPath(file)
    try {
      const disk = await statfs(folder)
      if (disk.bavail * disk.bsize < AMPLE_BYTES) return
      await writeZeros(path, folder, () => this.isClosed)
      this.spare.push(file)
    } catch {
      this.removeFile(path)
    }
  }

  /**
   * Writes a group and syncs it. `bytes` is as long as the group and has its `byteCount` bytes of entries behind
   * GROUP_HEADER_BYTES. Throws when the disk fails; the group is then not part of the bus.
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
    this.commits++
    if (this.end.offset * 2 >= SEGMENT_BYTES) this.prepare()
  }

  private goOn(): void {
    const segment = this.addSegment(this.end.last + 1)
    const file = openSync(this.index.segmentPath(segment.file), 'r+')
    closeSync(this.file)
    this.file = file
    this.segments.push(segment)
    this.commits = 0
    this.hasTried = this.preparing !== null
    this.end = { last: this.end.last, segment: segment.first, offset: 0 }
  }

  /** Frees the segments whose entries are all at or below position `passed`; `freeBytes` are left on the disk. */
  forget(passed: number, freeBytes: number): void {
    const kept = this.segments.findLastIndex(segment => segment.first <= passed + 1)
    if (kept > 0) {
      this.index.removeSegmentsBefore(this.segments[kept]!.first)
      this.passedAtOnce = kept
      this.spare.push(...this.segments.splice(0, kept).map(({ file }) => file))
    }
    const isSmall = freeBytes < AMPLE_BYTES
    const sparesMax = isSmall ? SPARE_FILES_OF_A_SMALL_DISK : Math.max(SPARE_FILES_MAX, this.passedAtOnce)
    this.toRemove.push(...this.spare.splice(sparesMax))
    if (this.toRemove.length > 0) this.removing ??= this.remove()
  }

  private async remove(): Promise<void> {
    for (let file = this.toRemove[0]; file !== undefined; file = this.toRemove[0]) {
      // What is left of it is removed at the next start.
      await rm(this.index.segmentPath(file), { force: true }).catch(() => {})
      this.toRemove.shift()
    }
    this.removing = null
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.preparing?.done
    await this.removing
    closeSync(this.file)
    this.mark.close()
  }
}
