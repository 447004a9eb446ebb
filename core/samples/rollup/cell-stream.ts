// The open cells of both widths: samples go into cells of 5 minutes, and these, when they are stored, into cells of an
// hour.
import { cellMs } from '../../query/query-plan.ts'
import type { ServerRows } from '../block/sample-block.ts'
import { type CellOwner, type CellsOfStart, OpenCells, STARTS_MAX } from './open-cells.ts'

export class CellStream {
  readonly '5m': OpenCells = new OpenCells(cellMs['5m'])
  readonly '1h': OpenCells = new OpenCells(cellMs['1h'])

  /** What is stored so far is not newer than `newestMs`; everything from now on is told to `add`. */
  start(newestMs: number): void {
    this['5m'].completeAfter(newestMs)
    this['1h'].completeAfter(newestMs)
  }

  /** Samples were deleted, or may have been missed: what is open is computed from the raw samples. */
  invalidateAll(): void {
    const fine = this['5m']
    fine.invalidateAll()
    this['1h'].distrustBefore(fine.fromMs)
  }

  /** Cells that start before this instant are computed from the raw samples. */
  distrustBefore(startMs: number): void {
    this['5m'].distrustBefore(startMs)
    this['1h'].distrustBefore(startMs)
  }

  /**
   * Takes samples of a server that are stored. Cells that end by `claimedBeforeMs` are left out: `late` is told of
   * them.
   */
  add({ owner, written, begin, end }: ServerRows, claimedBeforeMs: number): void {
    const fine = this['5m']
    // A server that sends what it has kept for long: to pick the samples of each cell would take too long.
    const isLong = owner.cells.size > STARTS_MAX
    for (const startMs of owner.cells) {
      if (startMs + fine.widthMs <= claimedBeforeMs) continue
      if (isLong) fine.markDirty(owner, startMs)
      else fine.addSamples(owner, startMs, written, begin, end)
    }
  }

  /** Samples of a cell that may be computed already do not come here: what is open of it and of its hour is not all. */
  late(owner: CellOwner, startMs: number): void {
    this['5m'].markDirty(owner, startMs)
    this['1h'].markDirty(owner, this.hourOf(startMs))
  }

  /** Takes cells of 5 minutes that were stored into their hour. */
  passOn({ startMs, servers }: CellsOfStart): void {
    const hourMs = this.hourOf(startMs)
    for (const server of servers.values()) {
      const { chunk, start, length } = server
      if (server.isRaw) this['1h'].markDirty(server, hourMs)
      else this['1h'].addCells(server, hourMs, chunk, start, start + length, startMs - hourMs)
    }
  }

  private hourOf(startMs: number): number {
    return startMs - (startMs % this['1h'].widthMs)
  }
}
