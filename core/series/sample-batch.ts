// The samples of one request as flat arrays, without an object for each series or point. Each thread reuses one batch,
// which grows to the largest request seen and never shrinks.

/** Series `i` has the id (idLo[i], idHi[i]) and the points pointStart[i] … pointStart[i + 1] - 1 of tsMs and value. */
export class SampleBatch {
  seriesCount = 0
  pointCount = 0
  idLo = new Uint32Array(512)
  idHi = new Uint32Array(512)
  pointStart = new Uint32Array(513)
  tsMs = new Float64Array(1024)
  value = new Float64Array(1024)
  /** Definitions that go to the bus with this batch: index of the series and its full key. */
  readonly definitions: { seriesIndex: number; key: string }[] = []
  /** How many of them are of series that the agent had not sent before; the others are announced again. */
  newSeries = 0

  clear(): void {
    this.seriesCount = 0
    this.pointCount = 0
    this.definitions.length = 0
    this.newSeries = 0
  }

  /** Makes room for one more series. */
  growSeries(): void {
    const capacity = this.idLo.length * 2
    const grow = (from: Uint32Array, length: number) => {
      const to = new Uint32Array(length)
      to.set(from)
      return to
    }
    this.idLo = grow(this.idLo, capacity)
    this.idHi = grow(this.idHi, capacity)
    this.pointStart = grow(this.pointStart, capacity + 1)
  }

  /** Makes room for one more point. */
  growPoints(): void {
    const tsMs = new Float64Array(this.tsMs.length * 2)
    const value = new Float64Array(tsMs.length)
    tsMs.set(this.tsMs)
    value.set(this.value)
    this.tsMs = tsMs
    this.value = value
  }
}
