// Open cells: the cells that samples still come for, accumulated while the samples are stored, so that a cell that ends
// need not be computed from the disk. A cell is used only when it provably equals the computed one: every sample of its
// time was added here, each newer than the one before in its series. All other cells are marked dirty (`isRaw`) by
// server and start, and are computed from the raw samples.

import type { WrittenPoints } from '../block/sample-block.ts'
import { addSample, addToCell, isExact } from './add-to-cell.ts'
import { CellRows, PIECE_ROWS } from './cell-rows.ts'

/**
 * At most this many starts are open at once, and this many allocations of PIECE_ROWS rows (49 bytes each) in all. Cells
 * beyond that are computed from the raw samples.
 */
export const STARTS_MAX = 12
const CHUNKS_MAX = 2_048

export type CellOwner = { readonly companyId: string; readonly serverId: string }

/** The cells of a server with one start: rows [start, start + length) of a chunk, ordered by the id of the series. */
export type ServerCells = CellOwner & {
  chunk: CellRows
  start: number
  length: number
  /** The cells must be computed from the raw samples. */
  isRaw: boolean
}

/** The cells that start at one instant, by server. */
export type CellsOfStart = {
  readonly startMs: number
  readonly servers: Map<string, ServerCells>
  readonly chunks: CellRows[]
}

const keyOf = (owner: CellOwner): string => owner.companyId + owner.serverId
const NO_ROWS = new CellRows(0)

/** Open cells of one width. */
export class OpenCells {
  readonly widthMs: number
  private readonly starts = new Map<number, CellsOfStart>()
  private readonly spare: CellRows[] = []
  private chunkCount = 0
  /** Cells that start at this instant or later have all their samples here. */
  fromMs = Number.POSITIVE_INFINITY
  /** No stored sample is in a later cell than the one that contains this instant. */
  newestMs = Number.NEGATIVE_INFINITY
  /** Working memory: ids of a server's series while they are merged. */
  private readonly lo = new Uint32Array(PIECE_ROWS)
  private readonly hi = new Uint32Array(PIECE_ROWS)
  private readonly origin = new Int32Array(PIECE_ROWS)
  private readonly wanted = new CellRows()

  constructor(widthMs: number) {
    this.widthMs = widthMs
  }

  /** Whether cells of this start have all their samples here. */
  isWhole(startMs: number): boolean {
    return startMs >= this.fromMs
  }

  /**
   * Samples up to `newestMs` may have been stored without being added here, or were deleted. Every newer sample is
   * added from now on.
   */
  completeAfter(newestMs: number): void {
    this.newestMs = Math.max(this.newestMs, newestMs)
    const isNone = this.newestMs === Number.NEGATIVE_INFINITY
    const fromMs = isNone ? 0 : (Math.floor(this.newestMs / this.widthMs) + 1) * this.widthMs
    this.fromMs = this.fromMs === Number.POSITIVE_INFINITY ? fromMs : Math.max(this.fromMs, fromMs)
    this.forgetBefore(this.fromMs)
  }

  /** Cells that start before this instant are computed from the raw samples. */
  distrustBefore(startMs: number): void {
    if (this.fromMs === Number.POSITIVE_INFINITY || startMs <= this.fromMs) return
    this.fromMs = Math.ceil(startMs / this.widthMs) * this.widthMs
    this.forgetBefore(this.fromMs)
  }

  /** Samples were deleted, or may have been missed: all cells with samples so far are computed from the raw samples. */
  invalidateAll(): void {
    if (this.fromMs !== Number.POSITIVE_INFINITY) this.completeAfter(this.newestMs)
  }

  private forgetBefore(startMs: number): void {
    for (const cells of this.starts.values()) if (cells.startMs < startMs) this.release(this.take(cells.startMs))
  }

  /** Marks the cells of a server and start: they are computed from the raw samples, whatever samples still come. */
  markDirty(owner: CellOwner, startMs: number): void {
    if (!this.isWhole(startMs)) return
    const cells = this.cellsOf(startMs)
    if (cells) this.serverOf(cells, owner).isRaw = true
  }

  /**
   * Adds cells [begin, end) of `rows`, ordered by id, to the cells of a server that start at `startMs`. The added cells
   * start `offsetMs` later. Rows without samples are skipped.
   */
  addCells(owner: CellOwner, startMs: number, rows: CellRows, begin: number, end: number, offsetMs: number): void {
    this.into(owner, startMs, (cells, server) => this.mergeCells(cells, server, rows, begin, end, offsetMs))
  }

  /** Adds the samples of points [begin, end), all of one server, that fall into the cells that start at `startMs`. */
  addSamples(owner: CellOwner, startMs: number, written: WrittenPoints, begin: number, end: number): void {
    this.into(owner, startMs, (cells, server) => this.mergeSamples(cells, server, written, begin, end))
  }

  private into(owner: CellOwner, startMs: number, merge: (cells: CellsOfStart, server: ServerCells) => boolean): void {
    this.newestMs = Math.max(this.newestMs, startMs)
    if (!this.isWhole(startMs)) return
    const cells = this.cellsOf(startMs)
    if (!cells) return
    const server = this.serverOf(cells, owner)
    if (!server.isRaw) server.isRaw = !merge(cells, server)
    if (this.chunkCount > CHUNKS_MAX) this.invalidateAll()
  }

  /**
   * The cells of a start; undefined when too many starts are open, in which case its cells are computed from the raw
   * samples.
   */
  private cellsOf(startMs: number): CellsOfStart | undefined {
    const known = this.starts.get(startMs)
    if (known) return known
    if (this.starts.size >= STARTS_MAX) {
      const [oldestMs = startMs] = [...this.starts.keys()].sort((a, b) => a - b)
      this.distrustBefore(Math.min(oldestMs, startMs) + this.widthMs)
      if (!this.isWhole(startMs)) return undefined
    }
    const cells: CellsOfStart = { startMs, servers: new Map(), chunks: [] }
    this.starts.set(startMs, cells)
    return cells
  }

  private serverOf({ servers }: CellsOfStart, owner: CellOwner): ServerCells {
    const key = keyOf(owner)
    let server = servers.get(key)
    if (!server) {
      const { companyId, serverId } = owner
      server = { companyId, serverId, chunk: NO_ROWS, start: 0, length: 0, isRaw: false }
      servers.set(key, server)
    }
    return server
  }

  /** Adds cells, walking rows and cells side by side; both are ordered by id. */
  private mergeCells(
    cells: CellsOfStart,
    server: ServerCells,
    rows: CellRows,
    begin: number,
    end: number,
    offsetMs: number,
  ): boolean {
    let { chunk, start: at } = server
    let to = at + server.length
    for (let row = begin; row < end; row++) {
      if (rows.count[row] === 0) continue
      const hi = rows.idHi[row]!
      const lo = rows.idLo[row]!
      at = findRow(chunk, at, to, hi, lo)
      if (at < 0) {
        if (!this.widen(cells, server, rows, row, end)) return false
        chunk = server.chunk
        to = server.start + server.length
        at = findRow(chunk, server.start, to, hi, lo)
      }
      if (!addToCell(chunk, at, rows, row, offsetMs)) return false
    }
    return true
  }

  /** Adds samples in the same way. This runs for every stored sample. */
  private mergeSamples(
    cells: CellsOfStart,
    server: ServerCells,
    written: WrittenPoints,
    begin: number,
    end: number,
  ): boolean {
    const { idLo, idHi, tsMs, decimals, digits } = written
    const { startMs } = cells
    const { widthMs } = this
    let { chunk, start: at } = server
    let { idLo: chunkLo, idHi: chunkHi } = chunk
    let to = at + server.length
    for (let index = begin; index < end; index++) {
      const after = tsMs[index]! - startMs
      if (after < 0 || after >= widthMs) continue
      // Compared as signed words, which costs half as much. Nearly always the next series has the next row.
      const lo = idLo[index]! | 0
      const hi = idHi[index]! | 0
      if (at < to && ((chunkLo[at]! | 0) !== lo || (chunkHi[at]! | 0) !== hi)) at++
      if (at >= to || (chunkLo[at]! | 0) !== lo || (chunkHi[at]! | 0) !== hi) {
        at = findRow(chunk, at, to, hi >>> 0, lo >>> 0)
        if (at < 0) {
          if (!this.widenForSamples(cells, server, written, index, end)) return false
          chunk = server.chunk
          chunkLo = chunk.idLo
          chunkHi = chunk.idHi
          to = server.start + server.length
          at = findRow(chunk, server.start, to, hi >>> 0, lo >>> 0)
        }
      }
      if (!addSample(chunk, at, after, decimals[index]!, digits[index]!)) return false
    }
    return true
  }

  private widenForSamples(
    cells: CellsOfStart,
    server: ServerCells,
    { idLo, idHi, tsMs }: WrittenPoints,
    begin: number,
    end: number,
  ): boolean {
    const { wanted } = this
    let count = 0
    for (let index = begin; index < end && count < PIECE_ROWS; index++) {
      const after = tsMs[index]! - cells.startMs
      if (after < 0 || after >= this.widthMs) continue
      wanted.idLo[count] = idLo[index]!
      wanted.idHi[count++] = idHi[index]!
    }
    return this.widen(cells, server, wanted, 0, count)
  }

  /**
   * Adds cells for the series of rows [begin, end) to the server. A server that has none yet also gets cells for the
   * series of its cell before, so that this is done once for each start; a series that is no longer sent drops out
   * after one cell. False when there are too many series.
   */
  private widen(cells: CellsOfStart, server: ServerCells, rows: CellRows, begin: number, end: number): boolean {
    const isNew = server.length === 0
    const base = isNew ? this.starts.get(cells.startMs - this.widthMs)?.servers.get(keyOf(server)) : server
    const { lo, hi, origin } = this
    let length = 0
    let at = base?.start ?? 0
    const to = at + (base?.length ?? 0)
    const chunk = base?.chunk ?? NO_ROWS
    let row = begin
    while (at < to || row < end) {
      if (at < to && isNew && chunk.count[at] === 0) {
        at++
        continue
      }
      if (length === PIECE_ROWS) return false
      // Below 0: the series of `at` comes first. 0: both are the same series.
      const order =
        at === to ? 1 : row === end ? -1 : chunk.idHi[at]! - rows.idHi[row]! || chunk.idLo[at]! - rows.idLo[row]!
      lo[length] = order <= 0 ? chunk.idLo[at]! : rows.idLo[row]!
      hi[length] = order <= 0 ? chunk.idHi[at]! : rows.idHi[row]!
      origin[length] = order <= 0 && !isNew ? at : -1
      if (order >= 0) {
        const first = row++
        while (row < end && rows.idLo[row] === rows.idLo[first] && rows.idHi[row] === rows.idHi[first]) row++
      }
      if (order <= 0) at++
      length++
    }
    this.place(cells, server, length)
    return true
  }

  /** Moves the cells of a server to new rows for the merged ids. */
  private place(cells: CellsOfStart, server: ServerCells, length: number): void {
    let chunk = cells.chunks.at(-1)
    if (!chunk || chunk.used + length > PIECE_ROWS) {
      chunk = this.spare.pop() ?? new CellRows()
      chunk.used = 0
      cells.chunks.push(chunk)
      this.chunkCount++
    }
    const start = chunk.used
    chunk.used += length
    chunk.idLo.set(this.lo.subarray(0, length), start)
    chunk.idHi.set(this.hi.subarray(0, length), start)
    for (let index = 0; index < length; index++) {
      const from = this.origin[index]!
      chunk.count[start + index] = 0
      if (from >= 0 && server.chunk.count[from] !== 0) addToCell(chunk, start + index, server.chunk, from, 0)
    }
    server.chunk = chunk
    server.start = start
    server.length = length
  }

  /**
   * Takes out the cells of one start, which has ended like all before it. Cells that are not exact are marked. The
   * caller calls `release` once they are stored.
   */
  take(startMs: number): CellsOfStart {
    const cells = this.starts.get(startMs) ?? { startMs, servers: new Map(), chunks: [] }
    this.starts.delete(startMs)
    this.fromMs = Math.max(this.fromMs, startMs + this.widthMs)
    this.chunkCount -= cells.chunks.length
    for (const server of cells.servers.values()) server.isRaw ||= !areExact(server)
    return cells
  }

  /** Gives rows back for reuse; as many stay allocated as these cells took. */
  release({ chunks }: CellsOfStart): void {
    this.spare.push(...chunks)
    this.spare.length = Math.min(this.spare.length, chunks.length)
  }
}

/** The row of a series within rows [from, to), which are ordered by id; -1 when it has none. */
function findRow({ idLo, idHi }: CellRows, from: number, to: number, hi: number, lo: number): number {
  let at = from
  while (at < to && (idHi[at]! < hi || (idHi[at] === hi && idLo[at]! < lo))) at++
  return at < to && idHi[at] === hi && idLo[at] === lo ? at : -1
}

function areExact({ chunk, start, length }: ServerCells): boolean {
  for (let at = start; at < start + length; at++) if (chunk.count[at] !== 0 && !isExact(chunk, at)) return false
  return true
}
