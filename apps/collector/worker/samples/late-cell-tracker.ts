// Tracks late cells, which wait to be computed again. Until then queries about their server read raw samples from the
// oldest such cell on.
import type { LateCell } from '../../../../core/samples/block/late-block.ts'
import type { CellOwner } from '../../../../core/samples/rollup/open-cells.ts'

/** Cells that became late together: the oldest of each server. */
type LateBatch = {
  readonly oldestOf: Map<string, number>
  /** Whether the cells are recorded in the store, so that the next pass computes them. */
  isNoted: boolean
}

const nameOf = ({ companyId, serverId }: CellOwner): string => companyId + serverId

export class LateCellTracker {
  private batches: LateBatch[] = []

  /** Adds cells that got late samples; the caller then records them in the store. */
  add(cells: readonly LateCell[]): LateBatch {
    const oldestOf = new Map<string, number>()
    for (const cell of cells) {
      const name = nameOf(cell)
      oldestOf.set(name, Math.min(cell.startMs, oldestOf.get(name) ?? cell.startMs))
    }
    const batch = { oldestOf, isNoted: false }
    if (oldestOf.size > 0) this.batches.push(batch)
    return batch
  }

  /** The batches that a pass which starts now computes. */
  noted(): readonly LateBatch[] {
    return this.batches.filter(({ isNoted }) => isNoted)
  }

  /** Removes the batches that a pass computed. */
  forget(computed: readonly LateBatch[]): void {
    if (computed.length > 0) this.batches = this.batches.filter(batch => !computed.includes(batch))
  }

  /** The start of the server's oldest late cell; Infinity when it has none. */
  oldestOf(owner: CellOwner): number {
    const name = nameOf(owner)
    return this.batches.reduce(
      (oldestMs, batch) => Math.min(oldestMs, batch.oldestOf.get(name) ?? oldestMs),
      Number.POSITIVE_INFINITY,
    )
  }
}
