// A notice that is given at most once a period: at once after a quiet period, so that the first of a burst is not
// delayed, else at the end of the period for all that was raised in it.

export class PacedNotice {
  private timer: ReturnType<typeof setTimeout> | null = null
  /** On the monotonic clock. */
  private givenAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly periodMs: number,
    private readonly give: () => void,
  ) {}

  raise(): void {
    if (this.timer !== null) return
    const waitMs = this.givenAtMs + this.periodMs - performance.now()
    if (waitMs <= 0) this.giveNow()
    else this.timer = setTimeout(this.giveNow, waitMs)
  }

  /** Gives at once what was raised and not given yet. */
  stop(): void {
    if (this.timer === null) return
    clearTimeout(this.timer)
    this.giveNow()
  }

  private readonly giveNow = (): void => {
    this.timer = null
    this.givenAtMs = performance.now()
    this.give()
  }
}
