// The points of one series as they are read: from runs, which may overlap where points were sent again, and from what waits to be stored.

export class PointsOfSeries {
  tsMs: number[] = []
  value: number[] = []
  private seq: number[] = []
  private isOrdered = true

  /** Of two points of one time the one with the higher `seq` counts, or the one that was added later. */
  add(tsMs: number, value: number, seq: number): void {
    const last = this.tsMs.at(-1)
    if (last !== undefined && tsMs <= last) this.isOrdered = false
    this.tsMs.push(tsMs)
    this.value.push(value)
    this.seq.push(seq)
  }

  /** Puts the points in the order of time, each time once. */
  order(): void {
    if (this.isOrdered) return
    const { tsMs, value, seq } = this
    const places = [...tsMs.keys()].sort((a, b) => tsMs[a]! - tsMs[b]! || seq[a]! - seq[b]! || a - b)
    const kept = places.filter((place, at) => at + 1 === places.length || tsMs[places[at + 1]!] !== tsMs[place])
    this.tsMs = kept.map(place => tsMs[place]!)
    this.value = kept.map(place => value[place]!)
    this.seq = kept.map(place => seq[place]!)
    this.isOrdered = true
  }
}
