// Batches that wait for the collector, on disk: one file a cycle, sent oldest first, bounded, oldest dropped first
// (document 3 "Errors", decision G-54). A file appears under its name only when it is whole, so a kill at any instant
// loses at most the cycle being written.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Logger } from 'pino'
import { BUFFER_MEMORY_BYTES_MAX, evictionCount } from '../../../core/agent/buffer-eviction.ts'
import { groupCount, type PointSeries, pointCount } from '../../../core/agent/requests-of-cycles.ts'
import { limits } from '../../../core/limits.ts'
import { ownerForFolder, replaceFile } from '../../files/replace-file.ts'
import { decodeSeries, encodeSeries } from '../transport/wire.ts'

type Entry = {
  readonly number: number
  readonly points: number
  readonly bytes: number
  /** The content itself, only while the disk refuses to take it. */
  readonly content: Uint8Array | null
}

export type BufferGroup = { readonly entryNumbers: readonly number[]; readonly series: readonly PointSeries[] }

const FILE_NAME = /^(\d{1,15})-(\d{1,7})\.batch$/

export class BatchBuffer {
  readonly #path: string
  readonly #log: Logger
  #entries: Entry[] = []
  #nextNumber = 1
  #bytesMax: number
  /** True while batches wait in memory, because the disk takes none. */
  isDiskRefusing = false
  /** Points given up since the start: buffer full, or a file that cannot be read. */
  droppedPoints = 0

  /** Opens the buffer and takes over what an earlier run left. */
  constructor(path: string, bytesMax: number, log: Logger) {
    this.#path = path
    this.#bytesMax = bytesMax
    this.#log = log
    for (const { name, size } of listFiles(path)) {
      const found = FILE_NAME.exec(name)
      if (found) this.#entries.push({ number: Number(found[1]), points: Number(found[2]), bytes: size, content: null })
      else if (name.endsWith('.tmp')) this.#discard(name)
    }
    this.#entries.sort((a, b) => a.number - b.number)
    this.#nextNumber = (this.#entries.at(-1)?.number ?? 0) + 1
    this.#makeRoom(0)
  }

  get batchCount(): number {
    return this.#entries.length
  }

  get bytes(): number {
    return this.#entries.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  setBytesMax(bytesMax: number): void {
    this.#bytesMax = bytesMax
    this.#makeRoom(0)
  }

  /** Keeps one cycle. When it does not fit, the oldest cycles go, and are counted. */
  append(series: readonly PointSeries[]): void {
    const points = pointCount(series)
    if (points === 0) return
    const content = zstdCompressSync(encodeSeries(series))
    this.#makeRoom(content.length)
    if (content.length > this.#bytesMax) {
      this.#drop(points, 'is larger than the whole buffer')
      return
    }
    const number = this.#nextNumber++
    const isOnDisk = this.#store(join(this.#path, fileName(number, points)), content)
    this.#entries.push({ number, points, bytes: content.length, content: isOnDisk ? null : content })
    if (!isOnDisk) this.#boundMemory()
  }

  /** The oldest cycles that fit into one request of `pointsMax` points, merged; null when the buffer is empty. */
  oldest(pointsMax: number): BufferGroup | null {
    while (this.#entries.length > 0) {
      const count = groupCount(
        this.#entries.map(({ points }) => points),
        Math.min(pointsMax, limits.pointsPerRequestMax),
      )
      const group = this.#entries.slice(0, count)
      const series: PointSeries[] = []
      const unreadable: number[] = []
      for (const entry of group) {
        const decoded = this.#load(entry)
        if (decoded) series.push(...decoded)
        else unreadable.push(entry.number)
      }
      for (const number of unreadable) this.giveUp([number], 'cannot be read')
      if (series.length > 0) {
        const entryNumbers = group.map(({ number }) => number).filter(number => !unreadable.includes(number))
        return { entryNumbers, series }
      }
    }
    return null
  }

  /** Takes delivered cycles out. */
  remove(numbers: readonly number[]): void {
    const gone = new Set(numbers)
    for (const entry of this.#entries) if (gone.has(entry.number)) this.#delete(entry)
    this.#entries = this.#entries.filter(({ number }) => !gone.has(number))
  }

  /** Takes cycles out that will never be delivered, and counts their points. */
  giveUp(numbers: readonly number[], why: string): void {
    const gone = new Set(numbers)
    const points = this.#entries.reduce((sum, entry) => sum + (gone.has(entry.number) ? entry.points : 0), 0)
    this.remove(numbers)
    if (points > 0) this.#drop(points, why)
  }

  /** Points of a request that was refused in part, while its cycles are removed as delivered. */
  countDropped(points: number): void {
    this.droppedPoints += points
  }

  clear(): void {
    this.remove(this.#entries.map(({ number }) => number))
  }

  #drop(points: number, why: string): void {
    this.droppedPoints += points
    this.#log.warn({ points, why }, 'buffered points dropped')
  }

  #makeRoom(incomingBytes: number): void {
    const count = evictionCount(
      this.#entries.map(({ bytes }) => bytes),
      incomingBytes,
      this.#bytesMax,
    )
    if (count === 0) return
    this.giveUp(
      this.#entries.slice(0, count).map(({ number }) => number),
      'the buffer is full',
    )
  }

  #boundMemory(): void {
    const held = this.#entries.filter(({ content }) => content !== null)
    const count = evictionCount(
      held.map(({ bytes }) => bytes),
      0,
      BUFFER_MEMORY_BYTES_MAX,
    )
    if (count === 0) return
    this.giveUp(
      held.slice(0, count).map(({ number }) => number),
      'the disk takes no batches',
    )
  }

  #store(path: string, content: Uint8Array): boolean {
    try {
      replaceFile(path, content, { owner: ownerForFolder(this.#path) })
      this.isDiskRefusing = false
      return true
    } catch (error) {
      if (!this.isDiskRefusing)
        this.#log.error({ error: messageOf(error) }, 'cannot buffer on disk: keeping batches in memory')
      this.isDiskRefusing = true
      return false
    }
  }

  #load(entry: Entry): PointSeries[] | null {
    try {
      const content = entry.content ?? readFileSync(join(this.#path, fileName(entry.number, entry.points)))
      const series = decodeSeries(zstdDecompressSync(content, { maxOutputLength: limits.inflatedBytesMax }))
      // A torn frame may decode to less without an error.
      return pointCount(series) === entry.points ? series : null
    } catch {
      return null
    }
  }

  #delete(entry: Entry): void {
    if (entry.content === null) this.#discard(fileName(entry.number, entry.points))
  }

  #discard(name: string): void {
    try {
      rmSync(join(this.#path, name), { force: true })
    } catch (error) {
      // A disk that has become read-only: sent again after a restart, the batch changes nothing.
      this.#log.debug({ error: messageOf(error) }, 'cannot remove a batch from the disk')
    }
  }
}

const fileName = (number: number, points: number): string => `${String(number).padStart(12, '0')}-${points}.batch`

function listFiles(path: string): { name: string; size: number }[] {
  return readdirSync(path, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ name }) => ({ name, size: Bun.file(join(path, name)).size }))
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
