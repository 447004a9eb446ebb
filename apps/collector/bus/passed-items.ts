// Which item of a stream a partition had come to at a position, for positions that are passed later: exact of the
// newest, and ever coarser of what came before them, so that minutes of items take little memory.

const KEPT_MAX = 128

export class PassedItems {
  private positions: number[] = []
  private items: number[] = []

  /** The entries up to `position` are in the items up to `item`. Both only grow. */
  came(position: number, item: number): void {
    this.positions.push(position)
    this.items.push(item)
    if (this.positions.length <= KEPT_MAX) return
    const isKept = (_: number, index: number): boolean => index % 2 === 0 || index >= KEPT_MAX / 2
    this.positions = this.positions.filter(isKept)
    this.items = this.items.filter(isKept)
  }

  /** An item behind which are all entries behind the position; null where none is known. */
  upTo(position: number): number | null {
    const index = this.positions.findLastIndex(known => known <= position)
    return this.items[index] ?? null
  }
}
