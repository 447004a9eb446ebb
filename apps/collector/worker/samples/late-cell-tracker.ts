// Which cells wait to be computed again: until they are, what is asked of their server is read from the raw samples
// from there on.
import type { LateCell } from '../../../../core/samples/block/late-block.ts'
import type { CellOwner } from '../../../../core/samples/rollup/open-cells.ts'

/** Cells that became late together: the oldest of each server. */
type LateBatch = {
  readonly oldestOf: Map<string, number>
  /** Whether the store knows of them, so that the next pass computes them. */
  isNoted: boolean
}

const nameOf = ({ companyId, serverId }: CellOwner): string => companyId + serverId

export class LateCellTracker {
  private batches: LateBatch[] = []

  /** `cells` are stored, and the store is to be told that they are late. */
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

  /** Those that a pass which begins now computes. */
  noted(): readonly LateBatch[] {
    return this.batches.filter(({ isNoted }) => isNoted)
  }

  /** They are computed. */
  forget(computed: readonly LateBatch[]): void {
    if (computed.length > 0) this.batches = this.batches.filter(batch => !computed.includes(batch))
  }

  /** The oldest cell of a server that waits; Infinity where none does. */
  oldestOf(owner: CellOwner): number {
    const name = nameOf(owner)
    return this.batches.reduce(
      (oldestMs, batch) => Math.min(oldestMs, batch.oldestOf.get(name) ?? oldestMs),
      Number.POSITIVE_INFINITY,
    )
  }
}
