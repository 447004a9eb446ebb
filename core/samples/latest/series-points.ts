// Points or cells of one series, collected from rows that may overlap (points that were sent again) and from buffered
// points. Which of two of one time counts: core/samples/block/repeated-point.ts.

export class PointsOfSeries {
  tsMs: number[] = []
  value: number[] = []
  /** The weight of each value: 1 for a point, the sample count for a cell. */
  weight: number[] = []
  private seq: number[] = []
  private isOrdered = true

  /**
   * Adds a value. Of two values with one time the one with the higher `seq` counts; with equal seq, the one added
   * later.
   */
  add(tsMs: number, value: number, seq: number, weight = 1): void {
    const { length } = this.tsMs
    if (length > 0 && tsMs <= this.tsMs[length - 1]!) this.isOrdered = false
    this.tsMs.push(tsMs)
    this.value.push(value)
    this.weight.push(weight)
    this.seq.push(seq)
  }

  /** Sorts by time and drops all but one value of each time. */
  order(): void {
    if (this.isOrdered) return
    const { tsMs, seq } = this
    const places = [...tsMs.keys()].sort((a, b) => tsMs[a]! - tsMs[b]! || seq[a]! - seq[b]! || a - b)
    const kept = places.filter((place, at) => at + 1 === places.length || tsMs[places[at + 1]!] !== tsMs[place])
    const those = (column: readonly number[]): number[] => kept.map(place => column[place]!)
    this.value = those(this.value)
    this.weight = those(this.weight)
    this.seq = those(seq)
    this.tsMs = those(tsMs)
    this.isOrdered = true
  }
}
