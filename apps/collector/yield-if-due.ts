// Long work on a thread that answers others meanwhile: every few milliseconds it lets them have their turn.
const SLICE_MS = 5

/** Counts the time of a piece of work since others last had their turn. */
export class TimeSlice {
  private beganMs = performance.now()

  /** Lets others have their turn once the slice is used up; else goes on at once. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.beganMs < SLICE_MS) return
    await new Promise<void>(resolve => setImmediate(resolve))
    this.beganMs = performance.now()
  }
}

/** Takes all steps, yielding between two of them when that is due; returns what the last one gives. */
export async function runYielding<T>(steps: Generator<void, T>): Promise<T> {
  const slice = new TimeSlice()
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await slice.yieldIfDue()
  }
}
