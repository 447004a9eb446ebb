// Points or cells of one series as they are read: from rows that may overlap where points were sent again, and from
// what waits to be stored.

export class PointsOfSeries {
  tsMs: number[] = []
  value: number[] = []
  /** By how much a value counts beside others: a point as one. */
  weight: number[] = []
  private seq: number[] = []
  private isOrdered = true

  /** Of two of one time the one with the higher `seq` counts, or the one that was added later. */
  add(tsMs: number, value: number, seq: number, weight = 1): void {
    const last = this.tsMs.at(-1)
    if (last !== undefined && tsMs <= last) this.isOrdered = false
    this.tsMs.push(tsMs)
    this.value.push(value)
    this.weight.push(weight)
    this.seq.push(seq)
  }

  /** Puts them in the order of time, each time once. */
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
