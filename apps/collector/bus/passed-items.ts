// Which item of a stream a partition had come to at a position, for positions that are passed later: exact of the
// newest, and evenly coarser of what came before them, so that an hour of items takes little memory.

const EXACT = 64
const COARSE_MAX = 512

type End = { readonly position: number; readonly item: number }

export class PassedItems {
  private exact: End[] = []
  private coarse: End[] = []
  /** Of so many ends one is kept among the coarse ones. */
  private spacing = EXACT
  private count = 0

  /** The entries up to `position` are in the items up to `item`. Both only grow. */
  came(position: number, item: number): void {
    const end = { position, item }
    this.exact.push(end)
    if (this.exact.length > 2 * EXACT) this.exact = this.exact.slice(-EXACT)
    if (this.count++ % this.spacing === 0) this.coarse.push(end)
    if (this.coarse.length <= COARSE_MAX) return
    this.coarse = this.coarse.filter((_, index) => index % 2 === 0)
    this.spacing *= 2
  }

  /** What came behind a position comes again. */
  backTo(position: number): void {
    const isBefore = (end: End): boolean => end.position <= position
    this.exact = this.exact.filter(isBefore)
    this.coarse = this.coarse.filter(isBefore)
  }

  /** As `upTo`; what is before it is not asked for any more. */
  passedTo(position: number): number | null {
    const item = this.upTo(position)
    if (item === null) return null
    const isLeft = (end: End): boolean => end.item >= item
    this.exact = this.exact.filter(isLeft)
    this.coarse = this.coarse.filter(isLeft)
    while (this.spacing > EXACT && this.coarse.length < COARSE_MAX / 4) this.spacing /= 2
    return item
  }

  /** An item behind which are all entries behind the position; null where none is known. */
  upTo(position: number): number | null {
    const isBefore = (end: End): boolean => end.position <= position
    return (this.exact.findLast(isBefore) ?? this.coarse.findLast(isBefore))?.item ?? null
  }
}
