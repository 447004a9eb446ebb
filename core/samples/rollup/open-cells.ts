// Open cells: the cells that samples still come for, accumulated while the samples are stored, so that a cell that ends
// need not be computed from the disk. A cell is used only when it provably equals the computed one: every sample of its
// time was added here, each newer than the one before in its series. All other cells are marked dirty (`isRaw`) by
// server and start, and are computed from the raw samples. The cells of a server are packed (packed-cells.ts); they are
// taken apart when a block has samples for them, once in minutes.

import type { WrittenPoints } from '../block/sample-block.ts'
import { addSample, addToCell, isExact } from './add-to-cell.ts'
import { type CellPage, CellPages, SparePages } from './cell-pages.ts'
import { CellRows, ROWS_MAX } from './cell-rows.ts'
import { type IdList, IdLists, NO_IDS } from './id-lists.ts'
import { packCells, packedBytesMax, unpackCells } from './packed-cells.ts'

/**
 * At most this many starts are open at once, and this many pages of 1 MiB in all. Cells beyond that are computed from
 * the raw samples.
 */
export const STARTS_MAX = 12
const PAGES_MAX = 1_024

export type CellOwner = { readonly companyId: string; readonly serverId: string }

/** The cells of a server with one start, in the order of their series' ids. */
type ServerCells = CellOwner & {
  ids: IdList
  /** Where they lie packed, in `length` bytes; null without any. */
  page: CellPage | null
  at: number
  length: number
  /** The cells must be computed from the raw samples. */
  isRaw: boolean
}

/** The cells that start at one instant, by server. */
export type CellsOfStart = {
  readonly startMs: number
  readonly servers: Map<string, ServerCells>
  pages: CellPages
}

const keyOf = (owner: CellOwner): string => owner.companyId + owner.serverId

/** Fills `rows` with the cells of a server. */
export function unpackServer({ ids, page, at }: ServerCells, rows: CellRows): void {
  if (page) unpackCells(page.bytes, at, ids, rows)
  else rows.used = 0
}

/** Open cells of one width. */
export class OpenCells {
  readonly widthMs: number
  private readonly starts = new Map<number, CellsOfStart>()
  private readonly spare = new SparePages()
  private readonly lists = new IdLists()
  private pageCount = 0
  /** Cells that start at this instant or later have all their samples here. */
  fromMs = Number.POSITIVE_INFINITY
  /** No stored sample is in a later cell than the one that contains this instant. */
  newestMs = Number.NEGATIVE_INFINITY
  /** Working memory: the cells of one server, and the same with more series; packed. */
  private rows = new CellRows()
  private wider = new CellRows()
  private readonly wanted = new CellRows()
  private readonly packed = new Uint8Array(packedBytesMax(ROWS_MAX))

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
    if (!cells) return
    this.pageCount -= cells.pages.count
    setRaw(cells, this.serverOf(cells, owner))
    this.pageCount += cells.pages.count
  }

  /** Adds `rows`, cells of a server that start `offsetMs` later, to its cells that start at `startMs`. */
  addCells(owner: CellOwner, startMs: number, rows: CellRows, offsetMs: number): void {
    this.into(owner, startMs, () => this.mergeCells(rows, offsetMs))
  }

  /** Adds the samples of points [begin, end), all of one server, that fall into the cells that start at `startMs`. */
  addSamples(owner: CellOwner, startMs: number, written: WrittenPoints, begin: number, end: number): void {
    this.into(owner, startMs, () => this.mergeSamples(startMs, written, begin, end))
  }

  /** `merge` adds to the rows of the server; where it says false they would not be exact. */
  private into(owner: CellOwner, startMs: number, merge: () => boolean): void {
    this.newestMs = Math.max(this.newestMs, startMs)
    if (!this.isWhole(startMs)) return
    const cells = this.cellsOf(startMs)
    if (!cells) return
    const server = this.serverOf(cells, owner)
    if (server.isRaw) return
    unpackServer(server, this.rows)
    const isMerged = merge() && areExact(this.rows)
    this.pageCount -= cells.pages.count
    if (isMerged) this.pack(cells, server)
    else setRaw(cells, server)
    this.pageCount += cells.pages.count
    if (this.pageCount > PAGES_MAX) this.invalidateAll()
  }

  /** Packs the rows as the cells of this server. */
  private pack(cells: CellsOfStart, server: ServerCells): void {
    const { rows, packed } = this
    if (rows.used === 0) return
    server.ids = this.lists.of(rows.idLo, rows.idHi, rows.used, server.ids)
    const length = packCells(rows, packed)
    if (server.page) cells.pages.leave(server.page, server.length)
    this.place(cells, server, packed, 0, length)
    if (cells.pages.isSparse) this.compact(cells)
  }

  private place(cells: CellsOfStart, server: ServerCells, bytes: Uint8Array, from: number, length: number): void {
    const { page, at } = cells.pages.place(bytes, from, length)
    server.page = page
    server.at = at
    server.length = length
  }

  /** Lays the cells of a start side by side: those of servers that send seldom keep nearly empty pages. */
  private compact(cells: CellsOfStart): void {
    const before = cells.pages
    cells.pages = new CellPages(this.spare)
    for (const server of cells.servers.values())
      if (server.page) this.place(cells, server, server.page.bytes, server.at, server.length)
    before.release()
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
    const cells = this.noCells(startMs)
    this.starts.set(startMs, cells)
    return cells
  }

  private noCells(startMs: number): CellsOfStart {
    return { startMs, servers: new Map(), pages: new CellPages(this.spare) }
  }

  private serverOf({ servers, startMs }: CellsOfStart, owner: CellOwner): ServerCells {
    const key = keyOf(owner)
    let server = servers.get(key)
    if (!server) {
      // Most servers have the series of the cell before.
      const before = this.starts.get(startMs - this.widthMs)?.servers.get(key)
      const { companyId, serverId } = before ?? owner
      server = { companyId, serverId, ids: before?.ids ?? NO_IDS, page: null, at: 0, length: 0, isRaw: false }
      servers.set(key, server)
    }
    return server
  }

  /** Adds cells to the rows, walking both side by side; both are ordered by id. */
  private mergeCells(from: CellRows, offsetMs: number): boolean {
    let at = 0
    for (let row = 0; row < from.used; row++) {
      const hi = from.idHi[row]!
      const lo = from.idLo[row]!
      at = findRow(this.rows, at, hi, lo)
      if (at < 0) {
        if (!this.widen(from, row, from.used)) return false
        at = findRow(this.rows, 0, hi, lo)
      }
      if (!addToCell(this.rows, at, from, row, offsetMs)) return false
    }
    return true
  }

  /** Adds samples in the same way. This runs for every stored sample. */
  private mergeSamples(startMs: number, written: WrittenPoints, begin: number, end: number): boolean {
    const { idLo, idHi, tsMs, decimals, digits } = written
    const { widthMs } = this
    let { rows } = this
    let { idLo: rowLo, idHi: rowHi, used } = rows
    let at = 0
    for (let index = begin; index < end; index++) {
      const after = tsMs[index]! - startMs
      if (after < 0 || after >= widthMs) continue
      // Compared as signed words, which costs half as much. Nearly always the next series has the next row.
      const lo = idLo[index]! | 0
      const hi = idHi[index]! | 0
      if (at < used && ((rowLo[at]! | 0) !== lo || (rowHi[at]! | 0) !== hi)) at++
      if (at >= used || (rowLo[at]! | 0) !== lo || (rowHi[at]! | 0) !== hi) {
        at = findRow(rows, at, hi >>> 0, lo >>> 0)
        if (at < 0) {
          if (!this.widenForSamples(startMs, written, index, end)) return false
          rows = this.rows
          rowLo = rows.idLo
          rowHi = rows.idHi
          used = rows.used
          at = findRow(rows, 0, hi >>> 0, lo >>> 0)
        }
      }
      if (!addSample(rows, at, after, decimals[index]!, digits[index]!)) return false
    }
    return true
  }

  private widenForSamples(startMs: number, { idLo, idHi, tsMs }: WrittenPoints, begin: number, end: number): boolean {
    const { wanted } = this
    let count = 0
    for (let index = begin; index < end; index++) {
      const after = tsMs[index]! - startMs
      if (after < 0 || after >= this.widthMs) continue
      if (count > 0 && wanted.idLo[count - 1] === idLo[index] && wanted.idHi[count - 1] === idHi[index]) continue
      if (count === ROWS_MAX) return false
      wanted.idLo[count] = idLo[index]!
      wanted.idHi[count++] = idHi[index]!
    }
    return this.widen(wanted, 0, count)
  }

  /** Adds empty cells to the rows for the series [begin, end) of `more`. False when there are too many series. */
  private widen(more: CellRows, begin: number, end: number): boolean {
    const { rows, wider } = this
    let used = 0
    let at = 0
    let row = begin
    while (at < rows.used || row < end) {
      if (used === ROWS_MAX) return false
      // Below 0: the series of `at` comes first. 0: both are the same series.
      const order =
        at === rows.used ? 1 : row === end ? -1 : rows.idHi[at]! - more.idHi[row]! || rows.idLo[at]! - more.idLo[row]!
      wider.idLo[used] = order <= 0 ? rows.idLo[at]! : more.idLo[row]!
      wider.idHi[used] = order <= 0 ? rows.idHi[at]! : more.idHi[row]!
      wider.count[used] = 0
      if (order <= 0) addToCell(wider, used, rows, at++, 0)
      if (order >= 0) row++
      used++
    }
    wider.used = used
    this.rows = wider
    this.wider = rows
    return true
  }

  /** Takes out the cells of one start, which has ended like all before it. `release` is called once they are stored. */
  take(startMs: number): CellsOfStart {
    const cells = this.starts.get(startMs) ?? this.noCells(startMs)
    this.starts.delete(startMs)
    this.fromMs = Math.max(this.fromMs, startMs + this.widthMs)
    this.pageCount -= cells.pages.count
    this.lists.nextTurn()
    return cells
  }

  /** Gives memory back for reuse; as much stays allocated as these cells took. */
  release({ pages }: CellsOfStart): void {
    const { count } = pages
    pages.release()
    this.spare.trim(count)
  }
}

/** The cells of a server must be computed from the raw samples. */
function setRaw({ pages }: CellsOfStart, server: ServerCells): void {
  server.isRaw = true
  if (server.page) pages.leave(server.page, server.length)
  server.page = null
  server.ids = NO_IDS
}

/** The row of a series from row `from` on; -1 when it has none. */
function findRow({ idLo, idHi, used }: CellRows, from: number, hi: number, lo: number): number {
  let at = from
  while (at < used && (idHi[at]! < hi || (idHi[at] === hi && idLo[at]! < lo))) at++
  return at < used && idHi[at] === hi && idLo[at] === lo ? at : -1
}

/** Rows that are not exact stay so: neither a count nor the largest digits ever shrink. */
function areExact(rows: CellRows): boolean {
  for (let at = 0; at < rows.used; at++) if (!isExact(rows, at)) return false
  return true
}
