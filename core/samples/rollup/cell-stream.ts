// The open cells of both widths: samples are added to cells of 5 minutes, and these are added to cells of an hour when
// they are stored.

import type { ServerPoints } from '../block/sample-block.ts'
import { CellRows } from './cell-rows.ts'
import { cellMs } from './cell-width.ts'
import { type CellOwner, type CellsOfStart, OpenCells, STARTS_MAX, unpackServer } from './open-cells.ts'

export class CellStream {
  readonly '5m': OpenCells = new OpenCells(cellMs['5m'])
  readonly '1h': OpenCells = new OpenCells(cellMs['1h'])
  /** Working memory: the cells of one server. */
  private readonly rows = new CellRows()

  /** Starts the stream: stored samples are not newer than `newestMs`, and every later sample is given to `add`. */
  start(newestMs: number): void {
    this['5m'].completeAfter(newestMs)
    this['1h'].completeAfter(newestMs)
  }

  /** Samples were deleted, or may have bypassed the stream: all open cells are computed from the raw samples. */
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
   * Takes samples of a server that are stored. Cells that end by `claimedBeforeMs` are left out: for these the caller
   * calls `late`.
   */
  add({ owner, written, begin, end }: ServerPoints, claimedBeforeMs: number): void {
    const fine = this['5m']
    // A server that sends a long backlog: picking the samples of each cell would take too long, so its cells are marked
    // dirty.
    const isLong = owner.cells.size > STARTS_MAX
    for (const startMs of owner.cells) {
      if (startMs + fine.widthMs <= claimedBeforeMs) continue
      if (isLong) fine.markDirty(owner, startMs)
      else fine.addSamples(owner, startMs, written, begin, end)
    }
  }

  /**
   * A cell that may be computed already got samples that are not added here: it and its hour are incomplete and must be
   * computed from the raw samples.
   */
  late(owner: CellOwner, startMs: number): void {
    this['5m'].markDirty(owner, startMs)
    this['1h'].markDirty(owner, this.hourOf(startMs))
  }

  /** Adds stored cells of 5 minutes to their hours. Yields after each server, so that others have their turn. */
  *passingOn({ startMs, servers }: CellsOfStart): Generator<void, void> {
    const hourMs = this.hourOf(startMs)
    for (const server of servers.values()) {
      if (server.isRaw) this['1h'].markDirty(server, hourMs)
      else {
        unpackServer(server, this.rows)
        this['1h'].addCells(server, hourMs, this.rows, startMs - hourMs)
      }
      yield
    }
  }

  private hourOf(startMs: number): number {
    return startMs - (startMs % this['1h'].widthMs)
  }
}
