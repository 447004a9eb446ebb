// Columns that a state needs only while it is PENDING or FIRING, as a struct of arrays beside the state table: most
// states are OK and have no row here. Freed rows are reused, the last one first.

const GROWTH = 1.5

export class ActiveTable {
  private top = 0
  private readonly free: number[] = []

  /**
   * PENDING: time of the sample that began the violation. FIRING: time of the sample that began the recovery, NaN =
   * none.
   */
  sinceTsMs = new Float64Array(256)
  /** FIRING: sample time of the opening, and the peak since; NaN before. */
  openedTsMs = new Float64Array(256)
  peak = new Float64Array(256)
  /** FIRING: wall time of the opening or of the last reminder. */
  notifiedAtMs = new Float64Array(256)

  /** Allocates a row with empty columns. */
  add(): number {
    const row = this.free.pop() ?? this.top++
    if (row === this.sinceTsMs.length) this.grow()
    this.sinceTsMs[row] = Number.NaN
    this.openedTsMs[row] = Number.NaN
    this.peak[row] = Number.NaN
    this.notifiedAtMs[row] = 0
    return row
  }

  remove(row: number): void {
    this.free.push(row)
  }

  private grow(): void {
    const capacity = Math.ceil(this.sinceTsMs.length * GROWTH)
    const larger = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(capacity)
      to.set(from)
      return to
    }
    this.sinceTsMs = larger(this.sinceTsMs)
    this.openedTsMs = larger(this.openedTsMs)
    this.peak = larger(this.peak)
    this.notifiedAtMs = larger(this.notifiedAtMs)
  }
}
