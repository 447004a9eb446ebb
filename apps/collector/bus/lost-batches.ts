// How many acknowledged batches a Redis has lost that came back without its newest writes, or was replaced by a replica
// that had not got them yet: kept is what Redis told this process in the last minute. No batch is recognised here as a
// repeat of another.

const KEPT_MS = 60_000
/** Publishes of a partition within this time share one range. */
const RANGE_MS = 1_000

/** Positions of a partition, and how many of them are batches of this process. */
type Range = { readonly first: number; last: number; count: number; readonly atMs: number }

export class LostBatches {
  private readonly ranges = new Map<number, Range[]>()

  /** Batches that got the positions up to `last` of a partition. */
  noteAcknowledged(partition: number, last: number, count: number, atMs: number): void {
    const ranges = this.ranges.get(partition) ?? []
    this.ranges.set(partition, ranges)
    const newest = ranges.at(-1)
    if (newest && atMs - newest.atMs < RANGE_MS) {
      newest.last = last
      newest.count += count
      return
    }
    ranges.push({ first: last - count + 1, last, count, atMs })
    while (atMs - ranges[0]!.atMs > KEPT_MS) ranges.shift()
  }

  /**
   * The batches of this process that are no more on a partition which ends at `head`; they are forgotten. What others
   * have published since the loss is not told apart from them, so that the true number may be higher.
   */
  takeLost(partition: number, head: number): number {
    const ranges = this.ranges.get(partition) ?? []
    let lost = 0
    for (const { first, last, count } of ranges)
      lost += first > head ? count : Math.min(count, Math.max(0, last - head))
    if (lost > 0) this.ranges.delete(partition)
    return lost
  }
}
